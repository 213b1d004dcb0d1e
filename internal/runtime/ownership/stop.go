package ownership

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// runStop stops the work of a held thread: for a cancel, for a lease that is lost, or
// because the run leaves the server.
type runStop struct {
	thread *heldThread

	// workCtx is the context of the run's nodes. storeCtx is the context of the run's calls
	// to the store, which outlives cancelled work but not the lease.
	workCtx          context.Context //nolint:containedctx // lives as long as the session
	stopWork         context.CancelCauseFunc
	storeCtx         context.Context //nolint:containedctx // lives as long as the session
	cancelStoreCalls context.CancelFunc
	// renewalCtx is storeCtx without the span of the turn.
	renewalCtx context.Context //nolint:containedctx // lives as long as the session

	isStopping atomic.Bool // a cancel takes effect at the next superstep
	graceTimer *time.Timer // cuts the nodes off after a cancel; the commit lock guards it
}

// initContexts makes the contexts of the work from those of the server.
func (r *runStop) initContexts(o *Owner) {
	r.workCtx, r.stopWork = context.WithCancelCause(o.runCtx)
	r.storeCtx, r.cancelStoreCalls = context.WithCancel(o.commitCtx)
	r.renewalCtx = r.storeCtx
}

// IsStopping reports whether the run ends with this superstep because it is cancelled.
func (r *runStop) IsStopping() bool { return r.isStopping.Load() }

// AbandonRun abandons the run because a subgraph could not be driven on.
func (r *runStop) AbandonRun() { r.stopWork(superstep.ErrLeaseLost) }

// stopForCancel ends the run after this superstep, and cancels its nodes after the
// grace. The caller holds the commit lock.
func (r *runStop) stopForCancel(c *checkpoint.Cancel) {
	r.isStopping.Store(true)
	switch {
	case c.IsDrain(): // its nodes have as long as they take
	case c.Grace <= 0:
		r.stopWork(superstep.ErrRunCancelled)
	case r.graceTimer == nil:
		r.graceTimer = time.AfterFunc(c.Grace, contain.Func(func() { r.stopWork(superstep.ErrRunCancelled) },
			contain.LogPanic(r.thread.log, "a timer panicked")))
	}
}

// endGrace stops the timer of a cancel. The caller holds the commit lock.
func (r *runStop) endGrace() {
	if r.graceTimer != nil {
		r.graceTimer.Stop()
	}
}
