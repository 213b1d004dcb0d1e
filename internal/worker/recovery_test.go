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
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/worker"
	"github.com/graphd-dev/graphd/internal/worker/message"
)

// severableStore is how a server reaches the store until it dies.
type severableStore struct {
	serverStore

	isDead atomic.Bool
}

func (s *severableStore) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	if s.isDead.Load() {
		return checkpoint.Receipt{}, checkpoint.ErrUnavailable
	}
	return s.serverStore.Apply(ctx, c)
}

// startMortalServer starts a server and returns it; die ends its store and its hub.
func (c *testCluster) startMortalServer(name string) (s *testServer, die func()) {
	store := &severableStore{serverStore: serverStore{c.sharedStore, c.sharedStore, c.sharedStore}}
	s = c.startServerOn(name, store, c)
	return s, func() {
		store.isDead.Store(true)
		s.hub.Close()
		s.Close()
	}
}

// A server dies while its worker is at a task, and another one takes the run
// over. The worker comes back to a third: the run goes there, and no other worker
// is given the task. What no worker has waits for the time of a lease.
func TestARunGoesToWhereTheHolderOfItsTaskIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.compileGraph([]string{"a", "b"}, []string{"c"})
		a, die := w.startMortalServer("A")
		s := openSession(t, a.hub, newHello("w1", 1))
		run := a.startRun("t")
		held := nextAssignment(t, s)
		s.HandleHeartbeat(1, []string{held.Token})
		die()

		b := w.startServer("B")
		b.attachWorker("w2", "")
		sleepVirtual(20 * time.Second) // the lease of the thread ends
		require.EqualValues(t, 2, w.readHead("t").Fence)
		c := w.startServer("C")
		s, welcome, err := c.hub.OpenSession(newHello("w1", 1, held.Token))
		require.NoError(t, err)
		require.Equal(t, []string{held.Token}, welcome.UndecidedLeases)
		_, err = c.hub.CompleteTask(t.Context(), message.Completion{Token: held.Token, Result: newResult(`{"log":["of the holder"]}`)})
		require.NoError(t, err)
		s.Close()
		r := b.waitForRun(run, checkpoint.RunSucceeded)
		require.Contains(t, string(r.Output), "of the holder")
		require.NotContains(t, w.listExecutions(), held.Task.Node.Name+"@B")
		require.Len(t, w.listExecutions(), 2)
	})
}

// Two workers are at tasks of one superstep when their server dies. The next server hands
// the run off before it has requested the second task: at the server after it no other
// worker is given that task either.
func TestATaskThatAServerHasNotRequestedIsStillItsWorkers(t *testing.T) {
	for name, drains := range map[string]bool{"the run goes to the worker of the first task": false, "the server drains": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestCluster(t)
				w.compileGraph([]string{"a", "b"})
				a, die := w.startMortalServer("A")
				held := make(map[string]message.Assignment)
				for _, id := range []string{"w1", "w2"} {
					s := openSession(t, a.hub, newHello(id, 1))
					if len(held) == 0 {
						a.startRun("t")
					}
					task := nextAssignment(t, s)
					s.HandleHeartbeat(1, []string{task.Token})
					held[task.Task.Node.Name] = task
				}
				die()

				b := w.startServerWith("B", w.sharedStore, w, engine.Options{ParallelTasks: 1}) // it requests b after a
				sleepVirtual(20 * time.Second)                                                  // the lease of the thread ends
				require.EqualValues(t, 2, w.readHead("t").Fence)
				c := w.startServer("C")
				if drains {
					b.hub.Drain(time.Second, "")
					b.Drain(t.Context())
				} else {
					openSession(t, c.hub, newHello("w1", 1, held["a"].Token))
				}
				c.attachWorker("w3", "")
				sleepVirtual(5 * time.Second)
				require.EqualValues(t, 3, w.readHead("t").Fence)
				require.Empty(t, w.listExecutions())
				for _, task := range held {
					completeTask(t, c.hub, task, `{"log":["of its worker"]}`)
				}
				r := c.waitForRun(checkpoint.Run{Thread: "t", ID: w.readHead("t").Run}, checkpoint.RunSucceeded)
				require.JSONEq(t, `{"log":["of its worker","of its worker"]}`, string(r.Output))
				require.Empty(t, w.listExecutions())
			})
		})
	}
}

