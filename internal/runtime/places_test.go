package runtime_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// countingStore counts how often it is looked at.
type countingStore struct {
	checkpoint.Store

	due, heads atomic.Int64
	asked      atomic.Int64 // threads that were asked for
}

func (s *countingStore) Due(ctx context.Context, limit int) ([]string, time.Time, error) {
	s.due.Add(1)
	s.asked.Add(int64(limit))
	return s.Store.Due(ctx, limit)
}

func (s *countingStore) Head(ctx context.Context, thread string) (checkpoint.Head, error) {
	s.heads.Add(1)
	return s.Store.Head(ctx, thread)
}

// fullWorld is an engine all of whose places are taken by runs that wait for
// free.
type fullWorld struct {
	*world

	counts *countingStore
	free   chan struct{}
}

const fullAt = 2

func newFullWorld(t *testing.T, before func(*fullWorld)) *fullWorld {
	t.Helper()
	f := &fullWorld{counts: &countingStore{Store: memory.New(memory.Options{})}, free: make(chan struct{}, 1000)}
	code := map[string]node{
		"work": func(ctx context.Context, _ *call) pregel.Result {
			select {
			case <-f.free:
				return wrote(`"worked"`)
			case <-ctx.Done():
				return fail("cut off")
			}
		},
		"ask": func(_ context.Context, c *call) pregel.Result {
			if len(c.Journal.Answers) > 0 {
				return wrote(`"answered"`)
			}
			return pregel.Result{Asks: []pregel.Ask{{Value: `"?"`, TTL: time.Hour}}}
		},
		"quick": update(`{"log":["quick"]}`),
	}
	f.world = newWorldOn(t, f.counts, runtime.Options{MaxLive: fullAt}, code,
		chain("works", channelsLog, "work"),
		chain("asks", channelsLog, "ask", "work"),
		computed(chain("computes", channelsLog, "quick", "join"), "quick"),
		computed(chain("asks and computes", channelsLog, "ask", "quick"), "ask", "quick"),
	)
	f.nodes.code["join"] = update(`{"log":["join"]}`)
	before(f)
	synctest.Wait() // for their places
	for i := range fullAt {
		f.start(fmt.Sprintf("full%d", i), "works")
	}
	synctest.Wait()
	return f
}

// run runs a run to its stop, and waits until its place is free.
func (f *fullWorld) run(thread, name, input string) checkpoint.Run {
	f.t.Helper()
	r := f.world.run(thread, name, input)
	synctest.Wait()
	return r
}

func (f *fullWorld) start(thread, name string) runtime.Started {
	f.t.Helper()
	st, err := f.try(thread, name, runtime.Reject)
	require.NoError(f.t, err)
	return st
}

func (f *fullWorld) try(thread, name string, c runtime.Concurrency) (runtime.Started, error) {
	return f.engine.Start(f.t.Context(), runtime.StartRequest{
		Thread: thread, CreateThread: true, Graph: name, Concurrency: c, Request: input("x"),
	})
}

func (f *fullWorld) resume(thread string) runtime.Started {
	f.t.Helper()
	st, err := f.engine.Resume(f.t.Context(), runtime.ResumeRequest{
		Thread: thread, Single: &runtime.Response{Value: `"yes"`}, RequestID: "answer " + thread, Digest: "d",
	})
	require.NoError(f.t, err)
	return st
}

func TestARunIsRefusedWhereNoneMayGoLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFullWorld(t, func(*fullWorld) {})
		_, err := f.try("t", "works", runtime.Reject)
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonTooManyRuns})
		_, err = f.store.Head(t.Context(), "t")
		require.ErrorIs(t, err, checkpoint.ErrThreadNotFound, "nothing is stored")

		f.free <- struct{}{}
		synctest.Wait()
		st, err := f.try("t", "works", runtime.Reject)
		require.NoError(t, err)
		f.free <- struct{}{}
		f.free <- struct{}{}
		require.Equal(t, checkpoint.RunSucceeded, f.wait(st).State)
	})
}

func TestWhatNeedsNoDriverPassesAFullServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFullWorld(t, func(f *fullWorld) {
			require.Equal(t, checkpoint.RunInterrupted, f.run("asked", "asks and computes", `{}`).State)
			require.Equal(t, checkpoint.RunInterrupted, f.run("given up", "asks", `{}`).State)
			require.Equal(t, checkpoint.RunInterrupted, f.run("late", "asks", `{}`).State)
		})
		require.Equal(t, checkpoint.RunSucceeded, f.run("c", "computes", `{}`).State)
		require.Equal(t, checkpoint.RunInterrupted, f.run("a", "asks and computes", `{}`).State)
		require.Equal(t, checkpoint.RunSucceeded, f.answer("asked", `"yes"`).State)
		r, err := f.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: "given up"})
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunCancelled, r.State)
		require.Len(t, f.state("late").Interrupts, 1)

		rest(2 * time.Hour)
		late, err := f.store.Interrupts(t.Context(), checkpoint.InterruptQuery{Thread: "late"})
		require.NoError(t, err)
		require.Equal(t, checkpoint.InterruptExpired, late[0].State, "questions expire all the same")
	})
}

func TestAnswersToAFullServerAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFullWorld(t, func(f *fullWorld) {
			require.Equal(t, checkpoint.RunInterrupted, f.run("t", "asks", `{}`).State)
		})
		st := f.resume("t")
		require.Equal(t, checkpoint.RunQueued, st.Run.State)
		require.Equal(t, []string{"1 resolved answered", "run queued"}, f.transcript("t")[st.After:])
		again := f.resume("t")
		require.True(t, again.Attached)
		rest(time.Minute)
		require.Equal(t, "run queued", f.transcript("t")[len(f.transcript("t"))-1], "nobody drives it yet")

		f.free <- struct{}{}
		synctest.Wait()
		require.Contains(t, f.transcript("t")[st.After:], "run running", "at once when a place is free")
		f.free <- struct{}{}
		f.free <- struct{}{}
		require.Equal(t, checkpoint.RunSucceeded, f.wait(st).State)
	})
}

func TestAQueuedRunCanBeCancelledWhileItWaitsForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFullWorld(t, func(f *fullWorld) {
			require.Equal(t, checkpoint.RunInterrupted, f.run("answered", "asks", `{}`).State)
		})
		queued, err := f.try("queued", "works", runtime.Enqueue)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunQueued, queued.Run.State)
		for thread, st := range map[string]runtime.Started{"queued": queued, "answered": f.resume("answered")} {
			r, err := f.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: thread, Run: st.Run.ID})
			require.NoError(t, err)
			require.Equal(t, checkpoint.RunCancelled, r.State)
		}
		rest(time.Minute)
		f.free <- struct{}{}
		f.free <- struct{}{}
		rest(time.Minute)
		f.free <- struct{}{}
		require.Equal(t, checkpoint.RunSucceeded, f.wait(f.start("queued", "works")).State, "the places are free again")
	})
}

// TestAFullServerDoesNotSweep has many threads due that would need a place.
func TestAFullServerDoesNotSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 700
		f := newFullWorld(t, func(f *fullWorld) {
			for i := range many {
				require.Equal(t, checkpoint.RunInterrupted, f.run(fmt.Sprintf("t%d", i), "asks", `{}`).State)
			}
		})
		var started []runtime.Started
		for i := range many {
			started = append(started, f.resume(fmt.Sprintf("t%d", i)))
		}
		rest(5 * time.Second)
		due, heads := f.counts.due.Load(), f.counts.heads.Load()
		rest(time.Minute)
		require.LessOrEqual(t, f.counts.due.Load()-due, int64(3*62), "one look a second, at twice as much until it is beyond the line")
		require.LessOrEqual(t, f.counts.heads.Load()-heads, int64(10), "and none at the threads in line")

		require.Equal(t, checkpoint.RunSucceeded, f.run("c", "computes", `{}`).State)
		for range many + fullAt {
			f.free <- struct{}{}
		}
		for _, st := range started {
			require.Equal(t, checkpoint.RunSucceeded, f.wait(st).State)
		}
		require.LessOrEqual(t, f.counts.due.Load()-due, int64(200), "places are handed on without a look at the store")
	})
}

