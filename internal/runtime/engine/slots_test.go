package engine_test

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
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// countingStore counts how often it is looked at.
type countingStore struct {
	checkpoint.Store

	dueCalls, headCalls atomic.Int64
	requestedThreads    atomic.Int64 // threads that were asked for
}

func (s *countingStore) Due(ctx context.Context, limit int) ([]string, time.Time, error) {
	s.dueCalls.Add(1)
	s.requestedThreads.Add(int64(limit))
	return s.Store.Due(ctx, limit)
}

func (s *countingStore) Head(ctx context.Context, thread string) (checkpoint.Head, error) {
	s.headCalls.Add(1)
	return s.Store.Head(ctx, thread)
}

// fullFixture is an engine all of whose slots are taken by runs that wait for
// proceed.
type fullFixture struct {
	*fixture

	counters *countingStore
	proceed  chan struct{}
}

const slotCount = 2

func newFullFixture(t *testing.T, before func(*fullFixture)) *fullFixture {
	t.Helper()
	f := &fullFixture{counters: &countingStore{Store: memory.New(memory.Options{})}, proceed: make(chan struct{}, 1000)}
	code := map[string]nodeFunc{
		"work": func(ctx context.Context, _ *nodeCall) pregel.Result {
			select {
			case <-f.proceed:
				return logUpdate(`"worked"`)
			case <-ctx.Done():
				return failedResult("cut off")
			}
		},
		"ask": func(_ context.Context, c *nodeCall) pregel.Result {
			if len(c.Journal.Answers) > 0 {
				return logUpdate(`"answered"`)
			}
			return pregel.Result{Asks: []pregel.Ask{{Value: `"?"`, TTL: time.Hour}}}
		},
		"quick": updateNode(`{"log":["quick"]}`),
	}
	f.fixture = newFixtureOn(t, f.counters, engine.Options{MaxLiveRuns: slotCount}, code,
		chainSpec("works", channelsLog, "work"),
		chainSpec("asks", channelsLog, "ask", "work"),
		withExpressions(chainSpec("computes", channelsLog, "quick", "join"), "quick"),
		withExpressions(chainSpec("asks and computes", channelsLog, "ask", "quick"), "ask", "quick"),
	)
	f.nodes.funcs["join"] = updateNode(`{"log":["join"]}`)
	before(f)
	synctest.Wait() // for their slots
	for i := range slotCount {
		f.beginRun(fmt.Sprintf("full%d", i), "works")
	}
	synctest.Wait()
	return f
}

// runAndFreeSlot runs a run to its stop, and waits until its slot is free.
func (f *fullFixture) runAndFreeSlot(thread, name, input string) checkpoint.Run {
	f.t.Helper()
	r := f.runToStop(thread, name, input)
	synctest.Wait()
	return r
}

func (f *fullFixture) beginRun(thread, name string) *runtime.Started {
	f.t.Helper()
	st, err := f.tryBegin(thread, name, runtime.RejectBusy)
	require.NoError(f.t, err)
	return st
}

func (f *fullFixture) tryBegin(thread, name string, c runtime.Concurrency) (*runtime.Started, error) {
	return f.engine.Start(f.t.Context(), runtime.StartRequest{
		Thread: thread, CreateThread: true, Graph: name, Concurrency: c, Request: newInput("x"),
	})
}

func (f *fullFixture) answerThread(thread string) *runtime.Started {
	f.t.Helper()
	st, err := f.engine.Resume(f.t.Context(), runtime.ResumeRequest{
		Thread: thread, Single: &runtime.Response{Value: `"yes"`}, RequestID: "answer " + thread, Digest: "d",
	})
	require.NoError(f.t, err)
	return st
}

func TestARunIsRefusedWhereNoneMayGoLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFullFixture(t, func(*fullFixture) {})
		_, err := f.tryBegin("t", "works", runtime.RejectBusy)
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonTooManyRuns})
		_, err = f.store.Head(t.Context(), "t")
		require.ErrorIs(t, err, checkpoint.ErrThreadNotFound, "nothing is stored")

		f.proceed <- struct{}{}
		synctest.Wait()
		st, err := f.tryBegin("t", "works", runtime.RejectBusy)
		require.NoError(t, err)
		f.proceed <- struct{}{}
		f.proceed <- struct{}{}
		require.Equal(t, checkpoint.RunSucceeded, f.waitRun(st).State)
	})
}

func TestWhatNeedsNoDriverPassesAFullServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFullFixture(t, func(f *fullFixture) {
			require.Equal(t, checkpoint.RunInterrupted, f.runAndFreeSlot("asked", "asks and computes", `{}`).State)
			require.Equal(t, checkpoint.RunInterrupted, f.runAndFreeSlot("given up", "asks", `{}`).State)
			require.Equal(t, checkpoint.RunInterrupted, f.runAndFreeSlot("late", "asks", `{}`).State)
		})
		require.Equal(t, checkpoint.RunSucceeded, f.runAndFreeSlot("c", "computes", `{}`).State)
		require.Equal(t, checkpoint.RunInterrupted, f.runAndFreeSlot("a", "asks and computes", `{}`).State)
		require.Equal(t, checkpoint.RunSucceeded, f.answerSingle("asked", `"yes"`).State)
		r, err := f.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: "given up"})
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunCancelled, r.State)
		require.Len(t, f.readState("late").Interrupts, 1)

		sleepVirtual(2 * time.Hour)
		late, err := f.store.Interrupts(t.Context(), checkpoint.InterruptQuery{Thread: "late"})
		require.NoError(t, err)
		require.Equal(t, checkpoint.InterruptExpired, late[0].State, "questions expire all the same")
	})
}

func TestAnswersToAFullServerAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFullFixture(t, func(f *fullFixture) {
			require.Equal(t, checkpoint.RunInterrupted, f.runAndFreeSlot("t", "asks", `{}`).State)
		})
		st := f.answerThread("t")
		require.Equal(t, checkpoint.RunQueued, st.Run.State)
		require.Equal(t, []string{"1 resolved answered", "run queued"}, f.describeEvents("t")[st.After:])
		again := f.answerThread("t")
		require.True(t, again.IsAttached)
		sleepVirtual(time.Minute)
		require.Equal(t, "run queued", f.describeEvents("t")[len(f.describeEvents("t"))-1], "no server drives it yet")

		f.proceed <- struct{}{}
		synctest.Wait()
		require.Contains(t, f.describeEvents("t")[st.After:], "run running", "at once when a place is free")
		f.proceed <- struct{}{}
		f.proceed <- struct{}{}
		require.Equal(t, checkpoint.RunSucceeded, f.waitRun(st).State)
	})
}

func TestAQueuedRunCanBeCancelledWhileItWaitsForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFullFixture(t, func(f *fullFixture) {
			require.Equal(t, checkpoint.RunInterrupted, f.runAndFreeSlot("answered", "asks", `{}`).State)
		})
		queued, err := f.tryBegin("queued", "works", runtime.EnqueueBusy)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunQueued, queued.Run.State)
		for thread, st := range map[string]*runtime.Started{"queued": queued, "answered": f.answerThread("answered")} {
			r, err := f.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: thread, Run: st.Run.ID})
			require.NoError(t, err)
			require.Equal(t, checkpoint.RunCancelled, r.State)
		}
		sleepVirtual(time.Minute)
		f.proceed <- struct{}{}
		f.proceed <- struct{}{}
		sleepVirtual(time.Minute)
		f.proceed <- struct{}{}
		require.Equal(t, checkpoint.RunSucceeded, f.waitRun(f.beginRun("queued", "works")).State, "the places are free again")
	})
}

// TestAFullServerDoesNotScan has many threads due that would need a slot.
func TestAFullServerDoesNotScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 700
		f := newFullFixture(t, func(f *fullFixture) {
			for i := range many {
				require.Equal(t, checkpoint.RunInterrupted, f.runAndFreeSlot(fmt.Sprintf("t%d", i), "asks", `{}`).State)
			}
		})
		var started []*runtime.Started
		for i := range many {
			started = append(started, f.answerThread(fmt.Sprintf("t%d", i)))
		}
		sleepVirtual(5 * time.Second)
		due, heads := f.counters.dueCalls.Load(), f.counters.headCalls.Load()
		sleepVirtual(time.Minute)
		require.LessOrEqual(t, f.counters.dueCalls.Load()-due, int64(3*62), "one look a second, at twice as much until it is beyond the line")
		require.LessOrEqual(t, f.counters.headCalls.Load()-heads, int64(10), "and none at the threads in line")

		require.Equal(t, checkpoint.RunSucceeded, f.runAndFreeSlot("c", "computes", `{}`).State)
		for range many + slotCount {
			f.proceed <- struct{}{}
		}
		for _, st := range started {
			require.Equal(t, checkpoint.RunSucceeded, f.waitRun(st).State)
		}
		require.LessOrEqual(t, f.counters.dueCalls.Load()-due, int64(200), "places are handed on without a look at the store")
	})
}

