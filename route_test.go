package graphd_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd"
	"github.com/graphd-dev/graphd/client"
	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/worker"
)

// routed is the state of graphs with a route: the nodes that it has led to.
type routed struct {
	Visits []string `json:"visits,omitempty" graph:"append"`
}

// newRouted makes a graph whose route from the node first decides by a function.
func newRouted(decision any, to ...string) *graph.Builder {
	visit := func(ctx context.Context, _ graph.State) (any, error) {
		return routed{Visits: []string{graph.TaskInfo(ctx).Node + graph.TaskInfo(ctx).Input}}, nil
	}
	b := graph.New("routed").State(routed{}).Edge(graph.Start, "first")
	for _, name := range []string{"first", "a", "b", "c"} {
		b.Node(name, visit)
	}
	return b.Route("first", func(context.Context, graph.State) (any, error) { return decision, nil }, to...)
}

// runRouted runs the graph of newRouted in the process, or in a worker.
func runRouted(t *testing.T, inWorker bool, g *graph.Builder) *client.Outcome {
	t.Helper()
	if !inWorker {
		o, err := open(t, graphd.Options{}, g).Invoke(t.Context(), client.Run{Graph: "routed", Input: routed{}})
		require.NoError(t, err)
		return o
	}
	e := open(t, graphd.Options{})
	address, _ := serve(t, e)
	w, err := worker.Dial(address, worker.Options{Graphs: []*graph.Builder{g}})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	<-w.Ready()
	o, err := e.Invoke(ctx, client.Run{Graph: "routed", Input: routed{}})
	require.NoError(t, err)
	stop()
	require.NoError(t, <-ended)
	return o
}

// bothPlaces are where functions run.
func bothPlaces(t *testing.T, test func(t *testing.T, inWorker bool)) {
	t.Helper()
	t.Run("in the process", func(t *testing.T) { test(t, false) })
	t.Run("in a worker", func(t *testing.T) { test(t, true) })
}

// A route may choose in each form that Go has for names and Sends.
func TestRoutesChooseInAnyForm(t *testing.T) {
	type step string
	send := graph.Send("b", 1)
	for _, c := range []struct {
		decision any
		visits   []string
	}{
		{"a", []string{"a"}},
		{step("a"), []string{"a"}},
		{[]string{"a", "b"}, []string{"a", "b"}},
		{[]step{"a", "b"}, []string{"a", "b"}},
		{send, []string{"b1"}},
		{&send, []string{"b1"}},
		{graph.To("a"), []string{"a"}},
		{[]graph.Target{graph.To("a"), graph.Send("b", "x"), graph.Send("b", nil)}, []string{"a", `b"x"`, "bnull"}},
		{[]*graph.Target{&send}, []string{"b1"}},
		{[]any{"a", graph.Send("b", map[string]any{"n": json.Number("9007199254740993")}), graph.To("c")}, []string{"a", `b{"n":9007199254740993}`, "c"}},
		{json.RawMessage(`["a",{"$send":["b",2]}]`), []string{"a", "b2"}},
		{graph.End, nil},
		{[]string(nil), nil},
		{[]any(nil), nil},
		{[]graph.Target(nil), nil},
	} {
		bothPlaces(t, func(t *testing.T, inWorker bool) {
			for _, to := range [][]string{nil, {"a", "b", "c"}} {
				got, err := client.Output[routed](runRouted(t, inWorker, newRouted(c.decision, to...)))
				require.NoError(t, err, "%#v", c.decision)
				slices.Sort(got.Visits[1:])
				require.Equal(t, append([]string{"first"}, c.visits...), got.Visits, "%#v", c.decision)
			}
		})
	}
}

// A choice that the route does not name, or that is none, fails the node with what would be right.
func TestRoutesRefuseOtherChoices(t *testing.T) {
	for _, c := range []struct {
		decision any
		reason   client.Reason
		text     string
	}{
		{"c", client.InvalidNodeUpdate, `the route from "first" has chosen "c": want one of "a", "b", which it names, or graph.End`},
		{[]any{"a", graph.Send("c", 1)}, client.InvalidNodeUpdate, `the route from "first" has chosen "c"`},
		{json.RawMessage(`{"$send":["c",2]}`), client.InvalidNodeUpdate, `the route from "first" has chosen "c"`},
		{"nowhere", client.InvalidNodeUpdate, `the route from "first" has chosen "nowhere"`},
		{"", client.InvalidNodeUpdate, "names no node"},
		{[]any{"a", 7}, client.InvalidNodeUpdate, "must yield a node name, a Send, or a list of them, not 7"},
		{[]any{"a", map[string]any{"b": 1}}, client.InvalidNodeUpdate, `must yield a node name, a Send, or a list of them, not {"b":1}`},
		{nil, client.InvalidNodeUpdate, "it is nothing"},
	} {
		bothPlaces(t, func(t *testing.T, inWorker bool) {
			o := runRouted(t, inWorker, newRouted(c.decision, "a", "b"))
			require.ErrorIs(t, o.Err(), c.reason, "%#v", c.decision)
			require.ErrorContains(t, o.Err(), c.text)
			require.Equal(t, "first", o.Run.GetFailure().GetNode())
		})
	}
	o := runRouted(t, false, newRouted("nowhere"))
	require.ErrorIs(t, o.Err(), client.UnknownTargetNode)
	require.ErrorContains(t, o.Err(), `no node "nowhere" to go to; the graph has a, b, c, first`)
}

// A node says what it returns instead of a list of targets.
func TestNodesDoNotReturnTargets(t *testing.T) {
	for _, result := range []any{[]any{graph.Send("a", 1), "b"}, []graph.Target{graph.To("a")}, []*graph.Target{}} {
		g := graph.New("g").State(routed{}).Edge(graph.Start, "n").
			Node("n", func(context.Context, graph.State) (any, error) { return result, nil })
		o, err := open(t, graphd.Options{}, g).Invoke(t.Context(), client.Run{Graph: "g", Input: routed{}})
		require.NoError(t, err)
		require.ErrorIs(t, o.Err(), client.InvalidNodeUpdate)
		require.ErrorContains(t, o.Err(), "graph.Command{Goto: …}")
	}
}
