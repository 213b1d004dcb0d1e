package runtime_test

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
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// crowdedWorld is an engine whose live runs may hold 1 MB, with graphs whose runs
// come to hold 300 KB.
type crowdedWorld struct {
	*world

	free   chan struct{}
	putOff atomic.Int64
	told   atomic.Int64

	mu   sync.Mutex
	ran  map[string]int // node attempts, by thread and node
	at   map[string]int // threads in a node that waits
	peak int            // most threads at a time that waited
}

// RunPutOff counts.
func (w *crowdedWorld) RunPutOff(string) { w.putOff.Add(1) }

// LiveBytes takes note.
func (w *crowdedWorld) LiveBytes(n int64) { w.told.Store(n) }

// watching is an observer of two things.
type watching struct {
	runtime.Observer
	*crowdedWorld
}

func (w watching) RunPutOff(name string) { w.crowdedWorld.RunPutOff(name) }
func (w watching) LiveBytes(n int64)     { w.crowdedWorld.LiveBytes(n) }

const (
	heavyState = 300 << 10
	mostHeld   = 1 << 20
)

var channelsHeavy = []graph.ChannelSpec{{Name: "log", Reducer: "append"}, {Name: "n", Reducer: "add"}, {Name: "x"}}

func swollen() pregel.Result {
	return pregel.Result{Update: `{"x":"` + payload.JSON(strings.Repeat("x", heavyState)) + `","n":1}`}
}

func newCrowdedWorld(t *testing.T, opts runtime.Options, specs ...*graph.Spec) *crowdedWorld {
	t.Helper()
	w := &crowdedWorld{free: make(chan struct{}, 1000), ran: map[string]int{}, at: map[string]int{}}
	noted := func(n node) node {
		return func(ctx context.Context, c *call) pregel.Result {
			w.mu.Lock()
			w.ran[c.Thread+" "+c.Node.Name]++
			w.mu.Unlock()
			return n(ctx, c)
		}
	}
	grow := func(context.Context, *call) pregel.Result { return swollen() }
	code := map[string]node{
		"grow": noted(grow), "quick": noted(grow), "fast": noted(grow), "last": noted(func(context.Context, *call) pregel.Result { return wrote(`"last"`) }),
		"small": noted(func(context.Context, *call) pregel.Result { return wrote(`"small"`) }),
		"ask":   func(_ context.Context, c *call) pregel.Result { return wrote(c.ask(`"?"`)) },
		"round": noted(func(ctx context.Context, c *call) pregel.Result {
			if doing(ctx, time.Second) != nil {
				return fail("cut off")
			}
			return pregel.Result{Update: `{"n":1}`}
		}),
		"work": noted(func(ctx context.Context, c *call) pregel.Result {
			w.mu.Lock()
			w.at[c.Thread]++
			w.peak = max(w.peak, len(w.at))
			w.mu.Unlock()
			defer func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				delete(w.at, c.Thread)
			}()
			select {
			case <-w.free:
				return wrote(`"worked"`)
			case <-ctx.Done():
				return fail("cut off")
			}
		}),
	}
	if opts.MaxLiveBytes == 0 {
		opts.MaxLiveBytes = mostHeld
	}
	opts.Observer = watching{runtime.Nobody, w}
	if len(specs) == 0 {
		specs = []*graph.Spec{chain("works", channelsHeavy, "grow", "work", "last"), chain("small", channelsHeavy, "small")}
	}
	w.world = newWorldOn(t, memory.New(memory.Options{}), opts, code, specs...)
	return w
}

func (w *crowdedWorld) begin(thread, name string) runtime.Started {
	w.t.Helper()
	st, err := w.try(thread, name)
	require.NoError(w.t, err)
	return st
}

func (w *crowdedWorld) try(thread, name string) (runtime.Started, error) {
	return w.engine.Start(w.t.Context(), runtime.StartRequest{Thread: thread, CreateThread: true, Graph: name, Request: input("in")})
}

// standing is how many threads wait in their node.
func (w *crowdedWorld) standing() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.at)
}

// most is how many stood there at a time.
func (w *crowdedWorld) most() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.peak
}

func (w *crowdedWorld) attempts(thread, node string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ran[thread+" "+node]
}

