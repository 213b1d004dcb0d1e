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
