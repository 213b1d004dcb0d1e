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

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// memoryFixture is an engine whose live runs may hold 1 MB, with graphs whose runs
// hold 300 KB.
type memoryFixture struct {
	*fixture

	proceed       chan struct{}
	evictions     atomic.Int64
	reportedBytes atomic.Int64

	mu             sync.Mutex
	attemptCounts  map[string]int // node attempts, by thread and node
	waitingThreads map[string]int // threads in a node that waits
	maxWaiting     int            // most threads at a time that waited
}

// RunEvicted counts the runs that are evicted.
func (f *memoryFixture) RunEvicted(string) { f.evictions.Add(1) }

// LiveBytes stores the number of bytes that is reported.
func (f *memoryFixture) LiveBytes(n int64) { f.reportedBytes.Store(n) }

// countingObserver is an observer of two things.
type countingObserver struct {
	runtime.Observer
	*memoryFixture
}

func (o countingObserver) RunEvicted(name string) { o.memoryFixture.RunEvicted(name) }
func (o countingObserver) LiveBytes(n int64)      { o.memoryFixture.LiveBytes(n) }

const (
	heavyStateBytes = 300 << 10
	maxHeldBytes    = 1 << 20
)

var channelsHeavy = []graph.ChannelSpec{{Name: "log", Reducer: "append"}, {Name: "n", Reducer: "add"}, {Name: "x"}}

func heavyResult() pregel.Result {
	return pregel.Result{Update: `{"x":"` + payload.JSON(strings.Repeat("x", heavyStateBytes)) + `","n":1}`}
}

func newMemoryFixture(t *testing.T, opts engine.Options, specs ...*graph.Spec) *memoryFixture {
	t.Helper()
	w := &memoryFixture{proceed: make(chan struct{}, 1000), attemptCounts: map[string]int{}, waitingThreads: map[string]int{}}
	noted := func(n nodeFunc) nodeFunc {
		return func(ctx context.Context, c *nodeCall) pregel.Result {
			w.mu.Lock()
			w.attemptCounts[c.Thread+" "+c.Node.Name]++
			w.mu.Unlock()
			return n(ctx, c)
		}
	}
	grow := func(context.Context, *nodeCall) pregel.Result { return heavyResult() }
	code := map[string]nodeFunc{
		"grow": noted(grow), "quick": noted(grow), "fast": noted(grow), "last": noted(func(context.Context, *nodeCall) pregel.Result { return logUpdate(`"last"`) }),
		"small": noted(func(context.Context, *nodeCall) pregel.Result { return logUpdate(`"small"`) }),
		"ask":   func(_ context.Context, c *nodeCall) pregel.Result { return logUpdate(c.askNext(`"?"`)) },
		"round": noted(func(ctx context.Context, c *nodeCall) pregel.Result {
			if workFor(ctx, time.Second) != nil {
				return failedResult("cut off")
			}
			return pregel.Result{Update: `{"n":1}`}
		}),
		"work": noted(func(ctx context.Context, c *nodeCall) pregel.Result {
			w.mu.Lock()
			w.waitingThreads[c.Thread]++
			w.maxWaiting = max(w.maxWaiting, len(w.waitingThreads))
			w.mu.Unlock()
			defer func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				delete(w.waitingThreads, c.Thread)
			}()
			select {
			case <-w.proceed:
				return logUpdate(`"worked"`)
			case <-ctx.Done():
				return failedResult("cut off")
			}
		}),
	}
	if opts.MaxLiveBytes == 0 {
		opts.MaxLiveBytes = maxHeldBytes
	}
	opts.Observer = countingObserver{engine.NopObserver, w}
	if len(specs) == 0 {
		specs = []*graph.Spec{chainSpec("works", channelsHeavy, "grow", "work", "last"), chainSpec("small", channelsHeavy, "small")}
	}
	w.fixture = newFixtureOn(t, memory.New(memory.Options{}), opts, code, specs...)
	return w
}

func (f *memoryFixture) beginRun(thread, name string) *runtime.Started {
	f.t.Helper()
	st, err := f.tryBegin(thread, name)
	require.NoError(f.t, err)
	return st
}

func (f *memoryFixture) tryBegin(thread, name string) (*runtime.Started, error) {
	return f.engine.Start(f.t.Context(), runtime.StartRequest{Thread: thread, CreateThread: true, Graph: name, Request: newInput("in")})
}

// countWaiting returns how many threads wait in their node.
func (f *memoryFixture) countWaiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.waitingThreads)
}

// peakWaiting returns how many threads waited at most at a time.
func (f *memoryFixture) peakWaiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.maxWaiting
}