// A server dies while no worker has any of its tasks, and the next server is drained
// while one task is withheld and one is not requested: that it has learned nothing of them
// does not make a loss of them.
func TestATaskThatNoWorkerHadIsNoLossAfterTwoHandOffs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.compileGraph([]string{"a", "b"})
		a, die := w.startMortalServer("A")
		run := a.startRun("t")
		die()

		b := w.startServerWith("B", w.sharedStore, w, engine.Options{ParallelTasks: 1})
		sleepVirtual(20 * time.Second) // the lease of the thread ends
		require.EqualValues(t, 2, w.readHead("t").Fence)
		b.hub.Drain(time.Second, "")
		b.Drain(t.Context())
		c := w.startServer("C")
		c.attachWorker("w1", "")
		sleepVirtual(5 * time.Second)
		require.EqualValues(t, 3, w.readHead("t").Fence)
		require.Empty(t, w.listExecutions(), "a worker may have them")
		c.waitForRun(run, checkpoint.RunSucceeded)
		require.ElementsMatch(t, []string{"a@C", "b@C"}, w.listExecutions())
		require.Zero(t, c.hub.WorkerLosses())
	})
}

// The worker of a dead server does not come back: its task waits for the time of
// a lease from when the run is taken up, and not longer.
func TestAWithheldTaskIsGivenAwayWhenTheLeaseIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{LeaseTTL: 30 * time.Second})
		s := openSession(t, h, newHello("w1", 1))
		recovered := newTask("t1", &taskRun{})
		recovered.RecoveredAt = time.Now()
		sleepVirtual(10 * time.Second)
		s.HandleHeartbeat(1, nil)
		began := time.Now()
		r := executeAsync(t.Context(), h, recovered)
		a := nextAssignment(t, s)
		require.Equal(t, 20*time.Second, time.Since(began))
		completeTask(t, h, a, "1")
		require.Equal(t, newResult("1"), <-r)
	})
}

// A server dies, and no worker comes back for the tasks of a superstep: they are free at
// the same moment. The next server has a worker for one of them, whose turn comes before
// the run moves, and the server after it does not withhold the others again.
func TestWithheldTasksOfARunAreGivenAwayTogether(t *testing.T) {
	for range 5 { // timers of the same moment fire in any order
		synctest.Test(t, func(t *testing.T) {
			w := newTestCluster(t)
			var far []string
			for i := range 16 {
				far = append(far, fmt.Sprint("far", i))
			}
			w.compileGraph(append(far, "near"))
			a, die := w.startMortalServer("A")
			run := a.startRun("t")
			die()

			b := w.startServer("B")
			b.attachWorker("wb", "near")
			sleepVirtual(20 * time.Second) // the lease of the thread ends
			require.EqualValues(t, 2, w.readHead("t").Fence)
			c := w.startServer("C")
			c.attachWorker("wc", far...)
			sleepVirtual(5 * time.Second)
			require.Empty(t, w.listExecutions(), "a worker may have them")
			b.waitForRun(run, checkpoint.RunSucceeded)
			took := w.listExecutions()
			require.Equal(t, "near@B", took[0])
			require.Len(t, took, 17)
			require.EqualValues(t, 3, w.readHead("t").Fence, "it moves once")
		})
	}
}

// The server before has told that a worker has a task, and no worker brings it back: a
// worker is lost, which readers and the operator are told.
func TestATaskThatNoWorkerBringsBackIsALostDelivery(t *testing.T) {
	for name, handedOut := range map[string]bool{"a worker had it": true, "it is not known": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := worker.New(worker.Options{LeaseTTL: 30 * time.Second})
				heard := &taskRun{}
				recovered := newTask("t1", heard)
				recovered.RecoveredAt, recovered.HandedOut = time.Now(), handedOut
				r := executeAsync(t.Context(), h, recovered)
				sleepVirtual(30 * time.Second)
				completeTask(t, h, nextAssignment(t, openSession(t, h, newHello("w1", 1))), "1")
				require.Equal(t, newResult("1"), <-r)
				if !handedOut {
					require.Zero(t, h.WorkerLosses())
					require.NotContains(t, heard.markers, runtime.EventWorkerLost)
					return
				}
				require.EqualValues(t, 1, h.WorkerLosses())
				require.Contains(t, heard.markers, runtime.EventWorkerLost)
			})
		})
	}
}

