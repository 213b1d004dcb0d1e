package stream

import (
	"context"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
)

// WaitUntilStopped waits until the run of a subscription stops, and returns it as it stopped, as
// a view shows it. Errors: ErrWaitElapsed when there is more to tell than a stop, because no
// worker can run a task or events are lost; the cause of ctx; and those of the engine.
func (s *Streamer) WaitUntilStopped(ctx context.Context, sub *Subscription, view graphdv1.RunView) (*graphdv1.Run, error) {
	a := &activeStream{Streamer: s, Subscription: sub, memory: interceptor.CallMemoryOf(ctx)}
	if a.follower == nil {
		a.follower = s.awaitStop(a.head.Thread, a.lastSeq, a.mark, view)
		defer a.follower.Close()
	}
	for !a.isAtStop() {
		events, err := a.follower.Next(ctx)
		if runtime.IsCursorError(err) {
			return nil, ErrWaitElapsed
		}
		if err != nil {
			return nil, err
		}
		stop, err := a.findAwaitedStop(ctx, events)
		if err != nil {
			return nil, err
		}
		if stop != nil {
			return a.readStoppedRun(ctx, a.run.ID, stop, view)
		}
	}
	return a.readStoppedRun(ctx, a.run.ID, nil, view)
}

// findAwaitedStop returns the event that is the awaited stop, nil if there is none.
func (a *activeStream) findAwaitedStop(ctx context.Context, events []checkpoint.Event) (*checkpoint.Event, error) {
	for i := range events {
		e := &events[i]
		a.advancePosition(e)
		if stop, err := a.isAwaitedStop(ctx, e); err != nil || stop {
			return e, err
		}
		if e.Phase == checkpoint.PhaseUnassigned && a.isFollowed(e) {
			return nil, ErrWaitElapsed
		}
	}
	return nil, nil //nolint:nilnil // no event is no error
}
