package runtime

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// guess says whether runs that may create their thread have lately done so. If
// they have, the next one is begun without looking whether the thread exists:
// when it does, that is a conflict like any other.
type guess struct{ score atomic.Int32 }

// sure is how many new threads in a row make a guess; twice as many are counted.
const sure = 8

// created notes whether there was no thread. One that was there outweighs those
// before it: a wrong guess costs more than a right one saves.
func (g *guess) created(yes bool) {
	step := int32(-sure)
	if yes {
		step = 1
	}
	for {
		old := g.score.Load()
		if g.score.CompareAndSwap(old, max(-sure, min(old+step, 2*sure))) {
			return
		}
	}
}

func (g *guess) new() bool { return g.score.Load() >= sure }

// boldly begins the run in a thread of which nobody knows whether it exists.
// It reports false when that must be found out: there is such a thread, or the
// run is refused, and may be right for one that exists.
func (a *admission) boldly(ctx context.Context) (Started, bool, error) {
	e := a.engine
	if !a.req.CreateThread || a.fresh || a.req.Graph == "" || !e.creating.new() || e.session(a.req.Thread) != nil {
		return Started{}, false, nil
	}
	a.fresh = true
	st, err := a.try(ctx, new(checkpoint.Head))
	a.fresh = false
	if errors.Is(err, checkpoint.ErrConflict) {
		e.creating.created(false)
	}
	unknown := errors.Is(err, checkpoint.ErrUnavailable) || ctx.Err() != nil
	return st, err == nil || unknown, err
}
