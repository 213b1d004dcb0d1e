package runtime_test

import (
	"context"
	"fmt"
	"strings"
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

// frugal keeps few checkpoints of a thread that rests.
func frugal(n uint64) runtime.Options {
	return runtime.Options{Checkpoints: n, Rest: time.Minute}
}

func (w *world) history(thread, namespace string) []*checkpoint.Checkpoint {
	w.t.Helper()
	list, err := w.store.Checkpoints(w.t.Context(), checkpoint.CheckpointQuery{
		Thread: thread, Namespace: namespace, AnyTask: true,
	})
	require.NoError(w.t, err)
	return list
}

func TestHistoryIsCutOffWhenAThreadRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code, spec := talk(100)
		w := newWorldOn(t, memory.New(memory.Options{}), frugal(20), code, spec)
		r := w.run("t", "talk", `{}`)
		output := r.Output
		require.Len(t, w.history("t", ""), 102)
		before := w.state("t").Values
		rest(59 * time.Second)
		require.Len(t, w.history("t", ""), 102, "who follows has time to catch up")
		head, err := w.engine.Thread(t.Context(), "t")
		require.NoError(t, err)
		rest(3 * time.Second)
		list := w.history("t", "")
		require.Len(t, list, 20)
		require.Equal(t, head.Checkpoint, list[0].ID)
		require.Equal(t, before, w.state("t").Values)
		events, err := w.store.Events(t.Context(), "t", list[19].Event-1, 1)
		require.NoError(t, err, "what the tasks did since is there")
		require.Equal(t, list[19].ID, events[0].Checkpoint)
		_, err = w.store.Events(t.Context(), "t", list[19].Event-2, 1)
		require.ErrorIs(t, err, checkpoint.ErrTrimmed)
		now, err := w.engine.Thread(t.Context(), "t")
		require.NoError(t, err)
		require.Equal(t, head.Updated, now.Updated, "that is no change of the thread")
		require.True(t, now.Due.IsZero())
		r, err = w.engine.Run(t.Context(), "t", "")
		require.NoError(t, err)
		require.Equal(t, output, r.Output)
	})
}

func TestALittleMoreHistoryIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code, spec := talk(23)
		w := newWorldOn(t, memory.New(memory.Options{}), frugal(20), code, spec)
		w.run("t", "talk", `{}`)
		rest(time.Hour)
		require.Len(t, w.history("t", ""), 25)
	})
}

func TestThreadExpiresThoughItsHistoryIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code, spec := talk(100)
		w := newWorldOn(t, memory.New(memory.Options{}), frugal(20), code, spec)
		_, err := w.engine.CreateThread(t.Context(), runtime.NewThread{
			Thread: "t", Graph: "talk", Expiration: runtime.Expiration{TTL: time.Hour},
		})
		require.NoError(t, err)
		w.run("t", "talk", `{}`)
		rest(59 * time.Minute)
		require.Len(t, w.history("t", ""), 20)
		rest(2 * time.Minute)
		require.Empty(t, w.history("t", ""))
		_, err = w.engine.Thread(t.Context(), "t")
		require.Equal(t, runtime.ReasonThreadNotFound, reason(err))
	})
}

