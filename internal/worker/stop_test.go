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

// stopped is a task that a worker has when its context ends.
type stopped struct {
	hub     *worker.Hub
	session *worker.Session
	given   worker.Assignment
	stop    context.CancelCauseFunc
	unwant  chan struct{}
	result  <-chan worker.Result
	began   time.Time
}

func stop(t *testing.T, cause error, limit time.Duration) *stopped {
	t.Helper()
	x := &stopped{hub: worker.New(worker.Options{}), unwant: make(chan struct{}), began: time.Now()}
	x.session = open(t, x.hub, hello("w1", 1))
	ctx := t.Context()
	if limit > 0 {
		var free context.CancelFunc
		ctx, free = context.WithTimeout(ctx, limit)
		t.Cleanup(free)
	}
	ctx, x.stop = context.WithCancelCause(ctx)
	given := task("t1", &run{})
	given.Unwanted = x.unwant
	x.result = execute(ctx, x.hub, given)
	x.given = next(t, x.session)
	x.stop(cause)
	synctest.Wait()
	return x
}

// told returns what the worker is told of the end of its task.
func (x *stopped) told(t *testing.T) worker.Message {
	t.Helper()
	m, err := x.session.Next(t.Context())
	require.NoError(t, err)
	return m
}

func (x *stopped) gaveUpAfter(t *testing.T, want time.Duration) {
	t.Helper()
	r := <-x.result
	require.Equal(t, "Cancelled", r.Failure.Type)
	require.Equal(t, want, time.Since(x.began))
	_, err := x.hub.Complete(t.Context(), worker.Completion{Token: x.given.Token, Result: done("1")})
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonTaskLeaseLost}, "the result is not wanted any more")
}

func TestWhatASlowSiblingFinishesIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := stop(t, runtime.ErrSibling, 0)
		require.Equal(t, worker.Cancel{
			Token: x.given.Token, Reason: "another task of the superstep failed", Grace: 5 * time.Second,
		}, x.told(t))
		pass(4 * time.Second)
		complete(t, x.hub, x.given, "1")
		require.Equal(t, done("1"), <-x.result)
	})
}

func TestASiblingIsNotWaitedForLongerThan(t *testing.T) {
	for name, c := range map[string]struct {
		cause error
		limit time.Duration
		act   func(t *testing.T, x *stopped)
		want  time.Duration
	}{
		"the grace":              {cause: runtime.ErrSibling, want: 5 * time.Second},
		"the task's own limit":   {cause: runtime.ErrSibling, limit: 3 * time.Second, want: 3 * time.Second},
		"a cancel of the run":    {cause: errors.New("the run is cancelled"), want: 0},
		"a cancel in the grace":  {cause: runtime.ErrSibling, act: func(_ *testing.T, x *stopped) { close(x.unwant) }, want: time.Second},
		"the grace, offline":     {cause: runtime.ErrSibling, act: func(_ *testing.T, x *stopped) { x.session.Close() }, want: 5 * time.Second},
		"its worker wants to":    {cause: runtime.ErrSibling, act: func(_ *testing.T, x *stopped) { x.session.Nack(x.given.Token, "no", 0) }, want: time.Second},
		"its worker gives it up": {cause: runtime.ErrSibling, act: func(_ *testing.T, x *stopped) { x.session.Goodbye([]string{x.given.Token}, "") }, want: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := stop(t, c.cause, c.limit)
				other := open(t, x.hub, hello("w2", 1))
				if c.act != nil {
					pass(time.Second)
					c.act(t, x)
				}
				x.gaveUpAfter(t, c.want)
				short, end := context.WithTimeout(t.Context(), time.Second)
				defer end()
				_, err := other.Next(short)
				require.ErrorIs(t, err, context.DeadlineExceeded, "nobody else is given the task")
			})
		})
	}
}

func TestASiblingThatNobodyHasBegunIsGivenUpAtOnce(t *testing.T) {
	for name, slots := range map[string]int{"nobody has room": 0, "it has not left yet": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := worker.New(worker.Options{})
				open(t, h, hello("w1", slots))
				ctx, cancel := context.WithCancelCause(t.Context())
				r := execute(ctx, h, task("t1", &run{}))
				synctest.Wait()
				began := time.Now()
				cancel(runtime.ErrSibling)
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
		s := open(t, h, hello("w1", 1))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(runtime.ErrSibling)
		router := task("t1", &run{})
		router.Router, router.Branch = "f", "b"
		r := execute(ctx, h, router)
		a := next(t, s)
		pass(time.Second)
		complete(t, h, a, "1")
		require.Equal(t, done("1"), <-r)
	})
}

// Who was told that a result was taken may rely on it, whatever becomes of the
// task in the same moment.
func TestAResultThatWasTakenCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := open(t, h, hello("w1", 1))
		for range 1000 {
			ctx, cancel := context.WithCancel(t.Context())
			r := execute(ctx, h, task("t1", &run{}))
			a := next(t, s)
			go cancel()
			if _, err := h.Complete(t.Context(), worker.Completion{Token: a.Token, Result: done("1")}); err != nil {
				require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonTaskLeaseLost})
				require.Equal(t, "Cancelled", (<-r).Failure.Type)
				continue
			}
			require.Equal(t, done("1"), <-r)
		}
	})
}