func (f *memoryFixture) countAttempts(thread, node string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.attemptCounts[thread+" "+node]
}

// endlessSpec returns a graph that grows and then loops for ever.
func endlessSpec(name string) *graph.Spec {
	s := chainSpec(name, channelsHeavy, "grow", "round")
	s.Edges = []graph.EdgeSpec{newEdge(graph.Start, "grow"), newEdge("grow", "round"), newEdge("round", "round")}
	return s
}

// TestLiveRunsHoldNoMoreThanTheyMay has many runs that grow and then wait for their
// node: some wait for memory instead, and all of them end as if they had been
// alone.
func TestLiveRunsHoldNoMoreThanTheyMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 20
		w := newMemoryFixture(t, engine.Options{})
		var started []*runtime.Started
		for i := range many {
			started = append(started, w.beginRun(fmt.Sprint("t", i), "works"))
		}
		f := w.engine.Follow(runtime.FollowRequest{Thread: "t19"})
		defer f.Close()
		sleepVirtual(time.Minute)
		held, waiting := engine.LiveBytes(w.engine)
		require.LessOrEqual(t, held, int64(maxHeldBytes))
		require.Equal(t, held, w.reportedBytes.Load())
		require.Equal(t, int64(waiting), w.evictions.Load())
		require.GreaterOrEqual(t, waiting, many-maxHeldBytes/heavyStateBytes)

		require.Equal(t, checkpoint.RunSucceeded, w.runToStop("bystander", "small", `{}`).State, "what holds little passes")
		for range many {
			w.proceed <- struct{}{}
		}
		for i, st := range started {
			require.Equal(t, checkpoint.RunSucceeded, w.waitRun(st).State)
			for _, n := range []string{"grow", "work", "last"} {
				require.Equal(t, 1, w.countAttempts(fmt.Sprint("t", i), n), "nothing runs twice")
			}
		}
		require.LessOrEqual(t, w.peakWaiting(), maxHeldBytes/heavyStateBytes)
		require.Equal(t, []string{"run running", "run succeeded"}, w.describeEvents("t19", checkpoint.EventRunState), "those who follow see a pause")
		var seen uint64
		for seen < uint64(len(w.describeEvents("t19"))) {
			events, err := f.Next(t.Context())
			require.NoError(t, err)
			for _, e := range events {
				if !e.Ephemeral {
					require.Equal(t, seen+1, e.Seq)
					seen = e.Seq
				}
			}
		}
	})
}

// TestALoneRunGoesOn has one run that holds more than all may.
func TestALoneRunGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryFixture(t, engine.Options{MaxLiveBytes: heavyStateBytes / 2})
		st := w.beginRun("t", "works")
		w.proceed <- struct{}{}
		require.Equal(t, checkpoint.RunSucceeded, w.waitRun(st).State)
		require.Zero(t, w.evictions.Load())
	})
}

// TestRunsThatNeverEndTakeTurns has more of them than there is memory for.
func TestRunsThatNeverEndTakeTurns(t *testing.T) {
	for name, most := range map[string]int64{"room for three": maxHeldBytes, "room for one": heavyStateBytes + heavyStateBytes/4, "room for none": 1000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const many = 6
				w := newMemoryFixture(t, engine.Options{MaxLiveBytes: most}, endlessSpec("g"))
				for i := range many {
					w.beginRun(fmt.Sprint("t", i), "g")
					sleepVirtual(time.Minute)
				}
				before := make([]int, many)
				for i := range many {
					before[i] = w.countAttempts(fmt.Sprint("t", i), "round")
				}
				sleepVirtual(2 * time.Minute)
				for i := range many {
					require.Greater(t, w.countAttempts(fmt.Sprint("t", i), "round"), before[i], "run %d", i)
				}
				require.Positive(t, w.evictions.Load())
			})
		})
	}
}

// TestARunThatStandsStillBlocksNoOther has runs that hold half of the memory in a
// node that does not end, one that goes round, and one that will never get memory
// beside those.
func TestARunThatStandsStillBlocksNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		double := chainSpec("double", channelsHeavy, "grow", "round")
		double.Channels = append(double.Channels, graph.ChannelSpec{Name: "y"})
		w := newMemoryFixture(t, engine.Options{MaxLiveBytes: 800 << 10},
			chainSpec("works", channelsHeavy, "grow", "work", "last"), endlessSpec("g"), double)
		w.nodes.funcs["grow"] = func(_ context.Context, c *nodeCall) pregel.Result {
			r := heavyResult()
			if c.Graph.Name == "double" {
				r.Update = r.Update[:len(r.Update)-1] + `,"y":"` + payload.JSON(strings.Repeat("y", heavyStateBytes)) + `"}`
			}
			return r
		}
		w.beginRun("stands", "works")
		sleepVirtual(time.Second)
		big := w.beginRun("big", "double")
		sleepVirtual(time.Second)
		w.beginRun("turns", "g")
		sleepVirtual(10 * time.Minute)
		before := w.countAttempts("turns", "round")
		sleepVirtual(2 * time.Minute)
		require.Greater(t, w.countAttempts("turns", "round"), before+20)
		w.proceed <- struct{}{}
		require.Equal(t, checkpoint.RunSucceeded, w.waitRun(big).State)
	})
}

