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

// strictOptions are limits that small tests reach.
var strictOptions = engine.Options{Limits: pregel.Limits{MaxValueBytes: 1000, MaxStateBytes: 2500, MaxWriteBytes: 2000, MaxSends: 20}}

func newLimitedFixture(t *testing.T, code map[string]nodeFunc, specs ...*graph.Spec) *fixture {
	t.Helper()
	return newFixtureOn(t, memory.New(memory.Options{}), strictOptions, code, specs...)
}

// writingNode returns a node that writes the result of f for a key.
func writingNode(key string, f func(value string) string) nodeFunc {
	return func(_ context.Context, c *nodeCall) pregel.Result {
		return pregel.Result{Update: payload.JSON(`{"` + key + `":` + f(c.stateText(key)) + `}`)}
	}
}

// returningNode returns a node that returns a text of n characters in a channel.
func returningNode(channel string, n int) nodeFunc {
	return updateNode(fmt.Sprintf(`{%q:%q}`, channel, strings.Repeat("x", n)))
}

var channelsXYZ = []graph.ChannelSpec{
	{Name: "x"}, {Name: "y"}, {Name: "z"}, {Name: "log", Reducer: "append"}, {Name: "sum", Reducer: "add"},
}

// TestHostileGraphsFailWithTheLimit runs graphs that grow for ever: each ends
// with the option that stopped it, and what was committed before stays.
func TestHostileGraphsFailWithTheLimit(t *testing.T) {
	loop := func(n graph.NodeSpec) *graph.Spec {
		return &graph.Spec{
			Name: "g", Channels: channelsXYZ, Nodes: []graph.NodeSpec{n},
			Edges:    []graph.EdgeSpec{newEdge(graph.Start, n.Name)},
			Branches: []graph.BranchSpec{{From: n.Name, Expr: `"` + n.Name + `"`}},
		}
	}
	wide := &graph.Spec{Name: "g", Channels: channelsXYZ}
	for i := range 3 {
		name := fmt.Sprintf("n%d", i)
		wide.Nodes = append(wide.Nodes, functionNode(name))
		wide.Edges = append(wide.Edges, newEdge(graph.Start, name))
	}
	sends := func(source string) *graph.Spec {
		s := loop(functionNode("n"))
		s.Branches[0].Expr = source
		return s
	}
	tests := map[string]struct {
		spec  *graph.Spec
		code  map[string]nodeFunc
		limit string
		node  string // that is to blame
	}{
		"a text doubles in the state": {
			loop(functionNode("n")), map[string]nodeFunc{"n": writingNode("x", func(v string) string {
				return `"` + strings.Trim(v, `"`) + strings.Trim(v, `"`) + `"`
			})}, pregel.LimitValue, "n",
		},
		"a list doubles in the state": {
			loop(functionNode("n")), map[string]nodeFunc{"n": writingNode("log", func(v string) string {
				return strings.Replace(v, "]", `,"0123456789"]`, 1)
			})}, pregel.LimitValue, "n",
		},
		"a reducer adds texts": {
			loop(functionNode("n")),
			map[string]nodeFunc{"n": writingNode("sum", func(string) string { return `"0123456789"` })},
			pregel.LimitValue,
			"n",
		},
		"a worker returns a large value": {loop(functionNode("n")), map[string]nodeFunc{"n": returningNode("x", 1000)}, pregel.LimitValue, "n"},
		"an edge sends large values": {
			sends(`[send("n", "` + strings.Repeat("x", 1000) + `")]`), map[string]nodeFunc{"n": updateNode(`{}`)}, pregel.LimitValue, "n",
		},
		"an edge sends very often":   {sends(`lists.range(21).map(i, send("n", i))`), map[string]nodeFunc{"n": updateNode(`{}`)}, pregel.LimitSends, "n"},
		"sends grow with each round": {sends(`[1, 2, 3].map(i, send("n", i))`), map[string]nodeFunc{"n": updateNode(`{}`)}, pregel.LimitSends, "any"},
		"tasks write a lot together": {
			wide,
			map[string]nodeFunc{"n0": returningNode("x", 900), "n1": returningNode("y", 900), "n2": returningNode("z", 900)},
			pregel.LimitWrites, "any",
		},
		"nodes fill the state": {
			chainSpec("g", channelsXYZ, "a", "b", "c"),
			map[string]nodeFunc{"a": returningNode("x", 900), "b": returningNode("y", 900), "c": returningNode("z", 900)},
			pregel.LimitState, "c",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newLimitedFixture(t, test.code, test.spec)
			r := w.runToStop("t", "g", `{"x":"ab","log":["x"]}`)
			require.Equal(t, checkpoint.RunFailed, r.State)
			require.Equal(t, "LIMIT_EXCEEDED", r.Failure.Reason, r.Failure.Message)
			require.Equal(t, test.limit, r.Failure.Details["limit"], r.Failure.Message)
			require.NotEmpty(t, r.Failure.Details["need"])
			require.Contains(t, r.Failure.Message, "--"+test.limit)
			if test.node != "any" {
				require.Equal(t, test.node, r.Failure.Node)
			}
			s := w.readState("t") // what was there before
			x, ok := payload.Lookup(s.Values, "x")
			require.True(t, ok)
			require.LessOrEqual(t, len(x), 1000)
			require.NotEmpty(t, s.Checkpoint)
		})
	}
}

