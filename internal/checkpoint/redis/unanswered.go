package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// unanswered records that an attempt of a call may have been executed although
// its answer was lost. Cluster clients retry on their own, so it is recorded
// where a command meets its connection.
type unanswered struct{ cause atomic.Pointer[error] }

type unansweredKey struct{}

// unansweredByCommand has one entry per command of a pipeline.
type unansweredByCommand map[goredis.Cmder]*unanswered

// loadCause returns why an answer was lost, nil when none was.
func (l *unanswered) loadCause() error {
	if p := l.cause.Load(); p != nil {
		return *p
	}
	return nil
}

// wrapOutcome marks the outcome of a change as unknown when an answer was lost.
func (l *unanswered) wrapOutcome(ctx context.Context, err error) error {
	if err == nil || l.loadCause() == nil && ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %w", checkpoint.ErrOutcomeUnknown, err)
}

// wrapRefusal says of a refusal that an earlier attempt of the change may have been
// carried out, when its answer was lost.
func (l *unanswered) wrapRefusal(refusal error) error {
	if refusal == nil || l.loadCause() == nil {
		return refusal
	}
	return fmt.Errorf("%w: %w", checkpoint.ErrOutcomeUnknown, refusal)
}

// answerHook implements the client's hook.
type answerHook struct{}

// DialHook changes nothing.
func (answerHook) DialHook(next goredis.DialHook) goredis.DialHook { return next }

// ProcessHook records attempts without an answer.
func (answerHook) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		err := next(ctx, cmd)
		if l, ok := ctx.Value(unansweredKey{}).(*unanswered); ok {
			l.recordError(err)
		}
		return err
	}
}

// ProcessPipelineHook records the commands of a pipeline without an answer.
func (answerHook) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		err := next(ctx, cmds)
		if all, ok := ctx.Value(unansweredKey{}).(unansweredByCommand); ok {
			for _, cmd := range cmds {
				if l := all[cmd]; l != nil {
					l.recordError(cmd.Err())
				}
			}
		}
		return err
	}
}

func (l *unanswered) recordError(err error) {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return // nothing was sent
	}
	if err != nil && isTransient(err) {
		l.cause.Store(&err)
	}
}

// newHookedClient makes the client of one server, or of a node of a cluster.
func newHookedClient(opts *goredis.Options) *goredis.Client {
	c := goredis.NewClient(opts)
	c.AddHook(answerHook{})
	return c
}
