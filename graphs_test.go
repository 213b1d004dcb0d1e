package graphd_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd"
	"github.com/graphd-dev/graphd/graph"
)

// nothing is a node that writes nothing.
func nothing(context.Context, graph.State) (any, error) { return nil, nil }

// All that is wrong with all graphs is told at once, and no store is opened for them.
func TestOpenTellsAllMistakesOfGraphs(t *testing.T) {
	inner := graph.New("inner").Channel("n", graph.Reducer("apend")).Node("a", nothing).Chain(graph.Start, "a")
	outer := graph.New("outer").State(struct {
		Log []string `json:"log" graph:"append"`
	}{}).
		Channel("log").
		Node("a", nil).
		Node("b", nothing, graph.Reads("lgo"), graph.OnError("nowhere")).
		Node("b", nothing).
		Subgraph("c", inner).
		Chain(graph.Start, "a", "b", "c").
		Chain("a").
		Edge("c", "d").
		Route("b", nil, "e").
		InterruptBefore("f")
	lost := graph.New("lost").Node("a", nothing).Node("b", nothing).Edge(graph.Start, "a")
	path := filepath.Join(t.TempDir(), "app.db")
	_, err := graphd.Open(t.Context(), graphd.SQLite(path), outer, nil, lost, lost)
	require.EqualError(t, err, `graphd: graph 2 is nil: want graphs of graph.New
graphd: there are two graphs "lost": want each name once, also among subgraphs
the graph "outer" is described wrongly:
  channels.log: the field Log is null in JSON where it is empty, which the reducer "append" does not take: want the tag json:"log,omitempty"
  channels.log: is there twice: want each channel once, as a field of a State or by Channel
  nodes.a: has no function: want one
  nodes.b: is there twice: want each node once
  edges: a chain of 1 nodes leads nowhere: want two nodes or more
  conditional_edges[0]: the route from "b" has no function: want one
  nodes.b.reads[0]: unknown channel "lgo"; did you mean "log"?; known: log
  nodes.b.error_handler: unknown node "nowhere"; known: a, b, c
  edges[3]: unknown node "d"; known: END, a, b, c
  conditional_edges[0].then[0]: unknown node "e"; known: END, a, b, c
  interrupt_before[0]: unknown node "f"; known: *, a, b, c
the graph "inner" is described wrongly:
  channels.n.reducer: unknown reducer "apend"; did you mean "append"?; known: add, any, append, deep_merge, ephemeral, last, max, merge, messages, min, remote, topic, topic_once, union, untracked
the graph "lost" is described wrongly:
  channels: the graph declares no channels, so it has no state`)
	require.NoFileExists(t, path)
	wrong, ok := errors.AsType[*graph.DescriptionError](err)
	require.True(t, ok)
	require.Equal(t, "outer", wrong.Graph)
	require.Equal(t, graph.Problem{Field: "nodes.a", Description: "has no function: want one"}, wrong.Problems[2])
}

// A graph that contains itself, and two graphs of one name, are mistakes of the description.
func TestGraphsThatContainOthers(t *testing.T) {
	outer, inner := graph.New("outer"), graph.New("inner")
	outer.Subgraph("a", inner).Edge(graph.Start, "a")
	inner.Subgraph("b", outer).Edge(graph.Start, "b")
	_, err := outer.Build()
	require.EqualError(t, err, `the graph "inner" is described wrongly:
  nodes.b: runs the graph "outer", which contains this one: want a graph without it`)

	one, another := graph.New("same").Node("a", nothing).Edge(graph.Start, "a"), graph.New("same").Node("b", nothing).Edge(graph.Start, "b")
	_, err = graph.New("outer").Subgraph("a", one).Subgraph("b", another).Subgraph("c", one).Chain(graph.Start, "a", "b", "c").Build()
	require.EqualError(t, err, `the graph "outer" is described wrongly:
  nodes.b: runs another graph "same" than a node before: want names that differ`)
	_, err = graphd.Open(t.Context(), graphd.Memory(), graph.New("outer").Subgraph("a", one).Edge(graph.Start, "a"), graph.New("more").Subgraph("a", another).Edge(graph.Start, "a"))
	require.ErrorContains(t, err, `there are two graphs "same"`)
}
