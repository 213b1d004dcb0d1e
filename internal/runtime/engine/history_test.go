package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// newLargeStateFixture makes a fixture with a thread of some supersteps, each of which
// replaces a value of so many bytes.
func newLargeStateFixture(t *testing.T, opts engine.Options, steps, bytes int) *fixture {
	t.Helper()
	code, names := map[string]nodeFunc{}, make([]string, steps)
	for i := range steps {
		names[i] = fmt.Sprint("n", i)
		code[names[i]] = func(context.Context, *nodeCall) pregel.Result {
			return pregel.Result{Update: payload.JSON(fmt.Sprintf(`{"x":"%03d%s"}`, i, strings.Repeat("x", bytes)))}
		}
	}
	w := newFixtureOn(t, memory.New(memory.Options{}), opts, code, chainSpec("g", []graph.ChannelSpec{{Name: "x"}}, names...))
	require.Equal(t, checkpoint.RunSucceeded, w.runToStop("t", "g", `{"x":"0"}`).State)
	return w
}

// readPages reads a history page by page, each with at most so many bytes.
func (f *fixture) readPages(q runtime.HistoryQuery) (all []runtime.Snapshot, pages int) {
	f.t.Helper()
	for {
		page, more, err := f.engine.States(f.t.Context(), q)
		require.NoError(f.t, err)
		bytes := 0
		for _, s := range page {
			require.Empty(f.t, s.Checkpoint.Channels, "a page holds no states besides what it shows")
			bytes += len(s.Values)
			for _, task := range s.Tasks {
				bytes += len(task.Result)
			}
			q.Before = s.Checkpoint.Seq
		}
		require.LessOrEqual(f.t, bytes, q.MaxBytes)
		all, pages = append(all, page...), pages+1
		if !more {
			return all, pages
		}
		require.NotEmpty(f.t, page)
	}
}

// A page of large states ends before it is too large, and the next one goes on
// there: nothing is left out, nothing comes twice.
func TestPagesOfLargeStatesEndEarly(t *testing.T) {
	const steps, bytes = 24, 300 << 10
	w := newLargeStateFixture(t, engine.Options{}, steps, bytes)
	want, more, err := w.engine.States(t.Context(), runtime.HistoryQuery{Thread: "t", WithValues: true})
	require.NoError(t, err)
	require.False(t, more)
	require.Len(t, want, steps+2)
	for name, c := range map[string]struct {
		q     runtime.HistoryQuery
		pages int
	}{
		"large":            {runtime.HistoryQuery{WithValues: true, MaxBytes: 4 * bytes, Limit: 500}, steps / 2},
		"small":            {runtime.HistoryQuery{WithValues: true, MaxBytes: 4 * bytes, Limit: 1}, steps + 2},
		"everything":       {runtime.HistoryQuery{WithValues: true, MaxBytes: 64 << 20, Limit: 500}, 1},
		"exactly":          {runtime.HistoryQuery{WithValues: true, MaxBytes: 64 << 20, Limit: steps + 2}, 1},
		"all but one":      {runtime.HistoryQuery{WithValues: true, MaxBytes: 64 << 20, Limit: steps + 1}, 2},
		"only the results": {runtime.HistoryQuery{MaxBytes: 4 * bytes, Limit: 500}, steps / 3},
	} {
		c.q.Thread = "t"
		got, pages := w.readPages(c.q)
		require.GreaterOrEqual(t, pages, c.pages, name)
		require.Len(t, got, len(want), name)
		for i := range got {
			require.Equal(t, want[i].Checkpoint.ID, got[i].Checkpoint.ID, name)
			require.Equal(t, want[i].Tasks, got[i].Tasks, name)
			if c.q.WithValues {
				require.Equal(t, want[i].Values, got[i].Values, name)
			}
		}
	}
}

// A snapshot that no answer takes is named.
func TestASnapshotThatIsTooLargeIsNamed(t *testing.T) {
	w := newLargeStateFixture(t, engine.Options{}, 4, 100<<10)
	list, _, err := w.engine.States(t.Context(), runtime.HistoryQuery{Thread: "t"})
	require.NoError(t, err)
	for _, values := range []bool{true, false} {
		_, _, err = w.engine.States(t.Context(), runtime.HistoryQuery{
			Thread: "t", Before: list[0].Checkpoint.Seq, WithValues: values, MaxBytes: 90 << 10,
		})
		require.Equal(t, runtime.ReasonPayloadTooLarge, errorReason(err))
		require.ErrorContains(t, err, list[1].Checkpoint.ID)
	}
	_, err = w.engine.State(t.Context(), runtime.StateRequest{Thread: "t", Checkpoint: list[1].Checkpoint.ID, MaxBytes: 90 << 10})
	require.Equal(t, runtime.ReasonPayloadTooLarge, errorReason(err))
	snap, err := w.engine.State(t.Context(), runtime.StateRequest{Thread: "t", MaxBytes: 90 << 10})
	require.NoError(t, err, "it has no tasks, and its values are the caller's to judge")
	require.Equal(t, list[0].Checkpoint.ID, snap.Checkpoint.ID)
}