// endless is a graph that grows and then goes round and round.
func endless(name string) *graph.Spec {
	s := chain(name, channelsHeavy, "grow", "round")
	s.Edges = []graph.EdgeSpec{edge(graph.Start, "grow"), edge("grow", "round"), edge("round", "round")}
	return s
}

// TestLiveRunsHoldNoMoreThanTheyMay has many runs that grow and then wait for
// their node: some wait for room instead, and all of them end as if they had been
// alone.
func TestLiveRunsHoldNoMoreThanTheyMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 20
		w := newCrowdedWorld(t, runtime.Options{})
		var started []runtime.Started
		for i := range many {
			started = append(started, w.begin(fmt.Sprint("t", i), "works"))
		}
		f := w.engine.Follow(runtime.FollowRequest{Thread: "t19"})
		defer f.Close()
		rest(time.Minute)
		held, waiting := runtime.LiveBytes(w.engine)
		require.LessOrEqual(t, held, int64(mostHeld))
		require.Equal(t, held, w.told.Load())
		require.Equal(t, int64(waiting), w.putOff.Load())
		require.GreaterOrEqual(t, waiting, many-mostHeld/heavyState)

		require.Equal(t, checkpoint.RunSucceeded, w.run("bystander", "small", `{}`).State, "what holds little passes")
		for range many {
			w.free <- struct{}{}
		}
		for i, st := range started {
			require.Equal(t, checkpoint.RunSucceeded, w.wait(st).State)
			for _, n := range []string{"grow", "work", "last"} {
				require.Equal(t, 1, w.attempts(fmt.Sprint("t", i), n), "nothing runs twice")
			}
		}
		require.LessOrEqual(t, w.most(), mostHeld/heavyState)
		require.Equal(t, []string{"run running", "run succeeded"}, w.transcript("t19", checkpoint.EventRunState), "those who follow see a pause")
		var seen uint64
		for seen < uint64(len(w.transcript("t19"))) {
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
		w := newCrowdedWorld(t, runtime.Options{MaxLiveBytes: heavyState / 2})
		st := w.begin("t", "works")
		w.free <- struct{}{}
		require.Equal(t, checkpoint.RunSucceeded, w.wait(st).State)
		require.Zero(t, w.putOff.Load())
	})
}

// TestRunsThatNeverEndTakeTurns has more of them than there is room for.
func TestRunsThatNeverEndTakeTurns(t *testing.T) {
	for name, most := range map[string]int64{"room for three": mostHeld, "room for one": heavyState + heavyState/4, "room for none": 1000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const many = 6
				w := newCrowdedWorld(t, runtime.Options{MaxLiveBytes: most}, endless("g"))
				for i := range many {
					w.begin(fmt.Sprint("t", i), "g")
					rest(time.Minute)
				}
				before := make([]int, many)
				for i := range many {
					before[i] = w.attempts(fmt.Sprint("t", i), "round")
				}
				rest(2 * time.Minute)
				for i := range many {
					require.Greater(t, w.attempts(fmt.Sprint("t", i), "round"), before[i], "run %d", i)
				}
				require.Positive(t, w.putOff.Load())
			})
		})
	}
}

// TestARunThatStandsStillKeepsNobodyFromGoingOn has runs that hold half of the
// room in a node that does not end, one that goes round, and one that will never
// find room beside those.
func TestARunThatStandsStillKeepsNobodyFromGoingOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		double := chain("double", channelsHeavy, "grow", "round")
		double.Channels = append(double.Channels, graph.ChannelSpec{Name: "y"})
		w := newCrowdedWorld(t, runtime.Options{MaxLiveBytes: 800 << 10},
			chain("works", channelsHeavy, "grow", "work", "last"), endless("g"), double)
		w.nodes.code["grow"] = func(_ context.Context, c *call) pregel.Result {
			r := swollen()
			if c.Graph.Name == "double" {
				r.Update = r.Update[:len(r.Update)-1] + `,"y":"` + payload.JSON(strings.Repeat("y", heavyState)) + `"}`
			}
			return r
		}
		w.begin("stands", "works")
		rest(time.Second)
		big := w.begin("big", "double")
		rest(time.Second)
		w.begin("turns", "g")
		rest(10 * time.Minute)
		before := w.attempts("turns", "round")
		rest(2 * time.Minute)
		require.Greater(t, w.attempts("turns", "round"), before+20)
		w.free <- struct{}{}
		require.Equal(t, checkpoint.RunSucceeded, w.wait(big).State)
	})
}

