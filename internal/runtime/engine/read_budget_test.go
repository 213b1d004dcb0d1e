package engine_test

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
	"github.com/graphd-dev/graphd/internal/runtime/engine"
)

// slowReadStore is a store that takes long to read large checkpoints.
type slowReadStore struct {
	checkpoint.Store

	readers   atomic.Int64
	unblocked chan struct{}
}

func (s *slowReadStore) Checkpoint(ctx context.Context, thread, namespace, id string) (*checkpoint.Checkpoint, error) {
	cp, err := s.Store.Checkpoint(ctx, thread, namespace, id)
	if err == nil && cp.Size() >= heavyStateBytes {
		s.readers.Add(1)
		<-s.unblocked
		s.readers.Add(-1)
	}
	return cp, err
}

func (s *slowReadStore) CheckpointWithin(ctx context.Context, thread, namespace, id string, most int) (*checkpoint.Checkpoint, error) {
	return s.Store.(checkpoint.BoundedReader).CheckpointWithin(ctx, thread, namespace, id, most) //nolint:errcheck // memory
}

func (s *slowReadStore) PendingWithin(ctx context.Context, thread, id string, most int) (checkpoint.Pending, error) {
	return readPendingWithin(ctx, s.Store, thread, id, most)
}

// readPendingWithin reads the progress after a checkpoint as a checkpoint.BoundedReader does.
func readPendingWithin(ctx context.Context, store checkpoint.Store, thread, id string, most int) (checkpoint.Pending, error) {
	p, err := store.Pending(ctx, thread, id)
	bounded := checkpoint.BoundedPending{Most: most}
	for i := range p.Tasks {
		bounded.AddTask(&p.Tasks[i])
	}
	for i := range p.Memos {
		bounded.AddMemo(&p.Memos[i])
	}
	for i := range p.Interrupts {
		bounded.AddInterrupt(&p.Interrupts[i])
	}
	if err != nil {
		return p, err
	}
	return bounded.BuildPending()
}

// newLargeThreadsFixture returns a fixture with threads that wait for an answer and have
// large states, and its store.
func newLargeThreadsFixture(t *testing.T, threads int) (*memoryFixture, *slowReadStore) {
	t.Helper()
	w := newMemoryFixture(t, engine.Options{StoreTimeout: time.Hour}, chainSpec("asks", channelsHeavy, "grow", "ask", "last"), chainSpec("asks-little", channelsHeavy, "ask", "last"))
	for i := range threads {
		require.Equal(t, checkpoint.RunInterrupted, w.fixture.runToStop(fmt.Sprint("t", i), "asks", `{}`).State)
	}
	require.Equal(t, checkpoint.RunInterrupted, w.fixture.runToStop("small", "asks-little", `{}`).State)
	w.engine.Close()
	slow := &slowReadStore{Store: w.store, unblocked: make(chan struct{})}
	w.store = slow
	w.startEngine()
	return w, slow
}

// TestCallsWaitBeforeTheyReadLargeStates has many calls at once, each on a thread of
// its own whose state is large.
func TestCallsWaitBeforeTheyReadLargeStates(t *testing.T) {
	for name, do := range map[string]func(w *memoryFixture, thread string) error{
		"resume": func(w *memoryFixture, thread string) error {
			_, err := w.engine.Resume(w.t.Context(), runtime.ResumeRequest{Thread: thread, Single: &runtime.Response{Value: `"yes"`}})
			return err
		},
		"start": func(w *memoryFixture, thread string) error {
			_, err := w.engine.Start(w.t.Context(), runtime.StartRequest{
				Thread: thread, Open: runtime.DiscardOpen, Request: checkpoint.RunRequest{Input: `{"x":"y"}`},
			})
			return err
		},
		"update": func(w *memoryFixture, thread string) error {
			_, err := w.engine.UpdateState(w.t.Context(), runtime.UpdateStateRequest{
				Thread: thread, Values: `{"x":"y"}`, AsNode: "grow", SupersedeInterrupts: true,
			})
			return err
		},
		"fork": func(w *memoryFixture, thread string) error {
			_, err := w.engine.ForkThread(w.t.Context(), runtime.ForkRequest{Source: thread, Thread: "fork-of-" + thread})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const many = 20
				w, slow := newLargeThreadsFixture(t, many)
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
				require.EqualValues(t, 1, slow.readers.Load(), "large states that are read at a time")
				_, err := w.engine.Resume(t.Context(), runtime.ResumeRequest{Thread: "small", Single: &runtime.Response{Value: `"yes"`}})
				require.NoError(t, err, "a call on a small thread does not wait")
				sleepVirtual(time.Minute)
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
				close(slow.unblocked)
				require.NoError(t, (<-answers).err)
				all.Wait()
				for _, thread := range refused {
					require.NoError(t, do(w, thread), "there is room again")
					sleepVirtual(time.Second)
				}
				sleepVirtual(time.Minute)
				require.Zero(t, engine.ReadBudgetBytes(w.engine))
			})
		})
	}
}

// TestRunsThatAreTakenUpWaitForMemory has a server take over runs whose states are large.
func TestRunsThatAreTakenUpWaitForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryFixture(t, engine.Options{StoreTimeout: time.Hour, MaxLiveBytes: 8 * maxHeldBytes})
		var started []*runtime.Started
		for i := range 12 {
			started = append(started, w.beginRun(fmt.Sprint("t", i), "works"))
		}
		sleepVirtual(time.Minute)
		require.Equal(t, 12, w.countWaiting())
		w.engine.Close()
		slow := &slowReadStore{Store: w.store, unblocked: make(chan struct{})}
		w.store, w.opts.MaxLiveBytes = slow, maxHeldBytes
		w.startEngine()
		for range 5 {
			sleepVirtual(time.Minute)
			require.EqualValues(t, 1, slow.readers.Load(), "large states that are read at a time")
		}
		close(slow.unblocked)
		for range started {
			w.proceed <- struct{}{}
		}
		for _, st := range started {
			require.Equal(t, checkpoint.RunSucceeded, w.waitRun(st).State)
		}
		require.Zero(t, engine.ReadBudgetBytes(w.engine))
	})
}

// TestACallThatEndsLeavesTheQueue cancels calls that wait for memory.
func TestACallThatEndsLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, slow := newLargeThreadsFixture(t, 20)
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
		close(slow.unblocked)
		all.Wait()
		require.Zero(t, engine.ReadBudgetBytes(w.engine))
		_, err := w.engine.ForkThread(t.Context(), runtime.ForkRequest{Source: "t19", Thread: "later"})
		require.NoError(t, err)
	})
}
