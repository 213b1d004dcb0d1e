package query

import (
	"context"
	"time"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// AnswerReservation returns the reservation for an answer: that of the call's memory or,
// without a memory, own, which the caller releases. answer is the number of bytes that
// are shown together, 0 = one state.
func (r *Reader) AnswerReservation(memory *runtime.CallMemory, own *runtime.ReadReservation, answer int) *runtime.ReadReservation {
	if l := r.CallReservation(memory, answer); l != nil {
		return l
	}
	*own = r.opts.Budget.NewReservation()
	return own
}

// CallReservation returns the reservation of a call's memory, nil without a memory.
func (r *Reader) CallReservation(memory *runtime.CallMemory, answer int) *runtime.ReadReservation {
	if memory == nil {
		return nil
	}
	return memory.JoinBudget(r.opts.Budget, answer)
}

// ReserveValueMemory reserves bytes for a value that is about to be encoded, in the
// memory of a call. Without a memory it reserves nothing. Errors: those of
// ReadReservation.ReserveValue.
func (r *Reader) ReserveValueMemory(ctx context.Context, memory *runtime.CallMemory, bytes int) error {
	held := r.CallReservation(memory, 0)
	if held == nil {
		return nil
	}
	return held.ReserveValue(ctx, bytes)
}

// listReserved lists records for a load. A list that turns out to be large is read
// again when there is memory for it.
func listReserved[T any](
	ctx context.Context, r *Reader, memory *runtime.ReadReservation, timeout time.Duration, size func(*T) int, read func() ([]T, error),
) (list []T, err error) {
	err = r.RetryLargeRead(ctx, memory, timeout, func() error {
		if list, err = read(); err != nil {
			return runtime.TranslateStoreError(err)
		}
		bytes := 0
		for i := range list {
			bytes += size(&list[i])
		}
		if err := memory.CheckFits(bytes); err != nil {
			list = nil // it is not held while the call waits
			return err
		}
		return nil
	})
	return list, err
}
