// Package ownership holds threads: it takes and renews leases, drives the run of a held
// thread, and hands it to another server.
package ownership

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/capacity"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/feed"
	"github.com/graphd-dev/graphd/internal/runtime/placement"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// Store has the reads and changes that bypass the committer.
type Store interface {
	Head(ctx context.Context, thread string) (checkpoint.Head, error)
	Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error)
}

// StateReader reads states that may be large.
type StateReader interface {
	// RetryLargeRead repeats a read that needs more memory than is held, when there is
	// memory for it or timeout is over.
	RetryLargeRead(ctx context.Context, held *runtime.ReadReservation, timeout time.Duration, read func() error) error
}

// Scheduler has threads processed that are not held here.
type Scheduler interface {
	Wake() // looks for due threads now; it does not block
	ProcessThread(ctx context.Context, thread string)
	QuarantineThread(ctx context.Context, thread string, why error)
}

// Pruner decides which checkpoints and events of a thread are removed, and puts that
// into a change.
type Pruner interface {
	CheckpointsToKeep(h *checkpoint.Head) uint64 // 0 = all
	PruneBound(h *checkpoint.Head) uint64        // the oldest checkpoint that is kept
	PutPrune(ctx context.Context, t *commit.Tx, run *checkpoint.Run, from uint64) error
}

// Canceller ends runs that are cancelled.
type Canceller interface {
	PutCancelledEnd(ctx context.Context, t *commit.Tx, run checkpoint.Run, request checkpoint.Cancel) error
}

// Options are the collaborators and limits of an owner.
type Options struct {
	ID           string        // name of this server in leases
	LeaseTTL     time.Duration // how long a silent server keeps a thread
	PruneDelay   time.Duration // how long the past of a live run is kept at least
	ScanInterval time.Duration // how often a server looks for threads that are due
	MaxHandOffs  int           // threads that are taken from other servers at the same time

	Threads    *Table
	Store      Store
	Reader     StateReader
	Committer  *commit.Committer
	Feed       *feed.Feed
	Capacity   *capacity.Limiter
	ReadBudget *runtime.ReadBudget
	Unserved   *placement.UnservedRuns
	Peers      *placement.Peers // nil when it does not matter where workers are
	Scheduler  Scheduler
	Pruner     Pruner
	Canceller  Canceller

	Uptime   func() time.Duration // by a monotonic clock
	Now      func() time.Time     // the store's time
	Observer runtime.Observer
	Tracer   Tracer // nil = nothing is traced
	Logger   *zap.Logger
}

// Owner holds the threads of one server.
type Owner struct {
	opts         Options
	log          *zap.Logger
	subscription checkpoint.Subscription // nil when no other process writes to the store
	handOffSlots chan struct{}           // one for each thread that is taken from another server

	runCtx        context.Context //nolint:containedctx // of every live run; ended by Close
	cancelRuns    context.CancelCauseFunc
	commitCtx     context.Context //nolint:containedctx // of store calls that must outlive a cancelled run
	cancelCommits context.CancelFunc
}

// New makes an owner. ctx carries values for the runs; its end does not stop them, Close
// does.
func New(ctx context.Context, opts Options) *Owner {
	o := &Owner{opts: opts, log: opts.Logger, handOffSlots: make(chan struct{}, opts.MaxHandOffs)}
	o.runCtx, o.cancelRuns = context.WithCancelCause(context.WithoutCancel(ctx))
	o.commitCtx, o.cancelCommits = context.WithCancel(context.WithoutCancel(ctx))
	return o
}

// SetSubscription sets where other servers hear of threads that are left to them. It is
// called before the owner takes a thread.
func (o *Owner) SetSubscription(s checkpoint.Subscription) { o.subscription = s }

// NewDetachedThread makes a thread that is edited and not driven: nothing is committed
// for it.
func (o *Owner) NewDetachedThread(thread string) *superstep.Thread {
	followers := &topicFollowers{feed: o.opts.Feed, topic: o.opts.Feed.NewDetachedTopic(thread)}
	return superstep.NewDetachedThread(o.commitCtx, thread, o.log, o.runCtx.Done(), followers)
}

// RunBackground runs a function in the background until a drain begins; a drain waits
// for it. panicked is the log message for a panic.
func (o *Owner) RunBackground(f func(ctx context.Context, stop <-chan struct{}), panicked string) {
	t := o.opts.Threads
	t.goroutines.Go(contain.Func(func() { f(o.runCtx, t.draining) }, contain.LogPanic(o.log, panicked)))
}

// RunUntilDrain runs a function in the background, unless a drain has begun. Its context ends
// when one begins.
func (o *Owner) RunUntilDrain(f func(ctx context.Context), panicked string) {
	t := o.opts.Threads
	t.runForThread("", func(*session) {
		ctx, cancel := context.WithCancel(o.runCtx)
		defer cancel()
		go contain.Func(func() {
			select {
			case <-t.draining:
				cancel()
			case <-ctx.Done():
			}
		}, contain.LogPanic(o.log, panicked))()
		f(ctx)
	}, contain.LogPanic(o.log, panicked))
}

// Drain takes no further thread, lets every live run finish its superstep, and hands
// the rest to the next server. When ctx ends first, running nodes are cut off; they
// will run again.
func (o *Owner) Drain(ctx context.Context) {
	if o.opts.Threads.close() {
		o.opts.Capacity.Close()
		if o.opts.Peers != nil {
			o.opts.Peers.Unregister()
		}
	}
	idle := make(chan struct{})
	go contain.Func(func() {
		o.opts.Threads.goroutines.Wait()
		close(idle)
	}, contain.LogPanic(o.log, "a drain panicked"))()
	select {
	case <-idle:
	case <-ctx.Done():
		o.cancelRuns(superstep.ErrServerDrains)
		// Finished tasks are still handed over; a store that hangs is not waited for.
		last := time.AfterFunc(handOffTime, contain.Func(o.cancelCommits, contain.LogPanic(o.log, "a drain panicked")))
		defer last.Stop()
		o.waitForNodes(idle)
	}
	o.cancelRuns(superstep.ErrServerDrains)
	o.cancelCommits()
}

// waitForNodes waits for cancelled nodes; the runs of nodes that ignore their
// context are left, and another server takes them over when the lease ends.
func (o *Owner) waitForNodes(idle <-chan struct{}) {
	timeout := time.NewTimer(2 * handOffTime)
	defer timeout.Stop()
	select {
	case <-idle:
	case <-timeout.C:
		o.log.Warn("nodes that ignore their context are left behind")
	}
}

// handOffTime is how long the last commits of a drain may take.
const handOffTime = 2 * time.Second

// Close drains without mercy.
func (o *Owner) Close() {
	ctx, cancel := context.WithCancel(o.runCtx)
	cancel()
	o.Drain(ctx)
}
