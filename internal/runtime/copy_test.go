package runtime_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// asking is a graph that asks twice at once, in a subgraph that stays, after it
// has paid once.
func asking(t *testing.T, store checkpoint.Store, paid *atomic.Int64, opts runtime.Options) *world {
	t.Helper()
	ask := func(ctx context.Context, c *call) pregel.Result {
		if len(c.Journal.Memos) == 0 {
			n := payload.JSON("1")
			if _, _, err := c.Effects.Remember(ctx, checkpoint.Memo{Key: "paid", Value: n}); err != nil {
				return fail(err.Error())
			}
			paid.Add(1)
		}
		return wrote(c.ask(`"?"`))
	}
	inner := &graph.Spec{
		Name: "inner", Channels: channelsLog, Nodes: []graph.NodeSpec{function("ask"), function("also")},
		Edges: []graph.EdgeSpec{
			edge(graph.Start, "ask"), edge(graph.Start, "also"), edge("ask", graph.End), edge("also", graph.End),
		},
	}
	outer := &graph.Spec{
		Name: "outer", Channels: channelsLog,
		Nodes: []graph.NodeSpec{
			function("before"), {Name: "sub", Graph: &graph.SubgraphSpec{Name: "inner", Persistence: "persist"}},
		},
		Edges: []graph.EdgeSpec{edge(graph.Start, "before"), edge("before", "sub"), edge("sub", graph.End)},
	}
	say := func(context.Context, *call) pregel.Result { return wrote(`"said"`) }
	return newWorldOn(t, store, opts, map[string]node{"ask": ask, "also": ask, "before": say}, inner, outer)
}

func (w *world) copy(source, thread string) checkpoint.Head {
	w.t.Helper()
	h, err := w.engine.CopyThread(w.t.Context(), runtime.CopyRequest{Source: source, Thread: thread})
	require.NoError(w.t, err)
	return h
}

// past lists what a thread's history shows, without what is the thread's own.
func (w *world) past(thread string) []runtime.Snapshot {
	w.t.Helper()
	list, _, err := w.engine.States(w.t.Context(), runtime.HistoryQuery{Thread: thread, Values: true})
	require.NoError(w.t, err)
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

func (w *world) answerAll(thread, value string) checkpoint.Run {
	w.t.Helper()
	var answers []runtime.Response
	for _, q := range w.state(thread).Interrupts {
		answers = append(answers, runtime.Response{Interrupt: q.ID, Value: payload.JSON(value)})
	}
	s, err := w.engine.Resume(w.t.Context(), runtime.ResumeRequest{Thread: thread, Responses: answers})
	require.NoError(w.t, err)
	return w.wait(s)
}

// TestCopyGoesOnByItself copies a thread that waits, and answers both.
func TestCopyGoesOnByItself(t *testing.T) {
	for name, open := range map[string]func() checkpoint.Store{
		"memory": func() checkpoint.Store { return memory.New(memory.Options{}) },
		"sqlite": func() checkpoint.Store {
			s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "g.db")})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			return s
		},
		"redis": func() checkpoint.Store { return onRedis(t, redistest.Start(t, "--appendfsync", "no")) },
	} {
		t.Run(name, func(t *testing.T) {
			var paid atomic.Int64
			w := asking(t, open(), &paid, runtime.Options{})
			w.run("t", "outer", `{"log":["one"]}`)
			w.answerAll("t", `"yes"`)
			w.run("t", "outer", `{"log":["two"]}`)
			require.EqualValues(t, 4, paid.Load())

			made := w.copy("t", "u")
			require.Equal(t, checkpoint.ThreadInterrupted, made.State)
			require.Equal(t, 2, made.Open)
			require.Equal(t, w.past("t"), w.past("u"))
			require.Equal(t, w.transcript("t"), w.transcript("u"))
			open, err := w.store.Interrupts(t.Context(), checkpoint.InterruptQuery{
				Thread: "u", States: []checkpoint.InterruptState{checkpoint.InterruptOpen},
			})
			require.NoError(t, err)
			require.Len(t, open, 2)

			r := w.answerAll("u", `"in the copy"`)
			require.Equal(t, checkpoint.RunSucceeded, r.State)
			require.Contains(t, w.values("u"), "in the copy")
			require.Len(t, w.state("t").Interrupts, 2, "those of the original are open")
			r = w.answerAll("t", `"in the original"`)
			require.Equal(t, checkpoint.RunSucceeded, r.State)
			require.NotContains(t, w.values("t"), "in the copy")
			require.NotContains(t, w.values("u"), "in the original")
			require.EqualValues(t, 4, paid.Load(), "what was done before the copy was made is not done again")

			// It remembers what the subgraph said in the first run, and the past can be gone back to.
			require.Equal(t, checkpoint.RunInterrupted, w.run("u", "outer", `{"log":["three"]}`).State)
			w.answerAll("u", `"again"`)
			past := w.past("u")
			replay, err := w.engine.Start(t.Context(), runtime.StartRequest{
				Thread: "u", Graph: "outer", Request: checkpoint.RunRequest{From: past[len(past)-1].Checkpoint.ID},
			})
			require.NoError(t, err)
			require.Equal(t, checkpoint.RunInterrupted, w.wait(replay).State)

			require.NoError(t, w.engine.DeleteThread(t.Context(), "t", 0, true))
			require.NotEmpty(t, w.past("u"))
		})
	}
}

