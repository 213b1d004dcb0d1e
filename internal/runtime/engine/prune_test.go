package engine_test

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
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// keepOptions keeps few checkpoints of a thread that rests.
func keepOptions(n uint64) engine.Options {
	return engine.Options{KeepCheckpoints: n, PruneDelay: time.Minute}
}

func (f *fixture) listCheckpoints(thread, namespace string) []*checkpoint.Checkpoint {
	f.t.Helper()
	list, err := f.store.Checkpoints(f.t.Context(), checkpoint.CheckpointQuery{
		Thread: thread, Namespace: namespace, AnyTask: true,
	})
	require.NoError(f.t, err)
	return list
}

func TestHistoryIsCutOffWhenAThreadRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code, spec := growingGraph(100)
		w := newFixtureOn(t, memory.New(memory.Options{}), keepOptions(20), code, spec)
		r := w.runToStop("t", "talk", `{}`)
		output := r.Output
		require.Len(t, w.listCheckpoints("t", ""), 102)
		before := w.readState("t").Values
		sleepVirtual(59 * time.Second)
		require.Len(t, w.listCheckpoints("t", ""), 102, "who follows has time to catch up")
		head, err := w.engine.Thread(t.Context(), "t")
		require.NoError(t, err)
		sleepVirtual(3 * time.Second)
		list := w.listCheckpoints("t", "")
		require.Len(t, list, 20)
		require.Equal(t, head.Checkpoint, list[0].ID)
		require.Equal(t, before, w.readState("t").Values)
		events, err := w.store.Events(t.Context(), "t", list[19].Event-1, 1)
		require.NoError(t, err, "what the tasks did since is there")
		require.Equal(t, list[19].ID, events[0].Checkpoint)
		_, err = w.store.Events(t.Context(), "t", list[19].Event-2, 1)
		require.ErrorIs(t, err, checkpoint.ErrTrimmed)
		now, err := w.engine.Thread(t.Context(), "t")
		require.NoError(t, err)
		require.Equal(t, head.Updated, now.Updated, "that is no change of the thread")
		require.True(t, now.Due.IsZero())
		r, err = w.engine.Run(t.Context(), nil, "t", "")
		require.NoError(t, err)
		require.Equal(t, output, r.Output)
	})
}

func TestALittleMoreHistoryIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code, spec := growingGraph(23)
		w := newFixtureOn(t, memory.New(memory.Options{}), keepOptions(20), code, spec)
		w.runToStop("t", "talk", `{}`)
		sleepVirtual(time.Hour)
		require.Len(t, w.listCheckpoints("t", ""), 25)
	})
}

func TestThreadExpiresThoughItsHistoryIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code, spec := growingGraph(100)
		w := newFixtureOn(t, memory.New(memory.Options{}), keepOptions(20), code, spec)
		_, err := w.engine.CreateThread(t.Context(), runtime.CreateThreadRequest{
			Thread: "t", Graph: "talk", Expiration: runtime.Expiration{TTL: time.Hour},
		})
		require.NoError(t, err)
		w.runToStop("t", "talk", `{}`)
		sleepVirtual(59 * time.Minute)
		require.Len(t, w.listCheckpoints("t", ""), 20)
		sleepVirtual(2 * time.Minute)
		require.Empty(t, w.listCheckpoints("t", ""))
		_, err = w.engine.Thread(t.Context(), "t")
		require.Equal(t, runtime.ReasonThreadNotFound, errorReason(err))
	})
}

