package workers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// A graph has the subgraphs that its worker brings along, also when the newest version of one of them
// is that of another program: one that was put back, or one that is rolled out at the same time.
func TestAGraphHasTheSubgraphsOfItsWorker(t *testing.T) {
	s := startServer(t, config{})
	bring := func(worker string, nodes ...string) (versions map[string]string) {
		parent := newChainGraph("parent")
		parent.Nodes = []*graphdv1.NodeSpec{{Name: "inside", Kind: &graphdv1.NodeSpec_Graph{Graph: &graphdv1.SubgraphSpec{Graph: "child"}}}}
		parent.Edges = []*graphdv1.EdgeSpec{{Sources: []string{"__start__"}, Target: "inside"}, {Sources: []string{"inside"}, Target: "__end__"}}
		hello := newHello(worker, 1)
		hello.Manifest.Graphs = listSpecs(newChainGraph("child", nodes...), parent)
		versions = map[string]string{}
		for _, g := range s.connectWorker(hello).welcome.GetGraphs() {
			require.Empty(t, g.GetProblems())
			versions[g.GetGraph()] = g.GetVersion()
		}
		return versions
	}
	requireChild := func(versions map[string]string) {
		t.Helper()
		parent, err := s.GetGraph(t.Context(), &graphdv1.GetGraphRequest{Graph: "parent", Version: versions["parent"], View: graphdv1.GraphView_GRAPH_VIEW_FULL})
		require.NoError(t, err)
		require.Equal(t, versions["child"], parent.GetSpec().GetNodes()[0].GetGraph().GetVersion())
	}
	first := bring("w1", "a")
	second := bring("w2", "a", "b")
	require.NotEqual(t, first["child"], second["child"])
	again := bring("w3", "a")
	require.Equal(t, first, again, "what it was")
	for _, versions := range []map[string]string{first, second, again} {
		requireChild(versions)
	}
}

// A graph that contains itself is refused, also when the manifest has another one of its name before.
func TestAGraphThatContainsItselfIsRefused(t *testing.T) {
	s := startServer(t, config{})
	itself := newChainGraph("twice")
	itself.Nodes = []*graphdv1.NodeSpec{{Name: "inside", Kind: &graphdv1.NodeSpec_Graph{Graph: &graphdv1.SubgraphSpec{Graph: "twice"}}}}
	itself.Edges = []*graphdv1.EdgeSpec{{Sources: []string{"__start__"}, Target: "inside"}, {Sources: []string{"inside"}, Target: "__end__"}}
	hello := newHello("w", 1)
	hello.Manifest.Graphs = listSpecs(newChainGraph("twice", "a"), itself)
	registered := s.connectWorker(hello).welcome.GetGraphs()
	require.Len(t, registered, 2)
	require.Empty(t, registered[0].GetProblems())
	require.NotEmpty(t, registered[1].GetProblems())
}
