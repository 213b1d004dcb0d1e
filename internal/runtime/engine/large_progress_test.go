package engine_test

import (
	"context"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
)

// largeProgressStore is a store in which the progress of each superstep is large, and
// which takes no change until it is unblocked.
type largeProgressStore struct {
	checkpoint.Store

	value     payload.JSON
	applying  atomic.Int64
	unblocked chan struct{}
}

func (s *largeProgressStore) Pending(ctx context.Context, thread, id string) (checkpoint.Pending, error) {
	p, err := s.Store.Pending(ctx, thread, id)
	p.Memos = append(p.Memos, checkpoint.Memo{Task: "other", Key: "large", Value: s.value})
	return p, err
}

func (s *largeProgressStore) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	s.applying.Add(1)
	<-s.unblocked
	s.applying.Add(-1)
	return s.Store.Apply(ctx, c)
}

// TestCallsWaitForMemoryForLargeProgress has many calls at once, each of which holds
// what the tasks of a superstep have written until its change is made.
func TestCallsWaitForMemoryForLargeProgress(t *testing.T) {
	for name, do := range map[string]func(w *memoryFixture, thread string) error{
		"update": func(w *memoryFixture, thread string) error {
			_, err := w.engine.UpdateState(w.t.Context(), runtime.UpdateStateRequest{
				Thread: thread, Values: `{"x":"y"}`, AsNode: "ask", SupersedeInterrupts: true,
			})
			return err
		},
		"rollback": func(w *memoryFixture, thread string) error {
			_, err := w.engine.Cancel(w.t.Context(), runtime.CancelRequest{Thread: thread, Rollback: true})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const many = 20
				w := newMemoryFixture(t, engine.Options{StoreTimeout: time.Hour}, chainSpec("asks-little", channelsHeavy, "ask", "last"))
				for i := range many {
					thread := fmt.Sprint("t", i)
					require.Equal(t, checkpoint.RunInterrupted, w.fixture.runToStop(thread, "asks-little", `{}`).State)
					require.Equal(t, checkpoint.RunSucceeded, w.answerSingle(thread, `"yes"`).State)
					require.Equal(t, checkpoint.RunInterrupted, w.fixture.runToStop(thread, "asks-little", `{}`).State)
				}
				synctest.Wait()
				w.engine.Close()
				large := &largeProgressStore{Store: w.store, value: payload.JSON(make([]byte, maxHeldBytes)), unblocked: make(chan struct{})}
				w.store = large
				w.startEngine()
				var all sync.WaitGroup
				answers := make(chan error, many)
				for i := range many {
					all.Go(func() { answers <- do(w, fmt.Sprint("t", i)) })
				}
				synctest.Wait()
				require.EqualValues(t, 1, large.applying.Load(), "calls that hold large progress")
				require.GreaterOrEqual(t, engine.ReadBudgetBytes(w.engine), int64(maxHeldBytes))
				sleepVirtual(time.Minute)
				require.Len(t, answers, many-1, "calls that waited for too long")
				for range many - 1 {
					require.Equal(t, runtime.ReasonTooManyRequests, errorReason(<-answers))
				}
				close(large.unblocked)
				require.NoError(t, <-answers)
				all.Wait()
				require.Zero(t, engine.ReadBudgetBytes(w.engine))
			})
		})
	}
}

// slowProgressStore is a store in which the progress of each superstep is large, and which
// reads it slowly, and checkpoints in a millisecond. It finds out which of the checkpoints
// that it returned are in memory.
type slowProgressStore struct {
	checkpoint.Store

	value     payload.JSON
	readers   atomic.Int64
	unblocked chan struct{}

	mu       sync.Mutex
	returned []weak.Pointer[checkpoint.NextTask] // one of each checkpoint
}

func (s *slowProgressStore) Pending(ctx context.Context, thread, id string) (checkpoint.Pending, error) {
	s.readers.Add(1)
	<-s.unblocked
	s.readers.Add(-1)
	p, err := s.Store.Pending(ctx, thread, id)
	p.Memos = append(p.Memos, checkpoint.Memo{Task: "other", Key: "large", Value: s.value})
	return p, err
}

