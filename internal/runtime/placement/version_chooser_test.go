package placement_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/placement"
)

// versions are the versions of a graph, newest first.
type versions []*graph.Graph

func (v versions) Graph(_, version string) (*graph.Graph, error) {
	for _, g := range v {
		if version == "" || g.Version == version {
			return g, nil
		}
	}
	return nil, runtime.Errorf(runtime.ReasonGraphVersionUnavailable, "no version %q", version)
}

func (v versions) Versions(string, int) (list []string) {
	for _, g := range v {
		list = append(list, g.Version)
	}
	return list
}

// workers are connected workers. They count what they are asked.
type workers struct {
	served  []checkpoint.Capability
	lookUps *int
}

func (workers) SetPeers(runtime.Peers) {}

func (w workers) Covers(need checkpoint.Capability) bool {
	*w.lookUps++
	return (&checkpoint.Member{Capabilities: w.served}).Covers(need)
}

func (workers) RecheckTasks() {}

// otherServer is a membership with one more server.
type otherServer []checkpoint.Capability

func (s otherServer) Register(string, func()) checkpoint.Registration {
	return registration{[]checkpoint.Member{{Server: "other", Capabilities: s}}}
}

type registration struct{ members []checkpoint.Member }

func (registration) SetCapabilities([]checkpoint.Capability) {}

func (registration) SetClaims(checkpoint.Claims) {}

func (r registration) OtherMembers() []checkpoint.Member { return r.members }

func (registration) Close() {}

// newGraph compiles a version of graph g with some nodes of workers, and one of the server,
// in a line.
func newGraph(t *testing.T, version string, remote int, change ...func(*graph.Spec)) *graph.Graph {
	t.Helper()
	s := &graph.Spec{
		Name: "g", Version: version, Channels: []graph.ChannelSpec{{Name: "x"}},
		Nodes: []graph.NodeSpec{{Name: "first", Function: &graph.FunctionSpec{}}}, Edges: []graph.EdgeSpec{{From: []string{graph.Start}, To: "first"}},
	}
	for i := range remote {
		name := fmt.Sprint("n", i)
		s.Nodes = append(s.Nodes, graph.NodeSpec{Name: name, Remote: &graph.RemoteSpec{}})
		s.Edges = append(s.Edges, graph.EdgeSpec{From: []string{"first"}, To: name})
	}
	for _, c := range change {
		c(s)
	}
	g, err := graph.Compile(s, graph.Env{Lookup: func(name, version string) (*graph.Graph, bool) {
		inner := &graph.Spec{
			Name: name, Version: version, Channels: []graph.ChannelSpec{{Name: "x"}},
			Nodes: []graph.NodeSpec{{Name: "n", Remote: &graph.RemoteSpec{}}}, Edges: []graph.EdgeSpec{{From: []string{graph.Start}, To: "n"}},
		}
		g, err := graph.Compile(inner, graph.Env{})
		return g, err == nil
	}})
	require.NoError(t, err)
	return g
}

func newChooser(v versions, here []checkpoint.Capability, elsewhere ...checkpoint.Capability) (*placement.VersionChooser, *int) {
	lookUps := new(int)
	peers := placement.New(workers{here, lookUps}, placement.NewUnservedRuns(func() {}))
	if elsewhere != nil {
		peers.Register(otherServer(elsewhere), "this")
	}
	return placement.NewVersionChooser(v, peers, zap.NewNop()), lookUps
}

// What a new thread pays while its newest version is served.
func TestAServedVersionCostsALookUp(t *testing.T) {
	served := []checkpoint.Capability{{Graph: "g", Version: "2"}}
	lastNode := []checkpoint.Capability{{Graph: "g", Version: "2", Node: "n2"}}
	for name, c := range map[string]struct {
		nodes           int
		here, elsewhere []checkpoint.Capability
		lookUps         int
	}{
		"no node of a worker":            {0, nil, nil, 0},
		"a worker of all nodes":          {3, served, nil, 1},
		"a worker of the last":           {3, lastNode, nil, 4},
		"a worker elsewhere":             {3, nil, served, 1},
		"a worker of the last elsewhere": {3, nil, lastNode, 4},
	} {
		t.Run(name, func(t *testing.T) {
			chooser, lookUps := newChooser(versions{newGraph(t, "2", c.nodes), newGraph(t, "1", 1)}, c.here, c.elsewhere...)
			choose := func() {
				*lookUps = 0
				g, err := chooser.ChooseVersion("g")
				if err != nil || g.Version != "2" {
					t.Error(g, err)
				}
			}
			require.Zero(t, testing.AllocsPerRun(10, choose))
			require.Equal(t, c.lookUps, *lookUps)
		})
	}
}

// A version without workers costs no more where it has many nodes, which would each be
// looked for at all servers.
func TestAnUnservedVersionCostsFewLookUps(t *testing.T) {
	for _, nodes := range []int{2, 100} {
		chooser, lookUps := newChooser(versions{newGraph(t, "3", nodes), newGraph(t, "2", nodes), newGraph(t, "1", nodes)}, nil)
		g, err := chooser.ChooseVersion("g")
		require.NoError(t, err)
		require.Equal(t, "3", g.Version)
		require.Equal(t, 4, *lookUps, "the first node, the version, and the older versions")
	}
}

// An older version is served where the graphs in it are served too.
func TestAnOlderVersionNeedsWorkersForGraphsInIt(t *testing.T) {
	withInner := func(s *graph.Spec) {
		s.Nodes = append(s.Nodes, graph.NodeSpec{Name: "inner", Graph: &graph.SubgraphSpec{Name: "inner", Version: "1"}})
		s.Edges = append(s.Edges, graph.EdgeSpec{From: []string{"first"}, To: "inner"})
	}
	for _, c := range []struct {
		newest *graph.Graph
		served []checkpoint.Capability
		want   string
	}{
		{newGraph(t, "2", 1), []checkpoint.Capability{{Graph: "g", Version: "1"}}, "2"},
		{newGraph(t, "2", 1), []checkpoint.Capability{{Graph: "g", Version: "1"}, {Graph: "inner", Version: "2"}}, "2"},
		{newGraph(t, "2", 1), []checkpoint.Capability{{Graph: "g", Version: "1"}, {Graph: "inner", Version: "1"}}, "1"},
		// The workers of an older version serve the graph in it, which both versions have.
		{newGraph(t, "2", 1, withInner), []checkpoint.Capability{{Graph: "g", Version: "1"}, {Graph: "inner", Version: "1"}}, "1"},
	} {
		chooser, _ := newChooser(versions{c.newest, newGraph(t, "1", 1, withInner)}, c.served)
		g, err := chooser.ChooseVersion("g")
		require.NoError(t, err)
		require.Equal(t, c.want, g.Version)
	}
}

// A server whose workers don't matter takes the newest version.
func TestWithoutPeersTheNewestVersionIsTaken(t *testing.T) {
	g, err := placement.NewVersionChooser(versions{newGraph(t, "2", 1), newGraph(t, "1", 1)}, nil, zap.NewNop()).ChooseVersion("g")
	require.NoError(t, err)
	require.Equal(t, "2", g.Version)
}
