package codec

import "github.com/graphd-dev/graphd/internal/checkpoint"

// Shown is what a number of checkpoints show of the values and list elements
// that are kept beside manifests. Whatever it does not have can go.
type Shown struct {
	values map[place]bool
	lists  map[place]int
}

// place is a value by the checkpoint that wrote it, or a list of elements by
// the checkpoint that began it.
type place struct {
	seq     uint64
	channel string
}

// ShownBy collects what checkpoints refer to.
func ShownBy(list []*checkpoint.Checkpoint) *Shown {
	s := &Shown{values: make(map[place]bool), lists: make(map[place]int)}
	for _, cp := range list {
		for i := range cp.Channels {
			ch := &cp.Channels[i]
			if ch.List == nil {
				s.values[place{ch.Stored, ch.Name}] = true
				continue
			}
			for _, seg := range ch.List.Segments {
				at := place{seg.ID, ch.Name}
				s.lists[at] = max(s.lists[at], seg.Len)
			}
		}
	}
	return s
}

// Value reports whether the value that checkpoint seq wrote is shown.
func (s *Shown) Value(seq uint64, channel string) bool { return s.values[place{seq, channel}] }

// Elements is how many of the elements of a segment are shown.
func (s *Shown) Elements(segment uint64, channel string) int { return s.lists[place{segment, channel}] }
