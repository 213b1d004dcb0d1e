package coverage_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/worker/coverage"
	"github.com/graphd-dev/graphd/internal/worker/message"
)

func TestIndexFindsTheWorkersOfAGraph(t *testing.T) {
	x := coverage.NewIndex[string]()
	workersOf := func(graph string) []string { return slices.Sorted(x.WorkersOf(graph)) }
	need := message.Capability{Graph: "g", Version: "3", Node: "a"}
	require.Equal(t, "no worker of graph g is connected", x.ExplainUncovered(need))
	require.Empty(t, workersOf("g"))

	x.AddWorker("w1", []message.Capability{
		{Graph: "g", Version: "2", Node: "a"}, {Graph: "h", Version: "1", Node: "a"}, {Graph: "g", Version: "2", Node: "b"},
	})
	x.AddWorker("w2", []message.Capability{{Graph: "g", Version: "1"}, {Graph: "g", Version: "3", Node: "b"}})
	require.Equal(t, []string{"w1", "w2"}, workersOf("g"))
	require.Equal(t, []string{"w1"}, workersOf("h"))
	require.Equal(t, "no connected worker serves version 3 of graph g; those that are connected serve 1, 2", x.ExplainUncovered(need))

	x.RemoveWorker("w1")
	x.RemoveWorker("w1")
	require.Equal(t, []string{"w2"}, workersOf("g"))
	require.Empty(t, workersOf("h"))
	require.Equal(t, "no connected worker serves version 3 of graph g; those that are connected serve 1", x.ExplainUncovered(need))

	x.AddWorker("w2", []message.Capability{{Graph: "g", Node: "b"}})
	require.Equal(t, "no connected worker serves node a of graph g", x.ExplainUncovered(need))
	x.RemoveWorker("w2")
	require.Equal(t, "no worker of graph g is connected", x.ExplainUncovered(need))
}

func TestIndexFindsTheWorkersOfAVersion(t *testing.T) {
	x := coverage.NewIndex[string]()
	workersOf := func(graph, version string) (found []string) {
		require.False(t, x.ContainsFunc(graph, version, func(w string) bool {
			found = append(found, w)
			return false
		}))
		slices.Sort(found)
		return found
	}
	require.Empty(t, workersOf("g", "1"))
	x.AddWorker("w1", []message.Capability{{Graph: "g", Version: "1", Node: "a"}, {Graph: "g", Version: "1", Node: "b"}})
	x.AddWorker("w2", []message.Capability{{Graph: "g", Version: "2"}, {Graph: "g", Version: "1"}})
	x.AddWorker("every version", []message.Capability{{Graph: "g"}})
	require.Equal(t, []string{"every version", "w1", "w2"}, workersOf("g", "1"))
	require.Equal(t, []string{"every version", "w2"}, workersOf("g", "2"))
	require.Equal(t, []string{"every version"}, workersOf("g", "3"))
	require.Empty(t, workersOf("h", "1"))
	require.True(t, x.ContainsFunc("g", "2", func(w string) bool { return w == "w2" }))

	x.RemoveWorker("w2")
	require.Equal(t, []string{"every version", "w1"}, workersOf("g", "1"))
	require.Equal(t, []string{"every version"}, workersOf("g", "2"))
	x.RemoveWorker("every version")
	require.Equal(t, []string{"w1"}, workersOf("g", "1"))
	require.Empty(t, workersOf("g", "2"))
}
