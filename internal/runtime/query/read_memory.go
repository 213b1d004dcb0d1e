package query

import (
	"context"
	"errors"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// RetryLargeRead repeats a read that found a checkpoint too large for the memory that a
// reservation has, when there is memory for it. Errors: those of read but
// *checkpoint.LargeError, and those of ReadReservation.WaitForBytes.
func (r *Reader) RetryLargeRead(ctx context.Context, held *runtime.ReadReservation, timeout time.Duration, read func() error) error {
	for {
		err := read()
		large, ok := errors.AsType[*checkpoint.LargeError](err)
		if !ok {
			return err
		}
		if err := held.WaitForBytes(ctx, held.NeededBytes(r.largeBytes(large)), timeout); err != nil {
			return err
		}
	}
}

// IgnoreLarge returns nil for the error of a checkpoint that is read again when there
// is memory for it.
func IgnoreLarge(err error) error {
	if _, ok := errors.AsType[*checkpoint.LargeError](err); ok {
		return nil
	}
	return err
}

// largeBytes returns the number of bytes to reserve: the largest size of a state
// when its size is unknown.
func (r *Reader) largeBytes(large *checkpoint.LargeError) int64 {
	if large.Bytes > 0 {
		return int64(large.Bytes)
	}
	return r.opts.Limits.MaxStateBytes
}

// ReadCheckpoint reads a checkpoint for which a reservation has memory, or that is
// small. The error is a *checkpoint.LargeError when it is neither.
func (r *Reader) ReadCheckpoint(ctx context.Context, held *runtime.ReadReservation, thread, namespace, id string) (*checkpoint.Checkpoint, error) {
	if held == nil || held.HasMemory() {
		cp, err := r.store.Checkpoint(ctx, thread, namespace, id)
		if err == nil && held != nil {
			held.AddRead(cp.Size())
		}
		return cp, err
	}
	return r.store.ReadCheckpointWithin(ctx, thread, namespace, id, held.UnreservedBytes(r.opts.SmallStateBytes))
}

// ReadPending reads the progress of a superstep for which a reservation has memory left,
// or that is small. The error is a *checkpoint.LargeError when it is neither; its Bytes
// are those read under the reservation, and the progress. The other errors are those of
// runtime.TranslateStoreError. Without a reservation the size does not matter.
func (r *Reader) ReadPending(ctx context.Context, held *runtime.ReadReservation, thread, id string) (checkpoint.Pending, error) {
	if held == nil {
		p, err := r.store.Pending(ctx, thread, id)
		return p, runtime.TranslateStoreError(err)
	}
	p, err := r.store.ReadPendingWithin(ctx, thread, id, held.ReadableBytes())
	if large, ok := errors.AsType[*checkpoint.LargeError](err); ok {
		return checkpoint.Pending{}, &checkpoint.LargeError{Bytes: large.Bytes + held.BytesBefore(r.opts.SmallStateBytes)}
	}
	if err != nil {
		return checkpoint.Pending{}, runtime.TranslateStoreError(err)
	}
	if held.HasMemory() {
		held.AddRead(p.Size())
	}
	return p, nil
}

// TranslateUnlessLarge is TranslateStoreError for all errors but that of a checkpoint
// that is read again.
func TranslateUnlessLarge(err error) error {
	if large, ok := errors.AsType[*checkpoint.LargeError](err); ok {
		return large
	}
	return runtime.TranslateStoreError(err)
}