// Of two leases of a task the newer one counts, whichever comes first.
func TestTheNewerLeaseOfATaskCounts(t *testing.T) {
	for name, oldFirst := range map[string]bool{"the older comes first": true, "the newer comes first": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				key := []byte("k")
				first := worker.New(worker.Options{Key: key})
				w1, w2 := openSession(t, first, newHello("w1", 1)), openSession(t, first, newHello("w2", 0))
				ctx, cancel := context.WithCancel(t.Context())
				before := executeAsync(ctx, first, newTask("t1", &taskRun{}))
				stale := nextAssignment(t, w1)
				w1.Close()
				openSession(t, first, newHello("w1", 0)) // has come back without its task
				w2.HandleCredit(message.Credit{Total: 1})
				current := nextAssignment(t, w2)
				cancel()
				<-before

				second := worker.New(worker.Options{Key: key})
				recovered := newTask("t1", &taskRun{})
				recovered.RecoveredAt = time.Now()
				r := executeAsync(t.Context(), second, recovered)
				synctest.Wait()
				tokens := []string{current.Token, stale.Token}
				if oldFirst {
					tokens = []string{stale.Token, current.Token}
				}
				for i, token := range tokens {
					openSession(t, second, newHello(string(rune('a'+i)), 1, token))
				}
				_, err := second.CompleteTask(t.Context(), message.Completion{Token: stale.Token, Result: newResult("old")})
				require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonTaskLeaseLost})
				completeTask(t, second, current, "new")
				require.Equal(t, newResult("new"), <-r)
			})
		})
	}
}

// A server loses a run, say because it did not reach its store, and gets it back:
// the worker of its task has not noticed.
func TestAWorkerKeepsItsTaskWhenTheRunComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := openSession(t, h, newHello("w1", 5))
		other := openSession(t, h, newHello("w2", 0))
		ctx, lose := context.WithCancelCause(t.Context())
		lent := new(atomic.Bool)
		first := newTask("t1", &taskRun{})
		first.StillRemote = lent
		before := executeAsync(ctx, h, first)
		a := nextAssignment(t, s)
		s.HandleHeartbeat(1, []string{a.Token})
		synctest.Wait()
		lose(runtime.ErrElsewhere)
		<-before
		require.True(t, lent.Load())
		other.HandleCredit(message.Credit{Total: 5})
		s.HandleHeartbeat(2, []string{a.Token})
		again := newTask("t1", &taskRun{})
		again.RecoveredAt = time.Now()
		r := executeAsync(t.Context(), h, again)
		synctest.Wait()
		completeTask(t, h, a, "1")
		require.Equal(t, newResult("1"), <-r)
		var heard []message.Message
		for len(heard) < 3 {
			m, err := s.NextMessage(t.Context())
			require.NoError(t, err)
			heard = append(heard, m)
		}
		require.Equal(t, []message.Message{
			message.HeartbeatAck{Number: 1},
			message.HeartbeatAck{Number: 2, UndecidedLeases: []string{a.Token}},
			message.LeaseRenewal{Token: a.Token, LeaseTTL: 30 * time.Second},
		}, heard)
	})
}

// A memo, a called graph and a result that are under way when a server loses the
// run are for the run when it comes back.
func TestCallsUnderWayGoOnWhenALostRunComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := openSession(t, h, newHello("w1", 5))
		ctx, lose := context.WithCancelCause(t.Context())
		slow := &taskRun{memoGate: make(chan struct{})}
		before := executeAsync(ctx, h, newTask("t1", slow))
		a := nextAssignment(t, s)
		s.HandleHeartbeat(1, []string{a.Token})
		type recorded struct {
			value   string
			existed bool
			err     error
		}
		answer := make(chan recorded, 1)
		go func() {
			value, existed, err := h.RecordMemo(t.Context(), a.Token, checkpoint.Memo{Key: "k", Value: "1"})
			answer <- recorded{string(value), existed, err}
		}()
		synctest.Wait()
		lose(runtime.ErrElsewhere)
		<-before
		close(slow.memoGate)
		synctest.Wait()
		require.Empty(t, answer, "it waits for the run")
		again := newTask("t1", &taskRun{})
		again.RecoveredAt = time.Now()
		r := executeAsync(t.Context(), h, again)
		require.Equal(t, recorded{"1", false, nil}, <-answer)
		completeTask(t, h, a, "2")
		require.Equal(t, newResult("2"), <-r)
	})
}

