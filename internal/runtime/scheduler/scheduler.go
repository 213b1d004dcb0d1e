// Package scheduler looks for threads that are due and has each of them processed: it
// takes them from the queues and from the store, a few at a time, quarantines those that
// can't be processed, and leaves a store alone that refuses changes. What is done for a
// thread is the business of its Processor.
package scheduler

import (
	"context"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Store is what the scheduler reads of a store.
type Store interface {
	// Due lists threads that are due, and says when the next one is.
	Due(ctx context.Context, limit int) (threads []string, next time.Time, err error)
	Head(ctx context.Context, thread string) (checkpoint.Head, error)
}

// Processor does what is due for one thread.
type Processor interface {
	ProcessDue(ctx context.Context, thread string) error
	// FreeSpace does what of it frees space in the store.
	FreeSpace(ctx context.Context, thread string) error
	// StoreQuarantine records in the head of a thread how often it failed and that it is
	// left alone for a while.
	StoreQuarantine(ctx context.Context, head *checkpoint.Head, failures int, pause time.Duration) error
}

// Granter takes threads from the queues of those that wait for capacity.
type Granter interface {
	HasFreeSlot() bool
	GrantWaiting(mostForMemory int) (threads []string, full bool)
	EndGrants(threads []string)
}

// Queue knows which threads wait for capacity.
type Queue interface {
	IsQueued(thread string) bool
	CountQueued() int
}

// Abandoned are the threads whose lease may be this server's although no run of
// them is live here.
type Abandoned interface {
	MarkMaybeLeased(thread string)
	ListMaybeLeased() []string
	ClearMaybeLeased(thread string)
}

// Options are what a scheduler works with.
type Options struct {
	Store     Store
	Processor Processor
	Granter   Granter
	Queue     Queue
	Abandoned Abandoned
	IsLive    func(thread string) bool // whether a run of the thread is live here
	// ReportLive is called at the beginning of each look.
	ReportLive func()
	// QueueServed queues threads that waited for workers that are here now. It returns
	// those whose workers are elsewhere.
	QueueServed  func() []string
	IsShared     bool          // whether other servers look at the same store
	ScanInterval time.Duration // how often the store is looked at
	Uptime       func() time.Duration
	Now          func() time.Time
	Observer     runtime.Observer
	Logger       *zap.Logger
}

// Scheduler has threads processed that are due. Its parts have locks of their own,
// and none of them is held during a call.
type Scheduler struct {
	opts                Options
	log                 *zap.Logger
	wakeups             chan struct{} // buffered; a value wakes the scheduler
	quarantine          quarantine
	storeBackoff        storeBackoff
	reportedQuarantined atomic.Int64 // the last value of Observer.ThreadsPoisoned
}

// New makes a scheduler; Run starts it.
func New(o Options) *Scheduler {
	s := &Scheduler{opts: o, log: o.Logger, wakeups: make(chan struct{}, 1)}
	s.reportedQuarantined.Store(-1) // the observer knows nothing yet
	return s
}

// dueBatch is how many threads one look at the store takes up.
const dueBatch = 256

// minUsefulBatch is how many threads make a look at the store worth while.
const minUsefulBatch = dueBatch / 4

// MaxParallelDue is how many due threads are processed at the same time.
const MaxParallelDue = 16

// Wake makes the scheduler look for due threads now. It does not block.
func (s *Scheduler) Wake() {
	select {
	case s.wakeups <- struct{}{}:
	default:
	}
}

// NoteCommitted notes that the store has taken a change of a thread, whose head counts
// so many faults now.
func (s *Scheduler) NoteCommitted(thread string, faults int) {
	if s.storeBackoff.isRefusing() {
		s.storeBackoff.endPause()
		s.Wake()
	}
	if faults == 0 && s.reportedQuarantined.Load() > 0 {
		s.quarantine.removeThread(thread)
	}
}

// Run processes what is due until ctx or stop ends. What is due follows from the
// heads, so no wake-up can be lost.
func (s *Scheduler) Run(ctx context.Context, stop <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		woken := false
		select {
		case <-stop:
			return
		case <-ctx.Done():
			return
		case <-s.wakeups:
			woken = true
		case <-timer.C:
		}
		s.opts.ReportLive()
		if s.isPaused(timer) {
			continue
		}
		s.processServed(ctx)
		if full := s.processGranted(ctx); full && woken || s.isPaused(timer) {
			continue
		}
		next := s.processDueOnce(ctx)
		timer.Reset(max(min(s.opts.ScanInterval, max(next, time.Millisecond)), s.storeBackoff.remainingPause(s.opts.Uptime())))
	}
}
