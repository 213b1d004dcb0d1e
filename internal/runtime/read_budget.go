package runtime

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// A call holds the state of its thread from when it is read until a live run counts
// it, or the call is over. What states hold that are no run's is bounded: a call
// finds out how large a state is before it reads it, and waits until there is
// memory for a large one. Small ones, of less than the share of a run, never wait.

// readBudget counts the large states that calls hold.
type readBudget struct {
	maxBytes int64

	mu        sync.Mutex
	heldBytes int64
	waiters   list.List // of *readWaiter, in the order in which they came
}

// readWaiter is a call that waits for memory.
type readWaiter struct {
	bytes int64
	ready chan struct{} // closed when it has it
}

// readWaitTimeout is how long a call waits for memory.
const readWaitTimeout = 10 * time.Second

// waitForever is the timeout of a read that can't be refused; it waits until its context ends.
const waitForever time.Duration = 0

// readReservation is the memory that one call has reserved. The zero value has none.
type readReservation struct {
	budget    *readBudget
	bytes     int64
	readBytes int64 // bytes of what was read
	// Of what is shown: how often it is held, and how many bytes are reserved at least.
	isForAnswer bool
	copyCount   int64
	minBytes    int64
	// Whether it is not waited for, and what was wanted then.
	refusesReads bool
	wantedBytes  int64
}

// waitForBytes waits for some bytes, in place of those that are reserved. A state
// that is larger than all of it has to be alone.
func (l *readReservation) waitForBytes(ctx context.Context, bytes int64, timeout time.Duration) error {
	l.releaseAll()
	if l.refusesReads && !l.budget.tryReserve(bytes) {
		l.wantedBytes = bytes
		return errNoMemory
	}
	if l.refusesReads {
		l.bytes = bytes
		return nil
	}
	x := l.budget.reserveOrWait(bytes)
	if x == nil {
		l.bytes = bytes
		return nil
	}
	var late <-chan time.Time
	if timeout != waitForever {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		late = timer.C
	}
	var err error
	select {
	case <-x.ready:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-late:
		err = Errorf(ReasonTooManyRequests, "calls hold as much of large states as they may, and this one would hold %d bytes; "+
			"nothing was changed: try again", bytes).WithLimit("max-live-bytes", l.budget.maxBytes, 0)
	}
	if err != nil && l.budget.cancelWait(x) {
		return err
	}
	l.bytes = bytes
	return nil
}

// releaseUnused gives back what was not needed for what was read. What is shown keeps it
// all until it is on its way.
func (l *readReservation) releaseUnused() {
	if l.readBytes < l.bytes && !l.isForAnswer {
		l.budget.releaseBytes(l.bytes - l.readBytes)
		l.bytes = l.readBytes
	}
}

// releaseAll gives back what the load has.
func (l *readReservation) releaseAll() {
	if l.bytes > 0 {
		l.budget.releaseBytes(l.bytes)
	}
	l.bytes, l.readBytes = 0, 0
}

// reserveOrWait reserves bytes, or joins the waiters: nil when the bytes were free.
func (l *readBudget) reserveOrWait(bytes int64) *readWaiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiters.Len() == 0 && l.hasRoom(bytes) {
		l.heldBytes += bytes
		return nil
	}
	x := &readWaiter{bytes: bytes, ready: make(chan struct{})}
	l.waiters.PushBack(x)
	return x
}

// tryReserve reserves bytes if they are free.
func (l *readBudget) tryReserve(bytes int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiters.Len() > 0 || !l.hasRoom(bytes) {
		return false
	}
	l.heldBytes += bytes
	return true
}

// hasRoom reports whether the bytes are free. The caller holds mu.
func (l *readBudget) hasRoom(bytes int64) bool {
	return l.heldBytes == 0 || l.heldBytes+bytes <= l.maxBytes
}

// cancelWait ends the waiting of a call; false says that it has its memory already.
func (l *readBudget) cancelWait(x *readWaiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at := l.waiters.Front(); at != nil; at = at.Next() {
		if at.Value == x {
			l.waiters.Remove(at)
			l.admitWaiters() // it may have kept smaller ones behind it
			return true
		}
	}
	return false
}

