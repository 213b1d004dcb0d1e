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
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// countedStore counts how often a server asks its store, and what it changes.
type countedStore struct {
	checkpoint.Store

	reads, changes atomic.Int64
}

func (s *countedStore) Due(ctx context.Context, limit int) ([]string, time.Time, error) {
	s.reads.Add(1)
	return s.Store.Due(ctx, limit)
}

func (s *countedStore) Head(ctx context.Context, thread string) (checkpoint.Head, error) {
	s.reads.Add(1)
	return s.Store.Head(ctx, thread)
}

func (s *countedStore) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	s.changes.Add(1)
	return s.Store.Apply(ctx, c)
}

// line makes a graph of nodes in a line, as compile does, under a name.
func (w *town) line(name string, change func(*graph.Spec), steps ...[]string) {
	w.t.Helper()
	old := w.graphs["g"]
	w.compile(steps...)
	spec := w.graphs["g"].Spec
	w.graphs["g"] = old
	spec.Name = name
	if change != nil {
		change(spec)
	}
	g, err := graph.Compile(spec, graph.Env{})
	require.NoError(w.t, err)
	w.graphs[name] = g
}

// small is a server of its own on the store, which none shares, with two places.
func (w *town) small() (*server, *countedStore) {
	store := &countedStore{Store: w.Store}
	return w.serverWith("A", store, w, runtime.Options{MaxLive: 2}), store
}

// beginOf begins a run, when there is a place for it.
func (s *server) beginOf(name, thread string) checkpoint.Run {
	s.town.t.Helper()
	synctest.Wait()
	started, err := s.Start(s.town.t.Context(), runtime.StartRequest{
		Thread: thread, CreateThread: true, Graph: name, Request: checkpoint.RunRequest{Input: `{"log":[]}`},
	})
	require.NoError(s.town.t, err)
	return started.Run
}

// strand begins runs of graph "old", each of which waits for a worker.
func (s *server) strand(n int) []checkpoint.Run {
	runs := make([]checkpoint.Run, n)
	for i := range runs {
		runs[i] = s.beginOf("old", fmt.Sprint("old", i))
	}
	synctest.Wait()
	return runs
}

// unassigned counts how often the log of a thread says that no worker serves a task.
func (w *town) unassigned(thread string) int {
	w.t.Helper()
	events, err := w.Events(w.t.Context(), thread, 0, 0)
	require.NoError(w.t, err)
	n := 0
	for i := range events {
		if events[i].Phase == checkpoint.PhaseUnassigned {
			n++
		}
	}
	return n
}

func (w *town) twoGraphs() {
	w.line("old", nil, []string{"B", "a"}, []string{"c"})
	w.line("new", nil, []string{"n"})
}

func TestUnservedRunsDontKeepTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		w.twoGraphs()
		a, _ := w.small()
		a.attachTo("w", "new", "")
		old := a.strand(5)
		f := a.Follow(runtime.FollowRequest{Thread: "old3"})
		defer f.Close()
		var last uint64
		for i := range 20 {
			a.ends(a.beginOf("new", fmt.Sprint("new", i)), checkpoint.RunSucceeded)
			pass(10 * time.Second)
		}
		for _, run := range old {
			r, err := a.Run(t.Context(), run.Thread, run.ID)
			require.NoError(t, err)
			require.Equal(t, checkpoint.RunRunning, r.State)
			require.Equal(t, 1, w.unassigned(run.Thread), "it is said once")
		}
		unserved, busy := a.hub.Waiting()
		require.Equal(t, []int{5, 0}, []int{unserved, busy}, "the metric knows all that wait")

		a.attachTo("w old", "old", "")
		began := time.Now()
		for _, run := range old {
			r := a.ends(run, checkpoint.RunSucceeded)
			require.JSONEq(t, `{"log":["B","a","c"]}`, string(r.Output))
			require.Equal(t, 1, w.unassigned(run.Thread))
			if run.Thread == "old3" {
				last = r.LastEvent
			}
		}
		require.Less(t, time.Since(began), time.Second, "the worker wakes them")
		count := map[string]int{}
		for _, name := range w.took() {
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
		unserved, _ = a.hub.Waiting()
		require.Zero(t, unserved)
	})
}

// With one place, every run that waits gives it up.
func TestOnePlaceIsEnoughBesideRunsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		w.twoGraphs()
		a := w.serverWith("A", w.Store, w, runtime.Options{MaxLive: 1})
		a.attachTo("w", "new", "")
		old := a.strand(3)
		for i := range 10 {
			a.ends(a.beginOf("new", fmt.Sprint("new", i)), checkpoint.RunSucceeded)
		}
		for range 3 { // workers that come and go take no run's turn
			leave := a.attachTo("w old", "old", "nothing")
			pass(time.Second)
			leave()
		}
		a.attachTo("w old", "old", "")
		for _, run := range old {
			a.ends(run, checkpoint.RunSucceeded)
		}
	})
}

// The pauses grow: runs that wait cost next to nothing.
func TestRunsThatWaitForWorkersLeaveTheStoreInPeace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		w.twoGraphs()
		a, store := w.small()
		a.strand(50)
		pass(5 * time.Minute)
		reads, changes := store.reads.Load(), store.changes.Load()
		pass(10 * time.Minute)
		sweeps := int64(10 * 60)
		looks := int64(50 * 10)        // one a minute
		renewals := int64(10 * 60 / 5) // of the run that keeps its place
		require.LessOrEqual(t, store.changes.Load()-changes, looks+renewals+50)
		require.LessOrEqual(t, store.reads.Load()-reads, 2*sweeps+looks+200)
		require.Equal(t, 1, w.unassigned("old7"))
	})
}