func (s *slowProgressStore) PendingWithin(ctx context.Context, thread, id string, most int) (checkpoint.Pending, error) {
	if bytes := len(s.value) + 1<<10; bytes > most {
		return checkpoint.Pending{}, &checkpoint.LargeError{Bytes: bytes}
	}
	return s.Pending(ctx, thread, id)
}

func (s *slowProgressStore) Checkpoint(ctx context.Context, thread, namespace, id string) (*checkpoint.Checkpoint, error) {
	sleepVirtual(time.Millisecond)
	cp, err := s.Store.Checkpoint(ctx, thread, namespace, id)
	return s.copyTracked(cp, err)
}

func (s *slowProgressStore) CheckpointWithin(ctx context.Context, thread, namespace, id string, most int) (*checkpoint.Checkpoint, error) {
	cp, err := s.Store.(checkpoint.BoundedReader).CheckpointWithin(ctx, thread, namespace, id, most) //nolint:errcheck // memory
	return s.copyTracked(cp, err)
}

// copyTracked returns a copy of a checkpoint whose list of tasks only its holders share.
func (s *slowProgressStore) copyTracked(cp *checkpoint.Checkpoint, err error) (*checkpoint.Checkpoint, error) {
	if err != nil || len(cp.Next) == 0 {
		return cp, err
	}
	tracked := *cp
	tracked.Next = slices.Clone(cp.Next)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.returned = append(s.returned, weak.Make(&tracked.Next[0]))
	return &tracked, nil
}

// countHeld returns the number of returned checkpoints that are in memory, and of all.
func (s *slowProgressStore) countHeld() (held, all int) {
	goruntime.GC()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.returned {
		if p.Value() != nil {
			held++
		}
	}
	return held, len(s.returned)
}

// TestCallsWaitBeforeTheyReadLargeProgress has many calls at once, each of which reads a
// state and the large progress after it. A call that waits for memory holds no state.
func TestCallsWaitBeforeTheyReadLargeProgress(t *testing.T) {
	calls := map[string]func(w *memoryFixture, thread, node string) error{
		"update": func(w *memoryFixture, thread, node string) error {
			_, err := w.engine.UpdateState(w.t.Context(), runtime.UpdateStateRequest{
				Thread: thread, Values: `{"x":"y"}`, AsNode: node, SupersedeInterrupts: true,
			})
			return err
		},
		"command": func(w *memoryFixture, thread, _ string) error {
			_, err := w.engine.Resume(w.t.Context(), runtime.ResumeRequest{Thread: thread, Update: `{"x":"y"}`, Coverage: runtime.CoverCollect})
			return err
		},
	}
	for name, c := range map[string]struct {
		graph, node string
		bytes       int64 // that one call holds at least
	}{
		"small states": {"asks-little", "ask", maxHeldBytes},
		"large states": {"asks", "grow", heavyStateBytes + maxHeldBytes},
	} {
		for call, do := range calls {
			t.Run(call+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const many = 10
					w := newMemoryFixture(t, engine.Options{StoreTimeout: time.Hour},
						chainSpec("asks", channelsHeavy, "grow", "ask", "last"), chainSpec("asks-little", channelsHeavy, "ask", "last"))
					for i := range many {
						require.Equal(t, checkpoint.RunInterrupted, w.fixture.runToStop(fmt.Sprint("t", i), c.graph, `{}`).State)
					}
					w.engine.Close()
					slow := &slowProgressStore{Store: w.store, value: payload.JSON(make([]byte, maxHeldBytes)), unblocked: make(chan struct{})}
					w.store = slow
					w.startEngine()
					var all sync.WaitGroup
					answers := make(chan error, many)
					for i := range many {
						all.Go(func() { answers <- do(w, fmt.Sprint("t", i), c.node) })
					}
					sleepVirtual(time.Second)
					readers, held := slow.readers.Load(), engine.ReadBudgetBytes(w.engine)
					states, reads := slow.countHeld()
					close(slow.unblocked)
					all.Wait()
					for range many {
						require.NoError(t, <-answers)
					}
					require.EqualValues(t, 1, readers, "calls that read large progress at a time")
					require.GreaterOrEqual(t, reads, many, "states that were read before the progress")
					require.Equal(t, 1, states, "states in memory")
					require.GreaterOrEqual(t, held, c.bytes, "what the call holds of the state and the progress")
					require.Zero(t, engine.ReadBudgetBytes(w.engine))
				})
			})
		}
	}
}