// TestAFullServerAsksForLittle has threads in line that do not fill a look at
// the store.
func TestAFullServerAsksForLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const some = 100
		f := newFullWorld(t, func(f *fullWorld) {
			for i := range some {
				require.Equal(t, checkpoint.RunInterrupted, f.run(fmt.Sprintf("t%d", i), "asks", `{}`).State)
			}
		})
		for i := range some {
			f.resume(fmt.Sprintf("t%d", i))
		}
		rest(5 * time.Second)
		due, asked := f.counts.due.Load(), f.counts.asked.Load()
		rest(time.Minute)
		due, asked = f.counts.due.Load()-due, f.counts.asked.Load()-asked
		require.NotZero(t, due)
		require.LessOrEqual(t, asked, 256*due, "as if the line were empty")
	})
}

// TestALongLineHidesNobody has so many threads in line that they fill the first
// looks at the store.
func TestALongLineHidesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 700
		f := newFullWorld(t, func(f *fullWorld) {
			for i := range many {
				require.Equal(t, checkpoint.RunInterrupted, f.run(fmt.Sprintf("t%d", i), "asks", `{}`).State)
			}
			for i := range 3 {
				require.Equal(t, checkpoint.RunInterrupted, f.run(fmt.Sprintf("late%d", i), "asks", `{}`).State)
			}
		})
		rest(time.Hour - 10*time.Second)
		for i := range many {
			f.resume(fmt.Sprintf("t%d", i))
		}
		rest(12 * time.Second)
		for i := range 3 {
			late, err := f.store.Interrupts(t.Context(), checkpoint.InterruptQuery{Thread: fmt.Sprintf("late%d", i)})
			require.NoError(t, err)
			require.Equal(t, checkpoint.InterruptExpired, late[0].State)
		}
		due, asked := f.counts.due.Load(), f.counts.asked.Load()
		rest(time.Minute)
		due, asked = f.counts.due.Load()-due, f.counts.asked.Load()-asked
		require.LessOrEqual(t, due, int64(3*62), "looks that grow until they reach beyond the line")
		require.LessOrEqual(t, asked, int64(62*(256+512+1024)))
	})
}

// TestAFullServerTakesOverNothing restarts over more runs than have places.
func TestAFullServerTakesOverNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFullWorld(t, func(*fullWorld) {})
		f.engine.Close()
		f.opts.MaxLive = 1
		f.world.start()
		rest(time.Minute)
		f.free <- struct{}{}
		rest(time.Second)
		f.free <- struct{}{}
		rest(time.Second)
		for i := range fullAt {
			head, err := f.engine.Thread(t.Context(), fmt.Sprintf("full%d", i))
			require.NoError(t, err)
			require.Equal(t, checkpoint.ThreadIdle, head.State)
		}
	})
}

// turnStore calls a function before a change of one thread, and answers
// slowly when a run is read, as a store behind a network may.
type turnStore struct {
	checkpoint.Store

	thread string
	before atomic.Pointer[func() error] // the next change
}

func (s *turnStore) beforeNext(call func() error) { s.before.Store(&call) }

func (s *turnStore) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	if c.Thread != s.thread {
		return s.Store.Apply(ctx, c)
	}
	if before := s.before.Swap(nil); before != nil {
		if err := (*before)(); err != nil {
			return checkpoint.Receipt{}, err
		}
	}
	return s.Store.Apply(ctx, c)
}

func (s *turnStore) Due(ctx context.Context, limit int) ([]string, time.Time, error) {
	rest(2 * time.Millisecond)
	return s.Store.Due(ctx, limit)
}