// TestWaitingThreadGoesOnWithoutItsPast asks in a persistent subgraph, again
// and again, and rests long enough before each answer.
func TestWaitingThreadGoesOnWithoutItsPast(t *testing.T) {
	play := func(t *testing.T, opts engine.Options) (*fixture, checkpoint.Run) {
		t.Helper()
		ask := func(_ context.Context, c *nodeCall) pregel.Result { return logUpdate(c.askNext(`"?"`)) }
		say := func(context.Context, *nodeCall) pregel.Result { return logUpdate(`"said"`) }
		inner := chainSpec("inner", channelsLog, "say", "ask")
		outer := &graph.Spec{
			Name: "outer", Channels: channelsLog,
			Nodes: []graph.NodeSpec{
				functionNode("before"), {Name: "sub", Graph: &graph.SubgraphSpec{Name: "inner", Persistence: "persist"}},
			},
			Edges: []graph.EdgeSpec{newEdge(graph.Start, "before"), newEdge("before", "sub"), newEdge("sub", graph.End)},
		}
		w := newFixtureOn(t, memory.New(memory.Options{}), opts, map[string]nodeFunc{"ask": ask, "say": say, "before": say}, inner, outer)
		var r checkpoint.Run
		for range 4 {
			r = w.runToStop("t", "outer", `{"log":["in"]}`)
			require.Equal(t, checkpoint.RunInterrupted, r.State)
			sleepVirtual(time.Hour)
			require.Len(t, w.readState("t").Interrupts, 1)
			r = w.answerSingle("t", `"yes"`)
			require.Equal(t, checkpoint.RunSucceeded, r.State)
			sleepVirtual(time.Hour)
		}
		return w, r
	}
	synctest.Test(t, func(t *testing.T) {
		all, want := play(t, engine.Options{})
		few, got := play(t, keepOptions(1))
		require.Equal(t, want.Output, got.Output)
		require.Equal(t, all.stateValues("t"), few.stateValues("t"))
		require.Len(t, few.listCheckpoints("t", ""), 2, "the newest, and the one that the last run began with")
		require.Len(t, few.listCheckpoints("t", "sub"), 1)
		require.Greater(t, len(all.listCheckpoints("t", "sub")), 8)
	})
}

func TestCancelledRunGoesBackWithoutItsPast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := func(_ context.Context, c *nodeCall) pregel.Result { return logUpdate(c.askNext(`"?"`)) }
		w := newFixtureOn(t, memory.New(memory.Options{}), keepOptions(1), map[string]nodeFunc{
			"a": updateNode(`{"log":["a"]}`), "ask": ask, "b": updateNode(`{"log":["b"]}`),
		}, chainSpec("g", channelsLog, "a", "b", "ask"))
		w.runToStop("t", "g", `{}`)
		w.answerSingle("t", `"first"`)
		sleepVirtual(time.Hour)
		want := w.stateValues("t")
		r := w.runToStop("t", "g", `{}`)
		require.Equal(t, checkpoint.RunInterrupted, r.State)
		sleepVirtual(time.Hour)
		require.Len(t, w.listCheckpoints("t", ""), 2)
		_, err := w.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: "t", Run: r.ID, Rollback: true})
		require.NoError(t, err)
		require.Equal(t, want, w.stateValues("t"))
	})
}

func TestOutputIsNotStoredTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code, spec := growingGraph(3)
		w := newFixtureOn(t, memory.New(memory.Options{}), keepOptions(2), code, spec)
		first := w.runToStop("t", "talk", `{}`)
		require.Equal(t, w.stateValues("t"), string(first.Output))
		second := w.runToStop("t", "talk", `{}`)
		require.Greater(t, len(second.Output), len(first.Output))
		runs, _, err := w.engine.Runs(t.Context(), nil, "t", 0, 10, 0)
		require.NoError(t, err)
		require.Equal(t, []payload.JSON{second.Output, first.Output}, []payload.JSON{runs[0].Output, runs[1].Output})
		stored, err := w.store.Run(t.Context(), "t", first.ID)
		require.NoError(t, err)
		require.Empty(t, stored.Output)
		sleepVirtual(time.Hour)
		runs, _, err = w.engine.Runs(t.Context(), nil, "t", 0, 10, 0)
		require.NoError(t, err)
		require.Equal(t, second.Output, runs[0].Output)
		require.Equal(t, first.Output, runs[1].Output, "the newest run began there")
		w.runToStop("t", "talk", `{}`)
		sleepVirtual(time.Hour)
		old, err := w.engine.Run(t.Context(), nil, "t", first.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, old.State)
		require.Empty(t, old.Output, "it went with its checkpoint")
	})
}

// corruptStore is a store with a record that can't be read when a history is cut off.
type corruptStore struct {
	checkpoint.Store

	pruneCount int
}

func (s *corruptStore) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	if c.DropBefore > 0 {
		s.pruneCount++
		return checkpoint.Receipt{}, checkpoint.ErrCorrupt
	}
	return s.Store.Apply(ctx, c)
}

func TestCorruptHistoryIsLeftWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code, spec := growingGraph(50)
		store := &corruptStore{Store: memory.New(memory.Options{})}
		w := newFixtureOn(t, store, keepOptions(20), code, spec)
		w.runToStop("t", "talk", `{}`)
		sleepVirtual(time.Hour)
		require.Equal(t, 1, store.pruneCount, "it is not tried again and again")
		require.Len(t, w.listCheckpoints("t", ""), 52)
		require.Equal(t, checkpoint.RunSucceeded, w.runToStop("t", "talk", `{}`).State)
		sleepVirtual(time.Hour)
		require.Equal(t, 2, store.pruneCount)
	})
}

// TestThreadsMayKeepAnotherNumber sets what is kept of single threads.
func TestThreadsMayKeepAnotherNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code, spec := growingGraph(100)
		w := newFixtureOn(t, memory.New(memory.Options{}), keepOptions(20), code, spec)
		for thread, keep := range map[string]int{"usual": 0, "few": 5, "one": 1, "all": -1} {
			head, err := w.engine.CreateThread(t.Context(), runtime.CreateThreadRequest{Thread: thread, Graph: "talk", KeepCheckpoints: keep})
			require.NoError(t, err)
			require.Equal(t, keep, head.Keep)
			w.runToStop(thread, "talk", `{}`)
		}
		sleepVirtual(time.Hour)
		for thread, want := range map[string]int{"usual": 20, "few": 5, "one": 1, "all": 102} {
			require.Len(t, w.listCheckpoints(thread, ""), want, thread)
		}
		fewer := 10
		head, err := w.engine.UpdateThread(t.Context(), runtime.UpdateThreadRequest{Thread: "all", KeepCheckpoints: &fewer})
		require.NoError(t, err)
		require.Equal(t, fewer, head.Keep)
		sleepVirtual(time.Hour)
		require.Len(t, w.listCheckpoints("all", ""), fewer)
		require.Equal(t, checkpoint.RunSucceeded, w.runToStop("one", "talk", `{}`).State)
	})
}

// TestThreadsKeepLessThoughTheServerKeepsAll sets a limit for one thread.
func TestThreadsKeepLessThoughTheServerKeepsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code, spec := growingGraph(100)
		w := newFixtureOn(t, memory.New(memory.Options{}), engine.Options{PruneDelay: time.Minute}, code, spec)
		_, err := w.engine.CreateThread(t.Context(), runtime.CreateThreadRequest{Thread: "few", Graph: "talk", KeepCheckpoints: 5})
		require.NoError(t, err)
		w.runToStop("few", "talk", `{}`)
		w.runToStop("t", "talk", `{}`)
		sleepVirtual(time.Hour)
		require.Len(t, w.listCheckpoints("few", ""), 5)
		require.Len(t, w.listCheckpoints("t", ""), 102)
	})
}

// slowSpecs returns a graph that appends and waits a second, n times, and in a subgraph
// that stays now and then.
func slowSpecs(n int) (map[string]nodeFunc, []*graph.Spec) {
	say := func(ctx context.Context, c *nodeCall) pregel.Result {
		timer := time.NewTimer(time.Second)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return failedResult("cut off")
		}
		return pregel.Result{Update: payload.JSON(`{"log":["x"],"n":1}`)}
	}
	inner := chainSpec("inner", []graph.ChannelSpec{{Name: "noted"}}, "note")
	outer := &graph.Spec{
		Name: "slowly", Channels: append([]graph.ChannelSpec{{Name: "noted"}}, channelsLog...), StepLimit: 10 * n,
		Nodes: []graph.NodeSpec{
			functionNode("say"), {Name: "sub", Graph: &graph.SubgraphSpec{Name: "inner", Persistence: "persist"}},
		},
		Edges: []graph.EdgeSpec{newEdge(graph.Start, "say"), newEdge("sub", "say")},
		Branches: []graph.BranchSpec{{From: "say", Cases: []graph.CaseSpec{
			{When: fmt.Sprintf("state.n == %d", n), To: []string{graph.End}},
			{When: "state.n % 10 == 0", To: []string{"sub"}},
			{To: []string{"say"}},
		}}},
	}
	return map[string]nodeFunc{"say": say, "note": updateNode(`{"noted":true}`)}, []*graph.Spec{inner, outer}
}

