package engine_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// newAskingFixture makes a graph that asks twice at once, in a subgraph that stays,
// after it has paid once.
func newAskingFixture(t *testing.T, store checkpoint.Store, paid *atomic.Int64, opts engine.Options) *fixture {
	t.Helper()
	ask := func(ctx context.Context, c *nodeCall) pregel.Result {
		if len(c.Journal.Memos) == 0 {
			n := payload.JSON("1")
			if _, _, err := c.Effects.RecordMemo(ctx, checkpoint.Memo{Key: "paid", Value: n}); err != nil {
				return failedResult(err.Error())
			}
			paid.Add(1)
		}
		return logUpdate(c.askNext(`"?"`))
	}
	inner := &graph.Spec{
		Name: "inner", Channels: channelsLog, Nodes: []graph.NodeSpec{functionNode("ask"), functionNode("also")},
		Edges: []graph.EdgeSpec{
			newEdge(graph.Start, "ask"), newEdge(graph.Start, "also"), newEdge("ask", graph.End), newEdge("also", graph.End),
		},
	}
	outer := &graph.Spec{
		Name: "outer", Channels: channelsLog,
		Nodes: []graph.NodeSpec{
			functionNode("before"), {Name: "sub", Graph: &graph.SubgraphSpec{Name: "inner", Persistence: "persist"}},
		},
		Edges: []graph.EdgeSpec{newEdge(graph.Start, "before"), newEdge("before", "sub"), newEdge("sub", graph.End)},
	}
	say := func(context.Context, *nodeCall) pregel.Result { return logUpdate(`"said"`) }
	return newFixtureOn(t, store, opts, map[string]nodeFunc{"ask": ask, "also": ask, "before": say}, inner, outer)
}

func (f *fixture) copyThread(source, thread string) checkpoint.Head {
	f.t.Helper()
	h, err := f.engine.CopyThread(f.t.Context(), runtime.CopyRequest{Source: source, Thread: thread})
	require.NoError(f.t, err)
	return h
}

// readHistory lists what a thread's history shows, without what is the thread's own.
func (f *fixture) readHistory(thread string) []runtime.Snapshot {
	f.t.Helper()
	list, _, err := f.engine.States(f.t.Context(), runtime.HistoryQuery{Thread: thread, WithValues: true})
	require.NoError(f.t, err)
	for i := range list {
		cp := *list[i].Checkpoint
		cp.Event = 0
		list[i].Checkpoint, list[i].LogID, list[i].LastEvent = &cp, "", 0
		for k := range list[i].Interrupts {
			q := &list[i].Interrupts[k]
			q.Thread, q.Change, q.Revision = "", 0, 0
		}
		for n := range list[i].Tasks {
			for k := range list[i].Tasks[n].Interrupts {
				q := &list[i].Tasks[n].Interrupts[k]
				q.Thread, q.Change, q.Revision = "", 0, 0
			}
		}
	}
	return list
}

func (f *fixture) answerAllOpen(thread, value string) checkpoint.Run {
	f.t.Helper()
	var answers []runtime.Response
	for _, q := range f.readState(thread).Interrupts {
		answers = append(answers, runtime.Response{Interrupt: q.ID, Value: payload.JSON(value)})
	}
	s, err := f.engine.Resume(f.t.Context(), runtime.ResumeRequest{Thread: thread, Responses: answers})
	require.NoError(f.t, err)
	return f.waitRun(s)
}

// listStores lists how the stores are opened, by their names.
func listStores(t *testing.T) map[string]func() checkpoint.Store {
	t.Helper()
	return map[string]func() checkpoint.Store{
		"memory": func() checkpoint.Store { return memory.New(memory.Options{}) },
		"sqlite": func() checkpoint.Store {
			s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "g.db")})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			return s
		},
		"redis": openRedisStores(t),
	}
}

