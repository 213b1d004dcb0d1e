package worker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker"
)

// nothing says that a worker is given nothing for a while.
func nothing(t *testing.T, s *worker.Session, during time.Duration) {
	t.Helper()
	ctx, end := context.WithTimeout(t.Context(), during)
	defer end()
	_, err := s.Next(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestATaskThatHasLeftIsItsWorkersUntilTheLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		r := execute(t.Context(), h, task("t1", &run{}))
		first := open(t, h, hello("w1", 1))
		given := next(t, first)
		began := time.Now()
		pass(10 * time.Second)
		first.Close()
		second := open(t, h, hello("w2", 1))
		nothing(t, second, 19*time.Second)
		moved := next(t, second)
		require.Equal(t, 30*time.Second, time.Since(began))
		_, err := h.Complete(t.Context(), worker.Completion{Token: given.Token, Result: done("1")})
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonTaskLeaseLost})
		complete(t, h, moved, "2")
		require.Equal(t, done("2"), <-r)
	})
}

// A worker can't have begun what the server has not sent.
func TestATaskThatHasNotLeftGoesToOthersAtOnce(t *testing.T) {
	for name, end := range map[string]func(s *worker.Session, h *worker.Hub) error{
		"the stream breaks":        func(s *worker.Session, _ *worker.Hub) error { s.Close(); return nil },
		"the worker says goodbye":  func(s *worker.Session, _ *worker.Hub) error { s.Goodbye(nil, ""); return nil },
		"the worker connects anew": func(_ *worker.Session, h *worker.Hub) error { _, _, err := h.Open(hello("w1", 0)); return err },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := worker.New(worker.Options{})
				first := open(t, h, hello("w1", 2))
				execute(t.Context(), h, task("t1", &run{}))
				a := next(t, first)
				execute(t.Context(), h, task("t2", &run{}))
				synctest.Wait()
				answered := execute(t.Context(), h, task("t3", &run{}))
				synctest.Wait()
				first.Complete(t.Context(), worker.Completion{Token: a.Token, Result: done("1"), Next: true})
				synctest.Wait() // t2 waits to be sent, t3 in the answer to the result of t1
				began := time.Now()
				require.NoError(t, end(first, h))
				second := open(t, h, hello("w2", 2))
				require.Equal(t, "t2", next(t, second).Task.ID)
				last := next(t, second)
				require.Equal(t, "t3", last.Task.ID)
				require.Zero(t, time.Since(began))
				complete(t, h, last, "3")
				require.Equal(t, done("3"), <-answered)
			})
		})
	}
}

// What a worker is given in the answer to a call, no stream keeps in order: it
// may get that after it has connected anew.
func TestATaskInTheAnswerToACallIsKeptThoughItsWorkerComesBackWithout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		first := open(t, h, hello("w1", 1))
		execute(t.Context(), h, task("t1", &run{}))
		a := next(t, first)
		answer := receipts(t.Context(), h, a, true)
		second := execute(t.Context(), h, task("t2", &run{}))
		given := (<-answer).Next
		require.NotNil(t, given)
		first.Close()
		again := open(t, h, hello("w1", 1))
		nothing(t, open(t, h, hello("w2", 1)), 9*time.Second)
		again.Beat(1, []string{given.Token})
		complete(t, h, *given, "2")
		require.Equal(t, done("2"), <-second)
	})
}

// The run does not want a task any more that may have begun: no other worker gets it,
// and what it still finishes within the grace is kept.
func TestATaskToBeStoppedIsKeptForAWorkerWhoseStreamBreaks(t *testing.T) {
	for name, cause := range map[string]error{"a sibling has failed": runtime.ErrSibling, "it is cancelled": errors.New("cancelled")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := worker.New(worker.Options{})
				first := open(t, h, hello("w1", 1))
				ctx, stop := context.WithCancelCause(t.Context())
				wanted := task("t1", &run{})
				wanted.Unwanted = make(chan struct{})
				r := execute(ctx, h, wanted)
				given := next(t, first)
				first.Close()
				second := open(t, h, hello("w2", 1))
				stop(cause)
				nothing(t, second, time.Second)
				back, welcome, err := h.Open(hello("w1", 1, given.Token))
				require.NoError(t, err)
				if !errors.Is(cause, runtime.ErrSibling) {
					require.Equal(t, []string{given.Token}, welcome.Lost)
					require.Equal(t, "Cancelled", (<-r).Failure.Type)
					return
				}
				require.Equal(t, []string{given.Token}, welcome.Renewed)
				m, err := back.Next(t.Context())
				require.NoError(t, err)
				require.Equal(t, worker.Cancel{Token: given.Token, Reason: runtime.ErrSibling.Error(), Grace: 4 * time.Second}, m)
				complete(t, h, given, "1")
				require.Equal(t, done("1"), <-r)
			})
		})
	}
}
