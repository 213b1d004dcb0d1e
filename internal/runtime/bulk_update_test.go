package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

func bulk(w *world, steps ...[]runtime.StateWrite) (runtime.Snapshot, error) {
	return w.engine.BulkUpdateState(w.t.Context(), runtime.BulkUpdateStateRequest{Thread: "t", Supersteps: steps})
}

func writeAs(node, values string) runtime.StateWrite {
	return runtime.StateWrite{AsNode: node, Values: payload.JSON(values)}
}

func created(tb testing.TB, w *world) {
	tb.Helper()
	_, err := w.engine.CreateThread(tb.Context(), runtime.NewThread{Thread: "t", Graph: "g"})
	require.NoError(tb, err)
}

func TestBulkUpdateMakesACheckpointPerSuperstep(t *testing.T) {
	w := newWorld(t, map[string]node{}, chain("g", channelsAB, "n1", "n2"))
	created(t, w)
	s, err := bulk(w,
		[]runtime.StateWrite{writeAs(runtime.AsInput, `{"a":["in"],"b":9007199254740993}`)},
		[]runtime.StateWrite{writeAs("__start__", `{"a":["in"],"b":9007199254740993}`)},
		[]runtime.StateWrite{writeAs("n2", `{"a":["two"]}`), writeAs("n1", `{"a":["one"]}`), writeAs("n1", `{"a":["three"]}`)},
	)
	require.NoError(t, err)
	require.JSONEq(t, `{"a":["in","two","one","three"],"b":9007199254740993}`, string(s.Values))
	require.Contains(t, string(s.Values), "9007199254740993")
	require.Equal(t, []string{"n2"}, s.Next)

	history, _, err := w.engine.States(t.Context(), runtime.HistoryQuery{Thread: "t", Values: true, Limit: 10})
	require.NoError(t, err)
	require.Len(t, history, 3)
	require.Equal(t, []int{1, 0, -1}, []int{history[0].Checkpoint.Step, history[1].Checkpoint.Step, history[2].Checkpoint.Step})
	require.Equal(t, history[1].Checkpoint.ID, history[0].Checkpoint.Parent)
	require.JSONEq(t, `{"a":["in"],"b":9007199254740993}`, string(history[1].Values))
	// n1 was due: its first update is its result.
	require.Equal(t, "n1", history[1].Tasks[0].Node)
	require.JSONEq(t, `{"a":["one"]}`, string(history[1].Tasks[0].Result))
}

func TestBulkUpdateIsAllOrNothing(t *testing.T) {
	w := newWorld(t, map[string]node{}, chain("g", channelsAB, "n1", "n2"))
	created(t, w)
	good := []runtime.StateWrite{writeAs("n1", `{"a":["kept?"]}`)}
	bad := map[string]struct {
		steps         [][]runtime.StateWrite
		reason, field string
	}{
		"no superstep":   {nil, runtime.ReasonInvalidField, "supersteps"},
		"no update":      {[][]runtime.StateWrite{good, {}}, runtime.ReasonInvalidField, "supersteps[1].updates"},
		"no node of two": {[][]runtime.StateWrite{good, {writeAs("n1", `{}`), writeAs("", `{}`)}}, runtime.ReasonInvalidField, "supersteps[1].updates[1].as_node"},
		"end of two":     {[][]runtime.StateWrite{{writeAs(runtime.AsEnd, ``), writeAs("n1", `{}`)}}, runtime.ReasonInvalidField, "supersteps[0].updates[0].as_node"},
		"values as end":  {[][]runtime.StateWrite{good, {writeAs(runtime.AsEnd, `{"a":[]}`)}}, runtime.ReasonInvalidField, "supersteps[1].updates[0].values"},
		"values as copy": {[][]runtime.StateWrite{good, {writeAs(runtime.AsCopy, `{"a":[]}`)}}, runtime.ReasonInvalidField, "supersteps[1].updates[0].values"},
		"unknown key":    {[][]runtime.StateWrite{good, {writeAs("n1", `{"a":[]}`), writeAs("n2", `{"c":1}`)}}, runtime.ReasonInvalidField, "supersteps[1].updates[1].values"},
		"one value twice": {
			[][]runtime.StateWrite{good, {writeAs("n1", `{"b":1}`), writeAs("n2", `{"b":2}`)}},
			runtime.ReasonInvalidField, "supersteps[1].updates[0].values",
		},
		"unknown node": {[][]runtime.StateWrite{good, {writeAs("n3", `{}`)}}, runtime.ReasonNodeNotFound, ""},
		"unknown task": {
			[][]runtime.StateWrite{good, {{AsNode: "n2", Values: `{}`, Task: "t0"}}},
			runtime.ReasonInvalidField, "supersteps[1].updates[0].task_id",
		},
	}
	for name, c := range bad {
		t.Run(name, func(t *testing.T) {
			_, err := bulk(w, c.steps...)
			require.Equal(t, c.reason, reason(err))
			if c.field != "" {
				var told *runtime.Error
				require.ErrorAs(t, err, &told)
				require.Equal(t, c.field, told.Violations[0].Field)
			}
			require.JSONEq(t, `{"a":[]}`, w.values("t"))
		})
	}
}

func TestBulkUpdateStandsForTheTaskItNames(t *testing.T) {
	w := newWorld(t, map[string]node{
		"n1": update(`{"a":["n1"]}`), "n2": func(context.Context, *call) pregel.Result { return fail("never") },
	}, chain("g", channelsAB, "n1", "n2"))
	require.Equal(t, checkpoint.RunFailed, w.run("t", "g", `{"a":["in"]}`).State)
	due := w.state("t").Tasks[0]
	s, err := bulk(w, []runtime.StateWrite{{AsNode: "n2", Values: `{"a":["by hand"]}`, Task: due.ID}})
	require.NoError(t, err)
	require.Empty(t, s.Next)
	require.JSONEq(t, `{"a":["in","n1","by hand"]}`, w.values("t"))
}

func TestBulkUpdateGoesWhereItSays(t *testing.T) {
	w := newWorld(t, map[string]node{}, chain("g", channelsAB, "n1", "n2", "n3"))
	created(t, w)
	s, err := bulk(w, []runtime.StateWrite{{AsNode: "n1", Values: `{"a":["x"]}`, Goto: []checkpoint.Send{{Node: "n3"}}}})
	require.NoError(t, err)
	require.Equal(t, []string{"n2", "n3"}, s.Next)
}

func TestAnUpdateIsFollowedByTheRouterOfItsNode(t *testing.T) {
	spec := chain("g", channelsAB, "n1", "n2", "n3")
	spec.Edges = []graph.EdgeSpec{edge(graph.Start, "n1")}
	spec.Branches = []graph.BranchSpec{{From: "n1", Router: "choose", Then: []string{"n2", "n3"}}}
	choose := func(_ context.Context, c *call) pregel.Result {
		to := "n2"
		if b, ok := c.State.Lookup("b"); ok && string(b) == "9007199254740993" {
			to = "n3"
		}
		return pregel.Result{Goto: []checkpoint.Send{{Node: to}}}
	}
	w := newWorld(t, map[string]node{"choose": choose}, spec)
	created(t, w)
	s, err := bulk(w, []runtime.StateWrite{writeAs("n1", `{"b":9007199254740993}`)})
	require.NoError(t, err)
	require.Equal(t, []string{"n3"}, s.Next)
}