// openRedisStores returns what opens an empty store, of which all are on one Redis.
func openRedisStores(t *testing.T) func() checkpoint.Store {
	t.Helper()
	var server *redistest.Server
	stores := 0
	return func() checkpoint.Store {
		if server == nil {
			server = redistest.Start(t, "--appendfsync", "no")
		}
		stores++
		s, err := redis.Open(t.Context(), redis.Options{URL: server.URL(fmt.Sprintf("shared=true&prefix=s%d", stores))})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
}

// TestCopyGoesOnByItself copies a thread that waits, and answers both.
func TestCopyGoesOnByItself(t *testing.T) {
	for name, open := range listStores(t) {
		t.Run(name, func(t *testing.T) {
			var paid atomic.Int64
			w := newAskingFixture(t, open(), &paid, engine.Options{})
			w.runToStop("t", "outer", `{"log":["one"]}`)
			w.answerAllOpen("t", `"yes"`)
			w.runToStop("t", "outer", `{"log":["two"]}`)
			require.EqualValues(t, 4, paid.Load())

			made := w.copyThread("t", "u")
			require.Equal(t, checkpoint.ThreadInterrupted, made.State)
			require.Equal(t, 2, made.Open)
			require.Equal(t, w.readHistory("t"), w.readHistory("u"))
			require.Equal(t, w.describeEvents("t"), w.describeEvents("u"))
			open, err := w.store.Interrupts(t.Context(), checkpoint.InterruptQuery{
				Thread: "u", States: []checkpoint.InterruptState{checkpoint.InterruptOpen},
			})
			require.NoError(t, err)
			require.Len(t, open, 2)

			r := w.answerAllOpen("u", `"in the copy"`)
			require.Equal(t, checkpoint.RunSucceeded, r.State)
			require.Contains(t, w.stateValues("u"), "in the copy")
			require.Len(t, w.readState("t").Interrupts, 2, "those of the original are open")
			r = w.answerAllOpen("t", `"in the original"`)
			require.Equal(t, checkpoint.RunSucceeded, r.State)
			require.NotContains(t, w.stateValues("t"), "in the copy")
			require.NotContains(t, w.stateValues("u"), "in the original")
			require.EqualValues(t, 4, paid.Load(), "what was done before the copy was made is not done again")

			// It remembers what the subgraph said in the first run, and the past can be gone back to.
			require.Equal(t, checkpoint.RunInterrupted, w.runToStop("u", "outer", `{"log":["three"]}`).State)
			w.answerAllOpen("u", `"again"`)
			past := w.readHistory("u")
			replay, err := w.engine.Start(t.Context(), runtime.StartRequest{
				Thread: "u", Graph: "outer", Request: checkpoint.RunRequest{From: past[len(past)-1].Checkpoint.ID},
			})
			require.NoError(t, err)
			require.Equal(t, checkpoint.RunInterrupted, w.waitRun(replay).State)

			require.NoError(t, w.engine.DeleteThread(t.Context(), "t", 0, true))
			require.NotEmpty(t, w.readHistory("u"))
		})
	}
}

func TestCopyOfACutHistory(t *testing.T) {
	var paid atomic.Int64
	w := newAskingFixture(t, memory.New(memory.Options{}), &paid, engine.Options{KeepCheckpoints: 3, PruneDelay: time.Millisecond, ScanInterval: 5 * time.Millisecond})
	for range 3 {
		w.runToStop("t", "outer", `{"log":["in"]}`)
		w.answerAllOpen("t", `"yes"`)
	}
	w.runToStop("t", "outer", `{"log":["in"]}`)
	require.Eventually(t, func() bool {
		h, err := w.engine.Thread(t.Context(), "t")
		return err == nil && h.FirstEvent > 1
	}, time.Minute, 5*time.Millisecond)
	w.engine.Close()
	w.opts = engine.Options{} // nothing is cut while the two are compared
	w.startEngine()
	made := w.copyThread("t", "u")
	require.EqualValues(t, 1, made.FirstEvent)
	require.Equal(t, w.readHistory("t"), w.readHistory("u"))
	head, err := w.engine.Thread(t.Context(), "t")
	require.NoError(t, err)
	events, err := w.store.Events(t.Context(), "t", head.FirstEvent-1, 0)
	require.NoError(t, err)
	require.Len(t, w.describeEvents("u"), len(events))
	require.Equal(t, checkpoint.RunSucceeded, w.answerAllOpen("u", `"yes"`).State)
	require.Equal(t, checkpoint.RunSucceeded, w.answerAllOpen("t", `"yes"`).State)
	require.Equal(t, w.stateValues("t"), w.stateValues("u"))
}

func TestCopyOfALongHistory(t *testing.T) {
	code, spec := growingGraph(1500)
	w := newFixtureOn(t, memory.New(memory.Options{}), engine.Options{StepLimit: 2000}, code, spec)
	w.runToStop("t", "talk", `{}`)
	w.copyThread("t", "u")
	list := w.listCheckpoints("u", "")
	require.Len(t, list, 1000)
	require.Equal(t, w.stateValues("t"), w.stateValues("u"))
	events, err := w.store.Events(t.Context(), "u", 0, 1)
	require.NoError(t, err)
	require.EqualValues(t, 1, events[0].Seq)
	require.Equal(t, checkpoint.RunSucceeded, w.runToStop("u", "talk", `{}`).State)
}

func TestCopiesThatAreRefused(t *testing.T) {
	var paid atomic.Int64
	w := newAskingFixture(t, memory.New(memory.Options{}), &paid, engine.Options{})
	w.runToStop("t", "outer", `{}`)
	w.runToStop("other", "outer", `{}`)
	request := runtime.CopyRequest{Source: "t", RequestID: "q", Digest: "d", Metadata: map[string]string{"copy": "yes"}}
	first, err := w.engine.CopyThread(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, "yes", first.Metadata["copy"])
	w.answerAllOpen("t", `"the original may change"`)
	again, err := w.engine.CopyThread(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, first.Thread, again.Thread)
	require.Equal(t, first.LogID, again.LogID)
	for want, req := range map[string]runtime.CopyRequest{
		runtime.ReasonThreadExists:      {Source: "t", Thread: "other"},
		runtime.ReasonThreadNotFound:    {Source: "nobody", Thread: "new"},
		runtime.ReasonRequestIDConflict: {Source: "t", RequestID: "q", Digest: "another"},
	} {
		_, err := w.engine.CopyThread(t.Context(), req)
		require.Equal(t, want, errorReason(err))
	}
	_, err = w.engine.Thread(t.Context(), "new")
	require.Equal(t, runtime.ReasonThreadNotFound, errorReason(err))
}

func TestNoCopyWhileARunGoesOn(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	wait := func(context.Context, *nodeCall) pregel.Result {
		close(begun)
		<-release
		return logUpdate(`"done"`)
	}
	w := newFixture(t, map[string]nodeFunc{"a": wait}, chainSpec("g", channelsLog, "a"))
	s, err := w.engine.Start(t.Context(), runtime.StartRequest{
		Thread: "t", CreateThread: true, Graph: "g", Request: checkpoint.RunRequest{Input: `{}`},
	})
	require.NoError(t, err)
	<-begun
	_, err = w.engine.CopyThread(t.Context(), runtime.CopyRequest{Source: "t", Thread: "u"})
	require.Equal(t, runtime.ReasonThreadBusy, errorReason(err))
	close(release)
	w.waitRun(s)
	w.copyThread("t", "u")
	require.Equal(t, w.stateValues("t"), w.stateValues("u"))
}

// TestCopyLeavesTheQueue copies a thread that waits for people, with a run
// behind.
func TestCopyLeavesTheQueue(t *testing.T) {
	ask := func(_ context.Context, c *nodeCall) pregel.Result { return logUpdate(c.askNext(`"?"`)) }
	w := newFixture(t, map[string]nodeFunc{"ask": ask}, chainSpec("g", channelsLog, "ask"))
	w.runToStop("t", "g", `{}`)
	_, err := w.engine.Start(t.Context(), runtime.StartRequest{
		Thread: "t", Graph: "g", Open: runtime.EnqueueOpen, Request: checkpoint.RunRequest{Input: `{}`},
	})
	require.NoError(t, err)
	require.Empty(t, w.copyThread("t", "u").Queue)
	runs, err := w.store.Runs(t.Context(), "u", 0, 0)
	require.NoError(t, err)
	require.Len(t, runs, 1)
	require.Equal(t, checkpoint.RunInterrupted, runs[0].State)
	require.Equal(t, checkpoint.RunSucceeded, w.answerSingle("u", `"yes"`).State)
	head, err := w.engine.Thread(t.Context(), "t")
	require.NoError(t, err)
	require.Len(t, head.Queue, 1)
	require.Equal(t, 1, head.Open)
}
