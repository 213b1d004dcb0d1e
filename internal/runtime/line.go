package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// clock tells the store's time: ours, put right by what the store says. Due
// times, deadlines and expiries are compared with the store's clock, so a
// replica whose clock is wrong must not write its own.
type clock struct {
	ours  func() time.Time
	ahead atomic.Int64 // the store's time minus ours
	heard atomic.Bool  // of the store's time
}

// drift is how far the clocks may differ before ours is put right.
const drift = 10 * time.Millisecond

func (c *clock) now() time.Time { return c.ours().Add(time.Duration(c.ahead.Load())) }

func (c *clock) observe(store time.Time) {
	if store.IsZero() {
		return
	}
	ahead := store.Sub(c.ours().Round(0)) // without the monotonic part: wall against wall
	if (ahead - time.Duration(c.ahead.Load())).Abs() > drift {
		c.ahead.Store(int64(ahead))
	}
	c.heard.Store(true)
}

// line is the engine's line to its store. A read that fails is repeated; one
// that is not answered in time fails with checkpoint.ErrUnavailable, whether or
// not the caller has a deadline. Apply is passed on as it is: the one who
// commits decides how long it is worth waiting.
type line struct {
	checkpoint.Store

	attempts int
	limit    time.Duration
	clock    *clock
}

// bounded makes one read that must be answered within the line's limit.
func bounded[T any](ctx context.Context, l *line, call func(context.Context) (T, error)) (T, error) {
	inner, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	out, err := call(inner)
	for n := 1; n < l.attempts && errors.Is(err, checkpoint.ErrUnavailable); n++ {
		if pause(inner, backoff(n)) != nil {
			break
		}
		out, err = call(inner)
	}
	if err != nil && inner.Err() != nil && ctx.Err() == nil {
		return out, fmt.Errorf("%w: no answer within %s", checkpoint.ErrUnavailable, l.limit)
	}
	return out, err
}

// Head asks the store, and notes its time.
func (l *line) Head(ctx context.Context, thread string) (checkpoint.Head, error) {
	h, err := bounded(ctx, l, func(ctx context.Context) (checkpoint.Head, error) {
		return l.Store.Head(ctx, thread)
	})
	l.clock.observe(h.Now)
	return h, err
}

// askTime asks the store for its time if it was not heard of yet.
func (e *Engine) askTime(ctx context.Context) error {
	l, ok := e.store.(*line)
	if !ok || l.clock.heard.Load() {
		return nil
	}
	clock, ok := l.Store.(checkpoint.Clock)
	if !ok {
		return nil
	}
	now, err := bounded(ctx, l, clock.Present)
	l.clock.observe(now)
	return err
}

// Apply passes the change on, and notes the store's time.
func (l *line) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	r, err := l.Store.Apply(ctx, c)
	l.clock.observe(r.Now)
	return r, err
}

// Checkpoint asks the store.
func (l *line) Checkpoint(ctx context.Context, thread, namespace, id string) (*checkpoint.Checkpoint, error) {
	if cp := lookOf(ctx, thread).at(namespace, id); cp != nil {
		return cp, nil
	}
	return bounded(ctx, l, func(ctx context.Context) (*checkpoint.Checkpoint, error) {
		return l.Store.Checkpoint(ctx, thread, namespace, id)
	})
}

// Checkpoints asks the store.
func (l *line) Checkpoints(ctx context.Context, q checkpoint.CheckpointQuery) ([]*checkpoint.Checkpoint, error) {
	return bounded(ctx, l, func(ctx context.Context) ([]*checkpoint.Checkpoint, error) {
		return l.Store.Checkpoints(ctx, q)
	})
}

// Pending asks the store.
func (l *line) Pending(ctx context.Context, thread, id string) (checkpoint.Pending, error) {
	if p := lookOf(ctx, thread).after(id); p != nil {
		return *p, nil
	}
	return bounded(ctx, l, func(ctx context.Context) (checkpoint.Pending, error) {
		return l.Store.Pending(ctx, thread, id)
	})
}

// Events asks the store.
func (l *line) Events(ctx context.Context, thread string, after uint64, limit int) ([]checkpoint.Event, error) {
	return bounded(ctx, l, func(ctx context.Context) ([]checkpoint.Event, error) {
		return l.Store.Events(ctx, thread, after, limit)
	})
}

// Run asks the store.
func (l *line) Run(ctx context.Context, thread, run string) (checkpoint.Run, error) {
	if r := lookOf(ctx, thread).run(run); r != nil {
		return *r, nil
	}
	return bounded(ctx, l, func(ctx context.Context) (checkpoint.Run, error) {
		return l.Store.Run(ctx, thread, run)
	})
}

// Runs asks the store.
func (l *line) Runs(ctx context.Context, thread string, before uint64, limit int) ([]checkpoint.Run, error) {
	return bounded(ctx, l, func(ctx context.Context) ([]checkpoint.Run, error) {
		return l.Store.Runs(ctx, thread, before, limit)
	})
}

// Interrupt asks the store.
func (l *line) Interrupt(ctx context.Context, thread, id string) (checkpoint.Interrupt, error) {
	if q, known, err := lookOf(ctx, thread).question(id); known {
		return q, err
	}
	return bounded(ctx, l, func(ctx context.Context) (checkpoint.Interrupt, error) {
		return l.Store.Interrupt(ctx, thread, id)
	})
}

// Request asks the store.
func (l *line) Request(ctx context.Context, thread, id string) (checkpoint.Request, error) {
	if r, known := lookOf(ctx, thread).request(id); known && r == nil {
		return checkpoint.Request{}, checkpoint.ErrRequestNotFound
	} else if known {
		return *r, nil
	}
	return bounded(ctx, l, func(ctx context.Context) (checkpoint.Request, error) {
		return l.Store.Request(ctx, thread, id)
	})
}

// Threads asks the store.
func (l *line) Threads(ctx context.Context, q checkpoint.ThreadQuery) ([]checkpoint.Head, error) {
	return bounded(ctx, l, func(ctx context.Context) ([]checkpoint.Head, error) { return l.Store.Threads(ctx, q) })
}

// Interrupts asks the store.
func (l *line) Interrupts(ctx context.Context, q checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	if found, known := lookOf(ctx, q.Thread).questions(&q); known {
		return found, nil
	}
	return bounded(ctx, l, func(ctx context.Context) ([]checkpoint.Interrupt, error) {
		return l.Store.Interrupts(ctx, q)
	})
}

// Due asks the store.
func (l *line) Due(ctx context.Context, limit int) ([]string, time.Time, error) {
	var next time.Time
	threads, err := bounded(ctx, l, func(ctx context.Context) (threads []string, err error) {
		threads, next, err = l.Store.Due(ctx, limit)
		return threads, err
	})
	return threads, next, err
}
