package worker_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/faulty"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/worker/message"
)

// A run that begins at one server is driven by the one that has its worker.
func TestARunGoesToWhereItsWorkersAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.compileGraph([]string{"a"}, []string{"b"})
		a, b := w.startServer("A"), w.startServer("B")
		a.attachWorker("w", "")
		synctest.Wait()
		began := time.Now()
		r := b.waitForRun(b.startRun("t"), checkpoint.RunSucceeded)
		require.Less(t, time.Since(began), time.Second, "no worker waits for a sweep")
		require.JSONEq(t, `{"log":["a","b"]}`, string(r.Output))
		require.Equal(t, []string{"a@A", "b@A"}, w.listExecutions())
		require.EqualValues(t, 1, w.readHead("t").Fence, "it never began where it could not")
	})
}

// A run that no server could go on with moves when a worker attaches anywhere.
func TestARunWaitsForAWorkerAnywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.compileGraph([]string{"a"}, []string{"b"})
		a, b := w.startServer("A"), w.startServer("B")
		run := b.startRun("t")
		sleepVirtual(time.Minute)
		a.attachWorker("w", "")
		began := time.Now()
		b.waitForRun(run, checkpoint.RunSucceeded)
		require.Less(t, time.Since(began), time.Second)
		events, err := w.Events(t.Context(), "t", 0, 0)
		require.NoError(t, err)
		unassigned := 0
		for _, e := range events {
			if e.Phase == checkpoint.PhaseUnassigned {
				unassigned++
			}
		}
		require.Equal(t, 1, unassigned)
	})
}

// Should a server miss the signal that a run is handed to it, it finds out by itself.
func TestAHandOffNeedsNoSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.losesWakes = true
		w.compileGraph([]string{"a"})
		a, b := w.startServer("A"), w.startServer("B")
		a.attachWorker("w", "")
		synctest.Wait()
		began := time.Now()
		b.waitForRun(b.startRun("t"), checkpoint.RunSucceeded)
		require.LessOrEqual(t, time.Since(began), 3*time.Second)
		require.Equal(t, []string{"a@A"}, w.listExecutions())
	})
}

// The workers for one superstep are at two servers, with a function beside them.
func TestASuperstepEndsThoughItsWorkersAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.compileGraph([]string{"a", "b", "C"}, []string{"c"}, []string{"d"})
		slow := func(ctx context.Context, _ *testServer, t *runtime.Task, _ string) pregel.Result {
			timer := time.NewTimer(time.Minute)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
			return pregel.Result{Update: payload.JSON(`{"log":["` + t.Node.Name + `"]}`)}
		}
		w.nodeCode["C"], w.nodeCode["b"] = slow, slow
		a, b := w.startServer("A"), w.startServer("B")
		a.attachWorker("wa", "a", "c")
		b.attachWorker("wb", "b", "d")
		synctest.Wait()
		began := time.Now()
		r := a.waitForRun(b.startRun("t"), checkpoint.RunSucceeded)
		require.JSONEq(t, `{"log":["C","a","b","c","d"]}`, string(r.Output))
		require.Less(t, time.Since(began), time.Minute+time.Second)
		took := w.listExecutions()
		require.ElementsMatch(t, []string{"b@B", "C@B"}, took[:2], "what runs is not cut off")
		require.Equal(t, []string{"a@A", "c@A", "d@B"}, took[2:])
	})
}

// A worker goes from one server to the other in the middle of a run.
func TestARunFollowsItsWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.compileGraph([]string{"a"}, []string{"b"}, []string{"c"})
		a, b := w.startServer("A"), w.startServer("B")
		leave := a.attachWorker("w", "")
		w.nodeCode["b"] = func(ctx context.Context, s *testServer, _ *runtime.Task, _ string) pregel.Result {
			if s == a {
				<-ctx.Done()
			}
			return pregel.Result{Update: `{"log":["b"]}`}
		}
		run := a.startRun("t")
		synctest.Wait()
		leave()
		b.attachWorker("w", "")
		r := a.waitForRun(run, checkpoint.RunSucceeded)
		require.JSONEq(t, `{"log":["a","b","c"]}`, string(r.Output))
		require.Equal(t, []string{"a@A", "b@A", "b@B", "c@B"}, w.listExecutions())
	})
}