// TestWaitingThreadGoesOnWithoutItsPast asks in a persistent subgraph, again
// and again, and rests long enough before each answer.
func TestWaitingThreadGoesOnWithoutItsPast(t *testing.T) {
	play := func(t *testing.T, opts runtime.Options) (*world, checkpoint.Run) {
		t.Helper()
		ask := func(_ context.Context, c *call) pregel.Result { return wrote(c.ask(`"?"`)) }
		say := func(context.Context, *call) pregel.Result { return wrote(`"said"`) }
		inner := chain("inner", channelsLog, "say", "ask")
		outer := &graph.Spec{
			Name: "outer", Channels: channelsLog,
			Nodes: []graph.NodeSpec{
				function("before"), {Name: "sub", Graph: &graph.SubgraphSpec{Name: "inner", Persistence: "persist"}},
			},
			Edges: []graph.EdgeSpec{edge(graph.Start, "before"), edge("before", "sub"), edge("sub", graph.End)},
		}
		w := newWorldOn(t, memory.New(memory.Options{}), opts, map[string]node{"ask": ask, "say": say, "before": say}, inner, outer)
		var r checkpoint.Run
		for range 4 {
			r = w.run("t", "outer", `{"log":["in"]}`)
			require.Equal(t, checkpoint.RunInterrupted, r.State)
			rest(time.Hour)
			require.Len(t, w.state("t").Interrupts, 1)
			r = w.answer("t", `"yes"`)
			require.Equal(t, checkpoint.RunSucceeded, r.State)
			rest(time.Hour)
		}
		return w, r
	}
	synctest.Test(t, func(t *testing.T) {
		all, want := play(t, runtime.Options{})
		few, got := play(t, frugal(1))
		require.Equal(t, want.Output, got.Output)
		require.Equal(t, all.values("t"), few.values("t"))
		require.Len(t, few.history("t", ""), 2, "the newest, and the one that the last run began with")
		require.Len(t, few.history("t", "sub"), 1)
		require.Greater(t, len(all.history("t", "sub")), 8)
	})
}

func TestCancelledRunGoesBackWithoutItsPast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := func(_ context.Context, c *call) pregel.Result { return wrote(c.ask(`"?"`)) }
		w := newWorldOn(t, memory.New(memory.Options{}), frugal(1), map[string]node{
			"a": update(`{"log":["a"]}`), "ask": ask, "b": update(`{"log":["b"]}`),
		}, chain("g", channelsLog, "a", "b", "ask"))
		w.run("t", "g", `{}`)
		w.answer("t", `"first"`)
		rest(time.Hour)
		want := w.values("t")
		r := w.run("t", "g", `{}`)
		require.Equal(t, checkpoint.RunInterrupted, r.State)
		rest(time.Hour)
		require.Len(t, w.history("t", ""), 2)
		_, err := w.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: "t", Run: r.ID, Rollback: true})
		require.NoError(t, err)
		require.Equal(t, want, w.values("t"))
	})
}

func TestOutputIsNotStoredTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code, spec := talk(3)
		w := newWorldOn(t, memory.New(memory.Options{}), frugal(2), code, spec)
		first := w.run("t", "talk", `{}`)
		require.Equal(t, w.values("t"), string(first.Output))
		second := w.run("t", "talk", `{}`)
		require.Greater(t, len(second.Output), len(first.Output))
		runs, _, err := w.engine.Runs(t.Context(), "t", 0, 10, 0)
		require.NoError(t, err)
		require.Equal(t, []payload.JSON{second.Output, first.Output}, []payload.JSON{runs[0].Output, runs[1].Output})
		stored, err := w.store.Run(t.Context(), "t", first.ID)
		require.NoError(t, err)
		require.Empty(t, stored.Output)
		rest(time.Hour)
		runs, _, err = w.engine.Runs(t.Context(), "t", 0, 10, 0)
		require.NoError(t, err)
		require.Equal(t, second.Output, runs[0].Output)
		require.Equal(t, first.Output, runs[1].Output, "the newest run began there")
		w.run("t", "talk", `{}`)
		rest(time.Hour)
		old, err := w.engine.Run(t.Context(), "t", first.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, old.State)
		require.Empty(t, old.Output, "it went with its checkpoint")
	})
}

// rotten is a store with a record that can't be read when a history is cut off.
type rotten struct {
	checkpoint.Store

	cuts int
}

func (r *rotten) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	if c.DropBefore > 0 {
		r.cuts++
		return checkpoint.Receipt{}, checkpoint.ErrCorrupt
	}
	return r.Store.Apply(ctx, c)
}

func TestCorruptHistoryIsLeftWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code, spec := talk(50)
		store := &rotten{Store: memory.New(memory.Options{})}
		w := newWorldOn(t, store, frugal(20), code, spec)
		w.run("t", "talk", `{}`)
		rest(time.Hour)
		require.Equal(t, 1, store.cuts, "it is not tried again and again")
		require.Len(t, w.history("t", ""), 52)
		require.Equal(t, checkpoint.RunSucceeded, w.run("t", "talk", `{}`).State)
		rest(time.Hour)
		require.Equal(t, 2, store.cuts)
	})
}

// TestThreadsMayKeepAnotherNumber sets what is kept of single threads.
func TestThreadsMayKeepAnotherNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code, spec := talk(100)
		w := newWorldOn(t, memory.New(memory.Options{}), frugal(20), code, spec)
		for thread, keep := range map[string]int{"usual": 0, "few": 5, "one": 1, "all": -1} {
			head, err := w.engine.CreateThread(t.Context(), runtime.NewThread{Thread: thread, Graph: "talk", Keep: keep})
			require.NoError(t, err)
			require.Equal(t, keep, head.Keep)
			w.run(thread, "talk", `{}`)
		}
		rest(time.Hour)
		for thread, want := range map[string]int{"usual": 20, "few": 5, "one": 1, "all": 102} {
			require.Len(t, w.history(thread, ""), want, thread)
		}
		fewer := 10
		head, err := w.engine.UpdateThread(t.Context(), runtime.ThreadChange{Thread: "all", Keep: &fewer})
		require.NoError(t, err)
		require.Equal(t, fewer, head.Keep)
		rest(time.Hour)
		require.Len(t, w.history("all", ""), fewer)
		require.Equal(t, checkpoint.RunSucceeded, w.run("one", "talk", `{}`).State)
	})
}

// TestThreadsKeepLessThoughTheServerKeepsAll sets a limit for one thread.
func TestThreadsKeepLessThoughTheServerKeepsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code, spec := talk(100)
		w := newWorldOn(t, memory.New(memory.Options{}), runtime.Options{Rest: time.Minute}, code, spec)
		_, err := w.engine.CreateThread(t.Context(), runtime.NewThread{Thread: "few", Graph: "talk", Keep: 5})
		require.NoError(t, err)
		w.run("few", "talk", `{}`)
		w.run("t", "talk", `{}`)
		rest(time.Hour)
		require.Len(t, w.history("few", ""), 5)
		require.Len(t, w.history("t", ""), 102)
	})
}

// slowly is a graph that appends and waits a second, n times, and in a subgraph
// that stays now and then.
func slowly(n int) (map[string]node, []*graph.Spec) {
	say := func(ctx context.Context, c *call) pregel.Result {
		timer := time.NewTimer(time.Second)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return fail("cut off")
		}
		return pregel.Result{Update: payload.JSON(`{"log":["x"],"n":1}`)}
	}
	inner := chain("inner", []graph.ChannelSpec{{Name: "noted"}}, "note")
	outer := &graph.Spec{
		Name: "slowly", Channels: append([]graph.ChannelSpec{{Name: "noted"}}, channelsLog...), StepLimit: 10 * n,
		Nodes: []graph.NodeSpec{
			function("say"), {Name: "sub", Graph: &graph.SubgraphSpec{Name: "inner", Persistence: "persist"}},
		},
		Edges: []graph.EdgeSpec{edge(graph.Start, "say"), edge("sub", "say")},
		Branches: []graph.BranchSpec{{From: "say", Cases: []graph.CaseSpec{
			{When: fmt.Sprintf("state.n == %d", n), To: []string{graph.End}},
			{When: "state.n % 10 == 0", To: []string{"sub"}},
			{To: []string{"say"}},
		}}},
	}
	return map[string]node{"say": say, "note": update(`{"noted":true}`)}, []*graph.Spec{inner, outer}
}

