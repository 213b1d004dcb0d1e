package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker"
)

// severed is how a server reaches the store until it dies.
type severed struct {
	way

	dead atomic.Bool
}

func (s *severed) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	if s.dead.Load() {
		return checkpoint.Receipt{}, checkpoint.ErrUnavailable
	}
	return s.way.Apply(ctx, c)
}

// mortal is a server that dies when die is called.
func (w *town) mortal(name string) (s *server, die func()) {
	store := &severed{way: way{w.board, w.board, w.board}}
	s = w.serverOn(name, store, w)
	return s, func() {
		store.dead.Store(true)
		s.hub.Close()
		s.Close()
	}
}

// A server dies while its worker is at a task, and another one takes the run
// over. The worker comes back to a third: the run goes there, and no other worker
// is given the task. What no worker has waits for the time of a lease.
func TestARunGoesToWhereTheHolderOfItsTaskIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		w.compile([]string{"a", "b"}, []string{"c"})
		a, die := w.mortal("A")
		s := open(t, a.hub, hello("w1", 1))
		run := a.begin("t")
		held := next(t, s)
		s.Beat(1, []string{held.Token})
		die()

		b := w.server("B")
		b.attach("w2", "")
		pass(20 * time.Second) // the lease of the thread ends
		require.EqualValues(t, 2, w.head("t").Fence)
		c := w.server("C")
		s, welcome, err := c.hub.Open(hello("w1", 1, held.Token))
		require.NoError(t, err)
		require.Equal(t, []string{held.Token}, welcome.Undecided)
		_, err = c.hub.Complete(t.Context(), worker.Completion{Token: held.Token, Result: done(`{"log":["of the holder"]}`)})
		require.NoError(t, err)
		s.Close()
		r := b.ends(run, checkpoint.RunSucceeded)
		require.Contains(t, string(r.Output), "of the holder")
		require.NotContains(t, w.took(), held.Task.Node.Name+"@B")
		require.Len(t, w.took(), 2)
	})
}

// The worker of a dead server does not come back: its task waits for the time of
// a lease from when the run is taken up, and not longer.
func TestAWithheldTaskIsGivenAwayWhenTheLeaseIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{LeaseTTL: 30 * time.Second})
		s := open(t, h, hello("w1", 1))
		recovered := task("t1", &run{})
		recovered.Recovered = time.Now()
		pass(10 * time.Second)
		s.Beat(1, nil)
		began := time.Now()
		r := execute(t.Context(), h, recovered)
		a := next(t, s)
		require.Equal(t, 20*time.Second, time.Since(began))
		complete(t, h, a, "1")
		require.Equal(t, done("1"), <-r)
	})
}

// The server before has told that a worker has a task, and no worker brings it back: a
// worker is lost, which readers and the operator are told.
func TestATaskThatNoWorkerBringsBackIsALostDelivery(t *testing.T) {
	for name, handedOut := range map[string]bool{"a worker had it": true, "it is not known": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := worker.New(worker.Options{LeaseTTL: 30 * time.Second})
				heard := &run{}
				recovered := task("t1", heard)
				recovered.Recovered, recovered.HandedOut = time.Now(), handedOut
				r := execute(t.Context(), h, recovered)
				pass(30 * time.Second)
				complete(t, h, next(t, open(t, h, hello("w1", 1))), "1")
				require.Equal(t, done("1"), <-r)
				if !handedOut {
					require.Zero(t, h.Lost())
					require.NotContains(t, heard.marks, runtime.EventLost)
					return
				}
				require.EqualValues(t, 1, h.Lost())
				require.Contains(t, heard.marks, runtime.EventLost)
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
				w1, w2 := open(t, first, hello("w1", 1)), open(t, first, hello("w2", 0))
				ctx, cancel := context.WithCancel(t.Context())
				before := execute(ctx, first, task("t1", &run{}))
				stale := next(t, w1)
				w1.Close()
				open(t, first, hello("w1", 0)) // has come back without its task
				w2.Credit(worker.Credit{Total: 1})
				current := next(t, w2)
				cancel()
				<-before

				second := worker.New(worker.Options{Key: key})
				recovered := task("t1", &run{})
				recovered.Recovered = time.Now()
				r := execute(t.Context(), second, recovered)
				synctest.Wait()
				tokens := []string{current.Token, stale.Token}
				if oldFirst {
					tokens = []string{stale.Token, current.Token}
				}
				for i, token := range tokens {
					open(t, second, hello(string(rune('a'+i)), 1, token))
				}
				_, err := second.Complete(t.Context(), worker.Completion{Token: stale.Token, Result: done("old")})
				require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonTaskLeaseLost})
				complete(t, second, current, "new")
				require.Equal(t, done("new"), <-r)
			})
		})
	}
}

