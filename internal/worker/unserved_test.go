package worker_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// countingStore counts how often a server asks its store, and what it changes.
type countingStore struct {
	checkpoint.Store

	readCount, changeCount atomic.Int64
}

func (s *countingStore) Due(ctx context.Context, limit int) ([]string, time.Time, error) {
	s.readCount.Add(1)
	return s.Store.Due(ctx, limit)
}

func (s *countingStore) Head(ctx context.Context, thread string) (checkpoint.Head, error) {
	s.readCount.Add(1)
	return s.Store.Head(ctx, thread)
}

func (s *countingStore) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	s.changeCount.Add(1)
	return s.Store.Apply(ctx, c)
}

// compileGraphAs makes a graph of nodes in a line, as compile does, under a name.
func (c *testCluster) compileGraphAs(name string, change func(*graph.Spec), steps ...[]string) {
	c.t.Helper()
	old := c.graphs["g"]
	c.compileGraph(steps...)
	spec := c.graphs["g"].Spec
	c.graphs["g"] = old
	spec.Name = name
	if change != nil {
		change(spec)
	}
	g, err := graph.Compile(spec, graph.Env{})
	require.NoError(c.t, err)
	c.graphs[name] = g
}

// startSmallServer starts a server with two slots on a store of its own, which counts
// its calls, and returns both.
func (c *testCluster) startSmallServer() (*testServer, *countingStore) {
	store := &countingStore{Store: c.Store}
	return c.startServerWith("A", store, c, engine.Options{MaxLiveRuns: 2}), store
}

// startRunOf begins a run, when there is a slot for it.
func (s *testServer) startRunOf(name, thread string) checkpoint.Run {
	s.cluster.t.Helper()
	synctest.Wait()
	started, err := s.Start(s.cluster.t.Context(), runtime.StartRequest{
		Thread: thread, CreateThread: true, Graph: name, Request: checkpoint.RunRequest{Input: `{"log":[]}`},
	})
	require.NoError(s.cluster.t, err)
	return started.Run
}

// startUnservedRuns begins runs of graph "old", each of which waits for a worker.
func (s *testServer) startUnservedRuns(n int) []checkpoint.Run {
	runs := make([]checkpoint.Run, n)
	for i := range runs {
		runs[i] = s.startRunOf("old", fmt.Sprint("old", i))
	}
	synctest.Wait()
	return runs
}

// countUnassigned counts how often the log of a thread says that no worker serves a task.
func (c *testCluster) countUnassigned(thread string) int {
	c.t.Helper()
	events, err := c.Events(c.t.Context(), thread, 0, 0)
	require.NoError(c.t, err)
	n := 0
	for i := range events {
		if events[i].Phase == checkpoint.PhaseUnassigned {
			n++
		}
	}
	return n
}

func (c *testCluster) compileTwoGraphs() {
	c.compileGraphAs("old", nil, []string{"B", "a"}, []string{"c"})
	c.compileGraphAs("new", nil, []string{"n"})
}

func TestUnservedRunsDontKeepTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.compileTwoGraphs()
		a, _ := w.startSmallServer()
		a.attachWorkerOf("w", "new", "")
		old := a.startUnservedRuns(5)
		f := a.Follow(runtime.FollowRequest{Thread: "old3"})
		defer f.Close()
		var last uint64
		for i := range 20 {
			a.waitForRun(a.startRunOf("new", fmt.Sprint("new", i)), checkpoint.RunSucceeded)
			sleepVirtual(10 * time.Second)
		}
		for _, run := range old {
			r, err := a.Run(t.Context(), nil, run.Thread, run.ID)
			require.NoError(t, err)
			require.Equal(t, checkpoint.RunRunning, r.State)
			require.Equal(t, 1, w.countUnassigned(run.Thread), "it is said once")
		}
		unserved, busy := a.hub.WaitingTasks()
		require.Equal(t, []int{5, 0}, []int{unserved, busy}, "the metric knows all that wait")

		a.attachWorkerOf("w old", "old", "")
		began := time.Now()
		for _, run := range old {
			r := a.waitForRun(run, checkpoint.RunSucceeded)
			require.JSONEq(t, `{"log":["B","a","c"]}`, string(r.Output))
			require.Equal(t, 1, w.countUnassigned(run.Thread))
			if run.Thread == "old3" {
				last = r.LastEvent
			}
		}
		require.Less(t, time.Since(began), time.Second, "the worker wakes them")
		count := map[string]int{}
		for _, name := range w.listExecutions() {
			count[name]++
		}
		require.Equal(t, map[string]int{"B@A": 5, "a@A": 5, "c@A": 5, "n@A": 20}, count, "nothing is done again")
		for seen := uint64(0); seen < last; {
			events, err := f.Next(t.Context())
			require.NoError(t, err)
			for i := range events {
				if !events[i].Ephemeral {
					require.Equal(t, seen+1, events[i].Seq)
					seen = events[i].Seq
				}
			}
		}
		unserved, _ = a.hub.WaitingTasks()
		require.Zero(t, unserved)
	})
}

