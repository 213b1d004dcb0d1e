package engine

import (
	"context"
	"errors"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/query"
)

// noteStoreAccepted notes that the store has taken a change.
func (e *Engine) noteStoreAccepted() {
	if e.storeBackoff.IsRefusing() {
		e.storeBackoff.EndPause()
		e.wakeScheduler()
	}
}

// dueRound counts what the store refused while the scheduler processed a batch of
// threads.
type dueRound struct {
	engine       *Engine
	refusedCount atomic.Int32
	isStoreFull  atomic.Bool // for want of space
}

// addRefusal notes one refusal.
func (r *dueRound) addRefusal(err error) {
	r.refusedCount.Add(1)
	if errors.Is(err, checkpoint.ErrStoreFull) {
		r.isStoreFull.Store(true)
	}
}

// isOver reports whether the rest would be refused as well. Another part of the
// store may take changes: one refusal is no proof until a whole round had them.
func (r *dueRound) isOver() bool {
	n := r.refusedCount.Load()
	return n >= maxParallelDue || n > 0 && r.isProbing()
}

// isProbing reports whether threads are tried one at a time.
func (r *dueRound) isProbing() bool { return r.engine.storeBackoff.IsRefusing() }

// finishRound ends the round.
func (r *dueRound) finishRound() {
	if r.refusedCount.Load() > 0 {
		r.engine.storeBackoff.AddRefusedRound(r.engine.uptime(), r.engine.opts.ScanInterval)
	}
}

// freeStoreSpace deletes of some threads what is not to be kept any longer: a store
// that is full may take that.
func (e *Engine) freeStoreSpace(ctx context.Context, threads []string) {
	for _, thread := range threads {
		if e.quarantine.IsQuarantined(thread, e.uptime()) || e.findSession(thread) != nil {
			continue
		}
		var err error
		if p := contain.Call(func() { err = e.shrinkThread(ctx, thread) }); p != nil {
			err = p
		}
		switch {
		case err == nil, errors.Is(err, checkpoint.ErrConflict), errors.Is(err, checkpoint.ErrThreadNotFound):
		case runtime.IsStoreFault(err), ctx.Err() != nil:
			return
		default:
			e.log.Warn("due thread not deleted or cut off", zap.String("thread", thread), zap.Error(err), runtime.CauseField(err))
		}
	}
}

// shrinkThread does for one thread what is due and frees space.
func (e *Engine) shrinkThread(ctx context.Context, thread string) error {
	head, err := e.store.Head(ctx, thread)
	switch {
	case err != nil:
		return err
	case head.Leased() && head.Owner != e.id, head.RetryAt.After(head.Now), head.State == checkpoint.ThreadBusy:
		return nil
	case isExpired(&head):
		return e.removeThread(ctx, head)
	case !query.CanResume(&head) && e.threads.IsPruneDue(&head):
		return e.threads.PruneRested(ctx, head)
	}
	return nil
}