// TestRunsWithValuesThatAreNotStoredStay has runs that would lose something.
func TestRunsWithValuesThatAreNotStoredStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec := chain("g", append([]graph.ChannelSpec{{Name: "u", Reducer: "untracked"}}, channelsHeavy...), "grow", "work", "last")
		w := newCrowdedWorld(t, runtime.Options{}, spec)
		var started []runtime.Started
		for i := range 8 {
			started = append(started, w.begin(fmt.Sprint("t", i), "g"))
		}
		rest(time.Minute)
		require.Zero(t, w.putOff.Load())
		for range started {
			w.free <- struct{}{}
		}
		for _, st := range started {
			require.Equal(t, checkpoint.RunSucceeded, w.wait(st).State)
		}
	})
}

// TestSubgraphsMakeRoomToo has runs whose subgraphs hold too much.
func TestSubgraphsMakeRoomToo(t *testing.T) {
	for persistence, stops := range map[string]bool{"inherit": true, "disabled": false} {
		t.Run(persistence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				outer := &graph.Spec{
					Name: "outer", Channels: channelsHeavy,
					Nodes: []graph.NodeSpec{{Name: "sub", Graph: &graph.SubgraphSpec{Name: "works", Persistence: persistence}}},
					Edges: []graph.EdgeSpec{edge(graph.Start, "sub"), edge("sub", graph.End)},
				}
				w := newCrowdedWorld(t, runtime.Options{}, chain("works", channelsHeavy, "grow", "work", "last"), outer)
				var started []runtime.Started
				for i := range 8 {
					started = append(started, w.begin(fmt.Sprint("t", i), "outer"))
				}
				rest(time.Minute)
				require.Equal(t, stops, w.putOff.Load() > 0)
				for range started {
					w.free <- struct{}{}
				}
				for i, st := range started {
					require.Equal(t, checkpoint.RunSucceeded, w.wait(st).State)
					require.Equal(t, 1, w.attempts(fmt.Sprint("t", i), "grow"))
					require.Equal(t, 1, w.attempts(fmt.Sprint("t", i), "work"))
				}
			})
		})
	}
}

// crowdOut fills the room, until runs wait.
func (w *crowdedWorld) crowdOut(n int) {
	w.t.Helper()
	for i := range n {
		w.begin(fmt.Sprint("full", i), "works")
		rest(time.Second)
	}
	_, waiting := runtime.LiveBytes(w.engine)
	require.Positive(w.t, waiting)
}

func TestARunThatWaitsForRoomCanBeCancelledAndDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCrowdedWorld(t, runtime.Options{})
		w.crowdOut(6)
		r, err := w.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: "full5"})
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunCancelled, r.State)
		require.NoError(t, w.engine.DeleteThread(t.Context(), "full4", 0, true))
		for range 6 {
			w.free <- struct{}{}
		}
		rest(time.Minute)
		held, waiting := runtime.LiveBytes(w.engine)
		require.Zero(t, held)
		require.Zero(t, waiting)
		require.Zero(t, w.attempts("full5", "work"))
	})
}

