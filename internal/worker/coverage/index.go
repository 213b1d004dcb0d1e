package coverage

import (
	"iter"
	"maps"
	"slices"

	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/worker/message"
)

// Index finds the workers of a graph. The cost depends on the workers of that graph
// alone, however many others are connected.
type Index[W comparable] struct {
	byGraph  map[string]*servedGraph[W]
	byWorker map[W][]graphVersion
}

// graphVersion is a version of a graph that a worker serves, "" = all versions.
type graphVersion struct{ graph, version string }

// servedGraph has the workers of a graph.
type servedGraph[W comparable] struct {
	workers  map[W]struct{}
	versions map[string][]W // workers that serve nodes of a version
}

// NewIndex makes an index without workers.
func NewIndex[W comparable]() *Index[W] {
	return &Index[W]{byGraph: make(map[string]*servedGraph[W]), byWorker: make(map[W][]graphVersion)}
}

// AddWorker adds a worker with its entries.
func (i *Index[W]) AddWorker(w W, serves []message.Capability) {
	i.RemoveWorker(w)
	served := listVersions(serves)
	for _, v := range served {
		g := i.byGraph[v.graph]
		if g == nil {
			g = &servedGraph[W]{workers: make(map[W]struct{}), versions: make(map[string][]W)}
			i.byGraph[v.graph] = g
		}
		g.workers[w] = struct{}{}
		g.versions[v.version] = append(g.versions[v.version], w)
	}
	i.byWorker[w] = served
}

// RemoveWorker removes a worker, if the index has it.
func (i *Index[W]) RemoveWorker(w W) {
	for _, v := range i.byWorker[w] {
		g := i.byGraph[v.graph]
		delete(g.workers, w)
		if g.versions[v.version] = removeWorker(g.versions[v.version], w); len(g.versions[v.version]) == 0 {
			delete(g.versions, v.version)
		}
		if len(g.versions) == 0 {
			delete(i.byGraph, v.graph)
		}
	}
	delete(i.byWorker, w)
}

// removeWorker removes a worker from a list, whose order does not matter.
func removeWorker[W comparable](list []W, w W) []W {
	if i := slices.Index(list, w); i >= 0 {
		last := len(list) - 1
		list[i] = list[last]
		return slices.Delete(list, last, last+1)
	}
	return list
}

// ContainsFunc reports whether accepts is true for a worker that serves nodes of a version
// of a graph. It looks at no worker of other versions.
func (i *Index[W]) ContainsFunc(graph, version string, accepts func(W) bool) bool {
	g := i.byGraph[graph]
	return g != nil && (slices.ContainsFunc(g.versions[version], accepts) || slices.ContainsFunc(g.versions[""], accepts))
}

// WorkersOf iterates over the workers that serve nodes of a graph, in no order.
func (i *Index[W]) WorkersOf(graph string) iter.Seq[W] {
	g := i.byGraph[graph]
	if g == nil {
		return func(func(W) bool) {}
	}
	return maps.Keys(g.workers)
}

// ExplainUncovered returns, for the operator, the served capability nearest to the
// needed capability.
func (i *Index[W]) ExplainUncovered(need message.Capability) string {
	g, name := i.byGraph[need.Graph], tenant.ClientName(need.Graph)
	if g == nil {
		return "no worker of graph " + name + " is connected"
	}
	var versions []string
	for v := range g.versions {
		if v != "" && v != need.Version {
			versions = append(versions, v)
		}
	}
	if len(versions) == 0 {
		return "no connected worker serves node " + need.Node + " of graph " + name
	}
	slices.Sort(versions)
	return "no connected worker serves version " + need.Version + " of graph " + name +
		"; those that are connected serve " + joinVersions(versions)
}

// listVersions lists the versions of graphs in some capabilities, each once.
func listVersions(serves []message.Capability) []graphVersion {
	seen := make(map[graphVersion]struct{})
	var last graphVersion
	for i, s := range serves {
		v := graphVersion{s.Graph, s.Version}
		if i == 0 || v != last {
			seen[v], last = struct{}{}, v
		}
	}
	return slices.Collect(maps.Keys(seen))
}

// joinVersions lists the first versions of a list as text.
func joinVersions(list []string) string {
	const most = 5
	text := ""
	for i, s := range list {
		switch {
		case i == most:
			return text + ", …"
		case i > 0:
			text += ", "
		}
		text += s
	}
	return text
}