// Where places are plenty nothing changes.
func TestRunsThatWaitKeepTheirPlacesWhileThereAreOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		w.twoGraphs()
		a := w.serverWith("A", w.Store, w, runtime.Options{MaxLive: 10})
		old := a.strand(9)
		for _, run := range old[1:] {
			require.EqualValues(t, 1, w.head(run.Thread).Fence)
			require.NotEmpty(t, w.head(run.Thread).Owner)
		}
		a.attachTo("w old", "old", "")
		for _, run := range old {
			a.ends(run, checkpoint.RunSucceeded)
		}
	})
}

// A run that has given its place up goes on at the server to which its worker comes,
// whichever knows of it.
func TestARunThatGaveItsPlaceUpGoesToItsWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		w.twoGraphs()
		a := w.serverWith("A", w.board, w, runtime.Options{MaxLive: 1})
		b := w.serverWith("B", w.board, w, runtime.Options{MaxLive: 1})
		a.attachTo("wa", "new", "")
		old := a.strand(4)
		for i := range 5 {
			a.ends(a.beginOf("new", fmt.Sprint("new", i)), checkpoint.RunSucceeded)
			pass(20 * time.Second)
		}
		for _, run := range old {
			require.LessOrEqual(t, w.unassigned(run.Thread), 2, "once at each server")
		}
		b.attachTo("wb", "old", "")
		began := time.Now()
		for _, run := range old {
			b.ends(run, checkpoint.RunSucceeded)
		}
		require.Less(t, time.Since(began), 2*time.Minute, "a server that does not know of them has found them")
	})
}

// What a client wants of such a run happens: it is cancelled, it runs out of time, its
// other question expires.
func TestARunThatGaveItsPlaceUpObeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		w.twoGraphs()
		w.line("asks", nil, []string{"Q", "a"})
		w.code["Q"] = func(_ context.Context, _ *server, task *runtime.Task, _ string) pregel.Result {
			if len(task.Journal.Answers) > 0 {
				return pregel.Result{Update: payload.JSON(`{"log":[` + string(task.Journal.Answers[0].Value) + `]}`)}
			}
			return pregel.Result{Asks: []pregel.Ask{{
				Value: `"?"`, TTL: 90 * time.Second, Expiry: checkpoint.ExpiryResumeDefault, Default: `"default"`,
			}}}
		}
		a := w.serverWith("A", w.Store, w, runtime.Options{MaxLive: 1})
		a.attachTo("w", "new", "")
		asks := a.beginOf("asks", "asks")
		synctest.Wait()
		timed, err := a.Start(t.Context(), runtime.StartRequest{
			Thread: "timed", CreateThread: true, Graph: "old",
			Request: checkpoint.RunRequest{Input: `{"log":[]}`, Timeout: 45 * time.Second},
		})
		require.NoError(t, err)
		old := a.strand(2)
		pass(10 * time.Second)
		require.Empty(t, w.head("timed").Owner)
		require.Empty(t, w.head("asks").Owner)
		r, err := a.Cancel(t.Context(), runtime.CancelRequest{Thread: old[0].Thread})
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunCancelled, r.State)
		unserved, _ := a.hub.Waiting()
		require.Equal(t, 3, unserved, "what is cancelled does not wait")
		began := time.Now()
		a.ends(timed.Run, checkpoint.RunTimedOut)
		require.LessOrEqual(t, time.Since(began), 40*time.Second)
		pass(90 * time.Second)
		questions, err := w.Interrupts(t.Context(), checkpoint.InterruptQuery{Thread: "asks"})
		require.NoError(t, err)
		require.Equal(t, checkpoint.InterruptExpired, questions[0].State)
		a.attachTo("w old", "old", "")
		a.attachTo("w asks", "asks", "")
		a.ends(old[1], checkpoint.RunSucceeded)
		require.JSONEq(t, `{"log":["default","a"]}`, string(a.ends(asks, checkpoint.RunSucceeded).Output))
	})
}

// The server stops while runs wait; the next one finds them.
func TestRunsThatGaveTheirPlacesUpOutliveTheirServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		w.twoGraphs()
		a, _ := w.small()
		old := a.strand(5)
		pass(10 * time.Minute)
		a.hub.Close()
		a.Close()
		b := w.serverWith("B", w.Store, w, runtime.Options{MaxLive: 2})
		b.attachTo("w old", "old", "")
		began := time.Now()
		for _, run := range old {
			b.ends(run, checkpoint.RunSucceeded)
		}
		require.LessOrEqual(t, time.Since(began), time.Minute+5*time.Second)
	})
}

// What would be lost keeps its place: the time of a node, values that are not stored, a
// graph that keeps no checkpoints.
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
				w := newTown(t)
				w.line("old", change, []string{"B", "a"}, []string{"c"})
				a := w.serverWith("A", w.Store, w, runtime.Options{MaxLive: 1})
				run := a.beginOf("old", "t")
				pass(time.Minute)
				require.EqualValues(t, 1, w.head("t").Fence)
				require.NotEmpty(t, w.head("t").Owner)
				a.attachTo("w", "old", "")
				a.ends(run, checkpoint.RunSucceeded)
			})
		})
	}
}
