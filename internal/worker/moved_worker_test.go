package worker_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/worker"
	"github.com/graphd-dev/graphd/internal/worker/message"
)

// beatingWorker has a worker beat with its leases until leave is called, and notes which of
// them are certain to be its own.
type beatingWorker struct {
	session *worker.Session
	stop    func()

	mu         sync.Mutex
	renewals   map[string]int
	lostLeases []string
}

func (c *testCluster) keepBeating(s *worker.Session, held ...string) *beatingWorker {
	x := &beatingWorker{session: s, renewals: map[string]int{}}
	ctx, cancel := context.WithCancel(c.t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for n := uint64(1); ; n++ {
			s.HandleHeartbeat(n, held)
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	all.Go(func() {
		for {
			m, err := s.NextMessage(ctx)
			if err != nil {
				return
			}
			x.mu.Lock()
			switch m := m.(type) {
			case message.HeartbeatAck:
				x.lostLeases = append(x.lostLeases, m.LostLeases...)
			case message.LeaseRenewal:
				x.renewals[m.Token]++
			}
			x.mu.Unlock()
		}
	})
	x.stop = sync.OnceFunc(func() {
		cancel()
		all.Wait()
		s.Close()
	})
	c.t.Cleanup(x.stop)
	return x
}

func (b *beatingWorker) isRenewed(token string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.renewals[token] > 0
}

func (b *beatingWorker) listLost() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.lostLeases)
}

// reconnectWorker attaches a worker that brings leases to a server.
func (s *testServer) reconnectWorker(name string, held ...string) *beatingWorker {
	s.cluster.t.Helper()
	session, welcome, err := s.hub.OpenSession(newHello(name, 1, held...))
	require.NoError(s.cluster.t, err)
	require.Empty(s.cluster.t, welcome.LostLeases)
	return s.cluster.keepBeating(session, held...)
}

// A worker is in the middle of a task when its connection to a server breaks, and
// it comes back to another one. The first server lives and has other workers: it
// gives the task to none of them, and the run goes to the worker.
func TestARunGoesToWhereItsWorkerWasSentThoughItsServerLives(t *testing.T) {
	for name, cut := range map[string]bool{"the server sees that the stream is broken": true, "the server does not": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestCluster(t)
				w.compileGraph([]string{"a"})
				a, b := w.startServer("A"), w.startServer("B")
				s := openSession(t, a.hub, newHello("w1", 1))
				run := a.startRun("t")
				held := nextAssignment(t, s)
				s.HandleHeartbeat(1, []string{held.Token})
				a.attachWorker("w2", "")
				if cut {
					s.Close()
				}
				at := b.reconnectWorker("w1", held.Token)
				sleepVirtual(10 * time.Minute)
				require.True(t, at.isRenewed(held.Token), "it may begin further effects")
				completeTask(t, b.hub, held, `{"log":["of the holder"]}`)
				r := b.waitForRun(run, checkpoint.RunSucceeded)
				require.JSONEq(t, `{"log":["of the holder"]}`, string(r.Output))
				require.Empty(t, w.listExecutions())
			})
		})
	}
}

// Something else of the run goes on at the first server, for longer than leases
// last and than leases of unknown runs are kept: the task waits for that, and for
// no other worker.
func TestATaskWaitsForItsWorkerElsewhereWhileItsRunIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.compileGraph([]string{"a", "B"})
		w.nodeCode["B"] = func(ctx context.Context, _ *testServer, _ *runtime.Task, _ string) pregel.Result {
			timer := time.NewTimer(10 * time.Minute)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
			return pregel.Result{Update: `{"log":["B"]}`}
		}
		a, b := w.startServer("A"), w.startServer("B")
		s := openSession(t, a.hub, newHello("w1", 1))
		run := a.startRun("t")
		held := nextAssignment(t, s)
		s.HandleHeartbeat(1, []string{held.Token})
		a.attachWorker("w2", "")
		s.Close()
		at := b.reconnectWorker("w1", held.Token)
		sleepVirtual(9 * time.Minute)
		require.False(t, at.isRenewed(held.Token))
		require.Empty(t, at.listLost())
		sleepVirtual(2 * time.Minute)
		require.True(t, at.isRenewed(held.Token))
		completeTask(t, b.hub, held, `{"log":["of the holder"]}`)
		r := b.waitForRun(run, checkpoint.RunSucceeded)
		require.Contains(t, string(r.Output), "of the holder")
		require.Equal(t, []string{"B@A"}, w.listExecutions())
	})
}

