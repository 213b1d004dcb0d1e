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

// stoppedTask is a task that a worker has when its context ends.
type stoppedTask struct {
	hub      *worker.Hub
	session  *worker.Session
	given    message.Assignment
	stop     context.CancelCauseFunc
	unwanted chan struct{}
	result   <-chan message.Result
	began    time.Time
}

func newStoppedTask(t *testing.T, cause error, limit time.Duration) *stoppedTask {
	t.Helper()
	x := &stoppedTask{hub: worker.New(worker.Options{}), unwanted: make(chan struct{}), began: time.Now()}
	x.session = openSession(t, x.hub, newHello("w1", 1))
	ctx := t.Context()
	if limit > 0 {
		var free context.CancelFunc
		ctx, free = context.WithTimeout(ctx, limit)
		t.Cleanup(free)
	}
	ctx, x.stop = context.WithCancelCause(ctx)
	given := newTask("t1", &taskRun{})
	given.Unwanted = x.unwanted
	x.result = executeAsync(ctx, x.hub, given)
	x.given = nextAssignment(t, x.session)
	x.stop(cause)
	synctest.Wait()
	return x
}

// nextMessage returns the message of the end of the task to its worker.
func (s *stoppedTask) nextMessage(t *testing.T) message.Message {
	t.Helper()
	m, err := s.session.NextMessage(t.Context())
	require.NoError(t, err)
	return m
}

func (s *stoppedTask) requireGivenUpAfter(t *testing.T, want time.Duration) {
	t.Helper()
	r := <-s.result
	require.Equal(t, "Cancelled", r.Failure.Type)
	require.Equal(t, want, time.Since(s.began))
	_, err := s.hub.CompleteTask(t.Context(), message.Completion{Token: s.given.Token, Result: newResult("1")})
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonTaskLeaseLost}, "the result is not wanted any more")
}

func TestWhatASlowSiblingFinishesIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newStoppedTask(t, runtime.ErrSiblingFailed, 0)
		require.Equal(t, message.TaskCancel{
			Token: x.given.Token, Reason: "another task of the superstep failed", Grace: 5 * time.Second,
		}, x.nextMessage(t))
		sleepVirtual(4 * time.Second)
		completeTask(t, x.hub, x.given, "1")
		require.Equal(t, newResult("1"), <-x.result)
	})
}

func TestASiblingIsNotWaitedForLongerThan(t *testing.T) {
	for name, c := range map[string]struct {
		cause error
		limit time.Duration
		act   func(t *testing.T, x *stoppedTask)
		want  time.Duration
	}{
		"the grace":              {cause: runtime.ErrSiblingFailed, want: 5 * time.Second},
		"the task's own limit":   {cause: runtime.ErrSiblingFailed, limit: 3 * time.Second, want: 3 * time.Second},
		"a cancel of the run":    {cause: errors.New("the run is cancelled"), want: 0},
		"a cancel in the grace":  {cause: runtime.ErrSiblingFailed, act: func(_ *testing.T, x *stoppedTask) { close(x.unwanted) }, want: time.Second},
		"the grace, offline":     {cause: runtime.ErrSiblingFailed, act: func(_ *testing.T, x *stoppedTask) { x.session.Close() }, want: 5 * time.Second},
		"its worker wants to":    {cause: runtime.ErrSiblingFailed, act: func(_ *testing.T, x *stoppedTask) { x.session.HandleNack(x.given.Token, "no", 0, nil) }, want: time.Second},
		"its worker gives it up": {cause: runtime.ErrSiblingFailed, act: func(_ *testing.T, x *stoppedTask) { x.session.HandleGoodbye([]string{x.given.Token}, "") }, want: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newStoppedTask(t, c.cause, c.limit)
				other := openSession(t, x.hub, newHello("w2", 1))
				if c.act != nil {
					sleepVirtual(time.Second)
					c.act(t, x)
				}
				x.requireGivenUpAfter(t, c.want)
				short, end := context.WithTimeout(t.Context(), time.Second)
				defer end()
				_, err := other.NextMessage(short)
				require.ErrorIs(t, err, context.DeadlineExceeded, "no other worker gets the task")
			})
		})
	}
}

func TestASiblingThatNobodyHasBegunIsGivenUpAtOnce(t *testing.T) {
	for name, slots := range map[string]int{"nobody has room": 0, "it has not left yet": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := worker.New(worker.Options{})
				openSession(t, h, newHello("w1", slots))
				ctx, cancel := context.WithCancelCause(t.Context())
				r := executeAsync(ctx, h, newTask("t1", &taskRun{}))
				synctest.Wait()
				began := time.Now()
				cancel(runtime.ErrSiblingFailed)
				require.Equal(t, "Cancelled", (<-r).Failure.Type)
				require.Zero(t, time.Since(began))
			})
		})
	}
}

// A node that has finished is kept only if its conditional edges are decided.
func TestTheEdgesOfAFinishedSiblingAreDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := openSession(t, h, newHello("w1", 1))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(runtime.ErrSiblingFailed)
		router := newTask("t1", &taskRun{})
		router.Router, router.Branch = "f", "b"
		r := executeAsync(ctx, h, router)
		a := nextAssignment(t, s)
		sleepVirtual(time.Second)
		completeTask(t, h, a, "1")
		require.Equal(t, newResult("1"), <-r)
	})
}

// A worker that was told that a result was taken may rely on it, whatever becomes
// of the task in the same moment.
func TestAResultThatWasTakenCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := openSession(t, h, newHello("w1", 1))
		for range 1000 {
			ctx, cancel := context.WithCancel(t.Context())
			r := executeAsync(ctx, h, newTask("t1", &taskRun{}))
			a := nextAssignment(t, s)
			go cancel()
			if _, err := h.CompleteTask(t.Context(), message.Completion{Token: a.Token, Result: newResult("1")}); err != nil {
				require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonTaskLeaseLost})
				require.Equal(t, "Cancelled", (<-r).Failure.Type)
				continue
			}
			require.Equal(t, newResult("1"), <-r)
		}
	})
}