func TestCopyOfACutHistory(t *testing.T) {
	var paid atomic.Int64
	w := asking(t, memory.New(memory.Options{}), &paid, runtime.Options{Checkpoints: 3, Rest: time.Millisecond, Sweep: 5 * time.Millisecond})
	for range 3 {
		w.run("t", "outer", `{"log":["in"]}`)
		w.answerAll("t", `"yes"`)
	}
	w.run("t", "outer", `{"log":["in"]}`)
	require.Eventually(t, func() bool {
		h, err := w.engine.Thread(t.Context(), "t")
		return err == nil && h.FirstEvent > 1
	}, time.Minute, 5*time.Millisecond)
	w.engine.Close()
	w.opts = runtime.Options{} // nothing is cut while the two are compared
	w.start()
	made := w.copy("t", "u")
	require.EqualValues(t, 1, made.FirstEvent)
	require.Equal(t, w.past("t"), w.past("u"))
	head, err := w.engine.Thread(t.Context(), "t")
	require.NoError(t, err)
	events, err := w.store.Events(t.Context(), "t", head.FirstEvent-1, 0)
	require.NoError(t, err)
	require.Len(t, w.transcript("u"), len(events))
	require.Equal(t, checkpoint.RunSucceeded, w.answerAll("u", `"yes"`).State)
	require.Equal(t, checkpoint.RunSucceeded, w.answerAll("t", `"yes"`).State)
	require.Equal(t, w.values("t"), w.values("u"))
}

func TestCopyOfALongHistory(t *testing.T) {
	code, spec := talk(1500)
	w := newWorldOn(t, memory.New(memory.Options{}), runtime.Options{StepLimit: 2000}, code, spec)
	w.run("t", "talk", `{}`)
	w.copy("t", "u")
	list := w.history("u", "")
	require.Len(t, list, 1000)
	require.Equal(t, w.values("t"), w.values("u"))
	events, err := w.store.Events(t.Context(), "u", 0, 1)
	require.NoError(t, err)
	require.EqualValues(t, 1, events[0].Seq)
	require.Equal(t, checkpoint.RunSucceeded, w.run("u", "talk", `{}`).State)
}

func TestCopiesThatAreRefused(t *testing.T) {
	var paid atomic.Int64
	w := asking(t, memory.New(memory.Options{}), &paid, runtime.Options{})
	w.run("t", "outer", `{}`)
	w.run("other", "outer", `{}`)
	request := runtime.CopyRequest{Source: "t", RequestID: "q", Digest: "d", Metadata: map[string]string{"copy": "yes"}}
	first, err := w.engine.CopyThread(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, "yes", first.Metadata["copy"])
	w.answerAll("t", `"the original may change"`)
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
		require.Equal(t, want, reason(err))
	}
	_, err = w.engine.Thread(t.Context(), "new")
	require.Equal(t, runtime.ReasonThreadNotFound, reason(err))
}

func TestNoCopyWhileARunGoesOn(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	wait := func(context.Context, *call) pregel.Result {
		close(begun)
		<-release
		return wrote(`"done"`)
	}
	w := newWorld(t, map[string]node{"a": wait}, chain("g", channelsLog, "a"))
	s, err := w.engine.Start(t.Context(), runtime.StartRequest{
		Thread: "t", CreateThread: true, Graph: "g", Request: checkpoint.RunRequest{Input: `{}`},
	})
	require.NoError(t, err)
	<-begun
	_, err = w.engine.CopyThread(t.Context(), runtime.CopyRequest{Source: "t", Thread: "u"})
	require.Equal(t, runtime.ReasonThreadBusy, reason(err))
	close(release)
	w.wait(s)
	w.copy("t", "u")
	require.Equal(t, w.values("t"), w.values("u"))
}

// TestCopyLeavesTheQueue copies a thread that waits for people, with a run
// behind.
func TestCopyLeavesTheQueue(t *testing.T) {
	ask := func(_ context.Context, c *call) pregel.Result { return wrote(c.ask(`"?"`)) }
	w := newWorld(t, map[string]node{"ask": ask}, chain("g", channelsLog, "ask"))
	w.run("t", "g", `{}`)
	_, err := w.engine.Start(t.Context(), runtime.StartRequest{
		Thread: "t", Graph: "g", Open: runtime.EnqueueOpen, Request: checkpoint.RunRequest{Input: `{}`},
	})
	require.NoError(t, err)
	require.Empty(t, w.copy("t", "u").Queue)
	runs, err := w.store.Runs(t.Context(), "u", 0, 0)
	require.NoError(t, err)
	require.Len(t, runs, 1)
	require.Equal(t, checkpoint.RunInterrupted, runs[0].State)
	require.Equal(t, checkpoint.RunSucceeded, w.answer("u", `"yes"`).State)
	head, err := w.engine.Thread(t.Context(), "t")
	require.NoError(t, err)
	require.Len(t, head.Queue, 1)
	require.Equal(t, 1, head.Open)
}