// A server loses a run, say because it did not reach its store, and gets it back:
// the worker of its task has not noticed.
func TestAWorkerKeepsItsTaskWhenTheRunComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := open(t, h, hello("w1", 5))
		other := open(t, h, hello("w2", 0))
		ctx, lose := context.WithCancelCause(t.Context())
		lent := new(atomic.Bool)
		first := task("t1", &run{})
		first.Lent = lent
		before := execute(ctx, h, first)
		a := next(t, s)
		s.Beat(1, []string{a.Token})
		synctest.Wait()
		lose(runtime.ErrElsewhere)
		<-before
		require.True(t, lent.Load())
		other.Credit(worker.Credit{Total: 5})
		s.Beat(2, []string{a.Token})
		again := task("t1", &run{})
		again.Recovered = time.Now()
		r := execute(t.Context(), h, again)
		synctest.Wait()
		complete(t, h, a, "1")
		require.Equal(t, done("1"), <-r)
		var heard []worker.Message
		for len(heard) < 3 {
			m, err := s.Next(t.Context())
			require.NoError(t, err)
			heard = append(heard, m)
		}
		require.Equal(t, []worker.Message{
			worker.Ack{Number: 1},
			worker.Ack{Number: 2, Undecided: []string{a.Token}},
			worker.Renewed{Token: a.Token, TTL: 30 * time.Second},
		}, heard)
	})
}

// A memo, a called graph and a result that are under way when a server loses the
// run are for the run when it comes back.
func TestWhatIsUnderWayWhenARunIsLostGoesOnWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := open(t, h, hello("w1", 5))
		ctx, lose := context.WithCancelCause(t.Context())
		slow := &run{store: make(chan struct{})}
		before := execute(ctx, h, task("t1", slow))
		a := next(t, s)
		s.Beat(1, []string{a.Token})
		type recorded struct {
			value   string
			existed bool
			err     error
		}
		answer := make(chan recorded, 1)
		go func() {
			value, existed, err := h.Remember(t.Context(), a.Token, checkpoint.Memo{Key: "k", Value: "1"})
			answer <- recorded{string(value), existed, err}
		}()
		synctest.Wait()
		lose(runtime.ErrElsewhere)
		<-before
		close(slow.store)
		synctest.Wait()
		require.Empty(t, answer, "it waits for the run")
		again := task("t1", &run{})
		again.Recovered = time.Now()
		r := execute(t.Context(), h, again)
		require.Equal(t, recorded{"1", false, nil}, <-answer)
		complete(t, h, a, "2")
		require.Equal(t, done("2"), <-r)
	})
}

// A server dies while a node of a called graph is with a worker, and the server
// after it gives the run away before the call is repeated: the task within is kept
// for its worker all the same.
func TestTheTaskOfACalledGraphIsKeptWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		w.compile([]string{"inner"})
		w.graphs["sub"] = w.graphs["g"]
		w.graphs["sub"].Name = "sub"
		w.compile([]string{"a"})
		sub := func(id string, held ...string) worker.Hello {
			h := hello(id, 1, held...)
			h.Serves[0].Graph = "sub"
			return h
		}
		call := runtime.GraphCall{Graph: "sub", Input: `{"log":[]}`}
		a, die := w.mortal("A")
		caller, inside := open(t, a.hub, hello("w1", 1)), open(t, a.hub, sub("w2"))
		run := a.begin("t")
		outer := next(t, caller)
		go func() { _, _ = a.hub.Call(t.Context(), outer.Token, call) }()
		inner := next(t, inside)
		die()

		b := w.server("B")
		pass(20 * time.Second)
		require.EqualValues(t, 2, w.head("t").Fence)
		c := w.server("C")
		other := open(t, c.hub, sub("w3"))
		open(t, c.hub, hello("w1", 1, outer.Token))
		result := make(chan runtime.CallResult, 1)
		go func() {
			r, _ := c.hub.Call(t.Context(), outer.Token, call)
			result <- r
		}()
		pass(5 * time.Second)
		require.Greater(t, w.head("t").Fence, uint64(2), "the run is at the server with the caller")
		open(t, c.hub, sub("w2", inner.Token))
		_, err := c.hub.Complete(t.Context(), worker.Completion{Token: inner.Token, Result: done(`{"log":["of the holder"]}`)})
		require.NoError(t, err)
		require.Contains(t, string((<-result).Output), "of the holder")
		complete(t, c.hub, outer, `{"log":["end"]}`)
		b.ends(run, checkpoint.RunSucceeded)
		idle, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err = other.Next(idle)
		require.ErrorIs(t, err, context.DeadlineExceeded, "no other worker was given the task")
	})
}