// TestRunsWithValuesThatAreNotStoredStay has runs that would lose something.
func TestRunsWithValuesThatAreNotStoredStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec := chainSpec("g", append([]graph.ChannelSpec{{Name: "u", Reducer: "untracked"}}, channelsHeavy...), "grow", "work", "last")
		w := newMemoryFixture(t, engine.Options{}, spec)
		var started []*runtime.Started
		for i := range 8 {
			started = append(started, w.beginRun(fmt.Sprint("t", i), "g"))
		}
		sleepVirtual(time.Minute)
		require.Zero(t, w.evictions.Load())
		for range started {
			w.proceed <- struct{}{}
		}
		for _, st := range started {
			require.Equal(t, checkpoint.RunSucceeded, w.waitRun(st).State)
		}
	})
}

// TestSubgraphsAreEvictedToo has runs whose subgraphs hold too much.
func TestSubgraphsAreEvictedToo(t *testing.T) {
	for persistence, stops := range map[string]bool{"inherit": true, "disabled": false} {
		t.Run(persistence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				outer := &graph.Spec{
					Name: "outer", Channels: channelsHeavy,
					Nodes: []graph.NodeSpec{{Name: "sub", Graph: &graph.SubgraphSpec{Name: "works", Persistence: persistence}}},
					Edges: []graph.EdgeSpec{newEdge(graph.Start, "sub"), newEdge("sub", graph.End)},
				}
				w := newMemoryFixture(t, engine.Options{}, chainSpec("works", channelsHeavy, "grow", "work", "last"), outer)
				var started []*runtime.Started
				for i := range 8 {
					started = append(started, w.beginRun(fmt.Sprint("t", i), "outer"))
				}
				sleepVirtual(time.Minute)
				require.Equal(t, stops, w.evictions.Load() > 0)
				for range started {
					w.proceed <- struct{}{}
				}
				for i, st := range started {
					require.Equal(t, checkpoint.RunSucceeded, w.waitRun(st).State)
					require.Equal(t, 1, w.countAttempts(fmt.Sprint("t", i), "grow"))
					require.Equal(t, 1, w.countAttempts(fmt.Sprint("t", i), "work"))
				}
			})
		})
	}
}

// fillMemory uses memory up until runs wait.
func (f *memoryFixture) fillMemory(n int) {
	f.t.Helper()
	for i := range n {
		f.beginRun(fmt.Sprint("full", i), "works")
		sleepVirtual(time.Second)
	}
	_, waiting := engine.LiveBytes(f.engine)
	require.Positive(f.t, waiting)
}

func TestARunThatWaitsForMemoryCanBeCancelledAndDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryFixture(t, engine.Options{})
		w.fillMemory(6)
		r, err := w.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: "full5"})
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunCancelled, r.State)
		require.NoError(t, w.engine.DeleteThread(t.Context(), "full4", 0, true))
		for range 6 {
			w.proceed <- struct{}{}
		}
		sleepVirtual(time.Minute)
		held, waiting := engine.LiveBytes(w.engine)
		require.Zero(t, held)
		require.Zero(t, waiting)
		require.Zero(t, w.countAttempts("full5", "work"))
	})
}

