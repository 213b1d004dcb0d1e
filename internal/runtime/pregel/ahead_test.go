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

// looping is a node that goes on as long as an expression says.
func looping(t *testing.T, l graph.ChannelSpec, when, update string) *machine {
	t.Helper()
	m := newMachine(t, &graph.Spec{
		Channels: []graph.ChannelSpec{l, {Name: "n", Reducer: "add", Default: "0"}},
		Nodes:    nodes("work", "end"), Edges: edges(graph.Start, "work"),
		Branches: []graph.BranchSpec{{From: "work", Cases: []graph.CaseSpec{{When: when, To: []string{"work"}}, {To: []string{"end"}}}}},
	}, updates(map[string]string{"work": update}))
	m.input(`{"l":["in"]}`)
	m.step()
	return m
}

// What decides a conditional edge sees lists with what the task has just added.
func TestConditionalEdgesSeeWholeLists(t *testing.T) {
	for _, reducer := range []string{"append", "topic", "union"} {
		l := graph.ChannelSpec{Name: "l", Reducer: reducer}
		m := looping(t, l, `size(state.l) < 4 && state.l[size(state.l) - 1] == 'more'`, `{"l":["more"],"n":1}`)
		m.step()
		next := m.next()
		m.step()
		require.Equal(t, []string{"work"}, next, reducer)
		require.True(t, strings.HasSuffix(string(m.s.Values()), `"n":2}`), m.s.Values())
	}
	m := looping(t, graph.ChannelSpec{Name: "l", Reducer: "append"}, `state.l == ['x']`, `{"l":{"__overwrite__":["x"]}}`)
	m.step()
	require.Equal(t, []string{"work"}, m.next())
}

// TestConditionalEdgesCopyNoLists compares what supersteps allocate beside a
// short and a long list that nobody looks at.
func TestConditionalEdgesCopyNoLists(t *testing.T) {
	allocated := func(elements int) uint64 {
		m := looping(t, graph.ChannelSpec{Name: "l", Reducer: "append"}, `state.n >= 0`, `{"l":["`+strings.Repeat("x", 1000)+`"],"n":1}`)
		var items []payload.JSON
		for i := range elements {
			items = append(items, payload.Quote(fmt.Sprint(i)))
		}
		m.code["work"] = pregel.Result{Update: payload.Object([]payload.Field{{Key: "l", Value: payload.Array(items)}})}
		m.step()
		m.code["work"] = pregel.Result{Update: `{"l":["x"],"n":1}`}
		m.step() // makes room behind the list
		const steps = 200
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range steps {
			m.step()
		}
		runtime.ReadMemStats(&after)
		require.Len(t, m.list().Items, 1+elements+1+steps)
		return (after.TotalAlloc - before.TotalAlloc) / steps
	}
	short, long := allocated(100), allocated(100_000)
	require.Less(t, long, 2*short, "bytes per superstep beside 100,000 elements, and beside 100")
}