// TestHeavyRunsAreRefusedWhereThereIsNoRoom starts a run with a large state, and
// answers one.
func TestHeavyRunsAreRefusedWhereThereIsNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCrowdedWorld(t, runtime.Options{},
			chain("works", channelsHeavy, "grow", "work", "last"), chain("asks", channelsHeavy, "grow", "ask", "last"))
		require.Equal(t, checkpoint.RunInterrupted, w.world.run("asked", "asks", `{}`).State)
		w.crowdOut(6)
		large := runtime.StartRequest{
			Thread: "refused", CreateThread: true, Graph: "works",
			Request: checkpoint.RunRequest{Input: `{"x":"` + payload.JSON(strings.Repeat("y", heavyState)) + `"}`},
		}
		_, err := w.engine.Start(t.Context(), large)
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonTooManyRuns})
		require.ErrorContains(t, err, "hold")
		_, err = w.store.Head(t.Context(), "refused")
		require.ErrorIs(t, err, checkpoint.ErrThreadNotFound, "nothing is stored")

		large.Thread, large.Concurrency = "queued", runtime.Enqueue
		queued, err := w.engine.Start(t.Context(), large)
		require.NoError(t, err)
		answered, err := w.engine.Resume(t.Context(), runtime.ResumeRequest{Thread: "asked", Single: &runtime.Response{Value: `"yes"`}})
		require.NoError(t, err)
		for _, st := range []runtime.Started{queued, answered} {
			require.Equal(t, checkpoint.RunQueued, st.Run.State)
		}
		for range 7 {
			w.free <- struct{}{}
		}
		for _, st := range []runtime.Started{queued, answered} {
			require.Equal(t, checkpoint.RunSucceeded, w.wait(st).State)
		}
		require.Equal(t, 1, w.attempts("queued", "work"))
	})
}

// TestWhatIsComputedIsGivenUpForWantOfRoom has runs whose expressions all grow at
// the same time, before any of them is committed: by themselves, or in the commit
// of the superstep before.
func TestWhatIsComputedIsGivenUpForWantOfRoom(t *testing.T) {
	for name, together := range map[string]int{"by itself": 1, "in the commit before": 64} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const many = 12
				w := newCrowdedWorld(t, runtime.Options{Together: together}, computed(chain("g", channelsHeavy, "small", "quick", "work", "last")))
				quick, gate, done := w.nodes.code["quick"], make(chan struct{}), make(chan struct{})
				w.nodes.code["quick"] = func(ctx context.Context, c *call) pregel.Result {
					r := quick(ctx, c)
					<-gate
					return r
				}
				slow := &slowStore{Store: w.store, done: done}
				w.engine.Close()
				w.store = slow
				w.start()
				var started []runtime.Started
				for i := range many {
					started = append(started, w.begin(fmt.Sprint("t", i), "g"))
				}
				synctest.Wait() // all of them compute
				slow.stops.Store(true)
				close(gate)
				synctest.Wait()
				held, _ := runtime.LiveBytes(w.engine)
				require.LessOrEqual(t, held, int64(mostHeld+heavyState), "what waits for its commit")
				close(done)
				rest(time.Minute)
				held, waiting := runtime.LiveBytes(w.engine)
				require.LessOrEqual(t, held, int64(mostHeld))
				require.Positive(t, waiting)
				for range many {
					w.free <- struct{}{}
				}
				for i, st := range started {
					require.Equal(t, checkpoint.RunSucceeded, w.wait(st).State)
					require.Equal(t, 1, w.attempts(fmt.Sprint("t", i), "work"))
					require.LessOrEqual(t, w.attempts(fmt.Sprint("t", i), "quick"), 4, "computed again, and not for ever")
				}
			})
		})
	}
}

// slowStore makes no change with a large checkpoint, while it stops, before it is done.
type slowStore struct {
	checkpoint.Store

	stops atomic.Bool
	done  chan struct{}
}

func (s *slowStore) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	size := 0
	for _, cp := range c.Checkpoints {
		for i := range cp.Channels {
			size += len(cp.Channels[i].Value)
		}
	}
	if s.stops.Load() && size > heavyState {
		<-s.done
	}
	return s.Store.Apply(ctx, c)
}

// TestAnotherServerTakesWhatIsPutOff has one server with room beside one without.
func TestAnotherServerTakesWhatIsPutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCrowdedWorld(t, runtime.Options{Poll: 100 * time.Millisecond})
		w.crowdOut(6)
		opts := w.opts
		opts.MaxLiveBytes = 100 << 20
		other := runtime.New(t.Context(), w.store, w.graphs, w.nodes, nil, opts)
		t.Cleanup(func() { closeEngine(t, other) })
		rest(10 * time.Second)
		require.Equal(t, 6, w.standing(), "all of them are in their node")
		for range 6 {
			w.free <- struct{}{}
		}
		rest(time.Minute)
		for i := range 6 {
			require.Equal(t, 1, w.attempts(fmt.Sprint("full", i), "work"))
			require.Equal(t, 1, w.attempts(fmt.Sprint("full", i), "last"))
		}
	})
}