// A worker leaves the second server too, and is not seen again: its task goes to
// others when the time of a lease has passed, and not later.
func TestATaskDoesNotWaitForAWorkerThatHasLeftTheOtherServer(t *testing.T) {
	for name, busy := range map[string]bool{"the run has gone there": false, "the run has not": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestCluster(t)
				w.compileGraph([]string{"a", "B"})
				w.nodeCode["B"] = func(ctx context.Context, _ *testServer, _ *runtime.Task, _ string) pregel.Result {
					if busy {
						sleepVirtual(5 * time.Minute)
					}
					return pregel.Result{Update: `{"log":["B"]}`}
				}
				a, b := w.startServer("A"), w.startServer("B")
				s := openSession(t, a.hub, newHello("w1", 1))
				run := a.startRun("t")
				held := nextAssignment(t, s)
				s.HandleHeartbeat(1, []string{held.Token})
				a.attachWorker("w2", "")
				s.Close()
				at := b.reconnectWorker("w1", held.Token)
				sleepVirtual(time.Minute)
				at.stop()
				left := time.Now()
				sleepVirtual(29 * time.Second)
				require.NotContains(t, w.listExecutions(), "a@A")
				for !slices.Contains(w.listExecutions(), "a@A") && !slices.Contains(w.listExecutions(), "a@B") {
					sleepVirtual(time.Second)
					require.Less(t, time.Since(left), time.Minute+10*time.Second)
				}
				a.waitForRun(run, checkpoint.RunSucceeded)
			})
		})
	}
}

// A worker that is sent from one server to the other, and back, for as long as its
// task lasts keeps the task: each server has seen the lease, and the run, before.
func TestATaskFollowsItsWorkerThereAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.compileGraph([]string{"a"})
		a, b := w.startServer("A"), w.startServer("B")
		s := openSession(t, a.hub, newHello("w1", 1))
		run := a.startRun("t")
		held := nextAssignment(t, s)
		a.attachWorker("w2", "")
		b.attachWorker("w3", "")
		s.Close()
		at := b.reconnectWorker("w1", held.Token)
		for _, to := range []*testServer{a, b, a, b} {
			sleepVirtual(10 * time.Minute)
			require.True(t, at.isRenewed(held.Token), "before it goes to %s", to.name)
			at.stop()
			at = to.reconnectWorker("w1", held.Token)
		}
		sleepVirtual(time.Minute)
		completeTask(t, b.hub, held, `{"log":["of the holder"]}`)
		r := b.waitForRun(run, checkpoint.RunSucceeded)
		require.Contains(t, string(r.Output), "of the holder")
		require.Empty(t, w.listExecutions())
	})
}

// A server has seen an earlier pass of a task, which has got an answer at another
// one: the lease of the later pass is none of an old piece of work.
func TestALeaseOfALaterPassIsNoOldOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := []byte("k")
		first, second := worker.New(worker.Options{Key: key}), worker.New(worker.Options{Key: key})
		openSession(t, second, newHello("w2", 1))
		s := openSession(t, first, newHello("w1", 1))
		ctx, end := context.WithCancel(t.Context())
		before := newTask("t1", &taskRun{})
		before.Fence = 1
		r := executeAsync(ctx, second, before)
		synctest.Wait()
		end()
		<-r
		later := newTask("t1", &taskRun{})
		later.Fence = 2
		later.Journal.Answers = []pregel.Answer{{InterruptID: "i"}}
		executeAsync(t.Context(), first, later)
		held := nextAssignment(t, s)
		_, welcome, err := second.OpenSession(newHello("w1", 1, held.Token))
		require.NoError(t, err)
		require.Equal(t, []string{held.Token}, welcome.UndecidedLeases)
	})
}