// A subgraph gets the state of its graph as one input, which may be larger than
// one value.
func TestASubgraphTakesAStateThatIsLargerThanAValue(t *testing.T) {
	inner := chainSpec("inner", channelsXYZ[:3], "i")
	outer := chainSpec("g", channelsXYZ, "a", "b")
	outer.Nodes = append(outer.Nodes, graph.NodeSpec{Name: "sub", Graph: &graph.SubgraphSpec{Name: "inner"}})
	outer.Edges[2] = newEdge("b", "sub")
	w := newLimitedFixture(t, map[string]nodeFunc{"a": returningNode("x", 700), "b": returningNode("y", 700), "i": returningNode("z", 10)}, inner, outer)
	r := w.runToStop("t", "g", `{}`)
	require.Equal(t, checkpoint.RunSucceeded, r.State, "%+v", r.Failure)
}

// A failure in a subgraph is the failure of its limit.
func TestALimitWithinASubgraph(t *testing.T) {
	inner := chainSpec("inner", channelsXYZ[:3], "i")
	outer := &graph.Spec{
		Name: "g", Channels: channelsXYZ,
		Nodes: []graph.NodeSpec{{Name: "sub", Graph: &graph.SubgraphSpec{Name: "inner"}}},
		Edges: []graph.EdgeSpec{newEdge(graph.Start, "sub")},
	}
	w := newLimitedFixture(t, map[string]nodeFunc{"i": returningNode("z", 1001)}, inner, outer)
	r := w.runToStop("t", "g", `{}`)
	require.Equal(t, checkpoint.RunFailed, r.State)
	require.Equal(t, "LIMIT_EXCEEDED", r.Failure.Reason, r.Failure.Message)
	require.Equal(t, pregel.LimitValue, r.Failure.Details["limit"])
}

func TestCallsBeyondLimitsAreRefused(t *testing.T) {
	w := newLimitedFixture(t, map[string]nodeFunc{"n": updateNode(`{"y":1}`)}, chainSpec("g", channelsXYZ, "n"))
	require.Equal(t, checkpoint.RunSucceeded, w.runToStop("t", "g", `{"x":"ab"}`).State)
	before := w.readState("t")
	long := payload.JSON(`{"x":"` + strings.Repeat("x", 1001) + `"}`)
	ctx := t.Context()
	calls := map[string]func() error{
		"UpdateState": func() error {
			_, err := w.engine.UpdateState(ctx, runtime.UpdateStateRequest{Thread: "t", Values: long, AsNode: "n"})
			return err
		},
		"UpdateState as the input": func() error {
			_, err := w.engine.UpdateState(ctx, runtime.UpdateStateRequest{
				Thread: "t", Values: payload.JSON(`{"x":"` + strings.Repeat("x", 2500) + `"}`), AsNode: runtime.AsInput,
			})
			return err
		},
		"BulkUpdateState": func() error {
			_, err := w.engine.BulkUpdateState(ctx, runtime.BulkUpdateStateRequest{
				Thread: "t", Supersteps: [][]runtime.StateWrite{{{Values: `{"x":1}`, AsNode: "n"}}, {{Values: long, AsNode: "n"}}},
			})
			return err
		},
		"StartRun with an update": func() error {
			_, err := w.engine.Start(ctx, runtime.StartRequest{
				Thread: "t", Graph: "g", Request: checkpoint.RunRequest{Input: `{"y":2}`, Update: long},
			})
			return err
		},
		"StartRun": func() error {
			_, err := w.engine.Start(ctx, runtime.StartRequest{
				Thread: "t", Graph: "g",
				Request: checkpoint.RunRequest{Input: payload.JSON(`{"x":"` + strings.Repeat("x", 2500) + `"}`)},
			})
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			err := call()
			require.Equal(t, runtime.ReasonPayloadTooLarge, errorReason(err))
			refused := &runtime.Error{}
			require.ErrorAs(t, err, &refused)
			require.NotEmpty(t, refused.Meta["sizeBytes"])
			require.NotEmpty(t, refused.Meta["limitBytes"])
			require.NotEmpty(t, refused.Meta["field"])
			require.Contains(t, []string{pregel.LimitValue, pregel.LimitWrites}, refused.Meta["limit"])
			require.Equal(t, refused.Meta["limitBytes"], refused.Meta["most"])
			require.Equal(t, refused.Meta["sizeBytes"], refused.Meta["need"])
			require.Equal(t, before.Checkpoint, w.readState("t").Checkpoint, "nothing is half applied")
		})
	}
}

// A server with smaller limits reads what is there, and goes on with it.
func TestSmallerLimitsReadExistingThreads(t *testing.T) {
	store := memory.New(memory.Options{})
	code := map[string]nodeFunc{
		"a": returningNode("x", 5000), "b": func(_ context.Context, c *nodeCall) pregel.Result {
			return pregel.Result{Update: payload.JSON(`{"y":` + c.askNext(`"go on?"`) + `}`)}
		},
	}
	spec := chainSpec("g", channelsXYZ, "a", "b")
	w := newFixtureOn(t, store, engine.Options{}, code, spec)
	require.Equal(t, checkpoint.RunInterrupted, w.runToStop("t", "g", `{}`).State)
	before := w.stateValues("t")
	w.engine.Close()

	w = newFixtureOn(t, store, strictOptions, code, spec)
	require.Equal(t, before, w.stateValues("t"))
	r := w.answerSingle("t", `1`)
	require.Equal(t, checkpoint.RunFailed, r.State, "the state cannot grow")
	require.Equal(t, "LIMIT_EXCEEDED", r.Failure.Reason)
	require.Equal(t, before, w.stateValues("t"))
	_, err := w.engine.UpdateState(t.Context(), runtime.UpdateStateRequest{Thread: "t", Values: `{"x":"small"}`, AsNode: "a", SupersedeInterrupts: true})
	require.NoError(t, err)
	require.JSONEq(t, `{"x":"small","log":[]}`, w.stateValues("t"))
}
