package pregel

import (
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// values reads the channels of a state.
type values struct {
	graph      *graph.Graph
	checkpoint *checkpoint.Checkpoint
	// untracked holds values that are never stored, by channel position.
	untracked map[int]payload.JSON
	// tails holds elements that follow those of lists, by channel position, in a
	// look-ahead. The lists themselves are not copied.
	tails map[int][]payload.JSON
}

// rootChannel is the channel of a graph whose state is one value.
const rootChannel = "__root__"

// valueAt returns the value of a channel as JSON text, its default included.
func (v *values) valueAt(i int) (payload.JSON, bool) {
	c, spec := &v.checkpoint.Channels[i], &v.graph.Channels[i]
	switch {
	case spec.Kind == graph.Untracked:
		value, ok := v.untracked[i]
		return value, ok
	case c.List != nil:
		items := v.itemsAt(i)
		if len(items) == 0 && (spec.Kind == graph.Topic || spec.Kind == graph.TopicOnce) {
			return "", false
		}
		return payload.Array(items), true
	case c.Value != "":
		return c.Value, spec.Kind != graph.LastFinish || c.Flag
	case c.Version == 0 && spec.Default != "":
		return spec.Default, true
	}
	return "", false
}

// itemsAt returns the elements of a channel that holds a list of them.
func (v *values) itemsAt(i int) []payload.JSON {
	items := v.checkpoint.Channels[i].List.Items
	if tail := v.tails[i]; len(tail) > 0 {
		return slices.Concat(items, tail)
	}
	return items
}

// Value returns a state key's value, or false when it is unset.
func (v *values) Value(key string) (payload.JSON, bool) {
	i, ok := v.graph.ChannelIndex(key)
	if !ok || !v.graph.Channels[i].IsStateKey {
		return "", false
	}
	return v.valueAt(i)
}

// Object returns the given state keys as one JSON object, in the graph's
// order, without unset keys. For a graph whose state is one value it returns
// that value, or "".
func (v *values) Object(keys []int) payload.JSON {
	if i, ok := v.graph.ChannelIndex(rootChannel); ok {
		value, _ := v.valueAt(i)
		return value
	}
	fields := make([]payload.Field, 0, len(keys))
	for _, i := range keys {
		if value, ok := v.valueAt(i); ok {
			fields = append(fields, payload.Field{Key: v.graph.Channels[i].Name, Value: value})
		}
	}
	return payload.Object(fields)
}

// Values returns all state keys as one JSON object.
func (v *values) Values() payload.JSON { return v.Object(v.graph.StateKeys) }

// Output returns the keys that the graph declares as its result.
func (v *values) Output() payload.JSON { return v.Object(v.graph.OutputKeys) }

// StartInput returns the input that waits for the start node, "" when there is
// none.
func (v *values) StartInput() payload.JSON {
	return v.checkpoint.Channels[v.graph.StartChannel].Value
}

// HasOutputChanged reports whether the last superstep changed a state key.
func (v *values) HasOutputChanged() bool {
	for _, name := range v.checkpoint.Updated {
		if i, ok := v.graph.ChannelIndex(name); ok && v.graph.Channels[i].IsStateKey {
			return true
		}
	}
	return false
}

// View is the part of the state that one task sees: the channels that its node
// reads.
type View struct {
	values    *values
	positions []int
}

// NodeView returns the view of a node.
func (s *State) NodeView(n *graph.Node) View { return View{values: &s.values, positions: n.Reads} }

// FullView returns the view for the decision of a conditional edge: every state
// key.
func (s *State) FullView() View { return View{values: &s.values, positions: s.graph.StateKeys} }

// Lookup returns the value of a key the node reads, or false when it is unset.
func (v View) Lookup(key string) (payload.JSON, bool) {
	i, ok := v.values.graph.ChannelIndex(key)
	if !ok || !slices.Contains(v.positions, i) {
		return "", false
	}
	return v.values.valueAt(i)
}

// Keys lists the keys that are set.
func (v View) Keys() []string {
	keys := make([]string, 0, len(v.positions))
	for _, i := range v.positions {
		if _, ok := v.values.storedAt(i); ok {
			keys = append(keys, v.values.graph.Channels[i].Name)
		}
	}
	return keys
}

// Object returns the view as one JSON object.
func (v View) Object() payload.JSON {
	if v.values == nil {
		return "{}"
	}
	return v.values.Object(v.positions)
}