// A worker that is never anywhere for long does not chase runs around.
func TestARunDoesNotChaseARestlessWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.compileGraph([]string{"a"})
		a, b := w.startServer("A"), w.startServer("B")
		restless := true
		w.nodeCode["a"] = func(ctx context.Context, _ *testServer, _ *runtime.Task, _ string) pregel.Result {
			if restless {
				<-ctx.Done()
			}
			return pregel.Result{Update: `{"log":["a"]}`}
		}
		run := a.startRun("t")
		began := time.Now()
		for n := 0; time.Since(began) < 10*time.Minute; n++ {
			at := a
			if n%2 == 0 {
				at = b
			}
			leave := at.attachWorker("w", "")
			sleepVirtual(10*time.Millisecond + time.Since(began)/300) // a run stays ever longer, and needs fewer stays
			leave()
		}
		moves := w.readHead("t").Fence
		require.Less(t, moves, uint64(60))
		restless = false
		a.attachWorker("w", "")
		began = time.Now()
		b.waitForRun(run, checkpoint.RunSucceeded)
		require.LessOrEqual(t, time.Since(began), 2*time.Minute)
	})
}

// A server to which a run was left dies before it takes it.
func TestARunIsNotLeftToADeadServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.compileGraph([]string{"a"})
		b := w.startServer("B")
		ghost := w.Register("ghost", func() {})
		ghost.SetCapabilities([]checkpoint.Capability{{Graph: "g"}})
		run := b.startRun("t")
		require.Equal(t, "ghost", w.readHead("t").PreferredOwner)
		b.attachWorker("w", "")
		began := time.Now()
		b.waitForRun(run, checkpoint.RunSucceeded)
		require.LessOrEqual(t, time.Since(began), 17*time.Second, "a lease and a sweep")
		run = b.startRun("t")
		b.waitForRun(run, checkpoint.RunSucceeded)

		c := w.startServer("C")
		began = time.Now()
		run = c.startRun("u")
		sleepVirtual(time.Minute)
		require.LessOrEqual(t, w.readHead("u").Fence, uint64(5))
		require.NotZero(t, w.readHead("u").Fence, "after a lease others try")
		c.attachWorker("w2", "")
		c.waitForRun(run, checkpoint.RunSucceeded)
		require.LessOrEqual(t, time.Since(began), 2*time.Minute)
	})
}

// A worker leaves when its node has returned, and before it has said where the
// run goes from there: the next worker says so, and the node does not run again.
func TestTheResultOfANodeIsHandedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		g, err := graph.Compile(&graph.Spec{
			Name: "g", Version: "1", Channels: []graph.ChannelSpec{{Name: "log", Reducer: "append"}},
			Nodes: []graph.NodeSpec{
				{Name: "a", Remote: &graph.RemoteSpec{}}, {Name: "b", Remote: &graph.RemoteSpec{}}, {Name: "c", Remote: &graph.RemoteSpec{}},
			},
			Edges:    []graph.EdgeSpec{{From: []string{graph.Start}, To: "a"}, {From: []string{"b"}, To: graph.End}, {From: []string{"c"}, To: graph.End}},
			Branches: []graph.BranchSpec{{From: "a", Router: "where", InWorker: true}},
		}, graph.Env{})
		require.NoError(t, err)
		w.graphs["g"] = g
		a, b := w.startServer("A"), w.startServer("B")
		w.nodeCode["a"] = func(ctx context.Context, s *testServer, t *runtime.Task, _ string) pregel.Result {
			switch {
			case t.Router == "":
				return pregel.Result{
					Update: `{"log":[9007199254740993]}`, Writes: []checkpoint.Write{{Channel: "log", Value: `[ "w" ]`}},
					Goto: []checkpoint.Send{{Node: "c"}},
				}
			case s == a:
				<-ctx.Done()
			}
			log, _ := t.State.Lookup("log")
			if log != `[9007199254740993,"w"]` {
				return pregel.Result{Failure: &pregel.Failure{Failure: checkpoint.Failure{Message: "the router sees " + string(log)}}}
			}
			return pregel.Result{Goto: []checkpoint.Send{{Node: "b"}}}
		}
		leave := a.attachWorker("w", "")
		run := b.startRun("t")
		synctest.Wait()
		leave()
		b.attachWorker("w", "")
		r := a.waitForRun(run, checkpoint.RunSucceeded)
		require.Contains(t, string(r.Output), `[9007199254740993,"w","b","c"]`)
		require.Equal(t, []string{"a@A", "a@A", "a@B"}, w.listExecutions()[:3], "the node, its router, its router again")
	})
}

