package transport

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/stream"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// runWait is the wait of StartRun and ResumeRun for the stop of their run.
type runWait struct {
	*graphService

	most  time.Duration             // how long it may take
	view  graphdv1.RunView          // how much of the run is returned
	early *stream.EarlySubscription // nil = the call does not wait
}

// waitingRequest is a request that may wait for the stop of the run that it begins.
type waitingRequest interface {
	GetWait() *durationpb.Duration
	GetView() graphdv1.RunView
}

// newRunWait begins the wait of a call before its run begins. The caller calls endWait.
// Violations of the time go to v. Errors: SERVER_DRAINING and TOO_MANY_SUBSCRIBERS.
func (s *graphService) newRunWait(ctx context.Context, v *wire.Validator, req waitingRequest) (*runWait, error) {
	w := &runWait{graphService: s, most: v.ConvertDuration("wait", req.GetWait()), view: req.GetView()}
	if w.most <= 0 {
		if s.streams.IsDraining() {
			return nil, stream.DrainingError()
		}
		return w, nil
	}
	if err := s.streams.AddStream(ctx); err != nil {
		return nil, err
	}
	w.early = s.events.NewEarlyWait(w.view)
	return w, nil
}

func (w *runWait) endWait() {
	if w.early != nil {
		w.early.CloseFollower()
		w.streams.RemoveStream()
	}
}

// startHook returns what follows the run from its first step, nil if the call does not wait.
func (w *runWait) startHook() runtime.StartHook {
	if w.early == nil {
		return nil
	}
	return w.early.FollowStarted
}

// awaitStop returns the run of the call: as it was started, as it stopped, or as it is when
// the wait has to end before. Its interrupts have no etags: not all of them are known. Errors:
// ctx's error, those of the engine, and those of the store.
func (w *runWait) awaitStop(ctx context.Context, started *runtime.Started) (*graphdv1.Run, error) {
	run, err := w.awaitRun(ctx, started)
	for _, q := range run.GetInterrupts() {
		q.Etag = ""
	}
	return run, err
}

func (w *runWait) awaitRun(ctx context.Context, started *runtime.Started) (*graphdv1.Run, error) {
	if w.early == nil {
		return w.events.DescribeRun(ctx, stream.StartedRun(started), &started.Head, w.view)
	}
	var run *graphdv1.Run
	err := w.waitUntilStopped(ctx, w.most, func(ctx context.Context) (err error) {
		run, err = w.events.WaitUntilStopped(ctx, w.early.ToSubscription(started, 0), w.view)
		return err
	})
	if errors.Is(err, stream.ErrWaitElapsed) || errors.Is(err, &runtime.Error{Reason: runtime.ReasonServerDraining}) {
		return w.describeUnderWay(ctx, started)
	}
	return run, err
}

// describeUnderWay returns a run as it is. A watch after its last event shows all effects of
// the call.
func (w *runWait) describeUnderWay(ctx context.Context, started *runtime.Started) (*graphdv1.Run, error) {
	run, err := w.engine.Run(ctx, interceptor.CallMemoryOf(ctx), started.Run.Thread, started.Run.ID)
	if err != nil {
		return nil, err
	}
	run.LastEvent = started.After
	return w.events.DescribeRun(ctx, run, &started.Head, w.view)
}