// newSubgraphFixture runs a graph with many subgraphs at a time, each of which asks.
func newSubgraphFixture(t *testing.T, opts engine.Options, subgraphs, bytes int) *fixture {
	t.Helper()
	large := strings.Repeat("x", bytes)
	ask := func(_ context.Context, c *nodeCall) pregel.Result { return logUpdate(c.askNext(`"` + large + `"`)) }
	inner := chainSpec("inner", channelsLog, "ask")
	outer := &graph.Spec{Name: "outer", Channels: channelsLog}
	for i := range subgraphs {
		name := fmt.Sprint("sub", i)
		outer.Nodes = append(outer.Nodes, graph.NodeSpec{Name: name, Graph: &graph.SubgraphSpec{Name: "inner"}})
		outer.Edges = append(outer.Edges, newEdge(graph.Start, name), newEdge(name, graph.End))
	}
	return newFixtureOn(t, memory.New(memory.Options{}), opts, map[string]nodeFunc{"ask": ask}, inner, outer)
}

func TestStatesOfManySubgraphsAreBounded(t *testing.T) {
	w := newSubgraphFixture(t, engine.Options{}, 12, 100<<10)
	w.runToStop("t", "outer", `{}`)
	small, err := w.engine.State(t.Context(), runtime.StateRequest{Thread: "t", WithSubgraphs: true, MaxBytes: 4 << 20})
	require.NoError(t, err)
	require.Len(t, small.Tasks, 12)
	_, err = w.engine.State(t.Context(), runtime.StateRequest{Thread: "t", WithSubgraphs: true, MaxBytes: 1 << 20})
	require.Equal(t, runtime.ReasonPayloadTooLarge, errorReason(err))
	require.Equal(t, checkpoint.RunSucceeded, w.answerAllOpen("t", `"yes"`).State)
	list, more, err := w.engine.States(t.Context(), runtime.HistoryQuery{Thread: "t", MaxBytes: 8 << 20, Limit: 10})
	require.NoError(t, err)
	require.False(t, more)
	asked := 0
	for _, s := range list {
		asked = max(asked, len(s.Interrupts))
	}
	require.Equal(t, 12, asked)
	_, _, err = w.engine.States(t.Context(), runtime.HistoryQuery{
		Thread: "t", MaxBytes: 1 << 20, Limit: 10, Before: list[0].Checkpoint.Seq,
	})
	require.Equal(t, runtime.ReasonPayloadTooLarge, errorReason(err))
}

// What is to be copied is bounded: it is held as a whole.
func TestALargeCopyIsRefused(t *testing.T) {
	w := newLargeStateFixture(t, engine.Options{MaxCopyBytes: 5 << 20}, 20, 300<<10)
	_, err := w.engine.CopyThread(t.Context(), runtime.CopyRequest{Source: "t", Thread: "u"})
	require.Equal(t, runtime.ReasonChangeTooLarge, errorReason(err))
	_, err = w.engine.Thread(t.Context(), "u")
	require.Equal(t, runtime.ReasonThreadNotFound, errorReason(err))
	_, err = w.engine.PruneThread(t.Context(), runtime.PruneRequest{Thread: "t", KeepCheckpoints: 3})
	require.NoError(t, err)
	w.copyThread("t", "u")
	require.Equal(t, w.stateValues("t"), w.stateValues("u"))
}

// A copy that was read in parts shares what the thread shares.
func TestACopyOfALargeListIsNoLarger(t *testing.T) {
	code, spec := growingGraph(200)
	w := newFixtureOn(t, memory.New(memory.Options{}), engine.Options{MaxCopyBytes: 2 << 20}, code, spec)
	w.runToStop("t", "talk", `{}`)
	w.runToStop("t", "talk", `{}`)
	list, err := w.store.Checkpoints(t.Context(), checkpoint.CheckpointQuery{Thread: "t", Limit: 1000})
	require.NoError(t, err)
	require.Less(t, len(list), 100, "it is read in parts")
	w.copyThread("t", "u")
	require.Equal(t, w.readHistory("t"), w.readHistory("u"))
}
