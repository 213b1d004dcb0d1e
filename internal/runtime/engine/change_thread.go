package engine

import (
	"context"
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// changeThread makes one change to a thread that this process need not be running.
// It is repeated while others are faster, and made through the live run when
// the thread is driven here, so that the two never race.
func (e *Engine) changeThread(ctx context.Context, thread string, b commit.Build) (checkpoint.Head, error) {
	for {
		head, err := e.store.Head(ctx, thread)
		if err != nil {
			return head, runtime.TranslateThreadError(thread, err)
		}
		head, err = e.changeFrom(ctx, head, b)
		if !errors.Is(err, checkpoint.ErrConflict) {
			return head, err
		}
	}
}

// changeFrom makes one attempt at a change that was decided on a given head;
// ErrConflict says that it must be decided anew. Through a live run the build
// may see a newer head.
func (e *Engine) changeFrom(ctx context.Context, head checkpoint.Head, b commit.Build) (checkpoint.Head, error) {
	if s := e.live.findSession(head.Thread); s != nil {
		next, err := s.commitForCaller(ctx, b)
		if !errors.Is(err, superstep.ErrLeaseLost) {
			return next, err
		}
	}
	return e.committer.TryChange(ctx, head, b)
}

// changeFree makes one attempt at a change that was decided on a given head, of a thread
// without a live run here; ErrConflict says that it must be decided anew.
func (e *Engine) changeFree(ctx context.Context, head checkpoint.Head, b commit.Build) (checkpoint.Head, error) {
	if e.live.IsLive(head.Thread) {
		return head, e.retryWhenSettled(ctx, head.Thread)
	}
	return e.committer.TryChange(ctx, head, b)
}

// retryWhenSettled waits until a run that begins or ends here has done so, and
// returns ErrConflict: the caller must decide again.
func (e *Engine) retryWhenSettled(ctx context.Context, thread string) error {
	if s := e.live.findSession(thread); s != nil {
		if err := s.waitFirstCommit(ctx); err != nil {
			return err
		}
	}
	return checkpoint.ErrConflict
}

// tooLargeFailure is the failure of a run whose change the store will never take, nil
// when err is about something else.
func tooLargeFailure(err error) *checkpoint.Failure {
	size, ok := errors.AsType[*checkpoint.SizeError](err)
	if !ok {
		return nil
	}
	return &checkpoint.Failure{
		Reason: runtime.FailedLimit, Message: size.Error(), Details: runtime.LimitDetails(size.Limit, int64(size.Max), int64(size.Actual)),
	}
}
