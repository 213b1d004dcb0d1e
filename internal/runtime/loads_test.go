package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// slowReads is a store that takes long to read large checkpoints.
type slowReads struct {
	checkpoint.Store

	reading atomic.Int64
	gate    chan struct{}
}

func (s *slowReads) Checkpoint(ctx context.Context, thread, namespace, id string) (*checkpoint.Checkpoint, error) {
	cp, err := s.Store.Checkpoint(ctx, thread, namespace, id)
	if err == nil && cp.Size() >= heavyState {
		s.reading.Add(1)
		<-s.gate
		s.reading.Add(-1)
	}
	return cp, err
}

func (s *slowReads) CheckpointWithin(ctx context.Context, thread, namespace, id string, most int) (*checkpoint.Checkpoint, error) {
	return s.Store.(checkpoint.BoundedReader).CheckpointWithin(ctx, thread, namespace, id, most) //nolint:errcheck // memory
}

// newLoadedWorld has threads that wait for an answer, and whose states are large.
func newLoadedWorld(t *testing.T, threads int) (*crowdedWorld, *slowReads) {
	t.Helper()
	w := newCrowdedWorld(t, runtime.Options{StoreTimeout: time.Hour}, chain("asks", channelsHeavy, "grow", "ask", "last"), chain("asks-little", channelsHeavy, "ask", "last"))
	for i := range threads {
		require.Equal(t, checkpoint.RunInterrupted, w.world.run(fmt.Sprint("t", i), "asks", `{}`).State)
	}
	require.Equal(t, checkpoint.RunInterrupted, w.world.run("small", "asks-little", `{}`).State)
	w.engine.Close()
	slow := &slowReads{Store: w.store, gate: make(chan struct{})}
	w.store = slow
	w.start()
	return w, slow
}

// TestCallsWaitBeforeTheyReadLargeStates has many calls at once, each on a thread of
// its own whose state is large.
func TestCallsWaitBeforeTheyReadLargeStates(t *testing.T) {
	for name, do := range map[string]func(w *crowdedWorld, thread string) error{
		"resume": func(w *crowdedWorld, thread string) error {
			_, err := w.engine.Resume(w.t.Context(), runtime.ResumeRequest{Thread: thread, Single: &runtime.Response{Value: `"yes"`}})
			return err
		},
		"start": func(w *crowdedWorld, thread string) error {
			_, err := w.engine.Start(w.t.Context(), runtime.StartRequest{
				Thread: thread, Open: runtime.DiscardOpen, Request: checkpoint.RunRequest{Input: `{"x":"y"}`},
			})
			return err
		},
		"update": func(w *crowdedWorld, thread string) error {
			_, err := w.engine.UpdateState(w.t.Context(), runtime.UpdateStateRequest{
				Thread: thread, Values: `{"x":"y"}`, AsNode: "grow", Supersede: true,
			})
			return err
		},
		"fork": func(w *crowdedWorld, thread string) error {
			_, err := w.engine.ForkThread(w.t.Context(), runtime.ForkRequest{Source: thread, Thread: "fork-of-" + thread})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const many = 20
				w, slow := newLoadedWorld(t, many)
				var all sync.WaitGroup
				type answer struct {
					thread string
					err    error
				}
				answers := make(chan answer, many)
				for i := range many {
					thread := fmt.Sprint("t", i)
					all.Go(func() { answers <- answer{thread, do(w, thread)} })
				}
				synctest.Wait()
				require.EqualValues(t, 1, slow.reading.Load(), "large states that are read at a time")
				_, err := w.engine.Resume(t.Context(), runtime.ResumeRequest{Thread: "small", Single: &runtime.Response{Value: `"yes"`}})
				require.NoError(t, err, "a call on a small thread does not wait")
				rest(time.Minute)
				require.Len(t, answers, many-1, "calls that waited for too long")
				var refused []string
				for range many - 1 {
					one := <-answers
					var e *runtime.Error
					require.ErrorAs(t, one.err, &e)
					require.Equal(t, runtime.ReasonTooManyRequests, e.Reason)
					require.Equal(t, "max-live-bytes", e.Meta["limit"])
					require.Equal(t, "524288", e.Meta["most"])
					refused = append(refused, one.thread)
				}
				close(slow.gate)
				require.NoError(t, (<-answers).err)
				all.Wait()
				for _, thread := range refused {
					require.NoError(t, do(w, thread), "there is room again")
					rest(time.Second)
				}
				rest(time.Minute)
				require.Zero(t, runtime.Loads(w.engine))
			})
		})
	}
}

// TestRunsThatAreTakenUpWaitForRoom has a server take over runs whose states are large.
func TestRunsThatAreTakenUpWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCrowdedWorld(t, runtime.Options{StoreTimeout: time.Hour, MaxLiveBytes: 8 * mostHeld})
		var started []runtime.Started
		for i := range 12 {
			started = append(started, w.begin(fmt.Sprint("t", i), "works"))
		}
		rest(time.Minute)
		require.Equal(t, 12, w.standing())
		w.engine.Close()
		slow := &slowReads{Store: w.store, gate: make(chan struct{})}
		w.store, w.opts.MaxLiveBytes = slow, mostHeld
		w.start()
		for range 5 {
			rest(time.Minute)
			require.EqualValues(t, 1, slow.reading.Load(), "large states that are read at a time")
		}
		close(slow.gate)
		for range started {
			w.free <- struct{}{}
		}
		for _, st := range started {
			require.Equal(t, checkpoint.RunSucceeded, w.wait(st).State)
		}
		require.Zero(t, runtime.Loads(w.engine))
	})
}

// TestACallThatEndsLeavesTheLine cancels calls that wait for room.
func TestACallThatEndsLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, slow := newLoadedWorld(t, 20)
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				_, err := w.engine.ForkThread(ctx, runtime.ForkRequest{Source: fmt.Sprint("t", i), Thread: fmt.Sprint("fork-", i)})
				require.Error(t, err)
			})
		}
		synctest.Wait()
		cancel(gone)
		close(slow.gate)
		all.Wait()
		require.Zero(t, runtime.Loads(w.engine))
		_, err := w.engine.ForkThread(t.Context(), runtime.ForkRequest{Source: "t19", Thread: "later"})
		require.NoError(t, err)
	})
}
