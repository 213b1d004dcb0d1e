package writer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Whatever the look at the file's name says after a commit, what was committed
// is not run again, and its callers are not told that it was not made.
func TestWhatWasCommittedIsNeitherRepeatedNorDenied(t *testing.T) {
	for _, cause := range []error{syscall.EIO, syscall.ESTALE, syscall.EACCES, fs.ErrNotExist} {
		for _, jobs := range []int{1, 5} {
			t.Run(fmt.Sprint(cause, "/", jobs), func(t *testing.T) {
				f := &checkedFile{}
				w := openWriter(t, f)
				release := holdWriter(t, w)
				runs, errs := make([]int, jobs), make([]error, jobs)
				var conflict error
				var wg sync.WaitGroup
				for i := range jobs {
					enqueueJob(w, &wg, &Job{Run: func(ctx context.Context, conn *sql.Conn) error {
						runs[i]++
						f.failOnce(fmt.Errorf("%w: %w", checkpoint.ErrUnavailable, cause))
						return addName(ctx, conn, fmt.Sprint("t", i))
					}}, &errs[i])
				}
				if jobs > 1 {
					enqueueJob(w, &wg, &Job{Run: refuseChange}, &conflict)
				}
				release()
				wg.Wait()
				for i := range jobs {
					require.Equal(t, 1, runs[i], "runs of t%d", i)
					require.ErrorIs(t, errs[i], checkpoint.ErrOutcomeUnknown)
					require.ErrorIs(t, errs[i], checkpoint.ErrUnavailable)
					require.True(t, hasName(t, w, fmt.Sprint("t", i)))
				}
				if jobs > 1 {
					require.Equal(t, checkpoint.ErrConflict, conflict, "a refusal is definite")
				}
			})
		}
	}
}

// A commit that fails may have been made: no caller can tell before the change is
// repeated. Nothing is run again, and no caller is told that it was not made.
func TestACommitThatFailsLeavesTheOutcomeOpen(t *testing.T) {
	for _, made := range []bool{false, true} {
		for _, jobs := range []int{1, 5} {
			t.Run(fmt.Sprint("made ", made, "/", jobs), func(t *testing.T) {
				w := openWriter(t, &checkedFile{})
				undone := 0
				w.OnRollback(func() { undone++ })
				release := holdWriter(t, w)
				runs, errs := make([]int, jobs), make([]error, jobs)
				var conflict error
				var wg sync.WaitGroup
				for i := range jobs {
					enqueueJob(w, &wg, &Job{Run: func(ctx context.Context, conn *sql.Conn) error {
						runs[i]++
						w.endTransaction = failOnCommit(w, made)
						return addName(ctx, conn, fmt.Sprint("t", i))
					}}, &errs[i])
				}
				enqueueJob(w, &wg, &Job{Run: refuseChange}, &conflict)
				release()
				wg.Wait()
				for i := range jobs {
					require.Equal(t, 1, runs[i], "runs of t%d", i)
					require.ErrorIs(t, errs[i], checkpoint.ErrOutcomeUnknown)
					require.Equal(t, made, hasName(t, w, fmt.Sprint("t", i)))
				}
				require.Equal(t, checkpoint.ErrConflict, conflict, "a refusal is definite")
				require.Equal(t, 1, undone, "what is known of the file is forgotten")
				require.NoError(t, w.RunChange(w.life, func(context.Context, *sql.Conn) error { return nil }), "it goes on")
			})
		}
	}
}

// failOnCommit makes the next commit fail, before or after it is made.
func failOnCommit(w *Writer, made bool) func() error {
	return func() error {
		w.endTransaction = w.commitTransaction
		if made {
			if err := w.commitTransaction(); err != nil {
				return err
			}
		}
		return errors.New("disk I/O error")
	}
}

// A writer that can't look at its file before it begins has changed nothing.
func TestAFileThatCannotBeLookedAtTakesNoChanges(t *testing.T) {
	f := &checkedFile{}
	w := openWriter(t, f)
	f.failOnce(fmt.Errorf("%w: %w", checkpoint.ErrUnavailable, syscall.EIO))
	err := w.RunChange(t.Context(), func(ctx context.Context, conn *sql.Conn) error { return addName(ctx, conn, "t") })
	require.ErrorIs(t, err, checkpoint.ErrUnavailable)
	require.NotErrorIs(t, err, checkpoint.ErrOutcomeUnknown)
	require.False(t, hasName(t, w, "t"))
}
