package writer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Large changes share the memory for their records: one that gets none waits for its
// turn, and is refused when that takes too long. Small changes never wait.
func TestLargeChangesShareMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &Writer{records: newRecordMemory(), limits: limits{turn: time.Minute}}
		first, err := w.ReserveMemory(t.Context(), maxRecordBytes-largeCost)
		require.NoError(t, err)

		small, err := w.ReserveMemory(t.Context(), largeCost)
		require.NoError(t, err, "a small change waits for none")
		small()

		_, err = w.ReserveMemory(t.Context(), 2*largeCost)
		require.ErrorIs(t, err, checkpoint.ErrStoreBusy)
		require.ErrorContains(t, err, "this one of 2097152 bytes got none within 1m0s")

		leaving, leave := context.WithCancel(t.Context())
		leave()
		_, err = w.ReserveMemory(leaving, 2*largeCost)
		require.ErrorIs(t, err, checkpoint.ErrUnavailable)
		require.ErrorIs(t, err, context.Canceled)

		reserved := make(chan func(), 1)
		go func() {
			release, err := w.ReserveMemory(t.Context(), 2*maxRecordBytes)
			if err == nil {
				reserved <- release
			}
		}()
		synctest.Wait()
		require.Empty(t, reserved, "one that needs more than there is waits for all of it")
		first()
		synctest.Wait()
		require.Len(t, reserved, 1)
		_, err = w.ReserveMemory(t.Context(), 2*largeCost)
		require.ErrorIs(t, err, checkpoint.ErrStoreBusy, "it is alone")
		(<-reserved)()
		last, err := w.ReserveMemory(t.Context(), maxRecordBytes)
		require.NoError(t, err, "what was released can be reserved")
		last()
	})
}