// TestHeavyRunsAreRefusedWithoutMemory starts a run with a large state, and
// answers one.
func TestHeavyRunsAreRefusedWithoutMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryFixture(t, engine.Options{},
			chainSpec("works", channelsHeavy, "grow", "work", "last"), chainSpec("asks", channelsHeavy, "grow", "ask", "last"))
		require.Equal(t, checkpoint.RunInterrupted, w.fixture.runToStop("asked", "asks", `{}`).State)
		w.fillMemory(6)
		large := runtime.StartRequest{
			Thread: "refused", CreateThread: true, Graph: "works",
			Request: checkpoint.RunRequest{Input: `{"x":"` + payload.JSON(strings.Repeat("y", heavyStateBytes)) + `"}`},
		}
		_, err := w.engine.Start(t.Context(), large)
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonTooManyRuns})
		require.ErrorContains(t, err, "hold")
		_, err = w.store.Head(t.Context(), "refused")
		require.ErrorIs(t, err, checkpoint.ErrThreadNotFound, "nothing is stored")

		large.Thread, large.Concurrency = "queued", runtime.EnqueueBusy
		queued, err := w.engine.Start(t.Context(), large)
		require.NoError(t, err)
		answered, err := w.engine.Resume(t.Context(), runtime.ResumeRequest{Thread: "asked", Single: &runtime.Response{Value: `"yes"`}})
		require.NoError(t, err)
		for _, st := range []*runtime.Started{queued, answered} {
			require.Equal(t, checkpoint.RunQueued, st.Run.State)
		}
		for range 7 {
			w.proceed <- struct{}{}
		}
		for _, st := range []*runtime.Started{queued, answered} {
			require.Equal(t, checkpoint.RunSucceeded, w.waitRun(st).State)
		}
		require.Equal(t, 1, w.countAttempts("queued", "work"))
	})
}

// TestComputedResultsAreDiscardedWithoutMemory has runs whose expressions all grow at
// the same time, before any of them is committed: by themselves, or in the commit
// of the superstep before.
func TestComputedResultsAreDiscardedWithoutMemory(t *testing.T) {
	for name, together := range map[string]int{"by itself": 1, "in the commit before": 64} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const many = 12
				w := newMemoryFixture(t, engine.Options{StepsPerCommit: together}, withExpressions(chainSpec("g", channelsHeavy, "small", "quick", "work", "last")))
				quick, gate, done := w.nodes.funcs["quick"], make(chan struct{}), make(chan struct{})
				w.nodes.funcs["quick"] = func(ctx context.Context, c *nodeCall) pregel.Result {
					r := quick(ctx, c)
					<-gate
					return r
				}
				slow := &blockingStore{Store: w.store, unblocked: done}
				w.engine.Close()
				w.store = slow
				w.startEngine()
				var started []*runtime.Started
				for i := range many {
					started = append(started, w.beginRun(fmt.Sprint("t", i), "g"))
				}
				synctest.Wait() // all of them compute
				slow.isBlocking.Store(true)
				close(gate)
				synctest.Wait()
				held, _ := engine.LiveBytes(w.engine)
				require.LessOrEqual(t, held, int64(maxHeldBytes+heavyStateBytes), "what waits for its commit")
				close(done)
				sleepVirtual(time.Minute)
				held, waiting := engine.LiveBytes(w.engine)
				require.LessOrEqual(t, held, int64(maxHeldBytes))
				require.Positive(t, waiting)
				for range many {
					w.proceed <- struct{}{}
				}
				for i, st := range started {
					require.Equal(t, checkpoint.RunSucceeded, w.waitRun(st).State)
					require.Equal(t, 1, w.countAttempts(fmt.Sprint("t", i), "work"))
					require.LessOrEqual(t, w.countAttempts(fmt.Sprint("t", i), "quick"), 4, "computed again, and not for ever")
				}
			})
		})
	}
}

// blockingStore makes no change with a large checkpoint, while it stops, before it is done.
type blockingStore struct {
	checkpoint.Store

	isBlocking atomic.Bool
	unblocked  chan struct{}
}

func (s *blockingStore) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	size := 0
	for _, cp := range c.Checkpoints {
		for i := range cp.Channels {
			size += len(cp.Channels[i].Value)
		}
	}
	if s.isBlocking.Load() && size > heavyStateBytes {
		<-s.unblocked
	}
	return s.Store.Apply(ctx, c)
}

// TestAnotherServerTakesEvictedRuns has one server with free memory beside one without.
func TestAnotherServerTakesEvictedRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryFixture(t, engine.Options{PollInterval: 100 * time.Millisecond})
		w.fillMemory(6)
		opts := w.opts
		opts.MaxLiveBytes = 100 << 20
		other := engine.New(t.Context(), w.store, w.graphs, w.nodes, nil, opts)
		t.Cleanup(func() { closeEngine(t, other) })
		sleepVirtual(10 * time.Second)
		require.Equal(t, 6, w.countWaiting(), "all of them are in their node")
		for range 6 {
			w.proceed <- struct{}{}
		}
		sleepVirtual(time.Minute)
		for i := range 6 {
			require.Equal(t, 1, w.countAttempts(fmt.Sprint("full", i), "work"))
			require.Equal(t, 1, w.countAttempts(fmt.Sprint("full", i), "last"))
		}
	})
}
