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

// predictThreshold is how many new threads in a row make the predictor expect another.
// It counts twice as many.
const predictThreshold = 8

// recordCreate notes whether there was no thread. An existing thread outweighs the new
// threads before it: a wrong prediction costs more than a right prediction saves.
func (p *createPredictor) recordCreate(yes bool) {
	step := int32(-predictThreshold)
	if yes {
		step = 1
	}
	for {
		old := p.score.Load()
		if p.score.CompareAndSwap(old, max(-predictThreshold, min(old+step, 2*predictThreshold))) {
			return
		}
	}
}

func (p *createPredictor) expectsNewThread() bool { return p.score.Load() >= predictThreshold }

// tryOptimisticCreate begins the run in a thread that may exist already. It reports
// false when the caller must read the thread: the thread exists, or the run is refused,
// and may be right for an existing thread.
func (s *startCall) tryOptimisticCreate(ctx context.Context) (*runtime.Started, bool, error) {
	if !s.req.CreateThread || s.isNewThread || s.req.Graph == "" || !s.predictor.expectsNewThread() || s.opts.IsLive(s.req.Thread) {
		return nil, false, nil
	}
	s.isNewThread = true
	st, err := s.tryStart(ctx, new(checkpoint.Head))
	s.isNewThread = false
	if errors.Is(err, checkpoint.ErrConflict) {
		s.predictor.recordCreate(false)
	}
	unknown := errors.Is(err, checkpoint.ErrUnavailable) || ctx.Err() != nil
	return st, err == nil || unknown, err
}
