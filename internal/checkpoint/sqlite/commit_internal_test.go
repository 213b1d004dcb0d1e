package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Whatever the look at the file's name says after a commit, what was committed
// is not run again, and its callers are not told that it was not made.
func TestWhatWasCommittedIsNeitherRepeatedNorDenied(t *testing.T) {
	for _, cause := range []error{syscall.EIO, syscall.ESTALE, syscall.EACCES, fs.ErrNotExist} {
		for _, jobs := range []int{1, 5} {
			t.Run(fmt.Sprint(cause, "/", jobs), func(t *testing.T) {
				s := openStoreAt(t, t.TempDir())
				release := holdWriter(t, s)
				runs, errs := make([]int, jobs), make([]error, jobs)
				var conflict error
				var wg sync.WaitGroup
				for i := range jobs {
					d := s.encodeChange(newThreadOf(fmt.Sprint("t", i), 10))
					enqueueJob(s, &wg, &job{run: func(w *writer) error {
						runs[i]++
						w.store.file.stat = failsOnce(w.store.file, cause)
						_, err := w.applyChange(d)
						return err
					}}, &errs[i])
				}
				if jobs > 1 {
					enqueueJob(s, &wg, &job{run: func(*writer) error { return checkpoint.ErrConflict }}, &conflict)
				}
				release()
				wg.Wait()
				for i := range jobs {
					require.Equal(t, 1, runs[i], "runs of t%d", i)
					require.ErrorIs(t, errs[i], checkpoint.ErrOutcomeUnknown)
					require.ErrorIs(t, errs[i], checkpoint.ErrUnavailable)
					_, err := s.Head(t.Context(), fmt.Sprint("t", i))
					require.NoError(t, err)
					_, err = s.Apply(t.Context(), newThreadOf(fmt.Sprint("t", i), 10))
					require.NoError(t, err, "repeating it tells")
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
				s := openStoreAt(t, t.TempDir())
				release := holdWriter(t, s)
				runs, errs := make([]int, jobs), make([]error, jobs)
				var conflict error
				var wg sync.WaitGroup
				for i := range jobs {
					d := s.encodeChange(newThreadOf(fmt.Sprint("t", i), 10))
					enqueueJob(s, &wg, &job{run: func(w *writer) error {
						runs[i]++
						w.endTransaction = failOnCommit(w, made)
						_, err := w.applyChange(d)
						return err
					}}, &errs[i])
				}
				enqueueJob(s, &wg, &job{run: func(*writer) error { return checkpoint.ErrConflict }}, &conflict)
				release()
				wg.Wait()
				for i := range jobs {
					require.Equal(t, 1, runs[i], "runs of t%d", i)
					require.ErrorIs(t, errs[i], checkpoint.ErrOutcomeUnknown)
					_, err := s.Head(t.Context(), fmt.Sprint("t", i))
					require.Equal(t, made, err == nil, err)
					r, err := s.Apply(t.Context(), newThreadOf(fmt.Sprint("t", i), 10))
					require.NoError(t, err, "repeating it tells")
					require.EqualValues(t, 1, r.Revision)
				}
				require.Equal(t, checkpoint.ErrConflict, conflict, "a refusal is definite")
			})
		}
	}
}

// failOnCommit makes the next commit fail, before or after it is made.
func failOnCommit(w *writer, made bool) func() error {
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

// failsOnce makes the next look at a file fail.
func failsOnce(f *ownedFile, cause error) func(string) (identity, error) {
	return func(string) (identity, error) {
		f.stat = identify
		return identity{}, cause
	}
}

// A store that can't look at its file before it begins has changed nothing.
func TestAFileThatCannotBeLookedAtTakesNoChanges(t *testing.T) {
	s := openStoreAt(t, t.TempDir())
	s.file.stat = func(string) (identity, error) { return identity{}, syscall.EIO }
	_, err := s.Apply(t.Context(), newThreadOf("t", 10))
	require.ErrorIs(t, err, checkpoint.ErrUnavailable)
	require.NotErrorIs(t, err, checkpoint.ErrOutcomeUnknown)
	s.file.stat = identify
	_, err = s.Head(t.Context(), "t")
	require.ErrorIs(t, err, checkpoint.ErrThreadNotFound)
}

// holdWriter keeps the writer busy until the function it returns is called.
func holdWriter(t *testing.T, s *Store) (release func()) {
	t.Helper()
	begun, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		assert.NoError(t, s.writer.runChange(t.Context(), func(*writer) error {
			close(begun)
			<-end
			return nil
		}))
	}()
	<-begun
	return func() {
		close(end)
		<-ended
	}
}

// enqueueJob returns when the job waits; its error is there when wg is done.
func enqueueJob(s *Store, wg *sync.WaitGroup, j *job, err *error) {
	before := s.writer.queue.countJobs()
	wg.Go(func() { *err = s.writer.runJob(s.writer.life, j) })
	for s.writer.queue.countJobs() == before {
		runtime.Gosched()
	}
}