// TestHistoryIsCutOffWhileARunGoesOn runs for ten minutes.
func TestHistoryIsCutOffWhileARunGoesOn(t *testing.T) {
	for name, keep := range map[string]int{"few": 20, "all": -1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				code, specs := slowly(600)
				w := newWorldOn(t, memory.New(memory.Options{}), frugal(20), code, specs...)
				_, err := w.engine.CreateThread(t.Context(), runtime.NewThread{Thread: "t", Graph: "slowly", Keep: keep})
				require.NoError(t, err)
				s, err := w.engine.Start(t.Context(), runtime.StartRequest{
					Thread: "t", Graph: "slowly", Request: checkpoint.RunRequest{Input: `{}`},
				})
				require.NoError(t, err)
				most, cuts := 0, 0
				for range 11 {
					rest(50 * time.Second)
					list := w.history("t", "")
					most = max(most, len(list))
					head, err := w.store.Head(t.Context(), "t")
					require.NoError(t, err)
					if keep < 0 {
						require.EqualValues(t, 1, max(head.FirstEvent, 1))
						continue
					}
					if head.FirstEvent > 1 {
						cuts++
					}
					events, err := w.store.Events(t.Context(), "t", max(head.FirstEvent, 1)-1, 1)
					require.NoError(t, err)
					require.LessOrEqual(t, events[0].Time, time.Now().Add(-50*time.Second), "who follows has time to read")
				}
				r := w.wait(s)
				require.Equal(t, checkpoint.RunSucceeded, r.State)
				if keep < 0 {
					require.Greater(t, most, 600)
					return
				}
				require.Less(t, most, 200)
				require.Greater(t, cuts, 7)
				require.Equal(t, 600, strings.Count(w.values("t"), `"x"`))
			})
		})
	}
}

// TestAStoreThatFailsToForgetStopsNoRun breaks each change that forgets.
func TestAStoreThatFailsToForgetStopsNoRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code, specs := slowly(600)
		store := &unforgetting{Store: memory.New(memory.Options{})}
		w := newWorldOn(t, store, frugal(20), code, specs...)
		require.Equal(t, checkpoint.RunSucceeded, w.run("t", "slowly", `{}`).State)
		require.Greater(t, store.asked, 3)
		require.Greater(t, len(w.history("t", "")), 600)
	})
}

// unforgetting can't cut off histories.
type unforgetting struct {
	checkpoint.Store
	asked int
}

func (f *unforgetting) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	if c.DropBefore > 0 {
		f.asked++
		return checkpoint.Receipt{}, checkpoint.ErrCorrupt
	}
	return f.Store.Apply(ctx, c)
}

func (w *world) prune(thread string, keep int) checkpoint.Head {
	w.t.Helper()
	h, err := w.engine.PruneThread(w.t.Context(), runtime.PruneRequest{Thread: thread, Keep: keep})
	require.NoError(w.t, err)
	return h
}

func TestHistoriesArePrunedOnRequest(t *testing.T) {
	ask := func(_ context.Context, c *call) pregel.Result { return wrote(c.ask(`"?"`)) }
	w := newWorld(t, map[string]node{
		"a": update(`{"log":["a"]}`), "b": update(`{"log":["b"]}`), "ask": ask,
	}, chain("g", channelsLog, "a", "b", "ask"))
	w.run("t", "g", `{}`)
	w.answer("t", `"first"`)
	w.run("t", "g", `{}`)
	all := len(w.history("t", ""))
	before, err := w.engine.Thread(t.Context(), "t")
	require.NoError(t, err)
	_, err = w.engine.PruneThread(t.Context(), runtime.PruneRequest{Thread: "t", Keep: 1, Etag: before.Revision + 1})
	require.Equal(t, runtime.ReasonEtagMismatch, reason(err))
	require.Equal(t, before.Revision, w.prune("t", all).Revision, "there is nothing to do")
	pruned := w.prune("t", 1)
	require.Equal(t, before.Updated, pruned.Updated)
	require.Greater(t, pruned.FirstEvent, before.FirstEvent)
	require.Len(t, w.history("t", ""), 2, "the newest, and the one that the run began with")
	require.Len(t, w.state("t").Interrupts, 1)
	require.Equal(t, checkpoint.RunSucceeded, w.answer("t", `"second"`).State)
	require.Contains(t, w.values("t"), `"first"`)
	_, err = w.engine.PruneThread(t.Context(), runtime.PruneRequest{Thread: "nobody", Keep: 1})
	require.Equal(t, runtime.ReasonThreadNotFound, reason(err))
}

