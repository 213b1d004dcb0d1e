package script

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Unanswered records that an attempt of a call may have been executed although
// its answer was lost. Cluster clients retry on their own, so it is recorded
// where a command meets its connection.
type Unanswered struct{ cause atomic.Pointer[error] }

type unansweredKey struct{}

// unansweredByCommand has an entry per command of a pipeline.
type unansweredByCommand map[goredis.Cmder]*Unanswered

// LoadCause returns why an answer was lost, nil when none was.
func (u *Unanswered) LoadCause() error {
	if p := u.cause.Load(); p != nil {
		return *p
	}
	return nil
}

// RecordCause records that an answer was lost.
func (u *Unanswered) RecordCause(err error) { u.cause.Store(&err) }

// WithContext makes the commands of a context record here that they have no answer.
func (u *Unanswered) WithContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, unansweredKey{}, u)
}

// WrapOutcome marks the outcome of a change as unknown when an answer was lost.
func (u *Unanswered) WrapOutcome(ctx context.Context, err error) error {
	if err == nil || u.LoadCause() == nil && ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %w", checkpoint.ErrOutcomeUnknown, err)
}

// WrapRefusal says of a refusal that an earlier attempt of the change may have been
// carried out, when its answer was lost.
func (u *Unanswered) WrapRefusal(refusal error) error {
	if refusal == nil || u.LoadCause() == nil {
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
		if l, ok := ctx.Value(unansweredKey{}).(*Unanswered); ok {
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

func (u *Unanswered) recordError(err error) {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return // nothing was sent
	}
	if err != nil && isTransient(err) {
		u.RecordCause(err)
	}
}

// NewFailoverClient makes the client of the master that Sentinels name.
func NewFailoverClient(opts *goredis.FailoverOptions) *goredis.Client {
	c := goredis.NewFailoverClient(opts)
	c.AddHook(answerHook{})
	return c
}

// NewClient makes the client of a server, or of a node of a cluster.
func NewClient(opts *goredis.Options) *goredis.Client {
	c := goredis.NewClient(opts)
	c.AddHook(answerHook{})
	return c
}
