package commit

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// storeClock tells the store's time: ours, put right by what the store says. Due
// times, deadlines and expiries are compared with the store's clock, so a
// replica whose clock is wrong must not write its own.
type storeClock struct {
	localNow func() time.Time
	offset   atomic.Int64 // the store's time minus ours
	isSynced atomic.Bool  // of the store's time
}

// MaxClockDrift is how far the clocks may differ before ours is put right.
const MaxClockDrift = 10 * time.Millisecond

func (c *storeClock) currentTime() time.Time { return c.localNow().Add(time.Duration(c.offset.Load())) }

func (c *storeClock) observeTime(store time.Time) {
	if store.IsZero() {
		return
	}
	ahead := store.Sub(c.localNow().Round(0)) // without the monotonic part: wall against wall
	if (ahead - time.Duration(c.offset.Load())).Abs() > MaxClockDrift {
		c.offset.Store(int64(ahead))
	}
	c.isSynced.Store(true)
}

// StoreClient is the client of a store. A failed read is repeated; a
// read without an answer in time fails with checkpoint.ErrUnavailable, whether or
// not the caller has a deadline. Apply is passed on unchanged: the committer
// decides how long to wait.
type StoreClient struct {
	checkpoint.Store

	attempts int
	timeout  time.Duration
	clock    *storeClock
}

// NewStoreClient makes a client of a store. localNow is the clock of this process.
func NewStoreClient(store checkpoint.Store, attempts int, timeout time.Duration, localNow func() time.Time) *StoreClient {
	return &StoreClient{Store: store, attempts: attempts, timeout: timeout, clock: &storeClock{localNow: localNow}}
}

// CurrentTime is the store's time, as far as it is known.
func (l *StoreClient) CurrentTime() time.Time { return l.clock.currentTime() }

// callStore makes one read within the client's timeout.
func callStore[T any](ctx context.Context, l *StoreClient, call func(context.Context) (T, error)) (T, error) {
	inner, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	out, err := call(inner)
	for n := 1; n < l.attempts && errors.Is(err, checkpoint.ErrUnavailable); n++ {
		if storeRetries().Wait(inner, n) != nil {
			break
		}
		out, err = call(inner)
	}
	if err != nil && inner.Err() != nil && ctx.Err() == nil {
		return out, fmt.Errorf("%w: no answer within %s", checkpoint.ErrUnavailable, l.timeout)
	}
	return out, err
}

// Head asks the store, and notes its time.
func (l *StoreClient) Head(ctx context.Context, thread string) (checkpoint.Head, error) {
	h, err := callStore(ctx, l, func(ctx context.Context) (checkpoint.Head, error) {
		return l.Store.Head(ctx, thread)
	})
	l.clock.observeTime(h.Now)
	return h, err
}

// SyncClock reads the store's time unless it is known.
func (l *StoreClient) SyncClock(ctx context.Context) error {
	if l.clock.isSynced.Load() {
		return nil
	}
	clock, ok := l.Store.(checkpoint.Clock)
	if !ok {
		return nil
	}
	now, err := callStore(ctx, l, clock.Now)
	l.clock.observeTime(now)
	return err
}

// Apply passes the change on, and notes the store's time.
func (l *StoreClient) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	r, err := l.Store.Apply(ctx, c)
	l.clock.observeTime(r.Now)
	return r, err
}

// Checkpoint asks the store.
func (l *StoreClient) Checkpoint(ctx context.Context, thread, namespace, id string) (*checkpoint.Checkpoint, error) {
	return callStore(ctx, l, func(ctx context.Context) (*checkpoint.Checkpoint, error) {
		return l.Store.Checkpoint(ctx, thread, namespace, id)
	})
}

// Checkpoints asks the store.
func (l *StoreClient) Checkpoints(ctx context.Context, q checkpoint.CheckpointQuery) ([]*checkpoint.Checkpoint, error) {
	return callStore(ctx, l, func(ctx context.Context) ([]*checkpoint.Checkpoint, error) {
		return l.Store.Checkpoints(ctx, q)
	})
}

// Pending asks the store.
func (l *StoreClient) Pending(ctx context.Context, thread, id string) (checkpoint.Pending, error) {
	return callStore(ctx, l, func(ctx context.Context) (checkpoint.Pending, error) {
		return l.Store.Pending(ctx, thread, id)
	})
}

// Events asks the store.
func (l *StoreClient) Events(ctx context.Context, thread string, after uint64, limit int) ([]checkpoint.Event, error) {
	return callStore(ctx, l, func(ctx context.Context) ([]checkpoint.Event, error) {
		return l.Store.Events(ctx, thread, after, limit)
	})
}

// Run asks the store.
func (l *StoreClient) Run(ctx context.Context, thread, run string) (checkpoint.Run, error) {
	return callStore(ctx, l, func(ctx context.Context) (checkpoint.Run, error) {
		return l.Store.Run(ctx, thread, run)
	})
}

// Runs asks the store.
func (l *StoreClient) Runs(ctx context.Context, thread string, before uint64, limit int) ([]checkpoint.Run, error) {
	return callStore(ctx, l, func(ctx context.Context) ([]checkpoint.Run, error) {
		return l.Store.Runs(ctx, thread, before, limit)
	})
}

// Interrupt asks the store.
func (l *StoreClient) Interrupt(ctx context.Context, thread, id string) (checkpoint.Interrupt, error) {
	return callStore(ctx, l, func(ctx context.Context) (checkpoint.Interrupt, error) {
		return l.Store.Interrupt(ctx, thread, id)
	})
}

// Request asks the store.
func (l *StoreClient) Request(ctx context.Context, thread, id string) (checkpoint.Request, error) {
	return callStore(ctx, l, func(ctx context.Context) (checkpoint.Request, error) {
		return l.Store.Request(ctx, thread, id)
	})
}

// Threads asks the store.
func (l *StoreClient) Threads(ctx context.Context, q checkpoint.ThreadQuery) ([]checkpoint.Head, error) {
	return callStore(ctx, l, func(ctx context.Context) ([]checkpoint.Head, error) { return l.Store.Threads(ctx, q) })
}

// Interrupts asks the store.
func (l *StoreClient) Interrupts(ctx context.Context, q checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	return callStore(ctx, l, func(ctx context.Context) ([]checkpoint.Interrupt, error) {
		return l.Store.Interrupts(ctx, q)
	})
}

// Due asks the store.
func (l *StoreClient) Due(ctx context.Context, limit int) ([]string, time.Time, error) {
	var next time.Time
	threads, err := callStore(ctx, l, func(ctx context.Context) (threads []string, err error) {
		threads, next, err = l.Store.Due(ctx, limit)
		return threads, err
	})
	return threads, next, err
}

// storeRetries is how long to wait before a store call is repeated.
func storeRetries() backoff.Policy {
	return backoff.Policy{First: 20 * time.Millisecond, Max: time.Second}
}

// ReadCheckpointWithin asks the store, where it can tell whether a checkpoint is large.
func (l *StoreClient) ReadCheckpointWithin(ctx context.Context, thread, namespace, id string, most int) (*checkpoint.Checkpoint, error) {
	reader, ok := l.Store.(checkpoint.BoundedReader)
	if !ok {
		return l.Checkpoint(ctx, thread, namespace, id)
	}
	return callStore(ctx, l, func(ctx context.Context) (*checkpoint.Checkpoint, error) {
		return reader.CheckpointWithin(ctx, thread, namespace, id, most)
	})
}
