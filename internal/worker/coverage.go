package worker

import (
	"hash/maphash"
	"slices"
)

// Coverage tells which tasks a process takes, in a time that does not depend on
// how much it serves.
type Coverage struct {
	few  []Served
	many []uint64 // hashes of the entries, sorted
	seed maphash.Seed
}

// fewServed is how many entries are compared one by one.
const fewServed = 8

// anyNode stands for the work of no node in particular in a hash.
const anyNode = "\x00"

// NewCoverage makes the coverage of what is served.
func NewCoverage(serves []Served) *Coverage {
	if len(serves) <= fewServed {
		return &Coverage{few: serves}
	}
	c := &Coverage{seed: maphash.MakeSeed(), many: make([]uint64, 0, len(serves))}
	var last Served
	for _, s := range serves {
		c.many = append(c.many, c.hash(s))
		if s.Graph != last.Graph || s.Version != last.Version {
			c.many = append(c.many, c.hash(Served{Graph: s.Graph, Version: s.Version, Node: anyNode}))
		}
		last = s
	}
	slices.Sort(c.many)
	c.many = slices.Clip(slices.Compact(c.many))
	return c
}

func (c *Coverage) hash(s Served) uint64 { return maphash.Comparable(c.seed, s) }

// Takes reports whether one of the entries includes what is needed.
func (c *Coverage) Takes(need Served) bool {
	if c.many == nil {
		return slices.ContainsFunc(c.few, func(s Served) bool { return s.Takes(need) })
	}
	if need.Node == "" {
		need.Node = anyNode
	}
	return c.has(need) || c.has(Served{Graph: need.Graph, Node: need.Node}) ||
		c.has(Served{Graph: need.Graph, Version: need.Version}) || c.has(Served{Graph: need.Graph})
}

func (c *Coverage) has(s Served) bool {
	_, found := slices.BinarySearch(c.many, c.hash(s))
	return found
}