// The store refuses a memo because the server has lost the run, which the hub has
// not heard yet: the worker is to repeat the call, the node has not failed.
func TestAMemoOfARunThatIsBeingLostIsToBeRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := open(t, h, hello("w1", 1))
		r := execute(t.Context(), h, task("t1", &run{refuse: runtime.ErrElsewhere}))
		a := next(t, s)
		_, _, err := h.Remember(t.Context(), a.Token, checkpoint.Memo{Key: "k", Value: "1"})
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonWaitTimeout})
		complete(t, h, a, "2")
		require.Equal(t, done("2"), <-r)
	})
}

// A server stops while a worker is at a task of a subgraph: the server after it
// keeps the task for the worker, as it does for tasks of the root.
func TestATaskOfASubgraphIsKeptWhenItsServerStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		w.compile([]string{"deep"})
		deep := w.graphs["g"]
		outer, err := graph.Compile(&graph.Spec{
			Name: "g", Version: "1", Channels: []graph.ChannelSpec{{Name: "log", Reducer: "append"}},
			Nodes: []graph.NodeSpec{{Name: "sub", Graph: &graph.SubgraphSpec{Name: "deep"}}},
			Edges: []graph.EdgeSpec{{From: []string{graph.Start}, To: "sub"}, {From: []string{"sub"}, To: graph.End}},
		}, graph.Env{Lookup: func(string, string) (*graph.Graph, bool) { return deep, true }})
		require.NoError(t, err)
		w.graphs["g"] = outer
		a := w.server("A")
		s := open(t, a.hub, hello("w1", 1))
		run := a.begin("t")
		held := next(t, s)
		s.Beat(1, []string{held.Token})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a.hub.Drain(time.Second, "a restart")
		a.Drain(ctx)
		a.hub.Close()
		s.Close()

		b := w.server("B")
		b.attach("w2", "")
		pass(20 * time.Second)
		require.EqualValues(t, 2, w.head("t").Fence)
		require.Empty(t, w.took(), "no other worker was given the task")
		b.come("w1", held.Token)
		complete(t, b.hub, held, `{"log":["of the holder"]}`)
		r := b.ends(run, checkpoint.RunSucceeded)
		require.Contains(t, string(r.Output), "of the holder")
		require.Empty(t, w.took())
	})
}

// A call that goes to another server than the stream of its worker is told to come
// again: that server can't know that the lease is lost. The one with the stream can.
func TestACallAtAServerThatDoesNotKnowTheTaskIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := []byte("k")
		first, other := worker.New(worker.Options{Key: key}), worker.New(worker.Options{Key: key})
		w := open(t, first, hello("w1", 1))
		r := execute(t.Context(), first, task("t1", &run{}))
		a := next(t, w)
		again := &runtime.Error{Reason: runtime.ReasonWaitTimeout}
		beat := func(s *worker.Session) {
			s.Beat(1, []string{a.Token})
			_, err := s.Next(t.Context())
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
			_, err := other.Complete(t.Context(), worker.Completion{Token: a.Token, Result: done("1")})
			require.ErrorIs(t, err, again)
			_, _, err = other.Remember(t.Context(), a.Token, checkpoint.Memo{Key: "k", Value: `1`})
			require.ErrorIs(t, err, again)
			close(stop)
			ticks.Stop()
		}
		complete(t, first, a, "1")
		require.Equal(t, done("1"), <-r)

		s := open(t, other, hello("w1", 1, a.Token)) // the worker has not heard of it, and no run asks for it
		for range 3 {
			pass(25 * time.Second)
			beat(s)
		}
		_, err := other.Complete(t.Context(), worker.Completion{Token: a.Token, Result: done("1")})
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonTaskLeaseLost})
	})
}
