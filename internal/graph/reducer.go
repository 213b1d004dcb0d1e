package graph

import (
	"slices"

	"github.com/graphd-dev/graphd/internal/payload"
)

// Reducer is a way to combine writes that a Spec may name.
type Reducer struct {
	Name string
	Kind Kind
	// Empty is the value before the first write when the Spec gives no
	// default; "" = unset.
	Empty payload.JSON
	// Takes lists the kinds a default may have; nil = any, empty = a default
	// makes no sense.
	Takes []payload.Kind
}

// Reducers lists what a channel may name as its reducer, the default first.
func Reducers() []Reducer {
	list := []payload.Kind{payload.ArrayKind}
	object := []payload.Kind{payload.ObjectKind}
	ordered := []payload.Kind{payload.Number, payload.String}
	return []Reducer{
		{Name: "last", Kind: Last},
		{Name: "any", Kind: Any},
		{Name: "append", Kind: Append, Empty: "[]", Takes: list},
		{Name: "add", Kind: Add, Takes: append(ordered[:2:2], payload.ArrayKind)},
		{Name: "merge", Kind: Merge, Empty: "{}", Takes: object},
		{Name: "deep_merge", Kind: DeepMerge, Empty: "{}", Takes: object},
		{Name: "union", Kind: Union, Empty: "[]", Takes: list},
		{Name: "min", Kind: Min, Takes: ordered},
		{Name: "max", Kind: Max, Takes: ordered},
		{Name: "messages", Kind: Messages, Empty: "[]", Takes: list},
		{Name: "ephemeral", Kind: Ephemeral, Takes: []payload.Kind{}},
		{Name: "untracked", Kind: Untracked},
		{Name: "topic", Kind: Topic, Takes: []payload.Kind{}},
		{Name: "remote", Kind: ByWorker},
	}
}

// findReducer returns the reducer of a name; "" is the default one.
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

// fits reports whether a default of this kind suits the reducer.
func (r Reducer) fits(k payload.Kind) bool {
	return r.Takes == nil || slices.Contains(r.Takes, k)
}
