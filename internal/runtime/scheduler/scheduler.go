// Package scheduler finds due threads in the queues and in the store, and passes them
// to a Processor, a few at a time. It quarantines threads that can't be processed, and
// pauses while the store refuses changes.
package scheduler

import (
	"context"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Store is the part of the store that the scheduler reads.
type Store interface {
	// Due lists due threads, and returns the time at which the next thread is
	// due.
	Due(ctx context.Context, limit int) (threads []string, next time.Time, err error)
	Head(ctx context.Context, thread string) (checkpoint.Head, error)
}

// Processor does the due work of one thread.
type Processor interface {
	ProcessDue(ctx context.Context, thread string) error
	// FreeSpace does the part of that work that frees space in the store.
	FreeSpace(ctx context.Context, thread string) error
	// StoreQuarantine records in the head of a thread the number of its failures and
	// its quarantine.
	StoreQuarantine(ctx context.Context, head *checkpoint.Head, failures int, pause time.Duration) error
}

// Granter takes threads from the queues of those that wait for capacity.
type Granter interface {
	HasFreeSlot() bool
	GrantWaiting(mostForMemory int) (threads []string, full bool)
	EndGrants(threads []string)
}

// Queue has the threads that wait for capacity.
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

// Options are the collaborators and limits of a scheduler.
type Options struct {
	Store     Store
	Granter   Granter
	Queue     Queue
	Abandoned Abandoned
	IsLive    func(thread string) bool // whether a run of the thread is live here
	// ReportLive is called at the beginning of each look.
	ReportLive func()
	// QueueServed queues threads that waited for workers that are here now. It returns
	// those whose workers are elsewhere.
	QueueServed  func() []string
	IsShared     bool          // other servers use the same store
	ScanInterval time.Duration // interval of looks at the store
	Uptime       func() time.Duration
	Now          func() time.Time
	Observer     runtime.Observer
	Logger       *zap.Logger
}

// Scheduler passes due threads to its Processor. Its parts have locks of their
// own, and hold none during a call.
type Scheduler struct {
	opts                Options
	processor           Processor
	log                 *zap.Logger
	wakeups             chan struct{} // buffered; a value wakes the scheduler
	quarantine          quarantine
	storeBackoff        storeBackoff
	reportedQuarantined atomic.Int64  // the last value of Observer.ThreadsPoisoned
	restUntil           time.Duration // uptime before which Run does not look at the store because of a wake-up
}

// New makes a scheduler without a Processor; Run starts it.
func New(o Options) *Scheduler {
	s := &Scheduler{opts: o, log: o.Logger, wakeups: make(chan struct{}, 1)}
	s.reportedQuarantined.Store(-1) // nothing is reported yet
	return s
}

// SetProcessor sets the processor of due threads. It is called before Run, and before
// another part has a thread processed.
func (s *Scheduler) SetProcessor(p Processor) { s.processor = p }

// dueBatch is the number of threads that a look at the store processes.
const dueBatch = 256

// minUsefulBatch is the number of threads that justifies a look at the store.
const minUsefulBatch = dueBatch / 4

// restFactor is how many times as long as a look at the store the scheduler rests after it,
// when many threads that wait for their tenant or in quarantine stood before the others:
// they must not slow those down.
const restFactor = 10

// MaxParallelDue is the number of due threads that are processed at the same
// time.
const MaxParallelDue = 16

// Wake makes the scheduler look for due threads now. It does not block.
func (s *Scheduler) Wake() {
	select {
	case s.wakeups <- struct{}{}:
	default:
	}
}

// NoteCommitted records that the store has accepted a change of a thread, whose head
// now counts so many faults.
func (s *Scheduler) NoteCommitted(thread string, faults int) {
	if s.storeBackoff.isRefusing() {
		s.storeBackoff.endPause()
		s.Wake()
	}
	if faults == 0 && s.reportedQuarantined.Load() > 0 {
		s.quarantine.removeThread(thread)
	}
}

// Run processes due threads until ctx or stop ends. The heads have the due times, so no
// wake-up can be lost.
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
		if full := s.processGranted(ctx); full && woken || s.isPaused(timer) || woken && s.isResting(timer) {
			continue
		}
		next := s.processDueOnce(ctx)
		now := s.opts.Uptime()
		timer.Reset(max(min(s.opts.ScanInterval, max(next, time.Millisecond)), s.restUntil-now, s.storeBackoff.remainingPause(now)))
	}
}
