package profile_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/worker/message"
	"github.com/graphd-dev/graphd/internal/worker/profile"
	"github.com/graphd-dev/graphd/internal/worker/queue"
)

// session stands for the session of a worker.
type session struct{}

// addWorkers adds workers that serve some nodes of a graph.
func addWorkers(t *testing.T, table *profile.Table[session], graph string, workers, nodes int) {
	t.Helper()
	for i := range workers {
		hello := message.Hello{Worker: fmt.Sprint(graph, i)}
		for n := range nodes {
			hello.Capabilities = append(hello.Capabilities, message.Capability{Graph: graph, Version: "1", Node: fmt.Sprint("n", n)})
		}
		_, err := table.AddProfile(profile.New(&session{}, hello))
		require.NoError(t, err)
	}
}

// TestExplanationCostsWhatItsGraphCosts explains an unserved route beside few and
// beside many workers of another graph.
func TestExplanationCostsWhatItsGraphCosts(t *testing.T) {
	route := queue.Route{Graph: "g", Version: "1", Node: "missing"}
	countAllocs := func(others int) float64 {
		table := profile.NewTable[session](2000, 32<<20)
		addWorkers(t, table, "g", 2, 3)
		addWorkers(t, table, "h", others, 10)
		require.Equal(t, "no connected worker serves node missing of graph g", table.ExplainUnserved(route))
		return testing.AllocsPerRun(10, func() { table.ExplainUnserved(route) })
	}
	require.InDelta(t, countAllocs(1), countAllocs(1000), 0, "what other workers serve is copied")
}

// TestReplacedProfilesAreNotCounted replaces the profile of a worker again and again in a
// table with room for one of them.
func TestReplacedProfilesAreNotCounted(t *testing.T) {
	hello := message.Hello{Worker: "w", Capabilities: []message.Capability{{Graph: "g"}}}
	table := profile.NewTable[session](1, hello.EstimateBytes(hello.Credit))
	var last *profile.Profile[session]
	for range 3 {
		p := profile.New(&session{}, hello)
		older, err := table.AddProfile(p)
		require.NoError(t, err)
		require.Same(t, last, older)
		if older != nil {
			table.ReleaseBytes(older)
			table.RemoveProfile(older)
		}
		last = p
	}
	require.True(t, table.IsServed(queue.Route{Graph: "g", Node: "n"}))
	_, err := table.AddProfile(profile.New(&session{}, message.Hello{Worker: "other"}))
	require.ErrorContains(t, err, "as many workers as it may, 1")
	table.ReleaseBytes(last)
	table.RemoveProfile(last)
	require.False(t, table.IsServed(queue.Route{Graph: "g", Node: "n"}))
}

// TestServedRoutesAreFoundWithoutAllocation looks for a route with one worker beside many
// of another version.
func TestServedRoutesAreFoundWithoutAllocation(t *testing.T) {
	table := profile.NewTable[session](2000, 32<<20)
	addWorkers(t, table, "g", 100, 3)
	_, err := table.AddProfile(profile.New(&session{}, message.Hello{Worker: "new", Capabilities: []message.Capability{{Graph: "g", Version: "2"}}}))
	require.NoError(t, err)
	for _, c := range []struct {
		version, node string
		want          bool
	}{{"1", "n2", true}, {"1", "n3", false}, {"2", "n3", true}, {"3", "n1", false}} {
		r := queue.Route{Graph: "g", Version: c.version, Node: c.node}
		require.Equal(t, c.want, table.IsServed(r), c)
		require.Zero(t, testing.AllocsPerRun(10, func() { table.IsServed(r) }))
	}
}