// A server dies while a node of a called graph is with a worker, and the server
// after it gives the run away before the call is repeated: the task within is kept
// for its worker all the same.
func TestTheTaskOfACalledGraphIsKeptWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.compileGraph([]string{"inner"})
		w.graphs["sub"] = w.graphs["g"]
		w.graphs["sub"].Name = "sub"
		w.compileGraph([]string{"a"})
		sub := func(id string, held ...string) message.Hello {
			h := newHello(id, 1, held...)
			h.Capabilities[0].Graph = "sub"
			return h
		}
		call := runtime.GraphCall{Graph: "sub", Input: `{"log":[]}`}
		a, die := w.startMortalServer("A")
		caller, inside := openSession(t, a.hub, newHello("w1", 1)), openSession(t, a.hub, sub("w2"))
		run := a.startRun("t")
		outer := nextAssignment(t, caller)
		go func() { _, _ = a.hub.CallGraph(t.Context(), outer.Token, call) }()
		inner := nextAssignment(t, inside)
		die()

		b := w.startServer("B")
		sleepVirtual(20 * time.Second)
		require.EqualValues(t, 2, w.readHead("t").Fence)
		c := w.startServer("C")
		other := openSession(t, c.hub, sub("w3"))
		openSession(t, c.hub, newHello("w1", 1, outer.Token))
		result := make(chan runtime.CallResult, 1)
		go func() {
			r, _ := c.hub.CallGraph(t.Context(), outer.Token, call)
			result <- r
		}()
		sleepVirtual(5 * time.Second)
		require.Greater(t, w.readHead("t").Fence, uint64(2), "the run is at the server with the caller")
		openSession(t, c.hub, sub("w2", inner.Token))
		_, err := c.hub.CompleteTask(t.Context(), message.Completion{Token: inner.Token, Result: newResult(`{"log":["of the holder"]}`)})
		require.NoError(t, err)
		require.Contains(t, string((<-result).Output), "of the holder")
		completeTask(t, c.hub, outer, `{"log":["end"]}`)
		b.waitForRun(run, checkpoint.RunSucceeded)
		idle, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err = other.NextMessage(idle)
		require.ErrorIs(t, err, context.DeadlineExceeded, "no other worker was given the task")
	})
}

// The store refuses a memo because the server has lost the run, which the hub has
// not seen yet: the worker is to repeat the call, the node has not failed.
func TestAMemoOfARunThatIsBeingLostIsToBeRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := openSession(t, h, newHello("w1", 1))
		r := executeAsync(t.Context(), h, newTask("t1", &taskRun{memoErr: runtime.ErrElsewhere}))
		a := nextAssignment(t, s)
		_, _, err := h.RecordMemo(t.Context(), a.Token, checkpoint.Memo{Key: "k", Value: "1"})
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonWaitTimeout})
		completeTask(t, h, a, "2")
		require.Equal(t, newResult("2"), <-r)
	})
}

// compileNestedGraph makes graph g of a subgraph with nodes in a line.
func (c *testCluster) compileNestedGraph(steps ...[]string) {
	c.t.Helper()
	c.compileGraph(steps...)
	deep := c.graphs["g"]
	outer, err := graph.Compile(&graph.Spec{
		Name: "g", Version: "1", Channels: []graph.ChannelSpec{{Name: "log", Reducer: "append"}},
		Nodes: []graph.NodeSpec{{Name: "sub", Graph: &graph.SubgraphSpec{Name: "deep"}}},
		Edges: []graph.EdgeSpec{{From: []string{graph.Start}, To: "sub"}, {From: []string{"sub"}, To: graph.End}},
	}, graph.Env{Lookup: func(string, string) (*graph.Graph, bool) { return deep, true }})
	require.NoError(c.t, err)
	c.graphs["g"] = outer
}