// What has been answered at one server goes on where the worker is.
func TestAnswersGoToWhereWorkersAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.compileGraph([]string{"a"}, []string{"b"})
		a, b := w.startServer("A"), w.startServer("B")
		a.attachWorker("w", "")
		w.nodeCode["a"] = func(_ context.Context, _ *testServer, t *runtime.Task, _ string) pregel.Result {
			if len(t.Journal.Answers) == 0 {
				return pregel.Result{Asks: []pregel.Ask{{Value: `"ok?"`}}}
			}
			return pregel.Result{Update: `{"log":[` + t.Journal.Answers[0].Value + `]}`}
		}
		synctest.Wait()
		run := b.waitForRun(b.startRun("t"), checkpoint.RunInterrupted)
		resumed, err := b.Resume(t.Context(), runtime.ResumeRequest{Thread: "t", Single: &runtime.Response{Value: `"yes"`}})
		require.NoError(t, err)
		require.Equal(t, run.ID, resumed.Run.ID)
		began := time.Now()
		r := b.waitForRun(run, checkpoint.RunSucceeded)
		require.Less(t, time.Since(began), time.Second)
		require.JSONEq(t, `{"log":["yes","b"]}`, string(r.Output))
		require.EqualValues(t, 2, w.readHead("t").Fence)
	})
}

// A run that is on its way to another server can be cancelled.
func TestARunOnItsWayCanBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.compileGraph([]string{"a"})
		b := w.startServer("B")
		w.Register("ghost", func() {}).SetCapabilities([]checkpoint.Capability{{Graph: "g"}})
		run := b.startRun("t")
		r, err := b.Cancel(t.Context(), runtime.CancelRequest{Thread: "t", Run: run.ID})
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunCancelled, r.State)
	})
}

// A node calls a graph whose node has its worker at another server only. The run
// can't be at both: it waits until one server has the workers for both.
func TestACallerAndWhatItCallsNeedOneServer(t *testing.T) {
	for _, where := range []string{"A", "C"} {
		t.Run("at "+where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestCluster(t)
				w.compileGraph([]string{"inner", "beside"})
				w.graphs["sub"] = w.graphs["g"]
				w.graphs["sub"].Name = "sub"
				w.compileGraph([]string{"a"}, []string{"b"})
				w.nodeCode["a"] = func(ctx context.Context, s *testServer, t *runtime.Task, token string) pregel.Result {
					r, err := s.hub.CallGraph(ctx, token, runtime.GraphCall{Graph: "sub", Input: `{"log":[]}`})
					if err != nil || r.Failure != nil {
						return pregel.Result{Failure: &pregel.Failure{Failure: checkpoint.Failure{Message: "call"}}}
					}
					return pregel.Result{Update: r.Output}
				}
				servers := map[string]*testServer{"A": w.startServer("A"), "B": w.startServer("B"), "C": w.startServer("C")}
				servers["A"].attachWorker("wa", "a", "b")
				servers["B"].attachWorkerOf("wb", "sub", "inner", "beside")
				synctest.Wait()
				run := servers["B"].startRun("t")
				sleepVirtual(time.Minute)
				require.EqualValues(t, 1, w.readHead("t").Fence, "there is nowhere to go")
				events, err := w.Events(t.Context(), "t", 0, 0)
				require.NoError(t, err)
				require.Equal(t, checkpoint.PhaseUnassigned, events[len(events)-1].Phase)
				servers[where].attachWorkerOf("wc", "sub", "")
				if where == "C" {
					servers["C"].attachWorker("wd", "")
				}
				began := time.Now()
				r := servers["B"].waitForRun(run, checkpoint.RunSucceeded)
				require.Less(t, time.Since(began), time.Second)
				require.JSONEq(t, `{"log":["beside","inner","b"]}`, string(r.Output))
			})
		})
	}
}

