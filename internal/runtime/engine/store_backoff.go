package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/query"
)

// A store that takes no changes would refuse each thread that is due, again and
// again. So the scheduler stops after a few refusals and pauses, longer each time;
// then one thread is enough to learn whether the store takes changes again. A
// change that the store takes, of whichever thread, ends that.

// maxPauseScans is the longest pause, in scan intervals.
const maxPauseScans = 8

// storeBackoff says when the scheduler may try the store again.
type storeBackoff struct {
	refusedRounds atomic.Int32 // in a row, in which the store refused changes

	mu            sync.Mutex
	minPauseUntil time.Duration // until then the scheduler pauses in any case; Engine.uptime
	pauseUntil    time.Duration // and until then while the store refuses changes
}

// addRefusedRound notes a round in which the store refused changes.
func (r *storeBackoff) addRefusedRound(now, interval time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.refusedRounds.Add(1)
	r.minPauseUntil = now + interval
	r.pauseUntil = now + backoff.Policy{First: interval, Max: maxPauseScans * interval}.Delay(int(n))
}

// endPause notes that the store takes changes.
func (r *storeBackoff) endPause() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusedRounds.Store(0)
	r.pauseUntil = r.minPauseUntil
}

// remainingPause returns how long the scheduler still has to pause.
func (r *storeBackoff) remainingPause(now time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pauseUntil - now
}

// noteStoreAccepted notes that the store has taken a change.
func (e *Engine) noteStoreAccepted() {
	if e.storeBackoff.refusedRounds.Load() > 0 {
		e.storeBackoff.endPause()
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
func (r *dueRound) isProbing() bool { return r.engine.storeBackoff.refusedRounds.Load() > 0 }

// finishRound ends the round.
func (r *dueRound) finishRound() {
	if r.refusedCount.Load() > 0 {
		r.engine.storeBackoff.addRefusedRound(r.engine.uptime(), r.engine.opts.ScanInterval)
	}
}

// freeStoreSpace deletes of some threads what is not to be kept any longer: a store
// that is full may take that.
func (e *Engine) freeStoreSpace(ctx context.Context, threads []string) {
	for _, thread := range threads {
		if e.quarantine.isQuarantined(thread, e.uptime()) || e.findSession(thread) != nil {
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
