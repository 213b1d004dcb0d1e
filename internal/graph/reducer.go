package graph

import (
	"slices"

	"github.com/graphd-dev/graphd/internal/payload"
)

// Reducer is a way to combine writes that a Spec may name.
type Reducer struct {
	Name string
	Kind ChannelKind
	// Empty is the value before the first write when the Spec gives no
	// default; "" = unset.
	Empty payload.JSON
	// DefaultKinds lists the kinds a default may have; nil = any, empty = a default
	// makes no sense.
	DefaultKinds []payload.Kind
}

// Reducers lists the reducers that a channel may name, the default first.
func Reducers() []Reducer {
	list := []payload.Kind{payload.ArrayKind}
	object := []payload.Kind{payload.ObjectKind}
	ordered := []payload.Kind{payload.Number, payload.String}
	return []Reducer{
		{Name: "last", Kind: Last},
		{Name: "any", Kind: Any},
		{Name: "append", Kind: Append, Empty: "[]", DefaultKinds: list},
		{Name: "add", Kind: Add, DefaultKinds: append(ordered[:2:2], payload.ArrayKind)},
		{Name: "merge", Kind: Merge, Empty: "{}", DefaultKinds: object},
		{Name: "deep_merge", Kind: DeepMerge, Empty: "{}", DefaultKinds: object},
		{Name: "union", Kind: Union, Empty: "[]", DefaultKinds: list},
		{Name: "min", Kind: Min, DefaultKinds: ordered},
		{Name: "max", Kind: Max, DefaultKinds: ordered},
		{Name: "messages", Kind: Messages, Empty: "[]", DefaultKinds: list},
		{Name: "ephemeral", Kind: Ephemeral, DefaultKinds: []payload.Kind{}},
		{Name: "untracked", Kind: Untracked},
		{Name: "topic", Kind: Topic, DefaultKinds: []payload.Kind{}},
		{Name: "topic_once", Kind: TopicOnce, DefaultKinds: []payload.Kind{}},
		{Name: "remote", Kind: ByWorker},
	}
}

// findReducer returns the reducer of a name; "" is the default reducer.
func findReducer(name string) (Reducer, bool) {
	all := Reducers()
	if name == "" {
		return all[0], true
	}
	i := slices.IndexFunc(all, func(r Reducer) bool { return r.Name == name })
	if i < 0 {
		return Reducer{}, false
	}
	return all[i], true
}

func reducerNames() []string {
	all := Reducers()
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names
}

// acceptsDefault reports whether a default of this kind suits the reducer.
func (r Reducer) acceptsDefault(k payload.Kind) bool {
	return r.DefaultKinds == nil || slices.Contains(r.DefaultKinds, k)
}