// With one slot, every run that waits releases it.
func TestOnePlaceIsEnoughBesideRunsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.compileTwoGraphs()
		a := w.startServerWith("A", w.Store, w, engine.Options{MaxLiveRuns: 1})
		a.attachWorkerOf("w", "new", "")
		old := a.startUnservedRuns(3)
		for i := range 10 {
			a.waitForRun(a.startRunOf("new", fmt.Sprint("new", i)), checkpoint.RunSucceeded)
		}
		for range 3 { // workers that come and go take no run's turn
			leave := a.attachWorkerOf("w old", "old", "nothing")
			sleepVirtual(time.Second)
			leave()
		}
		a.attachWorkerOf("w old", "old", "")
		for _, run := range old {
			a.waitForRun(run, checkpoint.RunSucceeded)
		}
	})
}

// The pauses grow: runs that wait cost next to nothing.
func TestRunsThatWaitForWorkersCostTheStoreLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.compileTwoGraphs()
		a, store := w.startSmallServer()
		a.startUnservedRuns(50)
		sleepVirtual(5 * time.Minute)
		reads, changes := store.readCount.Load(), store.changeCount.Load()
		sleepVirtual(10 * time.Minute)
		sweeps := int64(10 * 60)
		looks := int64(50 * 10)        // one a minute
		renewals := int64(10 * 60 / 5) // of the run that keeps its slot
		require.LessOrEqual(t, store.changeCount.Load()-changes, looks+renewals+50)
		require.LessOrEqual(t, store.readCount.Load()-reads, 2*sweeps+looks+200)
		require.Equal(t, 1, w.countUnassigned("old7"))
	})
}

// Where slots are plenty nothing changes.
func TestRunsThatWaitKeepTheirPlacesWhileThereAreOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.compileTwoGraphs()
		a := w.startServerWith("A", w.Store, w, engine.Options{MaxLiveRuns: 10})
		old := a.startUnservedRuns(9)
		for _, run := range old[1:] {
			require.EqualValues(t, 1, w.readHead(run.Thread).Fence)
			require.NotEmpty(t, w.readHead(run.Thread).Owner)
		}
		a.attachWorkerOf("w old", "old", "")
		for _, run := range old {
			a.waitForRun(run, checkpoint.RunSucceeded)
		}
	})
}

// A run that has released its slot goes on at the server to which its worker comes,
// whichever knows of it.
func TestARunThatGaveItsPlaceUpGoesToItsWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.compileTwoGraphs()
		a := w.startServerWith("A", w.sharedStore, w, engine.Options{MaxLiveRuns: 1})
		b := w.startServerWith("B", w.sharedStore, w, engine.Options{MaxLiveRuns: 1})
		a.attachWorkerOf("wa", "new", "")
		old := a.startUnservedRuns(4)
		for i := range 5 {
			a.waitForRun(a.startRunOf("new", fmt.Sprint("new", i)), checkpoint.RunSucceeded)
			sleepVirtual(20 * time.Second)
		}
		for _, run := range old {
			require.LessOrEqual(t, w.countUnassigned(run.Thread), 2, "once at each server")
		}
		b.attachWorkerOf("wb", "old", "")
		began := time.Now()
		for _, run := range old {
			b.waitForRun(run, checkpoint.RunSucceeded)
		}
		require.Less(t, time.Since(began), 2*time.Minute, "a server that does not know of them has found them")
	})
}

