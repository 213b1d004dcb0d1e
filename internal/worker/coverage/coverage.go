package coverage

import (
	"hash/maphash"
	"slices"

	"github.com/graphd-dev/graphd/internal/worker/message"
)

// Coverage reports which tasks a process takes. The time for it does not depend
// on the number of capabilities.
type Coverage struct {
	entries []message.Capability
	hashes  []uint64 // hashes of the entries, sorted
	seed    maphash.Seed
}

// maxListedEntries is the greatest number of entries that are compared in turn.
const maxListedEntries = 8

// anyNode represents, in a hash, the work of the graph itself.
const anyNode = "\x00"

// NewCoverage makes the coverage of some capabilities.
func NewCoverage(serves []message.Capability) *Coverage {
	if len(serves) <= maxListedEntries {
		return &Coverage{entries: serves}
	}
	c := &Coverage{seed: maphash.MakeSeed(), hashes: make([]uint64, 0, len(serves))}
	var last message.Capability
	for _, s := range serves {
		c.hashes = append(c.hashes, c.hashEntry(s))
		if s.Graph != last.Graph || s.Version != last.Version {
			c.hashes = append(c.hashes, c.hashEntry(message.Capability{Graph: s.Graph, Version: s.Version, Node: anyNode}))
		}
		last = s
	}
	slices.Sort(c.hashes)
	c.hashes = slices.Clip(slices.Compact(c.hashes))
	return c
}

func (c *Coverage) hashEntry(s message.Capability) uint64 { return maphash.Comparable(c.seed, s) }

// Covers reports whether one of the entries includes a capability.
func (c *Coverage) Covers(need message.Capability) bool {
	if c.hashes == nil {
		return slices.ContainsFunc(c.entries, func(s message.Capability) bool { return s.Covers(need) })
	}
	if need.Node == "" {
		need.Node = anyNode
	}
	return c.hasEntry(need) || c.hasEntry(message.Capability{Graph: need.Graph, Node: need.Node}) ||
		c.hasEntry(message.Capability{Graph: need.Graph, Version: need.Version}) || c.hasEntry(message.Capability{Graph: need.Graph})
}

func (c *Coverage) hasEntry(s message.Capability) bool {
	_, found := slices.BinarySearch(c.hashes, c.hashEntry(s))
	return found
}
