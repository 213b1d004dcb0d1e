package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
)

// TestShownStatesKeepTheirMemory has calls that show large states: there is memory
// for as many as are not on their way yet, and others wait.
func TestShownStatesKeepTheirMemory(t *testing.T) {
	for name, show := range map[string]func(ctx context.Context, e *engine.Engine, memory *runtime.CallMemory, thread string) error{
		"state": func(ctx context.Context, e *engine.Engine, memory *runtime.CallMemory, thread string) error {
			_, err := e.State(ctx, runtime.StateRequest{Thread: thread, Memory: memory})
			return err
		},
		"history": func(ctx context.Context, e *engine.Engine, memory *runtime.CallMemory, thread string) error {
			_, _, err := e.States(ctx, runtime.HistoryQuery{Thread: thread, Limit: 5, WithValues: true, Memory: memory})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const many = 4
				w, slow := newLargeThreadsFixture(t, many)
				close(slow.unblocked)
				rooms, answers := make([]runtime.CallMemory, many), make([]error, many)
				var all sync.WaitGroup
				for i := range many {
					all.Go(func() {
						answers[i] = show(t.Context(), w.engine, &rooms[i], fmt.Sprint("t", i))
					})
				}
				all.Wait()
				shown := 0
				for i := range many {
					if answers[i] == nil {
						require.True(t, rooms[i].IsHeld())
						shown++
						continue
					}
					var refused *runtime.Error
					require.ErrorAs(t, answers[i], &refused)
					require.Equal(t, runtime.ReasonTooManyRequests, refused.Reason)
					require.Equal(t, "max-live-bytes", refused.Meta["limit"])
					require.False(t, rooms[i].IsHeld())
				}
				require.Equal(t, 1, shown, "large states that are shown at a time")
				var little runtime.CallMemory
				require.NoError(t, show(t.Context(), w.engine, &little, "small"), "a call that shows a small state waits for no other")
				require.False(t, little.IsHeld())
				for i := range rooms {
					rooms[i].Release()
				}
				require.Zero(t, engine.ReadBudgetBytes(w.engine))
				for i := range many {
					require.NoError(t, show(t.Context(), w.engine, &rooms[i], fmt.Sprint("t", i)), "there is room again")
					rooms[i].Release()
				}
				require.Zero(t, engine.ReadBudgetBytes(w.engine))
			})
		})
	}
}

// TestLargeQuestionsAreListedOneAfterTheOther has lists of large interrupts.
func TestLargeQuestionsAreListedOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, slow := newLargeThreadsFixture(t, 1)
		close(slow.unblocked)
		asked := &largeListStore{Store: w.store}
		w.engine.Close()
		w.store = asked
		w.startEngine()
		var first, second runtime.CallMemory
		list := func(memory *runtime.CallMemory) error {
			found, err := w.engine.Interrupts(t.Context(), memory, checkpoint.InterruptQuery{Limit: 10})
			require.Equal(t, err == nil, len(found) > 0)
			return err
		}
		require.NoError(t, list(&first))
		require.True(t, first.IsHeld())
		began := time.Now()
		require.ErrorIs(t, list(&second), &runtime.Error{Reason: runtime.ReasonTooManyRequests})
		require.Positive(t, time.Since(began))
		first.Release()
		require.NoError(t, list(&second))
		second.Release()
		require.Zero(t, engine.ReadBudgetBytes(w.engine))
	})
}

// TestCancelHoldsTheMemoryOfTheRunThatItShows cancels runs that have ended with large
// outputs: the answer shows them.
func TestCancelHoldsTheMemoryOfTheRunThatItShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, slow := newLargeThreadsFixture(t, 2)
		close(slow.unblocked)
		for _, thread := range []string{"t0", "t1"} {
			require.Equal(t, checkpoint.RunSucceeded, w.answerSingle(thread, `"yes"`).State)
		}
		var first, second runtime.CallMemory
		cancelRun := func(memory *runtime.CallMemory, thread string) error {
			run, err := w.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: thread, Memory: memory})
			require.Equal(t, err == nil, run.Output != "")
			return err
		}
		require.NoError(t, cancelRun(&first, "t0"))
		require.True(t, first.IsHeld())
		require.ErrorIs(t, cancelRun(&second, "t1"), &runtime.Error{Reason: runtime.ReasonTooManyRequests})
		require.False(t, second.IsHeld())
		first.Release()
		require.NoError(t, cancelRun(&second, "t1"))
		second.Release()
		require.Zero(t, engine.ReadBudgetBytes(w.engine))
	})
}

// largeListStore is a store whose lists of interrupts are large.
type largeListStore struct{ checkpoint.Store }

func (s *largeListStore) Interrupts(context.Context, checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	return []checkpoint.Interrupt{{ID: "q", Message: string(make([]byte, 1<<20))}}, nil
}

