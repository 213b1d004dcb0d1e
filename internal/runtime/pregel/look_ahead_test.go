package pregel_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// newLoopMachine returns a machine whose node runs again as long as an expression
// holds.
func newLoopMachine(t *testing.T, l graph.ChannelSpec, when, update string) *machine {
	t.Helper()
	m := newMachine(t, &graph.Spec{
		Channels: []graph.ChannelSpec{l, {Name: "n", Reducer: "add", Default: "0"}},
		Nodes:    newNodes("work", "end"), Edges: newEdges(graph.Start, "work"),
		Branches: []graph.BranchSpec{{From: "work", Cases: []graph.CaseSpec{{When: when, To: []string{"work"}}, {To: []string{"end"}}}}},
	}, newResults(map[string]string{"work": update}))
	m.applyInput(`{"l":["in"]}`)
	m.runStep()
	return m
}

// What decides a conditional edge sees lists with what the task has just added.
func TestConditionalEdgesSeeWholeLists(t *testing.T) {
	for _, reducer := range []string{"append", "topic", "union"} {
		l := graph.ChannelSpec{Name: "l", Reducer: reducer}
		m := newLoopMachine(t, l, `size(state.l) < 4 && state.l[size(state.l) - 1] == 'more'`, `{"l":["more"],"n":1}`)
		m.runStep()
		next := m.nextNodes()
		m.runStep()
		require.Equal(t, []string{"work"}, next, reducer)
		require.True(t, strings.HasSuffix(string(m.state.Values()), `"n":2}`), m.state.Values())
	}
	m := newLoopMachine(t, graph.ChannelSpec{Name: "l", Reducer: "append"}, `state.l == ['x']`, `{"l":{"__overwrite__":["x"]}}`)
	m.runStep()
	require.Equal(t, []string{"work"}, m.nextNodes())
}

// TestConditionalEdgesCopyNoLists compares what supersteps allocate beside a short
// and a long list that is not read.
func TestConditionalEdgesCopyNoLists(t *testing.T) {
	allocated := func(elements int) uint64 {
		m := newLoopMachine(t, graph.ChannelSpec{Name: "l", Reducer: "append"}, `state.n >= 0`, `{"l":["`+strings.Repeat("x", 1000)+`"],"n":1}`)
		var items []payload.JSON
		for i := range elements {
			items = append(items, payload.Quote(fmt.Sprint(i)))
		}
		m.results["work"] = pregel.Result{Update: payload.Object([]payload.Field{{Key: "l", Value: payload.Array(items)}})}
		m.runStep()
		m.results["work"] = pregel.Result{Update: `{"l":["x"],"n":1}`}
		m.runStep() // adds capacity behind the list
		const steps = 200
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range steps {
			m.runStep()
		}
		runtime.ReadMemStats(&after)
		require.Len(t, m.storedList().Items, 1+elements+1+steps)
		return (after.TotalAlloc - before.TotalAlloc) / steps
	}
	short, long := allocated(100), allocated(100_000)
	require.Less(t, long, 2*short, "bytes per superstep beside 100,000 elements, and beside 100")
}