// A subgraph beside a node, each with its worker at another server, one of them
// with steps that change sides.
func TestARunGoesToTheWorkersOfSubgraphs(t *testing.T) {
	for _, persistence := range []string{"", "persist", "disabled"} {
		kept := persistence != "disabled"
		t.Run("kept: "+persistence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestCluster(t)
				w.compileGraph([]string{"one"}, []string{"two", "beside"}, []string{"three"})
				sub := w.graphs["g"]
				sub.Name = "sub"
				w.graphs["sub"] = sub
				g, err := graph.Compile(&graph.Spec{
					Name: "g", Version: "1", Channels: []graph.ChannelSpec{{Name: "log", Reducer: "append"}},
					Nodes: []graph.NodeSpec{
						{Name: "a", Remote: &graph.RemoteSpec{}},
						{Name: "b", Remote: &graph.RemoteSpec{}},
						{Name: "s", Graph: &graph.SubgraphSpec{Name: "sub", Persistence: persistence}},
					},
					Edges: []graph.EdgeSpec{
						{From: []string{graph.Start}, To: "a"},
						{From: []string{graph.Start}, To: "s"},
						{From: []string{"a", "s"}, To: "b"},
						{From: []string{"b"}, To: graph.End},
					},
				}, graph.Env{Lookup: func(string, string) (*graph.Graph, bool) { return sub, true }})
				require.NoError(t, err)
				w.graphs["g"] = g
				a, b := w.startServer("A"), w.startServer("B")
				a.attachWorker("wa", "a", "b")
				a.attachWorkerOf("wa2", "sub", "two")
				b.attachWorkerOf("wb", "sub", "one", "three", "beside")
				synctest.Wait()
				run := b.startRun("t")
				if !kept { // it would begin anew with each move
					sleepVirtual(time.Minute)
					require.LessOrEqual(t, w.readHead("t").Fence, uint64(3))
					b.attachWorkerOf("wb2", "sub", "two")
				}
				began := time.Now()
				r := a.waitForRun(run, checkpoint.RunSucceeded)
				require.Less(t, time.Since(began), 2*time.Second)
				require.JSONEq(t, `{"log":["a","one","beside","two","three","b"]}`, string(r.Output))
				if kept {
					require.Len(t, w.listExecutions(), 6, "nothing ran twice: %v", w.listExecutions())
				}
				require.LessOrEqual(t, w.readHead("t").Fence, uint64(6))
			})
		})
	}
}

// More tasks than may run at a time wait for a worker elsewhere, and some have
// theirs here.
func TestAWideSuperstepIsHandedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		var far, near, all []string
		for i := range 200 {
			far = append(far, fmt.Sprintf("far%03d", i))
			near = append(near, fmt.Sprintf("near%03d", i))
		}
		w.compileGraph(append(append(all, far...), near...), []string{"Last"})
		a, b := w.startServer("A"), w.startServer("B")
		a.attachWorker("wa", far...)
		b.attachWorker("wb", near...)
		synctest.Wait()
		began := time.Now()
		b.waitForRun(b.startRun("t"), checkpoint.RunSucceeded)
		require.Less(t, time.Since(began), 10*time.Second)
		took := w.listExecutions()
		require.Len(t, took, 401, "nothing ran twice")
		require.LessOrEqual(t, w.readHead("t").Fence, uint64(8))
	})
}

// The connection of a worker breaks in the middle of a node, and it reports to
// another server: the run comes after it, and the node does not run again.
func TestARunComesAfterAWorkerThatHoldsItsTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.compileGraph([]string{"a"}, []string{"b"})
		a, b := w.startServer("A"), w.startServer("B")
		held := make(chan string, 1)
		w.nodeCode["a"] = func(ctx context.Context, _ *testServer, _ *runtime.Task, token string) pregel.Result {
			held <- token
			<-ctx.Done()
			return pregel.Result{}
		}
		leave := a.attachWorker("w", "")
		run := a.startRun("t")
		token := <-held
		leave()
		session, welcome, err := b.hub.OpenSession(message.Hello{
			Worker: "w", Capabilities: []message.Capability{{Graph: "g"}}, HeldLeases: []string{token}, Credit: message.Credit{Total: 1},
		})
		require.NoError(t, err)
		require.Equal(t, []string{token}, welcome.RenewedLeases)
		began := time.Now()
		_, err = b.hub.CompleteTask(t.Context(), message.Completion{Token: token, Result: pregel.Result{Update: `{"log":["held"]}`}})
		require.NoError(t, err)
		require.LessOrEqual(t, time.Since(began), 31*time.Second, "the lease of the task")
		session.Close()
		b.attachWorker("w", "")
		r := a.waitForRun(run, checkpoint.RunSucceeded)
		require.JSONEq(t, `{"log":["held","b"]}`, string(r.Output))
		require.Equal(t, []string{"a@A", "b@B"}, w.listExecutions())
	})
}

