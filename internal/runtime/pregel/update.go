package pregel

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

// UpdateOf returns the writes of a task in the form for events and snapshots:
// an object of the state keys that it wrote, null without writes, and a list
// of single-key objects when it wrote a key more than once. A write that bypasses its
// reducer shows as its value.
func (s *State) UpdateOf(writes []checkpoint.Write) payload.JSON {
	var few [8]payload.Field // on the stack; more fields spill to the heap
	fields := few[:0]
	repeated := false
	for _, w := range writes {
		i, ok := s.graph.ChannelIndex(w.Channel)
		if !ok || !s.graph.Channels[i].IsStateKey {
			continue
		}
		for _, f := range fields {
			repeated = repeated || f.Key == w.Channel
		}
		value := w.Value
		if bypassesReducer(s.graph.Channels[i].Kind) {
			if v, ok := parseOverwrite(w); ok {
				value = v
			}
		}
		fields = append(fields, payload.Field{Key: w.Channel, Value: value})
	}
	switch {
	case len(fields) == 0:
		return payload.Null
	case !repeated:
		return singleUpdate(fields)
	}
	items := make([]payload.JSON, len(fields))
	for i := range fields {
		items[i] = singleUpdate(fields[i : i+1])
	}
	return payload.Array(items)
}

// singleUpdate returns an object, or the bare value for a graph whose state is
// one value.
func singleUpdate(fields []payload.Field) payload.JSON {
	if fields[0].Key == rootChannel {
		return fields[0].Value
	}
	return payload.Object(fields)
}
