package engine_test

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

func bulkUpdate(w *fixture, steps ...[]runtime.StateWrite) (runtime.Snapshot, error) {
	return w.engine.BulkUpdateState(w.t.Context(), runtime.BulkUpdateStateRequest{Thread: "t", Supersteps: steps})
}

func newStateWrite(node, values string) runtime.StateWrite {
	return runtime.StateWrite{AsNode: node, Values: payload.JSON(values)}
}

func createEmptyThread(tb testing.TB, w *fixture) {
	tb.Helper()
	_, err := w.engine.CreateThread(tb.Context(), runtime.CreateThreadRequest{Thread: "t", Graph: "g"})
	require.NoError(tb, err)
}

func TestBulkUpdateMakesACheckpointPerSuperstep(t *testing.T) {
	w := newFixture(t, map[string]nodeFunc{}, chainSpec("g", channelsAB, "n1", "n2"))
	createEmptyThread(t, w)
	s, err := bulkUpdate(w,
		[]runtime.StateWrite{newStateWrite(runtime.AsInput, `{"a":["in"],"b":9007199254740993}`)},
		[]runtime.StateWrite{newStateWrite("__start__", `{"a":["in"],"b":9007199254740993}`)},
		[]runtime.StateWrite{newStateWrite("n2", `{"a":["two"]}`), newStateWrite("n1", `{"a":["one"]}`), newStateWrite("n1", `{"a":["three"]}`)},
	)
	require.NoError(t, err)
	require.JSONEq(t, `{"a":["in","two","one","three"],"b":9007199254740993}`, string(s.Values))
	require.Contains(t, string(s.Values), "9007199254740993")
	require.Equal(t, []string{"n2"}, s.Next)

	history, _, err := w.engine.States(t.Context(), runtime.HistoryQuery{Thread: "t", WithValues: true, Limit: 10})
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
	w := newFixture(t, map[string]nodeFunc{}, chainSpec("g", channelsAB, "n1", "n2"))
	createEmptyThread(t, w)
	good := []runtime.StateWrite{newStateWrite("n1", `{"a":["kept?"]}`)}
	bad := map[string]struct {
		steps         [][]runtime.StateWrite
		reason, field string
	}{
		"no superstep":   {nil, runtime.ReasonInvalidField, "supersteps"},
		"no update":      {[][]runtime.StateWrite{good, {}}, runtime.ReasonInvalidField, "supersteps[1].updates"},
		"no node of two": {[][]runtime.StateWrite{good, {newStateWrite("n1", `{}`), newStateWrite("", `{}`)}}, runtime.ReasonInvalidField, "supersteps[1].updates[1].as_node"},
		"end of two":     {[][]runtime.StateWrite{{newStateWrite(runtime.AsEnd, ``), newStateWrite("n1", `{}`)}}, runtime.ReasonInvalidField, "supersteps[0].updates[0].as_node"},
		"values as end":  {[][]runtime.StateWrite{good, {newStateWrite(runtime.AsEnd, `{"a":[]}`)}}, runtime.ReasonInvalidField, "supersteps[1].updates[0].values"},
		"values as copy": {[][]runtime.StateWrite{good, {newStateWrite(runtime.AsCopy, `{"a":[]}`)}}, runtime.ReasonInvalidField, "supersteps[1].updates[0].values"},
		"unknown key":    {[][]runtime.StateWrite{good, {newStateWrite("n1", `{"a":[]}`), newStateWrite("n2", `{"c":1}`)}}, runtime.ReasonInvalidField, "supersteps[1].updates[1].values"},
		"one value twice": {
			[][]runtime.StateWrite{good, {newStateWrite("n1", `{"b":1}`), newStateWrite("n2", `{"b":2}`)}},
			runtime.ReasonInvalidField, "supersteps[1].updates[0].values",
		},
		"unknown node": {[][]runtime.StateWrite{good, {newStateWrite("n3", `{}`)}}, runtime.ReasonNodeNotFound, ""},
		"unknown task": {
			[][]runtime.StateWrite{good, {{AsNode: "n2", Values: `{}`, Task: "t0"}}},
			runtime.ReasonInvalidField, "supersteps[1].updates[0].task_id",
		},
	}
	for name, c := range bad {
		t.Run(name, func(t *testing.T) {
			_, err := bulkUpdate(w, c.steps...)
			require.Equal(t, c.reason, errorReason(err))
			if c.field != "" {
				var told *runtime.Error
				require.ErrorAs(t, err, &told)
				require.Equal(t, c.field, told.Violations[0].Field)
			}
			require.JSONEq(t, `{"a":[]}`, w.stateValues("t"))
		})
	}
}

func TestBulkUpdateReplacesTheTaskItNames(t *testing.T) {
	w := newFixture(t, map[string]nodeFunc{
		"n1": updateNode(`{"a":["n1"]}`), "n2": func(context.Context, *nodeCall) pregel.Result { return failedResult("never") },
	}, chainSpec("g", channelsAB, "n1", "n2"))
	require.Equal(t, checkpoint.RunFailed, w.runToStop("t", "g", `{"a":["in"]}`).State)
	due := w.readState("t").Tasks[0]
	s, err := bulkUpdate(w, []runtime.StateWrite{{AsNode: "n2", Values: `{"a":["by hand"]}`, Task: due.ID}})
	require.NoError(t, err)
	require.Empty(t, s.Next)
	require.JSONEq(t, `{"a":["in","n1","by hand"]}`, w.stateValues("t"))
}

func TestBulkUpdateGoesWhereItSays(t *testing.T) {
	w := newFixture(t, map[string]nodeFunc{}, chainSpec("g", channelsAB, "n1", "n2", "n3"))
	createEmptyThread(t, w)
	s, err := bulkUpdate(w, []runtime.StateWrite{{AsNode: "n1", Values: `{"a":["x"]}`, Goto: []checkpoint.Send{{Node: "n3"}}}})
	require.NoError(t, err)
	require.Equal(t, []string{"n2", "n3"}, s.Next)
}

func TestAnUpdateIsFollowedByTheRouterOfItsNode(t *testing.T) {
	spec := chainSpec("g", channelsAB, "n1", "n2", "n3")
	spec.Edges = []graph.EdgeSpec{newEdge(graph.Start, "n1")}
	spec.Branches = []graph.BranchSpec{{From: "n1", Router: "choose", Then: []string{"n2", "n3"}}}
	choose := func(_ context.Context, c *nodeCall) pregel.Result {
		to := "n2"
		if b, ok := c.State.Lookup("b"); ok && string(b) == "9007199254740993" {
			to = "n3"
		}
		return pregel.Result{Goto: []checkpoint.Send{{Node: to}}}
	}
	w := newFixture(t, map[string]nodeFunc{"choose": choose}, spec)
	createEmptyThread(t, w)
	s, err := bulkUpdate(w, []runtime.StateWrite{newStateWrite("n1", `{"b":9007199254740993}`)})
	require.NoError(t, err)
	require.Equal(t, []string{"n3"}, s.Next)
}
