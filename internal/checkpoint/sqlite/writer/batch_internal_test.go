package writer

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
)

// TestWhatWaitsSharesATransaction looks inside: nothing outside tells how many
// transactions there were.
func TestWhatWaitsSharesATransaction(t *testing.T) {
	w := openWriter(t, &checkedFile{})
	release := holdWriter(t, w)
	// Hand in one after the other while the first is under way.
	const n = 10
	var order []int
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		enqueueJob(w, &wg, &Job{Thread: "t", Run: func(ctx context.Context, conn *sql.Conn) error {
			order = append(order, i)
			if i%3 == 2 { // a refused change in between does not disturb
				return checkpoint.ErrConflict
			}
			assert.False(t, hasName(t, w, "t0"), "what the others wrote is not committed yet")
			return addName(ctx, conn, fmt.Sprint("t", i))
		}}, &errs[i])
	}
	release()
	wg.Wait()
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, order)
	for i, err := range errs {
		if i%3 == 2 {
			require.Equal(t, checkpoint.ErrConflict, err)
			continue
		}
		require.NoError(t, err)
		require.True(t, hasName(t, w, fmt.Sprint("t", i)))
	}
}

// TestAChangeThatPanicsIsUndoneAlone has changes wait together, one of which
// panics when it has written something.
func TestAChangeThatPanicsIsUndoneAlone(t *testing.T) {
	w := openWriter(t, &checkedFile{})
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			assert.NoError(t, w.RunChange(t.Context(), func(ctx context.Context, conn *sql.Conn) error {
				return addName(ctx, conn, fmt.Sprint("t", i))
			}))
		})
		all.Go(func() {
			err := w.RunChange(t.Context(), func(ctx context.Context, conn *sql.Conn) error {
				if err := addName(ctx, conn, "bad"); err != nil {
					return err
				}
				panic("a defect")
			})
			assert.ErrorIs(t, err, checkpoint.ErrInvalid)
		})
	}
	all.Wait()
	err := w.RunChange(t.Context(), func(context.Context, *sql.Conn) error { panic("a defect") })
	require.ErrorIs(t, err, checkpoint.ErrInvalid)
	var caught *contain.PanicError
	require.ErrorAs(t, err, &caught)
	require.False(t, hasName(t, w, "bad"), "what it had written is undone")
	for i := range 20 {
		require.True(t, hasName(t, w, fmt.Sprint("t", i)))
	}
}
