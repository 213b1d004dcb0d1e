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
	"github.com/graphd-dev/graphd/internal/worker/message"
)

// requireNothingFor says that a worker is given nothing for a while.
func requireNothingFor(t *testing.T, s *worker.Session, during time.Duration) {
	t.Helper()
	ctx, end := context.WithTimeout(t.Context(), during)
	defer end()
	_, err := s.NextMessage(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestATaskThatHasLeftIsItsWorkersUntilTheLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		r := executeAsync(t.Context(), h, newTask("t1", &taskRun{}))
		first := openSession(t, h, newHello("w1", 1))
		given := nextAssignment(t, first)
		began := time.Now()
		sleepVirtual(10 * time.Second)
		first.Close()
		second := openSession(t, h, newHello("w2", 1))
		requireNothingFor(t, second, 19*time.Second)
		moved := nextAssignment(t, second)
		require.Equal(t, 30*time.Second, time.Since(began))
		_, err := h.CompleteTask(t.Context(), message.Completion{Token: given.Token, Result: newResult("1")})
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonTaskLeaseLost})
		completeTask(t, h, moved, "2")
		require.Equal(t, newResult("2"), <-r)
	})
}

// A worker can't have begun what the server has not sent.
func TestATaskThatHasNotLeftGoesToOthersAtOnce(t *testing.T) {
	for name, end := range map[string]func(s *worker.Session, h *worker.Hub) error{
		"the stream breaks":       func(s *worker.Session, _ *worker.Hub) error { s.Close(); return nil },
		"the worker says goodbye": func(s *worker.Session, _ *worker.Hub) error { s.HandleGoodbye(nil, ""); return nil },
		"the worker connects anew": func(_ *worker.Session, h *worker.Hub) error {
			_, _, err := h.OpenSession(newHello("w1", 0))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := worker.New(worker.Options{})
				first := openSession(t, h, newHello("w1", 2))
				executeAsync(t.Context(), h, newTask("t1", &taskRun{}))
				a := nextAssignment(t, first)
				executeAsync(t.Context(), h, newTask("t2", &taskRun{}))
				synctest.Wait()
				answered := executeAsync(t.Context(), h, newTask("t3", &taskRun{}))
				synctest.Wait()
				first.HandleCompletion(t.Context(), message.Completion{Token: a.Token, Result: newResult("1"), WantsNext: true})
				synctest.Wait() // t2 waits to be sent, t3 in the answer to the result of t1
				began := time.Now()
				require.NoError(t, end(first, h))
				second := openSession(t, h, newHello("w2", 2))
				require.Equal(t, "t2", nextAssignment(t, second).Task.ID)
				last := nextAssignment(t, second)
				require.Equal(t, "t3", last.Task.ID)
				require.Zero(t, time.Since(began))
				completeTask(t, h, last, "3")
				require.Equal(t, newResult("3"), <-answered)
			})
		})
	}
}

// What a worker is given in the answer to a call, no stream keeps in order: it
// may get that after it has connected anew.
func TestATaskInTheAnswerToACallIsKeptThoughItsWorkerComesBackWithout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		first := openSession(t, h, newHello("w1", 1))
		executeAsync(t.Context(), h, newTask("t1", &taskRun{}))
		a := nextAssignment(t, first)
		answer := completeAsync(t.Context(), h, a, true)
		second := executeAsync(t.Context(), h, newTask("t2", &taskRun{}))
		given := (<-answer).Next
		require.NotNil(t, given)
		first.Close()
		again := openSession(t, h, newHello("w1", 1))
		requireNothingFor(t, openSession(t, h, newHello("w2", 1)), 9*time.Second)
		again.HandleHeartbeat(1, []string{given.Token})
		completeTask(t, h, *given, "2")
		require.Equal(t, newResult("2"), <-second)
	})
}

// The run does not want a task any more that may have begun: no other worker gets it,
// and what it still finishes within the grace is kept.
func TestATaskToBeStoppedIsKeptForAWorkerWhoseStreamBreaks(t *testing.T) {
	for name, cause := range map[string]error{"a sibling has failed": runtime.ErrSiblingFailed, "it is cancelled": errors.New("cancelled")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := worker.New(worker.Options{})
				first := openSession(t, h, newHello("w1", 1))
				ctx, stop := context.WithCancelCause(t.Context())
				wanted := newTask("t1", &taskRun{})
				wanted.Unwanted = make(chan struct{})
				r := executeAsync(ctx, h, wanted)
				given := nextAssignment(t, first)
				first.Close()
				second := openSession(t, h, newHello("w2", 1))
				stop(cause)
				requireNothingFor(t, second, time.Second)
				back, welcome, err := h.OpenSession(newHello("w1", 1, given.Token))
				require.NoError(t, err)
				if !errors.Is(cause, runtime.ErrSiblingFailed) {
					require.Equal(t, []string{given.Token}, welcome.LostLeases)
					require.Equal(t, "Cancelled", (<-r).Failure.Type)
					return
				}
				require.Equal(t, []string{given.Token}, welcome.RenewedLeases)
				m, err := back.NextMessage(t.Context())
				require.NoError(t, err)
				require.Equal(t, message.TaskCancel{Token: given.Token, Reason: runtime.ErrSiblingFailed.Error(), Grace: 4 * time.Second}, m)
				completeTask(t, h, given, "1")
				require.Equal(t, newResult("1"), <-r)
			})
		})
	}
}

// The id of a worker and its leases belong to its principal while the worker is
// connected, and while it is awaited because it holds a lease.
func TestAWorkerBelongsToItsPrincipal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		hello := func(principal string, held ...string) message.Hello {
			m := newHello("w1", 1)
			m.Principal, m.HeldLeases = principal, held
			return m
		}
		r := executeAsync(t.Context(), h, newTask("t1", &taskRun{}))
		first := openSession(t, h, hello("ana"))
		given := nextAssignment(t, first)
		lost := &runtime.Error{Reason: runtime.ReasonTaskLeaseLost}
		requireTaken := func(held ...string) {
			_, _, err := h.OpenSession(hello("ben", held...))
			require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonWorkerIDTaken})
		}
		requireTaken()
		require.NoError(t, h.CheckHolder(given.Token, "default", "ana"))
		require.ErrorIs(t, h.CheckHolder(given.Token, "default", "ben"), lost)
		require.NoError(t, h.CheckHolder("no lease", "default", "ben"), "the call itself says so")
		first.Close()
		requireTaken(given.Token)

		other := hello("ben", given.Token)
		other.Worker = "w2"
		_, w, err := h.OpenSession(other)
		require.NoError(t, err)
		require.Equal(t, []string{given.Token}, w.LostLeases)

		_, w, err = h.OpenSession(hello("ana", given.Token))
		require.NoError(t, err)
		require.Equal(t, []string{given.Token}, w.RenewedLeases)
		completeTask(t, h, given, "1")
		require.Equal(t, newResult("1"), <-r)
	})
}
