package registry

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/graph"
)

// catalog holds all versions of all graphs, by name. A change makes a new
// catalog.
type catalog map[string]*versionList

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

func (c catalog) findVersion(id versionID) *graphVersion {
	v := c[id.name]
	if v == nil {
		return nil
	}
	return v.byVersion[id.version]
}

// countVersions returns the number of versions.
func (c catalog) countVersions() int {
	n := 0
	for _, v := range c {
		n += len(v.list)
	}
	return n
}

// withVersion returns a catalog with one more version.
func (c catalog) withVersion(one *graphVersion) *catalog {
	next := maps.Clone(c)
	var list []*graphVersion
	if before := c[one.name]; before != nil {
		list = slices.Clone(before.list)
	}
	v := newVersionList(append(list, one))
	v.newest = one
	next[one.name] = v
	return &next
}

// withoutVersions returns a catalog without some versions.
func (c catalog) withoutVersions(name string, gone []*graphVersion) *catalog {
	next := maps.Clone(c)
	before := c[name]
	list := slices.DeleteFunc(slices.Clone(before.list), func(one *graphVersion) bool { return slices.Contains(gone, one) })
	if len(list) == 0 {
		delete(next, name)
		return &next
	}
	v := newVersionList(list)
	v.newest = before.newest
	if slices.Contains(gone, v.newest) {
		v.newest = list[len(list)-1]
	}
	next[name] = v
	return &next
}

// withNewest returns a catalog in which another version is the newest of its name.
func (c catalog) withNewest(one *graphVersion) *catalog {
	next := maps.Clone(c)
	before := c[one.name]
	next[one.name] = &versionList{list: before.list, byVersion: before.byVersion, newest: one}
	return &next
}

// newCatalog makes a catalog of lists. If the newest version of a list is gone, its
// last one becomes the newest.
func newCatalog(lists map[string][]*graphVersion, newest map[string]*graphVersion) *catalog {
	next := make(catalog, len(lists))
	for name, list := range lists {
		v := newVersionList(list)
		v.newest = v.list[len(v.list)-1]
		if n := newest[name]; n != nil && v.byVersion[n.version] == n {
			v.newest = n
		}
		next[name] = v
	}
	return &next
}
