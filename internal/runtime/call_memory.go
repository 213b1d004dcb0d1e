package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// What a call shows it holds until its answer is encoded: the state as it was read,
// the values that are made of it, and the answer. A call or stream whose context
// has a CallMemory keeps memory reserved for all of that until it releases it.

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

	readReservation
}

// errNoMemory says that a value is large and that there is no memory for it now.
var errNoMemory = errors.New("there is no room yet for what is to be shown")

// IsMemoryRefused reports whether a read failed because of RefusesReads.
func IsMemoryRefused(err error) bool { return errors.Is(err, errNoMemory) }

// WaitForMemory waits for memory for the refused read.
func (r *CallMemory) WaitForMemory(ctx context.Context) error {
	r.refusesReads = false
	return r.waitForBytes(ctx, r.wantedBytes, waitForever)
}

// CallMemoryKey is the key of a *CallMemory in a context.
type CallMemoryKey struct{}

// Release releases the memory: what was read is sent or dropped.
func (r *CallMemory) Release() {
	if r.bytes > 0 {
		r.releaseAll()
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

// answerReservation is the reservation for what a read shows: that of the context's
// CallMemory, or own, which the caller ends. Answer is how many bytes of it are
// shown together, 0 = one state.
func (e *Engine) answerReservation(ctx context.Context, own *readReservation, answer int) *readReservation {
	if l := e.contextReservation(ctx, answer); l != nil {
		return l
	}
	*own = e.newReadReservation()
	return own
}

// contextReservation is the reservation of the context's CallMemory; nil = it has none.
func (e *Engine) contextReservation(ctx context.Context, answer int) *readReservation {
	r, ok := ctx.Value(CallMemoryKey{}).(*CallMemory)
	if !ok {
		return nil
	}
	r.refusesReads = r.RefusesReads
	r.budget, r.isForAnswer = &e.readBudget, true
	r.copyCount = copiesPerAnswer * max(r.LargeParts, 1)
	r.minBytes = max(r.minBytes, copiesPerAnswer*int64(answer))
	return &r.readReservation
}

// ReserveMemory reserves bytes for a value that is about to be encoded, in the
// CallMemory of the context. If that refuses, IsMemoryRefused reports true for the
// error.
func (f *Follower) ReserveMemory(ctx context.Context, bytes int) error {
	memory := f.engine.contextReservation(ctx, 0)
	if memory == nil || int64(bytes) <= memory.budget.smallBytes() {
		return nil
	}
	need := memory.neededBytes(int64(bytes))
	if memory.bytes >= need {
		return nil
	}
	return memory.waitForBytes(ctx, need, waitForever)
}

// checkFits refuses a large read without a reservation: the value is dropped and
// read again when there is memory.
func (l *readReservation) checkFits(bytes int) error {
	switch {
	case l == nil, int64(bytes) <= l.budget.smallBytes():
		return nil
	case l.bytes == 0:
		return &checkpoint.LargeError{Bytes: bytes}
	}
	l.readBytes += int64(bytes)
	return nil
}

// listReserved lists records for a load. A list that turns out to be large is read
// again when there is memory for it.
func listReserved[T any](
	ctx context.Context, e *Engine, memory *readReservation, timeout time.Duration, size func(*T) int, read func() ([]T, error),
) (list []T, err error) {
	err = e.retryLargeRead(ctx, memory, timeout, func() error {
		if list, err = read(); err != nil {
			return translateStoreError(err)
		}
		bytes := 0
		for i := range list {
			bytes += size(&list[i])
		}
		if err := memory.checkFits(bytes); err != nil {
			list = nil // it is not held while the call waits
			return err
		}
		return nil
	})
	return list, err
}

// smallBytes is how many bytes are shown without a reservation.
func (l *readBudget) smallBytes() int64 { return max(min(maxSmallBytes, l.maxBytes/16), minShare) }

// pendingBytes is how many bytes the progress of a superstep has.
func pendingBytes(p *checkpoint.Pending) (n int) {
	for i := range p.Tasks {
		n += len(p.Tasks[i].Update)
		for k := range p.Tasks[i].Writes {
			n += len(p.Tasks[i].Writes[k].Value)
		}
	}
	for i := range p.Memos {
		n += len(p.Memos[i].Value)
	}
	for i := range p.Interrupts {
		n += p.Interrupts[i].Size()
	}
	return n
}
