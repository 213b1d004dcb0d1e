package engine

import (
	"context"
	"errors"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// retryLargeRead repeats a read that found a checkpoint too large for the memory
// that a reservation has, when there is memory for it.
func (e *Engine) retryLargeRead(ctx context.Context, held *runtime.ReadReservation, timeout time.Duration, read func() error) error {
	for {
		err := read()
		large, ok := errors.AsType[*checkpoint.LargeError](err)
		if !ok {
			return err
		}
		if err := held.WaitForBytes(ctx, held.NeededBytes(e.largeBytes(large)), timeout); err != nil {
			return err
		}
	}
}

// ignoreLarge is nil for a checkpoint that is read again when there is memory for it.
func ignoreLarge(err error) error {
	if _, ok := errors.AsType[*checkpoint.LargeError](err); ok {
		return nil
	}
	return err
}

// largeBytes is how many bytes to reserve: the most that a state may have when the
// size is unknown.
func (e *Engine) largeBytes(large *checkpoint.LargeError) int64 {
	if large.Bytes > 0 {
		return int64(large.Bytes)
	}
	return e.opts.Limits.MaxStateBytes
}

// readCheckpoint reads a checkpoint for which a reservation has memory, or that is
// small. The error is a *checkpoint.LargeError when it is neither.
func (e *Engine) readCheckpoint(ctx context.Context, held *runtime.ReadReservation, thread, namespace, id string) (*checkpoint.Checkpoint, error) {
	if held == nil || held.HasMemory() {
		cp, err := e.store.Checkpoint(ctx, thread, namespace, id)
		if err == nil && held != nil {
			held.AddRead(cp.Size())
		}
		return cp, err
	}
	return e.storeClient.ReadCheckpointWithin(ctx, thread, namespace, id, held.UnreservedBytes(int(e.liveBytes.share)))
}

// readPending reads the progress of a superstep for which a reservation has memory,
// or that is small. The error is a *checkpoint.LargeError when it is neither.
func (e *Engine) readPending(ctx context.Context, held *runtime.ReadReservation, thread, id string) (checkpoint.Pending, error) {
	p, err := e.store.Pending(ctx, thread, id)
	if err != nil {
		return p, runtime.TranslateStoreError(err)
	}
	if err := held.CheckFits(pendingBytes(&p)); err != nil {
		return checkpoint.Pending{}, err
	}
	return p, nil
}

// translateUnlessLarge is TranslateStoreError for all but a checkpoint that is read again.
func translateUnlessLarge(err error) error {
	if large, ok := errors.AsType[*checkpoint.LargeError](err); ok {
		return large
	}
	return runtime.TranslateStoreError(err)
}

// findCheckpointSeq is the number of a checkpoint of the root, of which it reads little.
func (e *Engine) findCheckpointSeq(ctx context.Context, thread, id string) (uint64, error) {
	cp, err := e.storeClient.ReadCheckpointWithin(ctx, thread, "", id, int(e.liveBytes.share))
	if large, ok := errors.AsType[*checkpoint.LargeError](err); ok {
		return large.Seq, nil
	}
	if err != nil {
		return 0, err
	}
	return cp.Seq, nil
}