// TestAFullServerAsksForLittle has queued threads that do not fill a read of the
// store.
func TestAFullServerAsksForLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const some = 100
		f := newFullFixture(t, func(f *fullFixture) {
			for i := range some {
				require.Equal(t, checkpoint.RunInterrupted, f.runAndFreeSlot(fmt.Sprintf("t%d", i), "asks", `{}`).State)
			}
		})
		for i := range some {
			f.answerThread(fmt.Sprintf("t%d", i))
		}
		sleepVirtual(5 * time.Second)
		due, asked := f.counters.dueCalls.Load(), f.counters.requestedThreads.Load()
		sleepVirtual(time.Minute)
		due, asked = f.counters.dueCalls.Load()-due, f.counters.requestedThreads.Load()-asked
		require.NotZero(t, due)
		require.LessOrEqual(t, asked, 256*due, "as if the line were empty")
	})
}

// TestALongQueueHidesNoThread has so many threads queued that they fill the first
// looks at the store.
func TestALongQueueHidesNoThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 700
		f := newFullFixture(t, func(f *fullFixture) {
			for i := range many {
				require.Equal(t, checkpoint.RunInterrupted, f.runAndFreeSlot(fmt.Sprintf("t%d", i), "asks", `{}`).State)
			}
			for i := range 3 {
				require.Equal(t, checkpoint.RunInterrupted, f.runAndFreeSlot(fmt.Sprintf("late%d", i), "asks", `{}`).State)
			}
		})
		sleepVirtual(time.Hour - 10*time.Second)
		for i := range many {
			f.answerThread(fmt.Sprintf("t%d", i))
		}
		sleepVirtual(12 * time.Second)
		for i := range 3 {
			late, err := f.store.Interrupts(t.Context(), checkpoint.InterruptQuery{Thread: fmt.Sprintf("late%d", i)})
			require.NoError(t, err)
			require.Equal(t, checkpoint.InterruptExpired, late[0].State)
		}
		due, asked := f.counters.dueCalls.Load(), f.counters.requestedThreads.Load()
		sleepVirtual(time.Minute)
		due, asked = f.counters.dueCalls.Load()-due, f.counters.requestedThreads.Load()-asked
		require.LessOrEqual(t, due, int64(3*62), "looks that grow until they reach beyond the line")
		require.LessOrEqual(t, asked, int64(62*(256+512+1024)))
	})
}

// TestAFullServerTakesOverNothing restarts over more runs than have slots.
func TestAFullServerTakesOverNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFullFixture(t, func(*fullFixture) {})
		f.engine.Close()
		f.opts.MaxLiveRuns = 1
		f.startEngine()
		sleepVirtual(time.Minute)
		f.proceed <- struct{}{}
		sleepVirtual(time.Second)
		f.proceed <- struct{}{}
		sleepVirtual(time.Second)
		for i := range slotCount {
			head, err := f.engine.Thread(t.Context(), fmt.Sprintf("full%d", i))
			require.NoError(t, err)
			require.Equal(t, checkpoint.ThreadIdle, head.State)
		}
	})
}

// hookedStore calls a function before a change of one thread, and answers
// slowly when a run is read, as a store behind a network may.
type hookedStore struct {
	checkpoint.Store

	thread      string
	beforeApply atomic.Pointer[func() error] // the next change
}

func (s *hookedStore) setBeforeNext(call func() error) { s.beforeApply.Store(&call) }

func (s *hookedStore) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	if c.Thread != s.thread {
		return s.Store.Apply(ctx, c)
	}
	if before := s.beforeApply.Swap(nil); before != nil {
		if err := (*before)(); err != nil {
			return checkpoint.Receipt{}, err
		}
	}
	return s.Store.Apply(ctx, c)
}

func (s *hookedStore) Due(ctx context.Context, limit int) ([]string, time.Time, error) {
	sleepVirtual(2 * time.Millisecond)
	return s.Store.Due(ctx, limit)
}

func (s *hookedStore) Run(ctx context.Context, thread, run string) (checkpoint.Run, error) {
	sleepVirtual(time.Millisecond)
	return s.Store.Run(ctx, thread, run)
}

