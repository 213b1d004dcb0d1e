package query

import (
	"context"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// AnswerReservation is the reservation for what a read shows: that of the context's
// CallMemory, or own, which the caller ends. Answer is how many bytes of it are
// shown together, 0 = one state.
func (d *Reader) AnswerReservation(ctx context.Context, own *runtime.ReadReservation, answer int) *runtime.ReadReservation {
	if l := d.ContextReservation(ctx, answer); l != nil {
		return l
	}
	*own = d.opts.Budget.NewReservation()
	return own
}

// ContextReservation is the reservation of the context's CallMemory; nil = it has none.
func (d *Reader) ContextReservation(ctx context.Context, answer int) *runtime.ReadReservation {
	r, ok := ctx.Value(runtime.CallMemoryKey{}).(*runtime.CallMemory)
	if !ok {
		return nil
	}
	return r.JoinBudget(d.opts.Budget, answer)
}

// ReserveValueMemory reserves bytes for a value that is about to be encoded, in the
// CallMemory of the context.
func (d *Reader) ReserveValueMemory(ctx context.Context, bytes int) error {
	memory := d.ContextReservation(ctx, 0)
	if memory == nil {
		return nil
	}
	return memory.ReserveValue(ctx, bytes)
}

// listReserved lists records for a load. A list that turns out to be large is read
// again when there is memory for it.
func listReserved[T any](
	ctx context.Context, d *Reader, memory *runtime.ReadReservation, timeout time.Duration, size func(*T) int, read func() ([]T, error),
) (list []T, err error) {
	err = d.RetryLargeRead(ctx, memory, timeout, func() error {
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
