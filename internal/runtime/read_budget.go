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

// ReadWaitTimeout is the time for which a call waits for memory.
const ReadWaitTimeout = 10 * time.Second

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
func (l *ReadBudget) NewReservation() ReadReservation { return ReadReservation{budget: l} }

// CurrentBytes returns the number of bytes that calls hold.
func (l *ReadBudget) CurrentBytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heldBytes
}

// HasMemory reports whether memory is reserved.
func (l *ReadReservation) HasMemory() bool { return l.bytes > 0 }

// MustKnowSize reports whether a state may be read only when its size is known.
func (l *ReadReservation) MustKnowSize() bool { return l.bytes == 0 && !l.isForAnswer }

// AddRead adds bytes that were read.
func (l *ReadReservation) AddRead(bytes int) { l.readBytes += int64(bytes) }

// UnreservedBytes returns the size up to which a state may be read without
// memory, where a run may hold share bytes.
func (l *ReadReservation) UnreservedBytes(share int) int {
	if l.isForAnswer {
		return max(share, int(l.budget.smallBytes()))
	}
	return share
}

// WaitForBytes waits for some bytes, in place of those that are reserved. A state
// above the whole budget waits until no other call holds memory.
func (l *ReadReservation) WaitForBytes(ctx context.Context, bytes int64, timeout time.Duration) error {
	l.ReleaseAll()
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
			"nothing was changed: try again", bytes).WithLimit("max-live-bytes", l.budget.maxBytes, 0)
	}
	if err != nil && l.budget.cancelWait(x) {
		return err
	}
	l.bytes = bytes
	return nil
}

// ReleaseUnused releases the bytes that the read did not need. A value that is shown
// keeps its reservation until it is sent.
func (l *ReadReservation) ReleaseUnused() {
	if l.readBytes < l.bytes && !l.isForAnswer {
		l.budget.releaseBytes(l.bytes - l.readBytes)
		l.bytes = l.readBytes
	}
}

// ReleaseAll releases all memory of the reservation.
func (l *ReadReservation) ReleaseAll() {
	if l.bytes > 0 {
		l.budget.releaseBytes(l.bytes)
	}
	l.bytes, l.readBytes = 0, 0
}

// reserveOrWait reserves bytes and returns nil, or adds a waiter and returns it.
func (l *ReadBudget) reserveOrWait(bytes int64) *readWaiter {
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
func (l *ReadBudget) tryReserve(bytes int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiters.Len() > 0 || !l.hasRoom(bytes) {
		return false
	}
	l.heldBytes += bytes
	return true
}

// hasRoom reports whether the bytes are free. The caller holds mu.
func (l *ReadBudget) hasRoom(bytes int64) bool {
	return l.heldBytes == 0 || l.heldBytes+bytes <= l.maxBytes
}

// cancelWait removes a waiter. It returns false when the waiter has its memory
// already.
func (l *ReadBudget) cancelWait(x *readWaiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at := l.waiters.Front(); at != nil; at = at.Next() {
		if at.Value == x {
			l.waiters.Remove(at)
			l.admitWaiters() // it may have blocked smaller waiters behind it
			return true
		}
	}
	return false
}

func (l *ReadBudget) releaseBytes(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heldBytes -= bytes
	l.admitWaiters()
}

// admitWaiters admits waiters in their order until one does not fit. The caller
// holds mu.
func (l *ReadBudget) admitWaiters() {
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

// NeededBytes returns the number of bytes to reserve for a state.
func (l *ReadReservation) NeededBytes(bytes int64) int64 {
	if l.isForAnswer {
		return max(bytes*l.copyCount, l.minBytes)
	}
	return bytes
}

// MinShare is the memory that each run may hold, whatever their number.
const MinShare = 4 << 10