// Two tasks of a subgraph are with workers when their server dies. The next server knows
// that the first has no worker any more, and is drained before it requests the second.
func TestATaskOfASubgraphThatAServerHasNotRequestedIsStillItsWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.compileNestedGraph([]string{"a", "b"})
		a, die := w.startMortalServer("A")
		s := openSession(t, a.hub, newHello("w1", 2))
		run := a.startRun("t")
		held := map[string]message.Assignment{}
		for range 2 {
			task := nextAssignment(t, s)
			held[task.Task.Node.Name] = task
		}
		die()

		b := w.startServerWith("B", w.sharedStore, w, engine.Options{ParallelTasks: 1})
		sleepVirtual(time.Minute) // the lease of the thread ends, and the time for the worker of a
		require.EqualValues(t, 2, w.readHead("t").Fence)
		b.hub.Drain(time.Second, "")
		b.Drain(t.Context())
		c := w.startServer("C")
		c.attachWorker("w2", "b")
		sleepVirtual(5 * time.Second)
		require.EqualValues(t, 3, w.readHead("t").Fence)
		require.Empty(t, w.listExecutions(), "no other worker was given the task")
		completeTask(t, c.hub, held["b"], `{"log":["of the holder"]}`)
		c.attachWorker("w3", "a")
		c.waitForRun(run, checkpoint.RunSucceeded)
		require.Equal(t, []string{"a@C"}, w.listExecutions())
	})
}

// A server stops while a worker is at a task of a subgraph: the server after it
// keeps the task for the worker, as it does for tasks of the root.
func TestATaskOfASubgraphIsKeptWhenItsServerStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.compileNestedGraph([]string{"deep"})
		a := w.startServer("A")
		s := openSession(t, a.hub, newHello("w1", 1))
		run := a.startRun("t")
		held := nextAssignment(t, s)
		s.HandleHeartbeat(1, []string{held.Token})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a.hub.Drain(time.Second, "a restart")
		a.Drain(ctx)
		a.hub.Close()
		s.Close()

		b := w.startServer("B")
		b.attachWorker("w2", "")
		sleepVirtual(20 * time.Second)
		require.EqualValues(t, 2, w.readHead("t").Fence)
		require.Empty(t, w.listExecutions(), "no other worker was given the task")
		b.reconnectWorker("w1", held.Token)
		completeTask(t, b.hub, held, `{"log":["of the holder"]}`)
		r := b.waitForRun(run, checkpoint.RunSucceeded)
		require.Contains(t, string(r.Output), "of the holder")
		require.Empty(t, w.listExecutions())
	})
}

// A call that goes to another server than the stream of its worker is told to come
// again: that server can't know that the lease is lost. The one with the stream can.
func TestACallAtAServerThatDoesNotKnowTheTaskIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := []byte("k")
		first, other := worker.New(worker.Options{Key: key}), worker.New(worker.Options{Key: key})
		w := openSession(t, first, newHello("w1", 1))
		r := executeAsync(t.Context(), first, newTask("t1", &taskRun{}))
		a := nextAssignment(t, w)
		again := &runtime.Error{Reason: runtime.ReasonWaitTimeout}
		beat := func(s *worker.Session) {
			s.HandleHeartbeat(1, []string{a.Token})
			_, err := s.NextMessage(t.Context())
			require.NoError(t, err)
		}
		for range 3 {
			stop, ticks := make(chan struct{}), time.NewTicker(5*time.Second)
			go func() {
				for {
					select {
					case <-stop:
						return
					case <-ticks.C:
						beat(w)
					}
				}
			}()
			_, err := other.CompleteTask(t.Context(), message.Completion{Token: a.Token, Result: newResult("1")})
			require.ErrorIs(t, err, again)
			_, _, err = other.RecordMemo(t.Context(), a.Token, checkpoint.Memo{Key: "k", Value: `1`})
			require.ErrorIs(t, err, again)
			close(stop)
			ticks.Stop()
		}
		completeTask(t, first, a, "1")
		require.Equal(t, newResult("1"), <-r)

		s := openSession(t, other, newHello("w1", 1, a.Token)) // the worker does not know it, and no run asks for it
		for range 3 {
			sleepVirtual(25 * time.Second)
			beat(s)
		}
		_, err := other.CompleteTask(t.Context(), message.Completion{Token: a.Token, Result: newResult("1")})
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonTaskLeaseLost})
	})
}
