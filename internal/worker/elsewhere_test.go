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
)

// stay has a worker beat with its leases until leave is called, and notes which of
// them are certain to be its own.
type stay struct {
	session *worker.Session
	leave   func()

	mu      sync.Mutex
	renewed map[string]int
	lost    []string
}

func (w *town) stay(s *worker.Session, held ...string) *stay {
	x := &stay{session: s, renewed: map[string]int{}}
	ctx, cancel := context.WithCancel(w.t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for n := uint64(1); ; n++ {
			s.Beat(n, held)
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	all.Go(func() {
		for {
			m, err := s.Next(ctx)
			if err != nil {
				return
			}
			x.mu.Lock()
			switch m := m.(type) {
			case worker.Ack:
				x.lost = append(x.lost, m.Lost...)
			case worker.Renewed:
				x.renewed[m.Token]++
			}
			x.mu.Unlock()
		}
	})
	x.leave = sync.OnceFunc(func() {
		cancel()
		all.Wait()
		s.Close()
	})
	w.t.Cleanup(x.leave)
	return x
}

func (x *stay) isSure(token string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.renewed[token] > 0
}

func (x *stay) hasLost() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.lost)
}

// come attaches a worker that brings leases to a server.
func (s *server) come(name string, held ...string) *stay {
	s.town.t.Helper()
	session, welcome, err := s.hub.Open(hello(name, 1, held...))
	require.NoError(s.town.t, err)
	require.Empty(s.town.t, welcome.Lost)
	return s.town.stay(session, held...)
}

// A worker is in the middle of a task when its connection to a server breaks, and
// it comes back to another one. The first server lives and has other workers: it
// gives the task to none of them, and the run goes to the worker.
func TestARunGoesToWhereItsWorkerWasSentThoughItsServerLives(t *testing.T) {
	for name, cut := range map[string]bool{"the server sees that the stream is broken": true, "the server does not": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTown(t)
				w.compile([]string{"a"})
				a, b := w.server("A"), w.server("B")
				s := open(t, a.hub, hello("w1", 1))
				run := a.begin("t")
				held := next(t, s)
				s.Beat(1, []string{held.Token})
				a.attach("w2", "")
				if cut {
					s.Close()
				}
				at := b.come("w1", held.Token)
				pass(10 * time.Minute)
				require.True(t, at.isSure(held.Token), "it may begin further effects")
				complete(t, b.hub, held, `{"log":["of the holder"]}`)
				r := b.ends(run, checkpoint.RunSucceeded)
				require.JSONEq(t, `{"log":["of the holder"]}`, string(r.Output))
				require.Empty(t, w.took())
			})
		})
	}
}

// Something else of the run goes on at the first server, for longer than leases
// last and than leases of unknown runs are kept: the task waits for that, and for
// no other worker.
func TestATaskWaitsForItsWorkerElsewhereWhileItsRunIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		w.compile([]string{"a", "B"})
		w.code["B"] = func(ctx context.Context, _ *server, _ *runtime.Task, _ string) pregel.Result {
			timer := time.NewTimer(10 * time.Minute)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
			return pregel.Result{Update: `{"log":["B"]}`}
		}
		a, b := w.server("A"), w.server("B")
		s := open(t, a.hub, hello("w1", 1))
		run := a.begin("t")
		held := next(t, s)
		s.Beat(1, []string{held.Token})
		a.attach("w2", "")
		s.Close()
		at := b.come("w1", held.Token)
		pass(9 * time.Minute)
		require.False(t, at.isSure(held.Token))
		require.Empty(t, at.hasLost())
		pass(2 * time.Minute)
		require.True(t, at.isSure(held.Token))
		complete(t, b.hub, held, `{"log":["of the holder"]}`)
		r := b.ends(run, checkpoint.RunSucceeded)
		require.Contains(t, string(r.Output), "of the holder")
		require.Equal(t, []string{"B@A"}, w.took())
	})
}

// A worker leaves the second server too, and is not seen again: its task goes to
// others when the time of a lease has passed, and not later.
func TestATaskDoesNotWaitForAWorkerThatHasLeftTheOtherServer(t *testing.T) {
	for name, busy := range map[string]bool{"the run has gone there": false, "the run has not": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTown(t)
				w.compile([]string{"a", "B"})
				w.code["B"] = func(ctx context.Context, _ *server, _ *runtime.Task, _ string) pregel.Result {
					if busy {
						pass(5 * time.Minute)
					}
					return pregel.Result{Update: `{"log":["B"]}`}
				}
				a, b := w.server("A"), w.server("B")
				s := open(t, a.hub, hello("w1", 1))
				run := a.begin("t")
				held := next(t, s)
				s.Beat(1, []string{held.Token})
				a.attach("w2", "")
				s.Close()
				at := b.come("w1", held.Token)
				pass(time.Minute)
				at.leave()
				left := time.Now()
				pass(29 * time.Second)
				require.NotContains(t, w.took(), "a@A")
				for !slices.Contains(w.took(), "a@A") && !slices.Contains(w.took(), "a@B") {
					pass(time.Second)
					require.Less(t, time.Since(left), time.Minute+10*time.Second)
				}
				a.ends(run, checkpoint.RunSucceeded)
			})
		})
	}
}