// What a client wants of such a run happens: it is cancelled, it runs out of time, its
// other interrupt expires.
func TestARunThatGaveItsPlaceUpIsStillControlled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.compileTwoGraphs()
		w.compileGraphAs("asks", nil, []string{"Q", "a"})
		w.nodeCode["Q"] = func(_ context.Context, _ *testServer, task *runtime.Task, _ string) pregel.Result {
			if len(task.Journal.Answers) > 0 {
				return pregel.Result{Update: payload.JSON(`{"log":[` + string(task.Journal.Answers[0].Value) + `]}`)}
			}
			return pregel.Result{Asks: []pregel.Ask{{
				Value: `"?"`, TTL: 90 * time.Second, Expiry: checkpoint.ExpiryResumeDefault, Default: `"default"`,
			}}}
		}
		a := w.startServerWith("A", w.Store, w, engine.Options{MaxLiveRuns: 1})
		a.attachWorkerOf("w", "new", "")
		asks := a.startRunOf("asks", "asks")
		synctest.Wait()
		timed, err := a.Start(t.Context(), runtime.StartRequest{
			Thread: "timed", CreateThread: true, Graph: "old",
			Request: checkpoint.RunRequest{Input: `{"log":[]}`, Timeout: 45 * time.Second},
		})
		require.NoError(t, err)
		old := a.startUnservedRuns(2)
		sleepVirtual(10 * time.Second)
		require.Empty(t, w.readHead("timed").Owner)
		require.Empty(t, w.readHead("asks").Owner)
		r, err := a.Cancel(t.Context(), runtime.CancelRequest{Thread: old[0].Thread})
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunCancelled, r.State)
		unserved, _ := a.hub.WaitingTasks()
		require.Equal(t, 3, unserved, "what is cancelled does not wait")
		began := time.Now()
		a.waitForRun(timed.Run, checkpoint.RunTimedOut)
		require.LessOrEqual(t, time.Since(began), 40*time.Second)
		sleepVirtual(90 * time.Second)
		questions, err := w.Interrupts(t.Context(), checkpoint.InterruptQuery{Thread: "asks"})
		require.NoError(t, err)
		require.Equal(t, checkpoint.InterruptExpired, questions[0].State)
		a.attachWorkerOf("w old", "old", "")
		a.attachWorkerOf("w asks", "asks", "")
		a.waitForRun(old[1], checkpoint.RunSucceeded)
		require.JSONEq(t, `{"log":["default","a"]}`, string(a.waitForRun(asks, checkpoint.RunSucceeded).Output))
	})
}

// The server stops while runs wait; the next one finds them.
func TestRunsThatGaveTheirPlacesUpOutliveTheirServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.compileTwoGraphs()
		a, _ := w.startSmallServer()
		old := a.startUnservedRuns(5)
		sleepVirtual(10 * time.Minute)
		a.hub.Close()
		a.Close()
		b := w.startServerWith("B", w.Store, w, engine.Options{MaxLiveRuns: 2})
		b.attachWorkerOf("w old", "old", "")
		began := time.Now()
		for _, run := range old {
			b.waitForRun(run, checkpoint.RunSucceeded)
		}
		require.LessOrEqual(t, time.Since(began), time.Minute+5*time.Second)
	})
}

// Runs that would lose something keep their slots: the time of a node, values that
// are not stored, a graph that keeps no checkpoints.
func TestRunsThatWouldLoseSomethingKeepTheirPlaces(t *testing.T) {
	for name, change := range map[string]func(*graph.Spec){
		"timeout":      func(s *graph.Spec) { s.Nodes[1].Policy.Timeout = time.Hour },
		"idle timeout": func(s *graph.Spec) { s.Nodes[1].Policy.IdleTimeout = time.Hour },
		"step timeout": func(s *graph.Spec) { s.StepTimeout = time.Hour },
		"untracked": func(s *graph.Spec) {
			s.Channels = append(s.Channels, graph.ChannelSpec{Name: "u", Reducer: "untracked"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestCluster(t)
				w.compileGraphAs("old", change, []string{"B", "a"}, []string{"c"})
				a := w.startServerWith("A", w.Store, w, engine.Options{MaxLiveRuns: 1})
				run := a.startRunOf("old", "t")
				sleepVirtual(time.Minute)
				require.EqualValues(t, 1, w.readHead("t").Fence)
				require.NotEmpty(t, w.readHead("t").Owner)
				a.attachWorkerOf("w", "old", "")
				a.waitForRun(run, checkpoint.RunSucceeded)
			})
		})
	}
}
