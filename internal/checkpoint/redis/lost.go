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

// lost remembers that an attempt of a call may have been carried out although
// its answer did not come. Clients of clusters repeat calls on their own, so
// it is noted where a command meets its connection.
type lost struct{ cause atomic.Pointer[error] }

type lostKey struct{}

// losses are those of the commands of one pipeline.
type losses map[goredis.Cmder]*lost

// err is why an answer was lost, nil when none was.
func (l *lost) err() error {
	if p := l.cause.Load(); p != nil {
		return *p
	}
	return nil
}

// outcome says that it is unknown what became of a change, when that is so.
func (l *lost) outcome(ctx context.Context, err error) error {
	if err == nil || l.err() == nil && ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %w", checkpoint.ErrOutcomeUnknown, err)
}

// earlier says of a refusal that an earlier attempt of the change may have been
// carried out, when its answer was lost.
func (l *lost) earlier(refusal error) error {
	if refusal == nil || l.err() == nil {
		return refusal
	}
	return fmt.Errorf("%w: %w", checkpoint.ErrOutcomeUnknown, refusal)
}

// watcher implements the client's hook.
type watcher struct{}

// DialHook changes nothing.
func (watcher) DialHook(next goredis.DialHook) goredis.DialHook { return next }

// ProcessHook notes attempts without an answer.
func (watcher) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		err := next(ctx, cmd)
		if l, ok := ctx.Value(lostKey{}).(*lost); ok {
			l.note(err)
		}
		return err
	}
}

// ProcessPipelineHook notes which commands of a pipeline had no answer.
func (watcher) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		err := next(ctx, cmds)
		if all, ok := ctx.Value(lostKey{}).(losses); ok {
			for _, cmd := range cmds {
				if l := all[cmd]; l != nil {
					l.note(cmd.Err())
				}
			}
		}
		return err
	}
}

func (l *lost) note(err error) {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return // nothing was sent
	}
	if err != nil && passing(err) {
		l.cause.Store(&err)
	}
}

// watched makes the client of one server, or of a node of a cluster.
func watched(opts *goredis.Options) *goredis.Client {
	c := goredis.NewClient(opts)
	c.AddHook(watcher{})
	return c
}
