package admission

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// createPredictor predicts whether the next run that may create its thread does so.
// If it does, the run starts without a look-up; an existing thread is a conflict
// like any other.
type createPredictor struct{ score atomic.Int32 }

// predictThreshold is how many new threads in a row make the predictor expect
// another one; twice as many are counted.
const predictThreshold = 8

// recordCreate notes whether there was no thread. One that was there outweighs
// those before it: a wrong prediction costs more than a right one saves.
func (g *createPredictor) recordCreate(yes bool) {
	step := int32(-predictThreshold)
	if yes {
		step = 1
	}
	for {
		old := g.score.Load()
		if g.score.CompareAndSwap(old, max(-predictThreshold, min(old+step, 2*predictThreshold))) {
			return
		}
	}
}

func (g *createPredictor) expectsNewThread() bool { return g.score.Load() >= predictThreshold }

// tryOptimisticCreate begins the run in a thread that may exist already.
// It reports false when that must be found out: there is such a thread, or the
// run is refused, and may be right for one that exists.
func (a *startCall) tryOptimisticCreate(ctx context.Context) (*runtime.Started, bool, error) {
	if !a.req.CreateThread || a.isNewThread || a.req.Graph == "" || !a.predictor.expectsNewThread() || a.opts.IsLive(a.req.Thread) {
		return nil, false, nil
	}
	a.isNewThread = true
	st, err := a.tryStart(ctx, new(checkpoint.Head))
	a.isNewThread = false
	if errors.Is(err, checkpoint.ErrConflict) {
		a.predictor.recordCreate(false)
	}
	unknown := errors.Is(err, checkpoint.ErrUnavailable) || ctx.Err() != nil
	return st, err == nil || unknown, err
}
