package runtime_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// versions are the channels of a checkpoint that were ever written, and what
// its nodes have reacted to.
func versions(cp *checkpoint.Checkpoint) (channels map[string]uint64, seen map[string]map[string]uint64) {
	channels, seen = make(map[string]uint64), make(map[string]map[string]uint64)
	for _, c := range cp.Channels {
		if c.Version > 0 {
			channels[c.Name] = c.Version
		}
	}
	for _, n := range cp.Seen {
		seen[n.Node] = make(map[string]uint64)
		for _, v := range n.Versions {
			seen[n.Node][v.Channel] = v.Version
		}
	}
	return channels, seen
}

func newest(t *testing.T, w *world) *checkpoint.Checkpoint {
	t.Helper()
	s, err := w.engine.State(t.Context(), runtime.StateRequest{Thread: "t"})
	require.NoError(t, err)
	return s.Checkpoint
}

// Channels that a superstep changes get one version more than the greatest;
// the others keep theirs.
func TestVersionsOfAChain(t *testing.T) {
	w := newWorld(t, map[string]node{"n1": update(`{"a":["n1"]}`), "n2": update(`{"a":["n2"]}`)},
		chain("g", channelsAB, "n1", "n2"))
	w.run("t", "g", `{"a":["in"],"b":"x"}`)
	channels, seen := versions(newest(t, w))
	require.Equal(t, map[string]uint64{"__start__": 2, "a": 4, "b": 2, "branch:to:n1": 3, "branch:to:n2": 4}, channels)
	require.Equal(t, map[string]map[string]uint64{
		"__start__": {"__start__": 1}, "n1": {"branch:to:n1": 2}, "n2": {"branch:to:n2": 3},
	}, seen)
	require.Equal(t, []string{"a"}, newest(t, w).Updated)
}

func TestVersionsOfUntouchedChannelsStay(t *testing.T) {
	w := newWorld(t, map[string]node{
		"n1": update(`{"a":["x"]}`), "n2": update(`{"b":1}`), "n3": update(`{"a":["y"]}`),
	}, chain("g", []graph.ChannelSpec{{Name: "a", Reducer: "append"}, {Name: "b"}, {Name: "c"}}, "n1", "n2", "n3"))
	w.run("t", "g", `{"c":"keep"}`)
	channels, _ := versions(newest(t, w))
	require.Equal(t, map[string]uint64{
		"__start__": 2, "c": 2, "b": 4, "a": 5, "branch:to:n1": 3, "branch:to:n2": 4, "branch:to:n3": 5,
	}, channels)
}

func TestAHalfFullBarrierStays(t *testing.T) {
	spec := chain("g", channelsAB, "r", "x")
	spec.Nodes = append(spec.Nodes, function("y"), function("z"))
	spec.Edges = append(spec.Edges, graph.EdgeSpec{From: []string{"x", "y"}, To: "z"})
	w := newWorld(t, map[string]node{"r": update(`{}`), "x": update(`{"a":["x"]}`), "y": update(`{"a":["y"]}`), "z": update(`{"a":["z"]}`)}, spec)
	w.run("t", "g", `{"a":[]}`)
	channels, _ := versions(newest(t, w))
	require.EqualValues(t, 4, channels["join:x+y:z"])
	for _, c := range newest(t, w).Channels {
		if c.Name == "join:x+y:z" {
			require.Len(t, c.List.Items, 1)
			require.Contains(t, string(c.List.Items[0]), "x")
		}
	}
}