// TestHistoryIsCutOffWhileARunGoesOn runs for ten minutes.
func TestHistoryIsCutOffWhileARunGoesOn(t *testing.T) {
	for name, keep := range map[string]int{"few": 20, "all": -1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				code, specs := slowSpecs(600)
				w := newFixtureOn(t, memory.New(memory.Options{}), keepOptions(20), code, specs...)
				_, err := w.engine.CreateThread(t.Context(), runtime.CreateThreadRequest{Thread: "t", Graph: "slowly", KeepCheckpoints: keep})
				require.NoError(t, err)
				s, err := w.engine.Start(t.Context(), runtime.StartRequest{
					Thread: "t", Graph: "slowly", Request: checkpoint.RunRequest{Input: `{}`},
				})
				require.NoError(t, err)
				most, cuts := 0, 0
				for range 11 {
					sleepVirtual(50 * time.Second)
					list := w.listCheckpoints("t", "")
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
				r := w.waitRun(s)
				require.Equal(t, checkpoint.RunSucceeded, r.State)
				if keep < 0 {
					require.Greater(t, most, 600)
					return
				}
				require.Less(t, most, 200)
				require.Greater(t, cuts, 7)
				require.Equal(t, 600, strings.Count(w.stateValues("t"), `"x"`))
			})
		})
	}
}

// TestAStoreThatFailsToPruneStopsNoRun breaks each change that forgets.
func TestAStoreThatFailsToPruneStopsNoRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code, specs := slowSpecs(600)
		store := &failingPruneStore{Store: memory.New(memory.Options{})}
		w := newFixtureOn(t, store, keepOptions(20), code, specs...)
		require.Equal(t, checkpoint.RunSucceeded, w.runToStop("t", "slowly", `{}`).State)
		require.Greater(t, store.pruneCount, 3)
		require.Greater(t, len(w.listCheckpoints("t", "")), 600)
	})
}

// failingPruneStore can't cut off histories.
type failingPruneStore struct {
	checkpoint.Store
	pruneCount int
}

func (f *failingPruneStore) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	if c.DropBefore > 0 {
		f.pruneCount++
		return checkpoint.Receipt{}, checkpoint.ErrCorrupt
	}
	return f.Store.Apply(ctx, c)
}

func (f *fixture) pruneThread(thread string, keep int) checkpoint.Head {
	f.t.Helper()
	h, err := f.engine.PruneThread(f.t.Context(), runtime.PruneRequest{Thread: thread, KeepCheckpoints: keep})
	require.NoError(f.t, err)
	return h
}

func TestHistoriesArePrunedOnRequest(t *testing.T) {
	ask := func(_ context.Context, c *nodeCall) pregel.Result { return logUpdate(c.askNext(`"?"`)) }
	w := newFixture(t, map[string]nodeFunc{
		"a": updateNode(`{"log":["a"]}`), "b": updateNode(`{"log":["b"]}`), "ask": ask,
	}, chainSpec("g", channelsLog, "a", "b", "ask"))
	w.runToStop("t", "g", `{}`)
	w.answerSingle("t", `"first"`)
	w.runToStop("t", "g", `{}`)
	all := len(w.listCheckpoints("t", ""))
	before, err := w.engine.Thread(t.Context(), "t")
	require.NoError(t, err)
	_, err = w.engine.PruneThread(t.Context(), runtime.PruneRequest{Thread: "t", KeepCheckpoints: 1, Etag: before.Revision + 1})
	require.Equal(t, runtime.ReasonEtagMismatch, errorReason(err))
	require.Equal(t, before.Revision, w.pruneThread("t", all).Revision, "there is nothing to do")
	pruned := w.pruneThread("t", 1)
	require.Equal(t, before.Updated, pruned.Updated)
	require.Greater(t, pruned.FirstEvent, before.FirstEvent)
	require.Len(t, w.listCheckpoints("t", ""), 2, "the newest, and the one that the run began with")
	require.Len(t, w.readState("t").Interrupts, 1)
	require.Equal(t, checkpoint.RunSucceeded, w.answerSingle("t", `"second"`).State)
	require.Contains(t, w.stateValues("t"), `"first"`)
	_, err = w.engine.PruneThread(t.Context(), runtime.PruneRequest{Thread: "nobody", KeepCheckpoints: 1})
	require.Equal(t, runtime.ReasonThreadNotFound, errorReason(err))
}