// A worker that is sent from one server to the other, and back, for as long as its
// task lasts keeps the task: each server has seen the lease, and the run, before.
func TestATaskFollowsItsWorkerThereAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		w.compile([]string{"a"})
		a, b := w.server("A"), w.server("B")
		s := open(t, a.hub, hello("w1", 1))
		run := a.begin("t")
		held := next(t, s)
		a.attach("w2", "")
		b.attach("w3", "")
		s.Close()
		at := b.come("w1", held.Token)
		for _, to := range []*server{a, b, a, b} {
			pass(10 * time.Minute)
			require.True(t, at.isSure(held.Token), "before it goes to %s", to.name)
			at.leave()
			at = to.come("w1", held.Token)
		}
		pass(time.Minute)
		complete(t, b.hub, held, `{"log":["of the holder"]}`)
		r := b.ends(run, checkpoint.RunSucceeded)
		require.Contains(t, string(r.Output), "of the holder")
		require.Empty(t, w.took())
	})
}

// A server has seen an earlier pass of a task, which has got an answer at another
// one: the lease of the later pass is none of an old piece of work.
func TestALeaseOfALaterPassIsNoOldOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := []byte("k")
		first, second := worker.New(worker.Options{Key: key}), worker.New(worker.Options{Key: key})
		open(t, second, hello("w2", 1))
		s := open(t, first, hello("w1", 1))
		ctx, end := context.WithCancel(t.Context())
		before := task("t1", &run{})
		before.Fence = 1
		r := execute(ctx, second, before)
		synctest.Wait()
		end()
		<-r
		later := task("t1", &run{})
		later.Fence = 2
		later.Journal.Answers = []pregel.Answer{{Interrupt: "i"}}
		execute(t.Context(), first, later)
		held := next(t, s)
		_, welcome, err := second.Open(hello("w1", 1, held.Token))
		require.NoError(t, err)
		require.Equal(t, []string{held.Token}, welcome.Undecided)
	})
}

// The worker of a node that calls a graph is sent to another server, with or
// without the one that is at work on a node of the graph: what goes on at the first
// server ends there, and nothing is given to others.
func TestACallerGoesOnAtTheServerToWhichItWasSent(t *testing.T) {
	for name, both := range map[string]bool{"alone": false, "with the worker of the graph": true} {
		t.Run(name, func(t *testing.T) {
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
				a, b := w.server("A"), w.server("B")
				caller, inside := open(t, a.hub, hello("w1", 1)), open(t, a.hub, sub("w2"))
				run := a.begin("t")
				outer := next(t, caller)
				asked, hangUp := context.WithCancel(t.Context())
				go func() { _, _ = a.hub.Call(asked, outer.Token, call) }()
				inner := next(t, inside)
				for _, s := range []*server{a, b} {
					s.attachTo("other of "+s.name, "sub", "")
					s.attach("another of "+s.name, "")
				}
				hangUp()
				caller.Close()
				at := b.come("w1", outer.Token)
				result := make(chan runtime.CallResult, 1)
				go func() {
					r, _ := b.hub.Call(t.Context(), outer.Token, call)
					result <- r
				}()
				if both {
					inside.Close()
					session, _, err := b.hub.Open(sub("w2", inner.Token))
					require.NoError(t, err)
					w.stay(session, inner.Token)
					pass(5 * time.Minute)
					complete(t, b.hub, inner, `{"log":["of the holder"]}`)
				} else {
					w.stay(inside, inner.Token)
					pass(5 * time.Minute)
					require.False(t, at.isSure(outer.Token), "the graph that it called is at work at the first server")
					complete(t, a.hub, inner, `{"log":["of the holder"]}`)
				}
				require.Contains(t, string((<-result).Output), "of the holder")
				synctest.Wait() // the worker has read what it is told
				require.True(t, at.isSure(outer.Token))
				complete(t, b.hub, outer, `{"log":["end"]}`)
				b.ends(run, checkpoint.RunSucceeded)
				require.Empty(t, w.took())
			})
		})
	}
}

// A call is under way at the first server when the run goes to where its worker was
// sent: it is to be repeated, and does not tell the worker that its lease is lost.
func TestACallIsRepeatedWhenItsRunGoesElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		w.compile([]string{"inner"})
		w.graphs["sub"] = w.graphs["g"]
		w.graphs["sub"].Name = "sub"
		w.compile([]string{"a"})
		sub := hello("w2", 1)
		sub.Serves[0].Graph = "sub"
		a, b := w.server("A"), w.server("B")
		caller, inside := open(t, a.hub, hello("w1", 1)), open(t, a.hub, sub)
		run := a.begin("t")
		outer := next(t, caller)
		answer := make(chan error, 1)
		go func() {
			_, err := a.hub.Call(t.Context(), outer.Token, runtime.GraphCall{Graph: "sub", Input: `{"log":[]}`})
			answer <- err
		}()
		inner := next(t, inside)
		caller.Close()
		b.attachTo("other", "sub", "")
		at := b.come("w1", outer.Token)
		inside.Close()
		sub.Held = []string{inner.Token}
		session, _, err := b.hub.Open(sub)
		require.NoError(t, err)
		w.stay(session, inner.Token)
		pass(5 * time.Minute)
		require.True(t, at.isSure(outer.Token), "the run has come")
		require.ErrorIs(t, <-answer, &runtime.Error{Reason: runtime.ReasonWaitTimeout})
		complete(t, b.hub, outer, `{"log":["end"]}`)
		b.ends(run, checkpoint.RunSucceeded)
	})
}
