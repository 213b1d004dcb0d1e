package runtime

import (
	"context"
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// A call holds three things until its answer is encoded: the state as it was read, the
// values that are made of it, and the answer. A call or stream that hands in a
// CallMemory keeps memory reserved for all of that until it releases it.

// CallMemory is the memory of one call or stream for the large states that it
// shows. The zero CallMemory holds nothing. One goroutine uses it.
type CallMemory struct {
	// LargeParts is the number of large values that the call holds at the same time,
	// such as the output of a run and a state; 0 = 1.
	LargeParts int64
	// RefusesReads makes a large read fail when there is no memory for it.
	// IsMemoryRefused reports true for the error. The reader then releases its
	// other memory and calls WaitForMemory.
	RefusesReads bool

	ReadReservation
}

// errNoMemory refuses a large value because there is no memory for it now.
var errNoMemory = errors.New("there is no room yet for what is to be shown")

// IsMemoryRefused reports whether a read failed because of RefusesReads.
func IsMemoryRefused(err error) bool { return errors.Is(err, errNoMemory) }

// WaitForMemory waits for memory for the refused read. The error is the cause of ctx.
func (c *CallMemory) WaitForMemory(ctx context.Context) error {
	c.refusesReads = false
	return c.WaitForBytes(ctx, c.wantedBytes, WaitForever)
}

// Release releases the memory, after the value was sent or dropped.
func (c *CallMemory) Release() {
	if c.bytes > 0 {
		c.ReleaseAll()
	}
}

// IsHeld reports whether something large was read.
func (c *CallMemory) IsHeld() bool { return c.bytes > 0 }

// maxSmallBytes is the size up to which a value is shown without a reservation. The
// size is smaller when the budget for all large states is below 16 times as much.
const maxSmallBytes = 256 << 10

// copiesPerAnswer is the number of copies that a call holds of a state that it shows:
// the stored state, the decoded state, one value, the encoded state, and an allowance
// for garbage.
const copiesPerAnswer = 5

// JoinBudget makes the memory part of the budget of all calls, and returns its
// reservation. answer is the number of bytes of the answer that the call shows
// together, 0 = one state.
func (c *CallMemory) JoinBudget(budget *ReadBudget, answer int) *ReadReservation {
	c.refusesReads = c.RefusesReads
	c.budget, c.isForAnswer = budget, true
	c.copyCount = copiesPerAnswer * max(c.LargeParts, 1)
	c.minBytes = max(c.minBytes, copiesPerAnswer*int64(answer))
	return &c.ReadReservation
}

// ReserveValue reserves bytes for a value that is about to be encoded. Errors: the cause
// of ctx, and an error for which IsMemoryRefused reports true.
func (r *ReadReservation) ReserveValue(ctx context.Context, bytes int) error {
	if int64(bytes) <= r.budget.smallBytes() {
		return nil
	}
	need := r.NeededBytes(int64(bytes))
	if r.bytes >= need {
		return nil
	}
	return r.WaitForBytes(ctx, need, WaitForever)
}

// CheckFits refuses a large read without a reservation: the value is dropped and read
// again when there is memory. The error is a *checkpoint.LargeError.
func (r *ReadReservation) CheckFits(bytes int) error {
	switch {
	case r == nil, int64(bytes) <= r.budget.smallBytes():
		return nil
	case r.bytes == 0:
		return &checkpoint.LargeError{Bytes: bytes}
	}
	r.readBytes += int64(bytes)
	return nil
}

// smallBytes returns the size up to which a value is shown without a
// reservation.
func (r *ReadBudget) smallBytes() int64 { return max(min(maxSmallBytes, r.maxBytes/16), MinShare) }
