package codec

import "github.com/graphd-dev/graphd/internal/checkpoint"

// References are the separate values and list elements that some checkpoints
// refer to. All others can go.
type References struct {
	values map[valueKey]bool
	lists  map[valueKey]int
}

// valueKey is a value by the checkpoint that wrote it, or a list of elements by
// the checkpoint that began it.
type valueKey struct {
	seq     uint64
	channel string
}

// CollectReferences collects the references of checkpoints.
func CollectReferences(list []*checkpoint.Checkpoint) *References {
	s := &References{values: make(map[valueKey]bool), lists: make(map[valueKey]int)}
	for _, cp := range list {
		for i := range cp.Channels {
			ch := &cp.Channels[i]
			if ch.List == nil {
				s.values[valueKey{ch.Stored, ch.Name}] = true
				continue
			}
			for _, seg := range ch.List.Segments {
				at := valueKey{seg.ID, ch.Name}
				s.lists[at] = max(s.lists[at], seg.Len)
			}
		}
	}
	return s
}

// HasValue reports whether the value that checkpoint seq wrote is shown.
func (r *References) HasValue(seq uint64, channel string) bool {
	return r.values[valueKey{seq, channel}]
}

// ElementCount is how many of the elements of a segment are shown.
func (r *References) ElementCount(segment uint64, channel string) int {
	return r.lists[valueKey{segment, channel}]
}
