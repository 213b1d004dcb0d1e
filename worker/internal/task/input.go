package task

import (
	"maps"
	"slices"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/payload"
)

// rootChannel holds the state of a graph whose state is one value.
const rootChannel = "__root__"

// input is the state that a node sees: its channels, or the value of a Send.
type input struct {
	values  map[string]payload.JSON // by channel; nil = it is the value of a Send
	whole   payload.JSON            // of a Send
	isValue bool                    // whole is no object with a key per channel
}

func newInput(a *graphdv1.TaskAssignment) *input {
	in := &input{}
	if sent := a.GetSendInput(); sent != nil {
		in.whole = payload.JSON(sent.GetJson())
		in.isValue = payload.KindOf(in.whole) != payload.ObjectKind
		return in
	}
	in.values = make(map[string]payload.JSON, len(a.GetChannels()))
	for name, value := range a.GetChannels() {
		in.values[name] = payload.JSON(value.GetJson())
	}
	return in
}

// Lookup returns the JSON text of a key.
func (in *input) Lookup(key string) (string, bool) {
	if in.values != nil {
		value, ok := in.values[key]
		return string(value), ok
	}
	if in.isValue {
		return string(in.whole), key == rootChannel
	}
	value, ok := payload.Lookup(in.whole, key)
	return string(value), ok
}

// Keys lists the keys that are set: channels by their names, those of a Send in its order.
func (in *input) Keys() []string {
	if in.values != nil {
		return slices.Sorted(maps.Keys(in.values))
	}
	if in.isValue {
		return nil
	}
	fields, err := payload.Fields(in.whole)
	if err != nil {
		return nil
	}
	var keys []string
	for _, f := range fields {
		keys = append(keys, f.Key)
	}
	return keys
}

// Text returns the whole input.
func (in *input) Text() string {
	if in.whole != "" {
		return string(in.whole)
	}
	if value, isRoot := in.values[rootChannel]; isRoot {
		return string(value)
	}
	fields := make([]payload.Field, 0, len(in.values))
	for _, key := range in.Keys() {
		fields = append(fields, payload.Field{Key: key, Value: in.values[key]})
	}
	return string(payload.Object(fields))
}
