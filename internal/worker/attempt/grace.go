package attempt

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// NewGraceContext returns a context that ends as ctx does, but only after the grace
// when a sibling of the task has failed, or when unwanted is closed. Work that is
// finished by then is kept. The deadline of ctx stays.
func NewGraceContext(
	ctx context.Context, unwanted <-chan struct{}, grace time.Duration, log *zap.Logger,
) (context.Context, context.CancelFunc) {
	late, end := context.WithCancelCause(context.WithoutCancel(ctx))
	free := context.CancelFunc(func() {})
	if deadline, ok := ctx.Deadline(); ok {
		late, free = context.WithDeadline(late, deadline)
	}
	stop := context.AfterFunc(ctx, contain.Func(func() {
		if errors.Is(context.Cause(ctx), runtime.ErrSiblingFailed) {
			waitGrace(late, unwanted, grace)
		}
		end(context.Cause(ctx))
	}, contain.LogPanic(log, "the hub of workers panicked")))
	return late, func() {
		stop()
		free()
		end(context.Canceled)
	}
}

// waitGrace waits for the grace, or until the result is of no use.
func waitGrace(ctx context.Context, unwanted <-chan struct{}, grace time.Duration) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-unwanted:
	case <-ctx.Done():
	}
}
