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

// storeClock estimates the store's time: the time of this process, corrected by
// the times that the store returns. Due times, deadlines and expiries are
// compared with the store's clock, so a replica with a wrong clock must not
// write its own time.
type storeClock struct {
	localNow func() time.Time
	offset   atomic.Int64 // the store's time minus ours
	isSynced atomic.Bool  // the time of the store is known
}

// MaxClockDrift is the difference of the clocks above which this process
// corrects its own.
const MaxClockDrift = 10 * time.Millisecond

// currentTime returns the time without a monotonic part: a store keeps none, so that times from
// memory compare as those from the store do, also after this machine was suspended.
func (c *storeClock) currentTime() time.Time {
	return c.localNow().Round(0).Add(time.Duration(c.offset.Load()))
}

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

// StoreClient is the client of a store. It repeats a failed read. A read without
// an answer in time fails with checkpoint.ErrUnavailable, whether or not the
// caller has a deadline. Apply is neither bounded nor repeated, because the
// committer does both.
type StoreClient struct {
	checkpoint.Store

	attempts    int
	timeout     time.Duration
	isImmediate bool // no call needs a timeout
	clock       *storeClock
	tracer      Tracer // nil = nothing is traced
}

// NewStoreClient makes a client of a store. localNow is the clock of this process.
func NewStoreClient(store checkpoint.Store, attempts int, timeout time.Duration, localNow func() time.Time) *StoreClient {
	_, isImmediate := store.(checkpoint.Immediate)
	return &StoreClient{
		Store: store, attempts: attempts, timeout: timeout, isImmediate: isImmediate, clock: &storeClock{localNow: localNow},
	}
}

// TraceCalls makes the client trace its calls. It is called before the client is used.
func (s *StoreClient) TraceCalls(tracer Tracer) { s.tracer = tracer }

// CurrentTime returns the store's time, as far as it is known.
func (s *StoreClient) CurrentTime() time.Time { return s.clock.currentTime() }

// callStore makes one read, and repeats it while the store returns
// checkpoint.ErrUnavailable: at most l.attempts calls, all within l.timeout. A
// checkpoint.Immediate has one call. Errors:
// checkpoint.ErrUnavailable, also for a read without an answer by then, and those of the
// store.
func callStore[T any](ctx context.Context, l *StoreClient, name string, call func(context.Context) (T, error)) (T, error) {
	if l.tracer != nil {
		return callTraced(ctx, l, name, call)
	}
	return callUntraced(ctx, l, call)
}

// callTraced does so in a span.
func callTraced[T any](ctx context.Context, l *StoreClient, name string, call func(context.Context) (T, error)) (T, error) {
	end := l.tracer.TraceStoreCall(ctx, name)
	out, err := callUntraced(ctx, l, call)
	if end != nil {
		end(err)
	}
	return out, err
}

// callUntraced does so without a span: followers and the scheduler make such calls all the time.
func callUntraced[T any](ctx context.Context, l *StoreClient, call func(context.Context) (T, error)) (T, error) {
	if l.isImmediate {
		return call(ctx)
	}
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

// Head implements checkpoint.Writer, and corrects the clock. Errors: those of callStore.
func (s *StoreClient) Head(ctx context.Context, thread string) (checkpoint.Head, error) {
	h, err := callStore(ctx, s, "Head", func(ctx context.Context) (checkpoint.Head, error) {
		return s.Store.Head(ctx, thread)
	})
	s.clock.observeTime(h.Now)
	return h, err
}

// SyncClock reads the store's time unless it is known. Errors: those of callStore.
func (s *StoreClient) SyncClock(ctx context.Context) error {
	if s.clock.isSynced.Load() {
		return nil
	}
	clock, ok := s.Store.(checkpoint.Clock)
	if !ok {
		return nil
	}
	now, err := callUntraced(ctx, s, clock.Now)
	s.clock.observeTime(now)
	return err
}

// Apply implements checkpoint.Writer, and corrects the clock. It does not repeat the
// call. Errors: those of the store.
func (s *StoreClient) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	end := s.traceCall(ctx, "Apply")
	r, err := s.Store.Apply(ctx, c)
	if end != nil {
		end(err)
	}
	s.clock.observeTime(r.Now)
	return r, err
}

