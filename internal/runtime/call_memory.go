package runtime

import (
	"context"
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// What a call shows it holds until its answer is encoded: the state as it was read,
// the values that are made of it, and the answer. A call or stream that hands
// in a CallMemory keeps memory reserved for all of that until it releases it.

// CallMemory is what one call or stream holds of large states that it shows. The
// zero CallMemory holds nothing. One goroutine uses it.
type CallMemory struct {
	// LargeParts is how many large things are held together, such as the output of a run
	// and a state; 0 = 1.
	LargeParts int64
	// RefusesReads says that a large read for which there is no memory fails
	// with an error that IsMemoryRefused: the reader holds other memory,
	// releases it and calls WaitForMemory.
	RefusesReads bool

	ReadReservation
}

// errNoMemory says that a value is large and that there is no memory for it now.
var errNoMemory = errors.New("there is no room yet for what is to be shown")

// IsMemoryRefused reports whether a read failed because of RefusesReads.
func IsMemoryRefused(err error) bool { return errors.Is(err, errNoMemory) }

// WaitForMemory waits for memory for the refused read.
func (r *CallMemory) WaitForMemory(ctx context.Context) error {
	r.refusesReads = false
	return r.WaitForBytes(ctx, r.wantedBytes, WaitForever)
}

// Release releases the memory: what was read is sent or dropped.
func (r *CallMemory) Release() {
	if r.bytes > 0 {
		r.ReleaseAll()
	}
}

// IsHeld reports whether something large was read.
func (r *CallMemory) IsHeld() bool { return r.bytes > 0 }

// maxSmallBytes is how many bytes are shown without a reservation. It is less where
// all large states together have less than some times as much.
const maxSmallBytes = 256 << 10

// copiesPerAnswer is how often a state is held that is shown: as the store has given it, as
// it was decoded, as one value, and encoded; and some of what is no longer needed.
const copiesPerAnswer = 5

// JoinBudget makes the memory a part of what calls hold together, and returns its
// reservation. Answer is how many bytes of the answer are shown together, 0 = one
// state.
func (r *CallMemory) JoinBudget(budget *ReadBudget, answer int) *ReadReservation {
	r.refusesReads = r.RefusesReads
	r.budget, r.isForAnswer = budget, true
	r.copyCount = copiesPerAnswer * max(r.LargeParts, 1)
	r.minBytes = max(r.minBytes, copiesPerAnswer*int64(answer))
	return &r.ReadReservation
}

// ReserveValue reserves bytes for a value that is about to be encoded.
func (l *ReadReservation) ReserveValue(ctx context.Context, bytes int) error {
	if int64(bytes) <= l.budget.smallBytes() {
		return nil
	}
	need := l.NeededBytes(int64(bytes))
	if l.bytes >= need {
		return nil
	}
	return l.WaitForBytes(ctx, need, WaitForever)
}

// CheckFits refuses a large read without a reservation: the value is dropped and
// read again when there is memory.
func (l *ReadReservation) CheckFits(bytes int) error {
	switch {
	case l == nil, int64(bytes) <= l.budget.smallBytes():
		return nil
	case l.bytes == 0:
		return &checkpoint.LargeError{Bytes: bytes}
	}
	l.readBytes += int64(bytes)
	return nil
}

// smallBytes is how many bytes are shown without a reservation.
func (l *ReadBudget) smallBytes() int64 { return max(min(maxSmallBytes, l.maxBytes/16), MinShare) }
