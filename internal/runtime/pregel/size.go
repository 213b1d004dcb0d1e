package pregel

import (
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// stateSize is the size of a state. A superstep updates it at the cost of its
// writes.
type stateSize struct {
	lists []int64 // by channel position
	total int64   // of all state keys
}

// measureSize returns the size of a state that was read.
func measureSize(v *values) stateSize {
	z := stateSize{lists: make([]int64, len(v.graph.Channels))}
	for i := range v.graph.Channels {
		z.lists[i] = channelBytes(&v.checkpoint.Channels[i])
	}
	z.total = z.sumKeys(v)
	return z
}

// sumKeys returns the size of all state keys together. Channels of the graph
// itself, like Sends and the input, are not counted: the limit on the writes of
// a superstep bounds them.
func (s *stateSize) sumKeys(v *values) (n int64) {
	for _, i := range v.graph.StateKeys {
		n += s.sizeAt(v, i)
	}
	for _, text := range v.untracked {
		n += int64(len(text))
	}
	return n
}

// sizeAt returns the size of a channel. The size of a long list is stored with
// it.
func (s *stateSize) sizeAt(v *values, i int) int64 {
	c := &v.checkpoint.Channels[i]
	if c.List != nil && tracksSize(v.graph.Channels[i].Kind) {
		return s.lists[i]
	}
	return channelBytes(c)
}

// MemoryBytes returns the bytes of the state in memory: its keys, and the channels
// that wait for the next superstep.
func (s *State) MemoryBytes() int64 {
	return s.size.total + channelBytes(&s.checkpoint.Channels[s.graph.SendsChannel]) + channelBytes(&s.checkpoint.Channels[s.graph.StartChannel])
}

func channelBytes(c *checkpoint.Channel) int64 {
	if c.List == nil {
		return int64(len(c.Value))
	}
	return itemBytes(c.List.Items)
}

// itemBytes returns the size of elements with their separators.
func itemBytes(items []payload.JSON) (n int64) {
	for i := range items {
		n += int64(len(items[i])) + 1
	}
	return n
}

// tracksSize reports whether the size of a channel's list is kept up to date: it
// may be long, and a superstep must not go over it.
func tracksSize(k graph.ChannelKind) bool { return storesList(k) && k != graph.TopicOnce }

// newListSize returns a counter of the size of a list for one update, nil where the
// size is not stored.
func (e *stateEdit) newListSize(i int) *int64 {
	if !e.before.limits.isSet() || !tracksSize(e.before.graph.Channels[i].Kind) {
		return nil
	}
	size := new(int64)
	if e.channels[i].List != nil {
		*size = e.listSizes[i]
	}
	return size
}

// checkValueGrowth checks a written channel against the limit of values. A value
// above the limit may stay, but not grow.
func (e *stateEdit) checkValueGrowth(i int, list *int64) error {
	if !e.before.limits.isSet() || i == e.before.graph.StartChannel {
		return nil
	}
	size := int64(len(e.channels[i].Value))
	switch spec := &e.before.graph.Channels[i]; {
	case spec.Kind == graph.Untracked:
		size = int64(len(e.untracked[i]))
	case spec.Kind == graph.TopicOnce && spec.IsStateKey:
		size = channelBytes(&e.channels[i])
	}
	if list != nil {
		if &e.listSizes[0] == &e.before.size.lists[0] {
			e.listSizes = slices.Clone(e.listSizes)
		}
		size, e.listSizes[i] = *list, *list
	}
	if before := e.before.size.sizeAt(&e.before.values, i); size <= before && e.before.graph.Channels[i].Kind != graph.Untracked {
		return nil
	}
	return e.limits.checkValue(e.channels[i].Name, size)
}

// checkStateGrowth checks the state that an edit leads to against its limit.
func checkStateGrowth(before, next *State) error {
	if next.size.total <= before.size.total {
		return nil
	}
	return next.limits.checkStateSize(next.size.total)
}
