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

// shelf is everything there is, by name. It is never changed, only replaced.
type shelf map[string]*versions

// versions are all of one graph. They are never changed, only replaced.
type versions struct {
	list   []*entry // oldest first
	by     map[string]*entry
	newest *entry
}

// entry is one version of a graph. What it is compiled to may be dropped and
// made again.
type entry struct {
	identity

	created time.Time
	source  string // "" = the store has it
	order   uint64 // of what this process has put, 0 = others have

	loaded atomic.Pointer[loaded]  // nil = not compiled now
	broken atomic.Pointer[failure] // nil = compiles, or was not tried
	warned atomic.Bool
	inside atomic.Pointer[[]identity] // graphs that it contains, nil = not known yet
}

type identity struct{ name, version string }

func (id identity) String() string { return id.name + "@" + id.version }

// loaded is a compiled graph that is kept.
type loaded struct {
	graph *graph.Graph
	bytes int
	used  atomic.Int64 // when, counted in uses
}

// failure says why a version does not compile, as long as the shelf is this one.
type failure struct {
	err   error
	shelf *shelf
}

func newVersions(list []*entry) *versions {
	v := &versions{list: list, by: make(map[string]*entry, len(list))}
	slices.SortStableFunc(v.list, func(a, b *entry) int {
		return cmp.Or(a.created.Compare(b.created), strings.Compare(a.version, b.version))
	})
	for _, one := range v.list {
		v.by[one.version] = one
	}
	return v
}

// names lists the versions, oldest first.
func (v *versions) names() []string {
	if v == nil {
		return nil
	}
	out := make([]string, len(v.list))
	for i, one := range v.list {
		out[i] = one.version
	}
	return out
}

func (s shelf) find(id identity) *entry {
	v := s[id.name]
	if v == nil {
		return nil
	}
	return v.by[id.version]
}

// count returns how many versions there are.
func (s shelf) count() int {
	n := 0
	for _, v := range s {
		n += len(v.list)
	}
	return n
}

// with returns a shelf that has one version more, as the newest of its name.
func (s shelf) with(one *entry) *shelf {
	next := maps.Clone(s)
	var list []*entry
	if before := s[one.name]; before != nil {
		list = slices.Clone(before.list)
	}
	v := newVersions(append(list, one))
	v.newest = one
	next[one.name] = v
	return &next
}

// without returns a shelf that lacks some versions.
func (s shelf) without(name string, gone []*entry) *shelf {
	next := maps.Clone(s)
	before := s[name]
	list := slices.DeleteFunc(slices.Clone(before.list), func(one *entry) bool { return slices.Contains(gone, one) })
	if len(list) == 0 {
		delete(next, name)
		return &next
	}
	v := newVersions(list)
	v.newest = before.newest
	if slices.Contains(gone, v.newest) {
		v.newest = list[len(list)-1]
	}
	next[name] = v
	return &next
}

// preferring returns a shelf in which another version is the newest of its name.
func (s shelf) preferring(one *entry) *shelf {
	next := maps.Clone(s)
	before := s[one.name]
	next[one.name] = &versions{list: before.list, by: before.by, newest: one}
	return &next
}
