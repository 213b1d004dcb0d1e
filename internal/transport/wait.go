package transport

import (
	"context"
	"errors"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/stream"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// WaitRun waits until a run stops, or for the time in the request. Errors:
// INVALID_FIELD, SERVER_DRAINING, TOO_MANY_SUBSCRIBERS, THREAD_NOT_FOUND,
// RUN_NOT_FOUND, ctx's error, and those of the store.
func (s *graphService) WaitRun(ctx context.Context, req *graphdv1.WaitRunRequest) (*graphdv1.Run, error) {
	interceptor.RecordSubject(ctx, req.GetThreadId(), req.GetRunId())
	v := s.newValidator(ctx)
	thread, id := v.CheckThread("thread_id", req.GetThreadId()), v.CheckOptionalID("run_id", req.GetRunId())
	wait := v.ConvertDuration("wait", req.GetWait())
	if err := v.Err(); err != nil {
		return nil, err
	}
	if id == "" {
		run, err := s.engine.Run(ctx, interceptor.CallMemoryOf(ctx), thread, "")
		if err != nil {
			return nil, err
		}
		id = run.ID
		interceptor.CallMemoryOf(ctx).Release()
	}
	if req.GetWait() == nil || wait > 0 {
		if err := s.streams.AddStream(ctx); err != nil {
			return nil, err
		}
		defer s.streams.RemoveStream()
		if err := s.waitUntilStopped(ctx, wait, func(ctx context.Context) error {
			_, err := s.engine.WaitRun(ctx, thread, id)
			return err
		}); err != nil && !errors.Is(err, stream.ErrWaitElapsed) {
			return nil, err
		}
	}
	return s.readRun(ctx, thread, id, req.GetView())
}

// waitUntilStopped calls until with a context that ends with stream.ErrWaitElapsed
// after a time (0 = never) and with SERVER_DRAINING when the server drains.
func (s *graphService) waitUntilStopped(
	ctx context.Context, wait time.Duration, until func(context.Context) error,
) error {
	life, release := s.streams.NewLifetime(ctx)
	defer release()
	limited, cancel := life, context.CancelFunc(func() {})
	if wait > 0 {
		limited, cancel = context.WithTimeoutCause(life, wait, stream.ErrWaitElapsed)
	}
	defer cancel()
	err := until(limited)
	if err == nil || limited.Err() == nil {
		return err
	}
	switch cause := context.Cause(limited); {
	case errors.Is(cause, stream.ErrDraining):
		return stream.DrainingError()
	case errors.Is(cause, stream.ErrWaitElapsed):
		return stream.ErrWaitElapsed
	}
	return err
}

// CancelRun asks a run to stop, and waits for that if asked to. Errors: those of
// WaitRun, and WAIT_TIMEOUT when the run has not stopped in time.
func (s *graphService) CancelRun(ctx context.Context, req *graphdv1.CancelRunRequest) (*graphdv1.Run, error) {
	interceptor.RecordSubject(ctx, req.GetThreadId(), req.GetRunId())
	v := s.newValidator(ctx)
	cancel := wire.CancelRequestFromProto(v, req)
	if err := v.Err(); err != nil {
		return nil, err
	}
	if req.GetWait() {
		if err := s.streams.AddStream(ctx); err != nil {
			return nil, err
		}
		defer s.streams.RemoveStream()
	}
	cancel.By, cancel.Memory = interceptor.ActorOf(ctx), interceptor.CallMemoryOf(ctx)
	run, err := s.engine.Cancel(ctx, cancel)
	if err != nil {
		return nil, err
	}
	interceptor.RecordSubject(ctx, tenant.ClientName(run.Thread), run.ID)
	isStopped := checkpoint.RunState.Terminal
	if cancel.KeepsQuestions() {
		isStopped = runtime.IsStopped
	}
	if req.GetWait() && !isStopped(run.State) {
		if err := s.waitUntilState(ctx, run, isStopped); err != nil {
			return nil, err
		}
	}
	return s.readRun(ctx, run.Thread, run.ID, graphdv1.RunView_RUN_VIEW_BASIC)
}

// cancelWaitTimeout bounds CancelRun.wait for callers without a deadline.
// deadlineMargin is the part of a deadline that is kept for the answer.
const (
	cancelWaitTimeout = 10 * time.Minute
	deadlineMargin    = 50 * time.Millisecond
)

// waitUntilState waits until a run is in a state that is awaited. It follows the log,
// because a run that waits for people has stopped but is not final.
func (s *graphService) waitUntilState(ctx context.Context, run checkpoint.Run, isAwaited func(checkpoint.RunState) bool) error {
	wait := cancelWaitTimeout
	if deadline, ok := ctx.Deadline(); ok {
		wait = max(time.Until(deadline)-deadlineMargin, time.Millisecond)
	}
	err := s.waitUntilStopped(ctx, wait, func(ctx context.Context) error {
		f := s.follow(runtime.FollowRequest{Thread: run.Thread, After: run.LastEvent, UntilStop: true})
		defer f.Close()
		for {
			now, err := s.engine.Run(ctx, interceptor.CallMemoryOf(ctx), run.Thread, run.ID)
			if err != nil || isAwaited(now.State) {
				return err
			}
			interceptor.CallMemoryOf(ctx).Release()
			if _, err := f.Next(ctx); err != nil {
				return err
			}
		}
	})
	if errors.Is(err, stream.ErrWaitElapsed) {
		now, err := s.engine.Run(ctx, interceptor.CallMemoryOf(ctx), run.Thread, run.ID)
		if err != nil {
			return err
		}
		return runtime.Errorf(runtime.ReasonWaitTimeout, "the run has not stopped yet; the cancel stays in force").
			With("runState", string(now.State))
	}
	return err
}
