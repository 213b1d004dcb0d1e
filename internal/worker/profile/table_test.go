package worker

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/worker/coverage"
	"github.com/graphd-dev/graphd/internal/worker/message"
	"github.com/graphd-dev/graphd/internal/worker/queue"
)

// addWorkers adds workers that serve some nodes of a graph.
func addWorkers(t *testing.T, table *sessionTable, graph string, workers, nodes int) {
	t.Helper()
	for i := range workers {
		s := &Session{hello: message.Hello{Worker: fmt.Sprint(graph, i)}}
		for n := range nodes {
			s.hello.Capabilities = append(s.hello.Capabilities, message.Capability{Graph: graph, Version: "1", Node: fmt.Sprint("n", n)})
		}
		s.capacity = capacity{session: s, coverage: coverage.NewCoverage(s.hello.Capabilities)}
		_, err := table.addSession(s)
		require.NoError(t, err)
	}
}

// TestUnservedReasonCostsWhatItsGraphCosts explains an unserved route beside few and
// beside many workers of another graph.
func TestUnservedReasonCostsWhatItsGraphCosts(t *testing.T) {
	route := queue.Route{Graph: "g", Version: "1", Node: "missing"}
	countAllocs := func(others int) float64 {
		table := newSessionTable(Options{}.withDefaults())
		addWorkers(t, table, "g", 2, 3)
		addWorkers(t, table, "h", others, 10)
		require.Equal(t, "no connected worker serves node missing of graph g", table.unservedReason(route))
		return testing.AllocsPerRun(10, func() { table.unservedReason(route) })
	}
	require.InDelta(t, countAllocs(1), countAllocs(1000), 0, "what other workers serve is copied")
}
