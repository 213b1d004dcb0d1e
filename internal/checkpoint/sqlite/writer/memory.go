package writer

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/semaphore"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// maxRecordBytes is how many bytes the records of large changes have together, from when they are
// made until they are written. One that has more is alone.
const maxRecordBytes = 32 << 20

// recordMemory is the memory for the records of large changes. Changes are written one
// after the other, so records that are made long before are memory for nothing.
type recordMemory struct{ left *semaphore.Weighted }

func newRecordMemory() recordMemory {
	return recordMemory{left: semaphore.NewWeighted(maxRecordBytes)}
}

// ReserveMemory waits until a change may make records of so many bytes, and returns how to
// release them. It returns ErrStoreBusy when there is no memory in the time of a turn, and
// ErrUnavailable when ctx ends.
func (w *Writer) ReserveMemory(ctx context.Context, bytes int) (release func(), err error) {
	n := min(int64(bytes), maxRecordBytes)
	if n <= largeCost {
		return func() {}, nil
	}
	waiting, cancel := context.WithTimeoutCause(ctx, w.limits.turn, errNoTurn)
	defer cancel()
	err = w.records.left.Acquire(waiting, n)
	switch {
	case err == nil:
		return func() { w.records.left.Release(n) }, nil
	case errors.Is(context.Cause(waiting), errNoTurn):
		return nil, fmt.Errorf("%w: other large changes have all memory, and this one of %d bytes got none within %s",
			checkpoint.ErrStoreBusy, bytes, w.limits.turn)
	default:
		return nil, abandonedError(ctx)
	}
}

var errNoTurn = errors.New("no turn")