func (l *readBudget) releaseBytes(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heldBytes -= bytes
	l.admitWaiters()
}

// admitWaiters admits the waiters that fit, in their order. The caller holds mu.
func (l *readBudget) admitWaiters() {
	for at := l.waiters.Front(); at != nil; at = l.waiters.Front() {
		x := at.Value.(*readWaiter) //nolint:forcetypeassert,errcheck // nothing else is in the list
		if !l.hasRoom(x.bytes) {
			return
		}
		l.heldBytes += x.bytes
		l.waiters.Remove(at)
		close(x.ready)
	}
}

// newReadReservation returns a reservation without memory.
func (e *Engine) newReadReservation() readReservation { return readReservation{budget: &e.readBudget} }

// retryLargeRead repeats a read that found a checkpoint too large for the memory
// that a reservation has, when there is memory for it.
func (e *Engine) retryLargeRead(ctx context.Context, held *readReservation, timeout time.Duration, read func() error) error {
	for {
		err := read()
		large, ok := errors.AsType[*checkpoint.LargeError](err)
		if !ok {
			return err
		}
		if err := held.waitForBytes(ctx, held.neededBytes(e.largeBytes(large)), timeout); err != nil {
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

// neededBytes returns how many bytes to reserve for a state of so many.
func (l *readReservation) neededBytes(bytes int64) int64 {
	if l.isForAnswer {
		return max(bytes*l.copyCount, l.minBytes)
	}
	return bytes
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
func (e *Engine) readCheckpoint(ctx context.Context, held *readReservation, thread, namespace, id string) (*checkpoint.Checkpoint, error) {
	if held == nil || held.bytes > 0 {
		cp, err := e.store.Checkpoint(ctx, thread, namespace, id)
		if err == nil && held != nil {
			held.readBytes += int64(cp.Size())
		}
		return cp, err
	}
	most := e.liveBytes.share
	if held.isForAnswer {
		most = max(most, e.readBudget.smallBytes())
	}
	return e.storeClient.readCheckpointWithin(ctx, thread, namespace, id, int(most))
}

// readPending reads the progress of a superstep for which a reservation has memory,
// or that is small. The error is a *checkpoint.LargeError when it is neither.
func (e *Engine) readPending(ctx context.Context, held *readReservation, thread, id string) (checkpoint.Pending, error) {
	p, err := e.store.Pending(ctx, thread, id)
	if err != nil {
		return p, translateStoreError(err)
	}
	if err := held.checkFits(pendingBytes(&p)); err != nil {
		return checkpoint.Pending{}, err
	}
	return p, nil
}

// translateUnlessLarge is translateStoreError for all but a checkpoint that is read again.
func translateUnlessLarge(err error) error {
	if large, ok := errors.AsType[*checkpoint.LargeError](err); ok {
		return large
	}
	return translateStoreError(err)
}

// findCheckpointSeq is the number of a checkpoint of the root, of which it reads little.
func (e *Engine) findCheckpointSeq(ctx context.Context, thread, id string) (uint64, error) {
	cp, err := e.storeClient.readCheckpointWithin(ctx, thread, "", id, int(e.liveBytes.share))
	if large, ok := errors.AsType[*checkpoint.LargeError](err); ok {
		return large.Seq, nil
	}
	if err != nil {
		return 0, err
	}
	return cp.Seq, nil
}

// readCheckpointWithin asks the store, where it can tell whether a checkpoint is large.
func (l *storeClient) readCheckpointWithin(ctx context.Context, thread, namespace, id string, most int) (*checkpoint.Checkpoint, error) {
	reader, ok := l.Store.(checkpoint.BoundedReader)
	if !ok {
		return l.Checkpoint(ctx, thread, namespace, id)
	}
	if cp := viewFromContext(ctx, thread).findCheckpoint(namespace, id); cp != nil {
		return cp, nil
	}
	return callStore(ctx, l, func(ctx context.Context) (*checkpoint.Checkpoint, error) {
		return reader.CheckpointWithin(ctx, thread, namespace, id, most)
	})
}