// A server that drains ends its supersteps with its own workers; what follows
// goes on where other workers are, not at just any server.
func TestADrainingServerLeavesRunsToWhereWorkersAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.compileGraph([]string{"a", "far"}, []string{"b"})
		a, b := w.startServer("A"), w.startServer("B")
		w.nodeCode["a"] = func(ctx context.Context, _ *testServer, _ *runtime.Task, _ string) pregel.Result {
			timer := time.NewTimer(10 * time.Second)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
			return pregel.Result{Update: `{"log":["a"]}`}
		}
		a.attachWorker("wa", "a", "b")
		run := a.startRun("t")
		sleepVirtual(time.Second)
		b.attachWorker("wb", "")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		a.hub.Drain(time.Minute, "a restart")
		a.Drain(ctx)
		began := time.Now()
		r := b.waitForRun(run, checkpoint.RunSucceeded)
		require.Less(t, time.Since(began), time.Second)
		require.JSONEq(t, `{"log":["a","far","b"]}`, string(r.Output))
		require.Equal(t, []string{"a@A", "far@B", "b@B"}, w.listExecutions(), "what runs is not cut off")
	})
}

// The store fails at each call of a server in turn while runs come and go.
func TestHandOffsSurviveAStoreThatFails(t *testing.T) {
	for _, how := range []faulty.FaultMode{faulty.FailBefore, faulty.FailAfter, faulty.HangForever} {
		for _, length := range []int{1, 12} {
			t.Run(fmt.Sprintf("%d x%d", how, length), func(t *testing.T) {
				at := 0
				for hit := true; hit; {
					at++
					synctest.Test(t, func(t *testing.T) { hit = runWithFaults(t, faulty.Plan{At: at, For: length, Mode: how}) })
					require.Less(t, at, 1000, "the faults never end")
				}
				require.Greater(t, at, 10, "all calls of a few changes were tried")
			})
		}
	}
}

// runWithFaults runs a graph whose workers are at two servers, and reports whether
// the fault came before the end.
func runWithFaults(t *testing.T, plan faulty.Plan) bool {
	t.Helper()
	w := newTestCluster(t)
	w.compileGraph([]string{"a", "b", "L"}, []string{"c"}, []string{"d"})
	store := faulty.New(w.Store, plan)
	a, b := w.startServer("A"), w.startServerOn("B", &serverStore{store, w, w}, w)
	a.attachWorker("wa", "a", "c")
	b.attachWorker("wb", "b", "d")
	var run checkpoint.Run
	for n := 0; run.ID == ""; n++ {
		require.Less(t, n, 100, "the run can't be begun")
		s, err := b.Start(t.Context(), runtime.StartRequest{
			Thread: "t", CreateThread: true, Graph: "g", RequestID: "r", Digest: "r", Request: checkpoint.RunRequest{Input: `{"log":[]}`},
		})
		if err != nil {
			require.ErrorIs(t, err, checkpoint.ErrUnavailable)
			sleepVirtual(time.Second)
			continue
		}
		run = s.Run
	}
	began := time.Now()
	r := a.waitForRun(run, checkpoint.RunSucceeded)
	require.JSONEq(t, `{"log":["L","a","b","c","d"]}`, string(r.Output), "%+v", plan)
	require.Less(t, time.Since(began), 2*time.Minute, "%+v", plan)
	require.Less(t, len(w.listExecutions()), 12, "%+v: %v", plan, w.listExecutions())
	return store.Hits() > 0
}

// A server does not yet know the graph of a run that is left to it.
func TestARunWaitsForAServerToLearnItsGraph(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.compileGraph([]string{"a"})
		late := &lateGraphs{testCluster: w, until: time.Now().Add(3 * time.Second)}
		a, b := w.startServerOn("A", w.sharedStore, late), w.startServer("B")
		a.attachWorker("w", "")
		synctest.Wait()
		began := time.Now()
		b.waitForRun(b.startRun("t"), checkpoint.RunSucceeded)
		require.LessOrEqual(t, time.Since(began), 6*time.Second)
	})
}

// lateGraphs is a registry that learns of graphs late.
type lateGraphs struct {
	*testCluster

	until time.Time
}

func (l *lateGraphs) Graph(name, version string) (*graph.Graph, error) {
	if time.Now().Before(l.until) {
		return nil, runtime.Errorf(runtime.ReasonGraphNotFound, "no graph %q", name)
	}
	return l.testCluster.Graph(name, version)
}
