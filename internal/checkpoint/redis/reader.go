package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/index"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/setup"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/threads"
)

// Reader reads a store and changes nothing of it.
type Reader struct {
	database *setup.Database
	threads  *threads.Reader
	index    *index.Reader

	closeMu sync.RWMutex // held for reading by every call
	closed  bool
}

var _ checkpoint.Reader = (*Reader)(nil)

// OpenReader connects to the server of opts.URL and finds the store on it. Nothing is
// written, so servers may use the store meanwhile, and keys that it does not need are
// not noted. It fails as Open does, and with setup.ProblemMissing where there is no store.
func OpenReader(ctx context.Context, opts Options) (*Reader, error) {
	d, err := setup.OpenForReading(ctx, opts)
	if err != nil {
		return nil, err
	}
	return newReader(d, opts), nil
}

func newReader(d *setup.Database, opts Options) *Reader {
	batchers := script.NewBatchers(d.Client, cmp.Or(opts.Logger, zap.NewNop()), d.Keys.PartitionCount())
	records := threads.NewReader(d, batchers)
	return &Reader{database: d, threads: records, index: index.NewReader(d, records)}
}

// Close waits for the calls that are under way.
func (r *Reader) Close() error {
	r.closeMu.Lock()
	defer r.closeMu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	return r.database.CloseClient()
}

// beginCall begins a call; done ends it.
func (r *Reader) beginCall(ctx context.Context) (done func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", checkpoint.ErrUnavailable, err)
	}
	r.closeMu.RLock()
	if r.closed {
		r.closeMu.RUnlock()
		return nil, fmt.Errorf("%w: store is closed", checkpoint.ErrUnavailable)
	}
	return r.closeMu.RUnlock, nil
}

// readThread makes a call that reads a thread.
func (r *Reader) readThread(ctx context.Context, thread string, call func() error) error {
	done, err := r.beginCall(ctx)
	if err != nil {
		return err
	}
	defer done()
	return wrapThreadError(thread, script.ToContractError(ctx, call()))
}

// readStore makes a call that reads over all threads.
func (r *Reader) readStore(ctx context.Context, call func() error) error {
	done, err := r.beginCall(ctx)
	if err != nil {
		return err
	}
	defer done()
	return script.ToContractError(ctx, call())
}

// wrapThreadError adds the thread to an error of its records or of the store.
func wrapThreadError(thread string, err error) error {
	if errors.Is(err, checkpoint.ErrCorrupt) || errors.Is(err, checkpoint.ErrUnavailable) {
		return fmt.Errorf("thread %q: %w", thread, err)
	}
	return err
}

// Now is the time by the server's clock.
func (r *Reader) Now(ctx context.Context) (now time.Time, err error) {
	done, err := r.beginCall(ctx)
	if err != nil {
		return now, err
	}
	defer done()
	return now, script.ToContractError(ctx, script.Retry(ctx, func() (err error) {
		now, err = r.database.Client.Time(ctx).Result()
		return err
	}))
}
