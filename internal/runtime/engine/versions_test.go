package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// channelVersions returns the channels of a checkpoint that were ever written, and those
// that its nodes have reacted to.
func channelVersions(cp *checkpoint.Checkpoint) (channels map[string]uint64, seen map[string]map[string]uint64) {
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

func newestCheckpoint(t *testing.T, w *fixture) *checkpoint.Checkpoint {
	t.Helper()
	s, err := w.engine.State(t.Context(), runtime.StateRequest{Thread: "t"})
	require.NoError(t, err)
	return s.Checkpoint
}

// Channels that a superstep changes get one version more than the greatest;
// the others keep theirs.
func TestVersionsOfAChain(t *testing.T) {
	w := newFixture(t, map[string]nodeFunc{"n1": updateNode(`{"a":["n1"]}`), "n2": updateNode(`{"a":["n2"]}`)},
		chainSpec("g", channelsAB, "n1", "n2"))
	w.runToStop("t", "g", `{"a":["in"],"b":"x"}`)
	channels, seen := channelVersions(newestCheckpoint(t, w))
	require.Equal(t, map[string]uint64{"__start__": 2, "a": 4, "b": 2, "branch:to:n1": 3, "branch:to:n2": 4}, channels)
	require.Equal(t, map[string]map[string]uint64{
		"__start__": {"__start__": 1}, "n1": {"branch:to:n1": 2}, "n2": {"branch:to:n2": 3},
	}, seen)
	require.Equal(t, []string{"a"}, newestCheckpoint(t, w).Updated)
}

func TestVersionsOfUntouchedChannelsStay(t *testing.T) {
	w := newFixture(t, map[string]nodeFunc{
		"n1": updateNode(`{"a":["x"]}`), "n2": updateNode(`{"b":1}`), "n3": updateNode(`{"a":["y"]}`),
	}, chainSpec("g", []graph.ChannelSpec{{Name: "a", Reducer: "append"}, {Name: "b"}, {Name: "c"}}, "n1", "n2", "n3"))
	w.runToStop("t", "g", `{"c":"keep"}`)
	channels, _ := channelVersions(newestCheckpoint(t, w))
	require.Equal(t, map[string]uint64{
		"__start__": 2, "c": 2, "b": 4, "a": 5, "branch:to:n1": 3, "branch:to:n2": 4, "branch:to:n3": 5,
	}, channels)
}

func TestAHalfFullBarrierStays(t *testing.T) {
	spec := chainSpec("g", channelsAB, "r", "x")
	spec.Nodes = append(spec.Nodes, functionNode("y"), functionNode("z"))
	spec.Edges = append(spec.Edges, graph.EdgeSpec{From: []string{"x", "y"}, To: "z"})
	w := newFixture(t, map[string]nodeFunc{"r": updateNode(`{}`), "x": updateNode(`{"a":["x"]}`), "y": updateNode(`{"a":["y"]}`), "z": updateNode(`{"a":["z"]}`)}, spec)
	w.runToStop("t", "g", `{"a":[]}`)
	channels, _ := channelVersions(newestCheckpoint(t, w))
	require.EqualValues(t, 4, channels["join:x+y:z"])
	for _, c := range newestCheckpoint(t, w).Channels {
		if c.Name == "join:x+y:z" {
			require.Len(t, c.List.Items, 1)
			require.Contains(t, string(c.List.Items[0]), "x")
		}
	}
}
