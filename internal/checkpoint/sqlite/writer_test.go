package sqlite

import (
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// TestWhatWaitsSharesATransaction looks inside: nothing outside tells how many
// transactions there were.
//
//nolint:testifylint // require ends only the test's own goroutine
func TestWhatWaitsSharesATransaction(t *testing.T) {
	s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "a.db")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })

	begun, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		assert.NoError(t, s.writer.runChange(t.Context(), func(*writer) error {
			close(begun)
			<-release
			return nil
		}))
	})
	<-begun

	// Hand in one after the other while the first is under way.
	const n = 10
	var order []int
	for i := range n {
		wg.Go(func() {
			d := s.encodeChange(&checkpoint.Change{Thread: "t", Expect: uint64(i), Op: fmt.Sprint(i), Head: checkpoint.Head{Thread: "t"}})
			err := s.writer.runChange(t.Context(), func(w *writer) error {
				_, err := s.Head(t.Context(), "t")
				assert.ErrorIs(t, err, checkpoint.ErrThreadNotFound, "what the others wrote is not committed yet")
				order = append(order, i)
				if i%3 == 2 {
					// A refused change in between does not disturb.
					_, err := w.applyChange(s.encodeChange(&checkpoint.Change{Thread: "t", Head: checkpoint.Head{Thread: "t"}}))
					assert.ErrorIs(t, err, checkpoint.ErrConflict)
				}
				_, err = w.applyChange(d)
				return err
			})
			assert.NoError(t, err)
		})
		for s.writer.queue.countJobs() <= i {
			runtime.Gosched()
		}
	}
	close(release)
	wg.Wait()
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, order)
	h, err := s.Head(t.Context(), "t")
	require.NoError(t, err)
	require.EqualValues(t, n, h.Revision)
}