func TestNoPruningWhileARunGoesOnOrBack(t *testing.T) {
	begun, release := make(chan struct{}, 1), make(chan struct{})
	wait := func(context.Context, *call) pregel.Result {
		begun <- struct{}{}
		<-release
		return wrote(`"done"`)
	}
	ask := func(_ context.Context, c *call) pregel.Result { return wrote(c.ask(`"?"`)) }
	w := newWorld(t, map[string]node{"wait": wait, "ask": ask}, chain("g", channelsLog, "wait", "ask"))
	s, err := w.engine.Start(t.Context(), runtime.StartRequest{
		Thread: "t", CreateThread: true, Graph: "g", Request: checkpoint.RunRequest{Input: `{}`},
	})
	require.NoError(t, err)
	<-begun
	_, err = w.engine.PruneThread(t.Context(), runtime.PruneRequest{Thread: "t", Keep: 1})
	require.Equal(t, runtime.ReasonThreadBusy, reason(err))
	close(release)
	w.wait(s)
	w.answer("t", `"yes"`)
	list := w.history("t", "")
	s, err = w.engine.Start(t.Context(), runtime.StartRequest{
		Thread: "t", Graph: "g", Request: checkpoint.RunRequest{From: list[len(list)-1].ID},
	})
	require.NoError(t, err)
	require.Equal(t, checkpoint.RunInterrupted, w.wait(s).State)
	_, err = w.engine.PruneThread(t.Context(), runtime.PruneRequest{Thread: "t", Keep: 1})
	require.Equal(t, runtime.ReasonThreadInterrupted, reason(err))
}

func TestLongHistoriesArePrunedInPieces(t *testing.T) {
	code, spec := talk(4500)
	code["say"] = update(`{"n":1}`)
	spec.StepLimit = 5000
	w := newWorld(t, code, spec)
	w.run("t", "talk", `{}`)
	require.Greater(t, len(w.history("t", "")), 4500)
	before, err := w.engine.Thread(t.Context(), "t")
	require.NoError(t, err)
	require.Equal(t, before.Revision+2, w.prune("t", 3).Revision, "two changes")
	require.Len(t, w.history("t", ""), 3)
}

// crossed lets something happen before a log is read.
type crossed struct {
	checkpoint.Store
	before func()
}

func (c *crossed) Events(ctx context.Context, thread string, after uint64, limit int) ([]checkpoint.Event, error) {
	if f := c.before; f != nil {
		c.before = nil
		f()
	}
	return c.Store.Events(ctx, thread, after, limit)
}

// TestPruningAtTheSameTime cuts off what another call is about to read.
func TestPruningAtTheSameTime(t *testing.T) {
	store := &crossed{Store: memory.New(memory.Options{})}
	w := newWorldOn(t, store, runtime.Options{}, map[string]node{"a": update(`{"log":["a"]}`)}, chain("g", channelsLog, "a"))
	for range 3 {
		w.run("t", "g", `{}`)
	}
	store.before = func() { w.prune("t", 4) }
	w.prune("t", 2)
	require.Len(t, w.history("t", ""), 3, "the newest two, and the one that the run began with")

	w.run("t", "g", `{}`)
	store.before = func() { require.NoError(t, w.engine.DeleteThread(t.Context(), "t", 0, false)) }
	_, err := w.engine.PruneThread(t.Context(), runtime.PruneRequest{Thread: "t", Keep: 1})
	require.Equal(t, runtime.ReasonThreadNotFound, reason(err))
}
