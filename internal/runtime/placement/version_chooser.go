package placement

import (
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// maxOlderVersions is the number of older versions of a graph that are looked at.
const maxOlderVersions = 16

// VersionChooser chooses the versions of graphs on which new threads run.
type VersionChooser struct {
	graphs      runtime.Graphs
	peers       *Peers // nil = it does not matter where workers are
	comparisons questionComparisons
	log         *zap.Logger
}

// NewVersionChooser makes a chooser. Without peers it chooses the newest versions.
func NewVersionChooser(graphs runtime.Graphs, peers *Peers, log *zap.Logger) *VersionChooser {
	return &VersionChooser{graphs: graphs, peers: peers, log: log}
}

// ChooseVersion returns the version of a graph on which a new thread runs that names none:
// the newest one. Where no worker serves a node of that one, it is the newest of the older
// versions that workers serve as a whole and that asks all questions of the newest one.
// Errors: those of runtime.Graphs.
func (c *VersionChooser) ChooseVersion(name string) (*graph.Graph, error) {
	newest, err := c.graphs.Graph(name, "")
	if err != nil || c.peers == nil || c.isServedInPart(newest) {
		return newest, err
	}
	older, err := c.findServed(newest)
	switch {
	case err != nil:
		return nil, err
	case older == nil:
		return newest, nil
	}
	c.log.Debug("a new thread takes an older version of its graph", zap.String("graph", name), zap.String("version", older.Version),
		zap.String("reason", "no worker serves the newest version, "+newest.Version))
	return older, nil
}

// isServedInPart reports whether workers run some node of a graph, or need not. A version
// without any worker takes two look-ups, however many nodes it has.
func (c *VersionChooser) isServedInPart(g *graph.Graph) bool {
	nodes := g.WorkerNodes()
	if len(nodes) == 0 || c.isServed(g, nodes[0]) {
		return true
	}
	if !c.hasWorkers(g.Name, g.Version) {
		return false
	}
	for _, n := range nodes[1:] { // a worker may name nodes that the graph does not have
		if c.isServed(g, n) {
			return true
		}
	}
	return false
}

// isServedAsAWhole reports whether workers run all nodes of a graph that need one, those
// of graphs in it included. It adds the graphs that it has looked at to checked.
func (c *VersionChooser) isServedAsAWhole(g *graph.Graph, checked map[*graph.Graph]bool) bool {
	if checked[g] {
		return true
	}
	checked[g] = true
	for _, n := range g.WorkerNodes() {
		if !c.isServed(g, n) {
			return false
		}
	}
	for _, n := range g.Nodes {
		if n.Sub != nil && !c.isServedAsAWhole(n.Sub, checked) {
			return false
		}
	}
	return true
}

// isServed reports whether a worker runs a node.
func (c *VersionChooser) isServed(g *graph.Graph, n *graph.Node) bool {
	need, _ := CapabilityFor(g, n)
	return c.isCovered(need)
}

// hasWorkers reports whether a worker runs anything of a version.
func (c *VersionChooser) hasWorkers(name, version string) bool {
	return c.isCovered(checkpoint.Capability{Graph: name, Version: version})
}

// isCovered reports whether a worker, here or at another server, has a capability.
func (c *VersionChooser) isCovered(need checkpoint.Capability) bool {
	return c.peers.CoversHere(need) || c.peers.Cover(need)
}

// findServed returns the newest of the versions before the newest one that may take its
// place, nil for none. It compiles no version for which there is no worker at all.
func (c *VersionChooser) findServed(newest *graph.Graph) (*graph.Graph, error) {
	versions := c.graphs.Versions(newest.Name, maxOlderVersions+1)
	// Where the newest version does not compile here it is not known what it asks.
	if len(versions) == 0 || versions[0] != newest.Version {
		return nil, nil
	}
	for _, version := range versions[1:] {
		if !c.hasWorkers(newest.Name, version) {
			continue
		}
		older, err := c.graphs.Graph(newest.Name, version)
		switch {
		case runtime.IsStoreFault(err):
			return nil, err
		case err != nil: // it can't be used here
		case c.isServedAsAWhole(older, make(map[*graph.Graph]bool)) && c.comparisons.keepsQuestions(newest, older):
			return older, nil
		}
	}
	return nil, nil
}