// traceCall begins the span of a call, nil = it is not traced.
func (s *StoreClient) traceCall(ctx context.Context, name string) func(error) {
	if s.tracer == nil {
		return nil
	}
	return s.tracer.TraceStoreCall(ctx, name)
}

// Checkpoint implements checkpoint.History, with the errors of callStore.
func (s *StoreClient) Checkpoint(ctx context.Context, thread, namespace, id string) (*checkpoint.Checkpoint, error) {
	return callStore(ctx, s, "Checkpoint", func(ctx context.Context) (*checkpoint.Checkpoint, error) {
		return s.Store.Checkpoint(ctx, thread, namespace, id)
	})
}

// Checkpoints implements checkpoint.History, with the timeout, repeats and errors of
// callStore.
func (s *StoreClient) Checkpoints(ctx context.Context, q checkpoint.CheckpointQuery) ([]*checkpoint.Checkpoint, error) {
	return callStore(ctx, s, "Checkpoints", func(ctx context.Context) ([]*checkpoint.Checkpoint, error) {
		return s.Store.Checkpoints(ctx, q)
	})
}

// Pending implements checkpoint.History, with the errors of callStore.
func (s *StoreClient) Pending(ctx context.Context, thread, id string) (checkpoint.Pending, error) {
	return callStore(ctx, s, "Pending", func(ctx context.Context) (checkpoint.Pending, error) {
		return s.Store.Pending(ctx, thread, id)
	})
}

// Events implements checkpoint.Log, with the errors of callStore.
func (s *StoreClient) Events(ctx context.Context, thread string, after uint64, limit int) ([]checkpoint.Event, error) {
	return callUntraced(ctx, s, func(ctx context.Context) ([]checkpoint.Event, error) {
		return s.Store.Events(ctx, thread, after, limit)
	})
}

// Run implements checkpoint.Records, with the errors of callStore.
func (s *StoreClient) Run(ctx context.Context, thread, run string) (checkpoint.Run, error) {
	return callStore(ctx, s, "Run", func(ctx context.Context) (checkpoint.Run, error) {
		return s.Store.Run(ctx, thread, run)
	})
}

// Runs implements checkpoint.Records, with the errors of callStore.
func (s *StoreClient) Runs(ctx context.Context, thread string, before uint64, limit int) ([]checkpoint.Run, error) {
	return callStore(ctx, s, "Runs", func(ctx context.Context) ([]checkpoint.Run, error) {
		return s.Store.Runs(ctx, thread, before, limit)
	})
}

// Interrupt implements checkpoint.Records, with the errors of callStore.
func (s *StoreClient) Interrupt(ctx context.Context, thread, id string) (checkpoint.Interrupt, error) {
	return callStore(ctx, s, "Interrupt", func(ctx context.Context) (checkpoint.Interrupt, error) {
		return s.Store.Interrupt(ctx, thread, id)
	})
}

// Request implements checkpoint.Records, with the errors of callStore.
func (s *StoreClient) Request(ctx context.Context, thread, id string) (checkpoint.Request, error) {
	return callStore(ctx, s, "Request", func(ctx context.Context) (checkpoint.Request, error) {
		return s.Store.Request(ctx, thread, id)
	})
}

// Threads implements checkpoint.Index, with the errors of callStore.
func (s *StoreClient) Threads(ctx context.Context, q checkpoint.ThreadQuery) ([]checkpoint.Head, error) {
	return callStore(ctx, s, "Threads", func(ctx context.Context) ([]checkpoint.Head, error) { return s.Store.Threads(ctx, q) })
}

// Interrupts implements checkpoint.Index, with the errors of callStore.
func (s *StoreClient) Interrupts(ctx context.Context, q checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	return callStore(ctx, s, "Interrupts", func(ctx context.Context) ([]checkpoint.Interrupt, error) {
		return s.Store.Interrupts(ctx, q)
	})
}

// CountThreads returns how many threads a tenant has, at most as many as asked for.
func (s *StoreClient) CountThreads(ctx context.Context, tenant string, atMost int) (int, error) {
	return callStore(ctx, s, "CountThreads", func(ctx context.Context) (int, error) { return s.Store.CountThreads(ctx, tenant, atMost) })
}