// TestRefusedMemoryIsWaitedFor has a reader that holds other things: it is told
// that there is no memory, and waits for it when it has released the others.
func TestRefusedMemoryIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, slow := newLargeThreadsFixture(t, 2)
		close(slow.unblocked)
		var first, second runtime.CallMemory
		second.RefusesReads = true
		read := func(memory *runtime.CallMemory, thread string) error {
			_, err := w.engine.State(t.Context(), runtime.StateRequest{Thread: thread, Memory: memory})
			return err
		}
		require.NoError(t, read(&first, "t0"))
		began := time.Now()
		require.True(t, runtime.IsMemoryRefused(read(&second, "t1")))
		require.Zero(t, time.Since(began))
		awaited := make(chan error)
		go func() { awaited <- second.WaitForMemory(t.Context()) }()
		synctest.Wait()
		require.Empty(t, awaited)
		first.Release()
		require.NoError(t, <-awaited)
		require.NoError(t, read(&second, "t1"))
		second.Release()
		require.Zero(t, engine.ReadBudgetBytes(w.engine))
	})
}

// TestLargeEventHoldsMemoryWhileItIsSent has streams that send large events, each of which holds
// what it has encoded.
func TestLargeEventHoldsMemoryWhileItIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, slow := newLargeThreadsFixture(t, 1)
		close(slow.unblocked)
		f := w.engine.Follow(runtime.FollowRequest{Thread: "t0"})
		defer f.Close()
		const large = 8 << 20
		first, second := runtime.CallMemory{RefusesReads: true}, runtime.CallMemory{RefusesReads: true}
		require.NoError(t, f.ReserveMemory(t.Context(), nil, large), "what is no stream has no room")
		require.NoError(t, f.ReserveMemory(t.Context(), &first, 1))
		require.False(t, first.IsHeld())
		require.NoError(t, f.ReserveMemory(t.Context(), &first, large))
		require.True(t, first.IsHeld())
		require.NoError(t, f.ReserveMemory(t.Context(), &first, large), "it has the room")
		require.True(t, runtime.IsMemoryRefused(f.ReserveMemory(t.Context(), &second, large)))
		require.NoError(t, f.ReserveMemory(t.Context(), &second, 1))
		awaited := make(chan error)
		go func() { awaited <- second.WaitForMemory(t.Context()) }()
		synctest.Wait()
		require.Empty(t, awaited)
		first.Release()
		require.NoError(t, <-awaited)
		require.NoError(t, f.ReserveMemory(t.Context(), &second, large))
		second.Release()
		require.Zero(t, engine.ReadBudgetBytes(w.engine))
	})
}

// TestLargeEventsAreReadByFewAtATime has many followers of large events, most of which wait
// when they know how large they are.
func TestLargeEventsAreReadByFewAtATime(t *testing.T) {
	for name, c := range map[string]struct {
		bytes int
		most  int64
	}{"large": {300 << 10, 2}, "small": {1 << 10, 8}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, slow := newLargeThreadsFixture(t, 1)
				close(slow.unblocked)
				log := &endlessLogStore{Store: w.store, value: payload.Quote(strings.Repeat("x", c.bytes))}
				w.engine.Close()
				w.store = log
				w.startEngine()
				var all sync.WaitGroup
				begun := make(chan struct{})
				for range 20 {
					f := w.engine.Follow(runtime.FollowRequest{Thread: "t0"})
					_, err := f.Next(t.Context())
					require.NoError(t, err)
					all.Go(func() {
						defer f.Close()
						<-begun
						for range 5 {
							_, err := f.Next(t.Context())
							assert.NoError(t, err)
						}
					})
				}
				log.maxReaders.Store(0)
				close(begun)
				all.Wait()
				require.Equal(t, c.most, log.maxReaders.Load())
			})
		})
	}
}

// endlessLogStore is a store whose threads have events without end, which it takes time to read.
type endlessLogStore struct {
	checkpoint.Store

	value      payload.JSON
	readers    atomic.Int64
	maxReaders atomic.Int64 // that read at the same time
}

func (s *endlessLogStore) Events(_ context.Context, _ string, after uint64, limit int) (list []checkpoint.Event, err error) {
	now := s.readers.Add(1)
	defer s.readers.Add(-1)
	for most := s.maxReaders.Load(); now > most && !s.maxReaders.CompareAndSwap(most, now); most = s.maxReaders.Load() {
	}
	timer := time.NewTimer(time.Second)
	<-timer.C
	for i := range limit {
		list = append(list, checkpoint.Event{Seq: after + 1 + uint64(i), Kind: checkpoint.EventCustom, Value: s.value})
	}
	return list, nil
}
