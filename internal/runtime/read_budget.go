package runtime

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// A call holds the state of its thread from the read until a live run counts it, or
// until the call ends. The memory for states that no run counts is bounded. A call
// learns the size of a state before it reads it, and waits for memory for a large
// state. A state below the share of a run never waits.

// ReadBudget counts the large states that calls hold.
type ReadBudget struct {
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

// ReadWaitTimeout is the time for which a call waits for memory, and PartWaitTimeout that for which it
// waits for a part of its answer that may be left out.
const (
	ReadWaitTimeout = 10 * time.Second
	PartWaitTimeout = time.Second
)

// WaitForever is the timeout of a read that can't be refused. The read waits until its
// context ends.
const WaitForever time.Duration = 0

// ReadReservation is the memory that one call has reserved. The zero value has none.
type ReadReservation struct {
	budget    *ReadBudget
	bytes     int64
	readBytes int64 // bytes that were read
	// For an answer: the number of copies held, and the minimum reservation.
	isForAnswer bool
	copyCount   int64
	minBytes    int64
	// Whether a large read fails without waiting, and the bytes it needed
	// then.
	refusesReads bool
	wantedBytes  int64
}

// NewReadBudget makes a budget of some bytes.
func NewReadBudget(maxBytes int64) *ReadBudget { return &ReadBudget{maxBytes: maxBytes} }

// NewReservation returns a reservation without memory.
func (r *ReadBudget) NewReservation() ReadReservation { return ReadReservation{budget: r} }

// CurrentBytes returns the number of bytes that calls hold.
func (r *ReadBudget) CurrentBytes() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heldBytes
}

// HasMemory reports whether memory is reserved.
func (r *ReadReservation) HasMemory() bool { return r.bytes > 0 }

// MustKnowSize reports whether a state may be read only when its size is known.
func (r *ReadReservation) MustKnowSize() bool { return r.bytes == 0 && !r.isForAnswer }

// AddRead adds bytes that were read.
func (r *ReadReservation) AddRead(bytes int) { r.readBytes += int64(bytes) }

// UnreservedBytes returns the size up to which a state may be read without
// memory, where a run may hold share bytes.
func (r *ReadReservation) UnreservedBytes(share int) int {
	if r.isForAnswer {
		return max(share, int(r.budget.smallBytes()))
	}
	return share
}

// ReadableBytes returns the number of bytes of a further value that may be read: those
// left of the reservation, and at least those of a small value.
func (r *ReadReservation) ReadableBytes() int {
	left := r.bytes
	if r.isForAnswer {
		left /= r.copyCount
	}
	return int(max(left-r.readBytes, r.budget.smallBytes()))
}

// BytesBefore returns the number of bytes to reserve, besides those of a further value,
// for the values that the read holds by then: those read under the reservation or,
// without reserved bytes, a state that was read without memory, where a run may hold
// share bytes.
func (r *ReadReservation) BytesBefore(share int) int {
	if r.bytes == 0 {
		return r.UnreservedBytes(share)
	}
	return int(r.readBytes)
}

// WaitForBytes waits for some bytes, in place of those that are reserved. A state above
// the whole budget waits until no other call holds memory. Errors: the cause of ctx,
// *Error TOO_MANY_REQUESTS after the timeout, and an error for which IsMemoryRefused
// reports true.
func (r *ReadReservation) WaitForBytes(ctx context.Context, bytes int64, timeout time.Duration) error {
	r.ReleaseAll()
	if r.refusesReads && !r.budget.tryReserve(bytes) {
		r.wantedBytes = bytes
		return errNoMemory
	}
	if r.refusesReads {
		r.bytes = bytes
		return nil
	}
	x := r.budget.reserveOrWait(bytes)
	if x == nil {
		r.bytes = bytes
		return nil
	}
	var late <-chan time.Time
	if timeout != WaitForever {
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
			"nothing was changed: try again", bytes).WithLimit("max-live-bytes", r.budget.maxBytes, 0)
	}
	if err != nil && r.budget.cancelWait(x) {
		return err
	}
	r.bytes = bytes
	return nil
}

// ReleaseUnused releases the bytes that the read did not need. A value that is shown
// keeps its reservation until it is sent.
func (r *ReadReservation) ReleaseUnused() {
	if r.readBytes < r.bytes && !r.isForAnswer {
		r.budget.releaseBytes(r.bytes - r.readBytes)
		r.bytes = r.readBytes
	}
}

// ReleaseAll releases all memory of the reservation.
func (r *ReadReservation) ReleaseAll() {
	if r.bytes > 0 {
		r.budget.releaseBytes(r.bytes)
	}
	r.bytes, r.readBytes = 0, 0
}

// reserveOrWait reserves bytes and returns nil, or adds a waiter and returns it.
func (r *ReadBudget) reserveOrWait(bytes int64) *readWaiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiters.Len() == 0 && r.hasRoom(bytes) {
		r.heldBytes += bytes
		return nil
	}
	x := &readWaiter{bytes: bytes, ready: make(chan struct{})}
	r.waiters.PushBack(x)
	return x
}

// tryReserve reserves bytes if they are free.
func (r *ReadBudget) tryReserve(bytes int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiters.Len() > 0 || !r.hasRoom(bytes) {
		return false
	}
	r.heldBytes += bytes
	return true
}

// hasRoom reports whether the bytes are free. The caller holds mu.
func (r *ReadBudget) hasRoom(bytes int64) bool {
	return r.heldBytes == 0 || r.heldBytes+bytes <= r.maxBytes
}

// cancelWait removes a waiter. It returns false when the waiter has its memory
// already.
func (r *ReadBudget) cancelWait(x *readWaiter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for at := r.waiters.Front(); at != nil; at = at.Next() {
		if at.Value == x {
			r.waiters.Remove(at)
			r.admitWaiters() // it may have blocked smaller waiters behind it
			return true
		}
	}
	return false
}

func (r *ReadBudget) releaseBytes(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heldBytes -= bytes
	r.admitWaiters()
}

// admitWaiters admits waiters in their order until a waiter does not fit. The caller
// holds mu.
func (r *ReadBudget) admitWaiters() {
	for at := r.waiters.Front(); at != nil; at = r.waiters.Front() {
		x := at.Value.(*readWaiter) //nolint:forcetypeassert,errcheck // nothing else is in the list
		if !r.hasRoom(x.bytes) {
			return
		}
		r.heldBytes += x.bytes
		r.waiters.Remove(at)
		close(x.ready)
	}
}

// NeededBytes returns the number of bytes to reserve for a state.
func (r *ReadReservation) NeededBytes(bytes int64) int64 {
	if r.isForAnswer {
		return max(bytes*r.copyCount, r.minBytes)
	}
	return bytes
}

// MinShare is the memory that each run may hold, at any number of runs.
const MinShare = 4 << 10