func (s *turnStore) Run(ctx context.Context, thread, run string) (checkpoint.Run, error) {
	rest(time.Millisecond)
	return s.Store.Run(ctx, thread, run)
}

// newTurnWorld is a full world over a turnStore with one place, which a run of
// the thread "full" has, and a thread "asked" that waits for an answer.
func newTurnWorld(t *testing.T, code map[string]node, asks ...string) (*fullWorld, *turnStore) {
	t.Helper()
	st := &turnStore{Store: memory.New(memory.Options{}), thread: "asked"}
	f := &fullWorld{free: make(chan struct{}, 10)}
	code["work"] = func(ctx context.Context, _ *call) pregel.Result {
		select {
		case <-f.free:
			return wrote(`"worked"`)
		case <-ctx.Done():
			return fail("cut off")
		}
	}
	f.world = newWorldOn(t, st, runtime.Options{MaxLive: 1}, code,
		chain("works", channelsLog, "work"), chain("asks", channelsLog, asks...))
	require.Equal(t, checkpoint.RunInterrupted, f.run("asked", "asks", `{}`).State)
	rest(time.Second)
	f.start("full", "works")
	rest(time.Second)
	return f, st
}

func askOnce(_ context.Context, c *call) pregel.Result {
	if len(c.Journal.Answers) > 0 {
		return wrote(`"answered"`)
	}
	return pregel.Result{Asks: []pregel.Ask{{Value: payload.JSON(fmt.Sprintf("%q", c.Node.Name)), TTL: time.Hour}}}
}

// TestAPlaceThatIsFreeAtOnceIsTaken frees the only place while an answer is
// stored that was refused it: nothing else wakes the sweeper.
func TestAPlaceThatIsFreeAtOnceIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, st := newTurnWorld(t, map[string]node{"ask": askOnce}, "ask", "work")
		st.beforeNext(func() error {
			f.free <- struct{}{}
			rest(100 * time.Millisecond)
			return nil
		})
		f.resume("asked")
		f.free <- struct{}{}
		rest(time.Minute)
		head, err := f.engine.Thread(t.Context(), "asked")
		require.NoError(t, err)
		require.Equal(t, checkpoint.ThreadIdle, head.State, "the thread waits for a place that is free")
	})
}

// TestAThreadThatHadItsPlaceIsNotInLine has the sweeper take a thread up before
// the call that waits for a place has returned.
func TestAThreadThatHadItsPlaceIsNotInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, st := newTurnWorld(t, map[string]node{"ask": askOnce, "ask again": askOnce}, "ask", "ask again")
		st.beforeNext(func() error {
			f.free <- struct{}{}
			rest(100 * time.Millisecond)
			return nil
		})
		f.resume("asked")
		rest(time.Second)
		if _, err := f.try("full too", "works", runtime.Reject); err != nil {
			require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonTooManyRuns})
		}
		requireExpired(t, f, 2)
	})
}

// TestARefusedAnswerDoesNotWaitForAPlace has the store refuse an answer to a full
// server.
func TestARefusedAnswerDoesNotWaitForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, st := newTurnWorld(t, map[string]node{"ask": askOnce}, "ask", "work")
		st.beforeNext(func() error { return checkpoint.ErrInvalid })
		_, err := f.engine.Resume(t.Context(), runtime.ResumeRequest{
			Thread: "asked", Single: &runtime.Response{Value: `"yes"`}, RequestID: "r", Digest: "d",
		})
		require.Error(t, err)
		requireExpired(t, f, 1)
	})
}

// requireExpired waits until a question of the thread "asked" must have expired
// on a full server.
func requireExpired(t *testing.T, f *fullWorld, questions int) {
	t.Helper()
	rest(2 * time.Hour)
	got, err := f.store.Interrupts(t.Context(), checkpoint.InterruptQuery{Thread: "asked"})
	require.NoError(t, err)
	require.Len(t, got, questions)
	require.Equal(t, checkpoint.InterruptExpired, got[questions-1].State)
}