// The worker of a node that calls a graph is sent to another server, with or
// without the one that is at work on a node of the graph: what goes on at the first
// server ends there, and nothing is given to others.
func TestACallerGoesOnAtTheServerToWhichItWasSent(t *testing.T) {
	for name, both := range map[string]bool{"alone": false, "with the worker of the graph": true} {
		t.Run(name, func(t *testing.T) {
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
				a, b := w.startServer("A"), w.startServer("B")
				caller, inside := openSession(t, a.hub, newHello("w1", 1)), openSession(t, a.hub, sub("w2"))
				run := a.startRun("t")
				outer := nextAssignment(t, caller)
				asked, hangUp := context.WithCancel(t.Context())
				go func() { _, _ = a.hub.CallGraph(asked, outer.Token, call) }()
				inner := nextAssignment(t, inside)
				for _, s := range []*testServer{a, b} {
					s.attachWorkerOf("other of "+s.name, "sub", "")
					s.attachWorker("another of "+s.name, "")
				}
				hangUp()
				caller.Close()
				at := b.reconnectWorker("w1", outer.Token)
				result := make(chan runtime.CallResult, 1)
				go func() {
					r, _ := b.hub.CallGraph(t.Context(), outer.Token, call)
					result <- r
				}()
				if both {
					inside.Close()
					session, _, err := b.hub.OpenSession(sub("w2", inner.Token))
					require.NoError(t, err)
					w.keepBeating(session, inner.Token)
					sleepVirtual(5 * time.Minute)
					completeTask(t, b.hub, inner, `{"log":["of the holder"]}`)
				} else {
					w.keepBeating(inside, inner.Token)
					sleepVirtual(5 * time.Minute)
					require.False(t, at.isRenewed(outer.Token), "the graph that it called is at work at the first server")
					completeTask(t, a.hub, inner, `{"log":["of the holder"]}`)
				}
				require.Contains(t, string((<-result).Output), "of the holder")
				synctest.Wait() // the worker has read what it is told
				require.True(t, at.isRenewed(outer.Token))
				completeTask(t, b.hub, outer, `{"log":["end"]}`)
				b.waitForRun(run, checkpoint.RunSucceeded)
				require.Empty(t, w.listExecutions())
			})
		})
	}
}

// A call is under way at the first server when the run goes to where its worker was
// sent: it is to be repeated, and does not tell the worker that its lease is lost.
func TestACallIsRepeatedWhenItsRunGoesElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.compileGraph([]string{"inner"})
		w.graphs["sub"] = w.graphs["g"]
		w.graphs["sub"].Name = "sub"
		w.compileGraph([]string{"a"})
		sub := newHello("w2", 1)
		sub.Capabilities[0].Graph = "sub"
		a, b := w.startServer("A"), w.startServer("B")
		caller, inside := openSession(t, a.hub, newHello("w1", 1)), openSession(t, a.hub, sub)
		run := a.startRun("t")
		outer := nextAssignment(t, caller)
		answer := make(chan error, 1)
		go func() {
			_, err := a.hub.CallGraph(t.Context(), outer.Token, runtime.GraphCall{Graph: "sub", Input: `{"log":[]}`})
			answer <- err
		}()
		inner := nextAssignment(t, inside)
		caller.Close()
		b.attachWorkerOf("other", "sub", "")
		at := b.reconnectWorker("w1", outer.Token)
		inside.Close()
		sub.HeldLeases = []string{inner.Token}
		session, _, err := b.hub.OpenSession(sub)
		require.NoError(t, err)
		w.keepBeating(session, inner.Token)
		sleepVirtual(5 * time.Minute)
		require.True(t, at.isRenewed(outer.Token), "the run has come")
		require.ErrorIs(t, <-answer, &runtime.Error{Reason: runtime.ReasonWaitTimeout})
		completeTask(t, b.hub, outer, `{"log":["end"]}`)
		b.waitForRun(run, checkpoint.RunSucceeded)
	})
}