func TestNoPruningWhileARunGoesOnOrBack(t *testing.T) {
	begun, release := make(chan struct{}, 1), make(chan struct{})
	wait := func(context.Context, *nodeCall) pregel.Result {
		begun <- struct{}{}
		<-release
		return logUpdate(`"done"`)
	}
	ask := func(_ context.Context, c *nodeCall) pregel.Result { return logUpdate(c.askNext(`"?"`)) }
	w := newFixture(t, map[string]nodeFunc{"wait": wait, "ask": ask}, chainSpec("g", channelsLog, "wait", "ask"))
	s, err := w.engine.Start(t.Context(), runtime.StartRequest{
		Thread: "t", CreateThread: true, Graph: "g", Request: checkpoint.RunRequest{Input: `{}`},
	})
	require.NoError(t, err)
	<-begun
	_, err = w.engine.PruneThread(t.Context(), runtime.PruneRequest{Thread: "t", KeepCheckpoints: 1})
	require.Equal(t, runtime.ReasonThreadBusy, errorReason(err))
	close(release)
	w.waitRun(s)
	w.answerSingle("t", `"yes"`)
	list := w.listCheckpoints("t", "")
	s, err = w.engine.Start(t.Context(), runtime.StartRequest{
		Thread: "t", Graph: "g", Request: checkpoint.RunRequest{From: list[len(list)-1].ID},
	})
	require.NoError(t, err)
	require.Equal(t, checkpoint.RunInterrupted, w.waitRun(s).State)
	_, err = w.engine.PruneThread(t.Context(), runtime.PruneRequest{Thread: "t", KeepCheckpoints: 1})
	require.Equal(t, runtime.ReasonThreadInterrupted, errorReason(err))
}

func TestLongHistoriesArePrunedInPieces(t *testing.T) {
	code, spec := growingGraph(4500)
	code["say"] = updateNode(`{"n":1}`)
	spec.StepLimit = 5000
	w := newFixture(t, code, spec)
	w.runToStop("t", "talk", `{}`)
	require.Greater(t, len(w.listCheckpoints("t", "")), 4500)
	before, err := w.engine.Thread(t.Context(), "t")
	require.NoError(t, err)
	require.Equal(t, before.Revision+2, w.pruneThread("t", 3).Revision, "two changes")
	require.Len(t, w.listCheckpoints("t", ""), 3)
}

// hookedReadStore lets something happen before a log is read.
type hookedReadStore struct {
	checkpoint.Store
	beforeRead func()
}

func (s *hookedReadStore) Events(ctx context.Context, thread string, after uint64, limit int) ([]checkpoint.Event, error) {
	if f := s.beforeRead; f != nil {
		s.beforeRead = nil
		f()
	}
	return s.Store.Events(ctx, thread, after, limit)
}

// TestPruningAtTheSameTime cuts off what another call is about to read.
func TestPruningAtTheSameTime(t *testing.T) {
	store := &hookedReadStore{Store: memory.New(memory.Options{})}
	w := newFixtureOn(t, store, engine.Options{}, map[string]nodeFunc{"a": updateNode(`{"log":["a"]}`)}, chainSpec("g", channelsLog, "a"))
	for range 3 {
		w.runToStop("t", "g", `{}`)
	}
	store.beforeRead = func() { w.pruneThread("t", 4) }
	w.pruneThread("t", 2)
	require.Len(t, w.listCheckpoints("t", ""), 3, "the newest two, and the one that the run began with")

	w.runToStop("t", "g", `{}`)
	store.beforeRead = func() { require.NoError(t, w.engine.DeleteThread(t.Context(), "t", 0, false)) }
	_, err := w.engine.PruneThread(t.Context(), runtime.PruneRequest{Thread: "t", KeepCheckpoints: 1})
	require.Equal(t, runtime.ReasonThreadNotFound, errorReason(err))
}
