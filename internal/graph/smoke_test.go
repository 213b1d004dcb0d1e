package graph_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/graph"
)

func function(name string) graph.NodeSpec {
	return graph.NodeSpec{Name: name, Function: &graph.FunctionSpec{}}
}

func TestCompileSmoke(t *testing.T) {
	g, err := graph.Compile(&graph.Spec{
		Name:     "g",
		Channels: []graph.ChannelSpec{{Name: "x"}, {Name: "log", Reducer: "append"}},
		Nodes:    []graph.NodeSpec{function("a"), function("b"), function("c")},
		Edges: []graph.EdgeSpec{
			{From: []string{graph.Start}, To: "a"}, {From: []string{graph.Start}, To: "b"},
			{From: []string{"a", "b"}, To: "c"}, {From: []string{"c"}, To: graph.End},
		},
	}, graph.Env{})
	require.NoError(t, err)
	names := make([]string, len(g.Channels))
	for i := range g.Channels {
		names[i] = g.Channels[i].Name
	}
	require.Equal(t, []string{
		"x", "log", "__start__", "__pregel_tasks",
		"branch:to:a", "branch:to:b", "branch:to:c", "join:a+b:c",
	}, names)
	require.Equal(t, []int{4, 5}, g.Nodes[0].Edges)
	require.Equal(t, []int{6, 7}, g.Nodes[3].Triggers)
	require.Equal(t, []int{7}, g.Nodes[1].Joins)
	require.Empty(t, g.Nodes[3].Edges)
	require.Regexp(t, "^sha-[0-9a-f]{12}$", g.Version)
}
