package runtime

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
)

// A store that takes no changes would refuse each thread that is due, again and
// again. So the sweeper stops after a few refusals and pauses, longer each time;
// then one thread is enough to learn whether the store takes changes again. A
// change that the store takes, of whichever thread, ends that.

// longestRefusal is the longest pause, in sweeps.
const longestRefusal = 8

// refusals say when the sweeper may try the store again.
type refusals struct {
	rounds atomic.Int32 // in a row, in which the store refused changes

	mu    sync.Mutex
	first time.Duration // until then the sweeper pauses in any case; Engine.uptime
	until time.Duration // and until then while the store refuses changes
}

// add notes a round in which the store refused changes.
func (r *refusals) add(now, sweep time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.rounds.Add(1)
	r.first = now + sweep
	r.until = now + min(sweep<<min(n-1, 10), longestRefusal*sweep)
}

// end notes that the store takes changes.
func (r *refusals) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rounds.Store(0)
	r.until = r.first
}

// wait is how long the sweeper still has to pause.
func (r *refusals) wait(now time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.until - now
}

// accepted notes that the store has taken a change.
func (e *Engine) accepted() {
	if e.refusals.rounds.Load() > 0 {
		e.refusals.end()
		e.nudge()
	}
}

// round is what the store refused while the sweeper went through some threads.
type round struct {
	engine  *Engine
	refused atomic.Int32
	full    atomic.Bool // for want of room
}

// refuse notes one refusal.
func (r *round) refuse(err error) {
	r.refused.Add(1)
	if errors.Is(err, checkpoint.ErrStoreFull) {
		r.full.Store(true)
	}
}

// over reports whether the rest would be refused as well. Another part of the
// store may take changes: one refusal is no proof until a whole round had them.
func (r *round) over() bool {
	n := r.refused.Load()
	return n >= sweepers || n > 0 && r.alone()
}

// alone reports whether one thread at a time is tried.
func (r *round) alone() bool { return r.engine.refusals.rounds.Load() > 0 }

// close ends the round.
func (r *round) close() {
	if r.refused.Load() > 0 {
		r.engine.refusals.add(r.engine.uptime(), r.engine.opts.Sweep)
	}
}

// freeRoom deletes of some threads what is not to be kept any longer: a store
// that is full may take that.
func (e *Engine) freeRoom(ctx context.Context, threads []string) {
	for _, thread := range threads {
		if e.faults.waits(thread, e.uptime()) || e.session(thread) != nil {
			continue
		}
		var err error
		if p := contain.Call(func() { err = e.shrink(ctx, thread) }); p != nil {
			err = p
		}
		switch {
		case err == nil, errors.Is(err, checkpoint.ErrConflict), errors.Is(err, checkpoint.ErrThreadNotFound):
		case storeAway(err), ctx.Err() != nil:
			return
		default:
			e.log.Warn("due thread not deleted or cut off", zap.String("thread", thread), zap.Error(err), cause(err))
		}
	}
}

// shrink does for one thread what is due and frees room.
func (e *Engine) shrink(ctx context.Context, thread string) error {
	head, err := e.store.Head(ctx, thread)
	switch {
	case err != nil:
		return err
	case head.Leased() && head.Owner != e.id, head.RetryAt.After(head.Now), head.State == checkpoint.ThreadBusy:
		return nil
	case expired(&head):
		return e.remove(ctx, head)
	case !awake(&head) && e.overfull(&head):
		return e.prune(ctx, head)
	}
	return nil
}