// CountOpenInterrupts returns how many interrupts of a tenant are open, at most as many as
// asked for.
func (s *StoreClient) CountOpenInterrupts(ctx context.Context, tenant string, atMost int) (int, error) {
	return callStore(ctx, s, "CountOpenInterrupts", func(ctx context.Context) (int, error) { return s.Store.CountOpenInterrupts(ctx, tenant, atMost) })
}

// SkipThreads implements checkpoint.ThreadPager, with the errors of callStore.
func (s *StoreClient) SkipThreads(ctx context.Context, q checkpoint.ThreadQuery, n int) (checkpoint.ThreadPosition, error) {
	return callStore(ctx, s, "SkipThreads", func(ctx context.Context) (checkpoint.ThreadPosition, error) { return s.Store.SkipThreads(ctx, q, n) })
}

// CountSelectedThreads implements checkpoint.ThreadPager, with the errors of callStore.
func (s *StoreClient) CountSelectedThreads(ctx context.Context, q checkpoint.ThreadQuery, atMost int) (int, error) {
	return callStore(ctx, s, "CountSelectedThreads", func(ctx context.Context) (int, error) { return s.Store.CountSelectedThreads(ctx, q, atMost) })
}

// LatestChange implements checkpoint.Index, with the errors of callStore.
func (s *StoreClient) LatestChange(ctx context.Context) (uint64, error) {
	return callUntraced(ctx, s, func(ctx context.Context) (uint64, error) { return s.Store.LatestChange(ctx) })
}

// CountTags returns how many open interrupts of a tenant have each of some tags.
func (s *StoreClient) CountTags(ctx context.Context, tenant string, tags []string) ([]int, error) {
	return callStore(ctx, s, "CountTags", func(ctx context.Context) ([]int, error) { return s.Store.CountTags(ctx, tenant, tags) })
}

// Due implements checkpoint.Index, with the errors of callStore.
func (s *StoreClient) Due(ctx context.Context, limit int) ([]string, time.Time, error) {
	var next time.Time
	threads, err := callUntraced(ctx, s, func(ctx context.Context) (threads []string, err error) {
		threads, next, err = s.Store.Due(ctx, limit)
		return threads, err
	})
	return threads, next, err
}

// storeRetries returns the pauses between repeated calls.
func storeRetries() backoff.Policy {
	return backoff.Policy{First: 20 * time.Millisecond, Max: time.Second}
}

// ReadCheckpointWithin reads a checkpoint of at most most bytes. The error is a
// *checkpoint.LargeError for a larger checkpoint, from a store that implements
// checkpoint.BoundedReader.
func (s *StoreClient) ReadCheckpointWithin(ctx context.Context, thread, namespace, id string, most int) (*checkpoint.Checkpoint, error) {
	reader, ok := s.Store.(checkpoint.BoundedReader)
	if !ok {
		return s.Checkpoint(ctx, thread, namespace, id)
	}
	return callStore(ctx, s, "ReadCheckpointWithin", func(ctx context.Context) (*checkpoint.Checkpoint, error) {
		return reader.CheckpointWithin(ctx, thread, namespace, id, most)
	})
}

// ReadPendingWithin reads the progress after a checkpoint, of at most most bytes. The
// error is a *checkpoint.LargeError for larger progress. A store that does not implement
// checkpoint.BoundedReader reads all of it before.
func (s *StoreClient) ReadPendingWithin(ctx context.Context, thread, id string, most int) (checkpoint.Pending, error) {
	reader, ok := s.Store.(checkpoint.BoundedReader)
	if !ok {
		p, err := s.Pending(ctx, thread, id)
		return checkPendingSize(p, err, most)
	}
	return callStore(ctx, s, "ReadPendingWithin", func(ctx context.Context) (checkpoint.Pending, error) {
		return reader.PendingWithin(ctx, thread, id, most)
	})
}

// checkPendingSize returns progress that was read, or a *checkpoint.LargeError for more
// than most bytes.
func checkPendingSize(p checkpoint.Pending, err error, most int) (checkpoint.Pending, error) {
	if err != nil {
		return checkpoint.Pending{}, err
	}
	if size := p.Size(); size > most {
		return checkpoint.Pending{}, &checkpoint.LargeError{Bytes: size}
	}
	return p, nil
}
