package transport

import (
	"context"
	"errors"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// WaitRun waits until a run stops, or as long as it is told to.
func (s *graphService) WaitRun(ctx context.Context, req *graphdv1.WaitRunRequest) (*graphdv1.Run, error) {
	note(ctx, req.GetThreadId(), req.GetRunId())
	b := s.border()
	thread, id := b.id("thread_id", req.GetThreadId()), b.optionalID("run_id", req.GetRunId())
	wait := b.duration("wait", req.GetWait())
	if err := b.err(); err != nil {
		return nil, err
	}
	if id == "" {
		run, err := s.engine.Run(ctx, thread, "")
		if err != nil {
			return nil, err
		}
		id = run.ID
		roomOf(ctx).End()
	}
	if req.GetWait() == nil || wait > 0 {
		if err := s.enter(); err != nil {
			return nil, err
		}
		defer s.leave()
		if err := s.waitStop(ctx, wait, func(ctx context.Context) error {
			_, err := s.engine.WaitRun(ctx, thread, id)
			return err
		}); err != nil && !errors.Is(err, errQuiet) {
			return nil, err
		}
	}
	return s.runNow(ctx, thread, id)
}

// waitStop runs a wait that ends with errQuiet after a time (0 = never) and
// with SERVER_DRAINING when the server drains.
func (s *graphService) waitStop(
	ctx context.Context, wait time.Duration, until func(context.Context) error,
) error {
	life, release := s.lifetime(ctx)
	defer release()
	limited, cancel := life, context.CancelFunc(func() {})
	if wait > 0 {
		limited, cancel = context.WithTimeoutCause(life, wait, errQuiet)
	}
	defer cancel()
	err := until(limited)
	if err == nil || limited.Err() == nil {
		return err
	}
	switch cause := context.Cause(limited); {
	case errors.Is(cause, errDraining):
		return draining()
	case errors.Is(cause, errQuiet):
		return errQuiet
	}
	return err
}

// CancelRun asks a run to stop, and waits for that if asked to.
func (s *graphService) CancelRun(ctx context.Context, req *graphdv1.CancelRunRequest) (*graphdv1.Run, error) {
	note(ctx, req.GetThreadId(), req.GetRunId())
	b := s.border()
	cancel := cancelIn(b, req)
	if err := b.err(); err != nil {
		return nil, err
	}
	if req.GetWait() {
		if err := s.enter(); err != nil {
			return nil, err
		}
		defer s.leave()
	}
	cancel.By = s.by(ctx)
	run, err := s.engine.Cancel(ctx, cancel)
	if err != nil {
		return nil, err
	}
	note(ctx, run.Thread, run.ID)
	if req.GetWait() && !run.State.Terminal() {
		if err := s.untilFinal(ctx, run); err != nil {
			return nil, err
		}
	}
	return s.runNow(ctx, run.Thread, run.ID)
}

// cancelWait bounds CancelRun.wait for callers without a deadline; margin is
// what is left of a deadline to say that it was not enough.
const (
	cancelWait = 10 * time.Minute
	margin     = 50 * time.Millisecond
)

// untilFinal waits for the final state of a run. It follows the log: a run
// that waits for people has stopped, but is not final.
func (s *graphService) untilFinal(ctx context.Context, run checkpoint.Run) error {
	wait := cancelWait
	if deadline, ok := ctx.Deadline(); ok {
		wait = max(time.Until(deadline)-margin, time.Millisecond)
	}
	err := s.waitStop(ctx, wait, func(ctx context.Context) error {
		f := s.follow(runtime.FollowRequest{Thread: run.Thread, After: run.LastEvent})
		defer f.Close()
		for {
			now, err := s.engine.Run(ctx, run.Thread, run.ID)
			if err != nil || now.State.Terminal() {
				return err
			}
			roomOf(ctx).End()
			if _, err := f.Next(ctx); err != nil {
				return err
			}
		}
	})
	if errors.Is(err, errQuiet) {
		now, err := s.engine.Run(ctx, run.Thread, run.ID)
		if err != nil {
			return err
		}
		return runtime.Errorf(runtime.ReasonWaitTimeout, "the run has not stopped yet; the cancel stays in force").
			With("runState", string(now.State))
	}
	return err
}