// newHookedFixture makes a full fixture over a hookedStore with one slot, which a run of
// the thread "full" has, and a thread "asked" that waits for an answer.
func newHookedFixture(t *testing.T, code map[string]nodeFunc, asks ...string) (*fullFixture, *hookedStore) {
	t.Helper()
	st := &hookedStore{Store: memory.New(memory.Options{}), thread: "asked"}
	f := &fullFixture{proceed: make(chan struct{}, 10)}
	code["work"] = func(ctx context.Context, _ *nodeCall) pregel.Result {
		select {
		case <-f.proceed:
			return logUpdate(`"worked"`)
		case <-ctx.Done():
			return failedResult("cut off")
		}
	}
	f.fixture = newFixtureOn(t, st, engine.Options{MaxLiveRuns: 1}, code,
		chainSpec("works", channelsLog, "work"), chainSpec("asks", channelsLog, asks...))
	require.Equal(t, checkpoint.RunInterrupted, f.runAndFreeSlot("asked", "asks", `{}`).State)
	sleepVirtual(time.Second)
	f.beginRun("full", "works")
	sleepVirtual(time.Second)
	return f, st
}

func askOnceNode(_ context.Context, c *nodeCall) pregel.Result {
	if len(c.Journal.Answers) > 0 {
		return logUpdate(`"answered"`)
	}
	return pregel.Result{Asks: []pregel.Ask{{Value: payload.JSON(fmt.Sprintf("%q", c.Node.Name)), TTL: time.Hour}}}
}

// TestASlotThatIsFreeAtOnceIsTaken frees the only slot while an answer is stored
// that was refused it: nothing else wakes the scheduler.
func TestASlotThatIsFreeAtOnceIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, st := newHookedFixture(t, map[string]nodeFunc{"ask": askOnceNode}, "ask", "work")
		st.setBeforeNext(func() error {
			f.proceed <- struct{}{}
			sleepVirtual(100 * time.Millisecond)
			return nil
		})
		f.answerThread("asked")
		f.proceed <- struct{}{}
		sleepVirtual(time.Minute)
		head, err := f.engine.Thread(t.Context(), "asked")
		require.NoError(t, err)
		require.Equal(t, checkpoint.ThreadIdle, head.State, "the thread waits for a place that is free")
	})
}

// TestAThreadThatHadItsSlotIsNotQueued has the scheduler take a thread up before
// the call that waits for a slot has returned.
func TestAThreadThatHadItsSlotIsNotQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, st := newHookedFixture(t, map[string]nodeFunc{"ask": askOnceNode, "ask again": askOnceNode}, "ask", "ask again")
		st.setBeforeNext(func() error {
			f.proceed <- struct{}{}
			sleepVirtual(100 * time.Millisecond)
			return nil
		})
		f.answerThread("asked")
		sleepVirtual(time.Second)
		if _, err := f.tryBegin("full too", "works", runtime.RejectBusy); err != nil {
			require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonTooManyRuns})
		}
		requireExpired(t, f, 2)
	})
}

// TestARefusedAnswerDoesNotWaitForASlot has the store refuse an answer to a full
// server.
func TestARefusedAnswerDoesNotWaitForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, st := newHookedFixture(t, map[string]nodeFunc{"ask": askOnceNode}, "ask", "work")
		refuse := func() error { return checkpoint.ErrInvalid }
		st.setBeforeNext(func() error { // on what the server has in view of the thread, and then on what the store has
			st.setBeforeNext(refuse)
			return refuse()
		})
		_, err := f.engine.Resume(t.Context(), runtime.ResumeRequest{
			Thread: "asked", Single: &runtime.Response{Value: `"yes"`}, RequestID: "r", Digest: "d",
		})
		require.Error(t, err)
		requireExpired(t, f, 1)
	})
}

// requireExpired waits until an interrupt of the thread "asked" must have expired
// on a full server.
func requireExpired(t *testing.T, f *fullFixture, questions int) {
	t.Helper()
	sleepVirtual(2 * time.Hour)
	got, err := f.store.Interrupts(t.Context(), checkpoint.InterruptQuery{Thread: "asked"})
	require.NoError(t, err)
	require.Len(t, got, questions)
	require.Equal(t, checkpoint.InterruptExpired, got[questions-1].State)
}
