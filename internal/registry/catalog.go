package registry

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// catalog holds all versions of all graphs, by tenant and name. A change makes a new
// catalog, and new names of its tenant alone.
type catalog map[string]map[string]*versionList

// versionList holds all versions of a graph. A change makes a new list.
type versionList struct {
	list      []*graphVersion // oldest first
	byVersion map[string]*graphVersion
	newest    *graphVersion
}

// graphVersion is one version of a graph. Its compiled form may be dropped and made
// again.
type graphVersion struct {
	versionID

	created   time.Time
	source    string // "" = the store has it
	putNumber uint64 // number of the put by this process, 0 = another process has put it

	compiled  atomic.Pointer[compiledGraph]  // nil = not compiled now
	failure   atomic.Pointer[compileFailure] // nil = compiles, or was not tried
	wasWarned atomic.Bool
	subgraphs atomic.Pointer[[]versionID] // graphs that it contains, nil = not known yet
}

type versionID struct{ name, version string }

// tenantName returns the tenant of the graph.
func (v versionID) tenantName() string {
	name, _ := tenant.Split(v.name)
	return name
}

func (v versionID) String() string { return v.name + "@" + v.version }

// compiledGraph is a compiled graph in the cache.
type compiledGraph struct {
	graph   *graph.Graph
	bytes   int
	lastUse atomic.Int64 // counted in uses
}

// compileFailure is the error of a version that does not compile. It is valid while
// the catalog is the same.
type compileFailure struct {
	err     error
	catalog *catalog
}

func newVersionList(list []*graphVersion) *versionList {
	v := &versionList{list: list, byVersion: make(map[string]*graphVersion, len(list))}
	slices.SortStableFunc(v.list, func(a, b *graphVersion) int {
		return cmp.Or(a.created.Compare(b.created), strings.Compare(a.version, b.version))
	})
	for _, one := range v.list {
		v.byVersion[one.version] = one
	}
	return v
}

// versionNames lists the versions, oldest first.
func (v *versionList) versionNames() []string {
	if v == nil {
		return nil
	}
	out := make([]string, len(v.list))
	for i, one := range v.list {
		out[i] = one.version
	}
	return out
}

// findGraph returns the versions of a graph, nil = there is none of the name.
func (c catalog) findGraph(name string) *versionList { return c.namesBeside(name)[name] }

// namesBeside returns the graphs of the tenant to which a name belongs.
func (c catalog) namesBeside(name string) map[string]*versionList {
	owner, _ := tenant.Split(name)
	return c[owner]
}

// listAll iterates over all graphs of all tenants.
func (c catalog) listAll() iter.Seq2[string, *versionList] {
	return func(yield func(string, *versionList) bool) {
		for _, names := range c {
			for name, v := range names {
				if !yield(name, v) {
					return
				}
			}
		}
	}
}

// withGraph returns a catalog with other versions of a name, nil = without the name.
func (c catalog) withGraph(name string, v *versionList) *catalog {
	owner, _ := tenant.Split(name)
	next, names := maps.Clone(c), maps.Clone(c[owner])
	switch {
	case v == nil:
		delete(names, name)
	case names == nil:
		names = map[string]*versionList{name: v}
	default:
		names[name] = v
	}
	if next[owner] = names; len(names) == 0 {
		delete(next, owner)
	}
	return &next
}

func (c catalog) findVersion(id versionID) *graphVersion {
	v := c.findGraph(id.name)
	if v == nil {
		return nil
	}
	return v.byVersion[id.version]
}

// countAll returns the numbers of graphs and of their versions.
func (c catalog) countAll() (graphs, versions int) {
	for _, v := range c.listAll() {
		graphs++
		versions += len(v.list)
	}
	return graphs, versions
}

// withVersion returns a catalog with one more version.
func (c catalog) withVersion(one *graphVersion) *catalog {
	var list []*graphVersion
	if before := c.findGraph(one.name); before != nil {
		list = slices.Clone(before.list)
	}
	v := newVersionList(append(list, one))
	v.newest = one
	return c.withGraph(one.name, v)
}

// withoutVersions returns a catalog without some versions.
func (c catalog) withoutVersions(name string, gone []*graphVersion) *catalog {
	before := c.findGraph(name)
	list := slices.DeleteFunc(slices.Clone(before.list), func(one *graphVersion) bool { return slices.Contains(gone, one) })
	if len(list) == 0 {
		return c.withGraph(name, nil)
	}
	v := newVersionList(list)
	v.newest = before.newest
	if slices.Contains(gone, v.newest) {
		v.newest = list[len(list)-1]
	}
	return c.withGraph(name, v)
}

// withNewest returns a catalog in which another version is the newest of its name.
func (c catalog) withNewest(one *graphVersion) *catalog {
	before := c.findGraph(one.name)
	return c.withGraph(one.name, &versionList{list: before.list, byVersion: before.byVersion, newest: one})
}

// newCatalog makes a catalog of lists. If the newest version of a list is gone, its
// last one becomes the newest.
func newCatalog(lists map[string][]*graphVersion, newest map[string]*graphVersion) *catalog {
	next := make(catalog)
	for name, list := range lists {
		v := newVersionList(list)
		v.newest = v.list[len(v.list)-1]
		if n := newest[name]; n != nil && v.byVersion[n.version] == n {
			v.newest = n
		}
		owner, _ := tenant.Split(name)
		if next[owner] == nil {
			next[owner] = make(map[string]*versionList)
		}
		next[owner][name] = v
	}
	return &next
}
