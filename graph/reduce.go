package graph

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// Reduce combines the value of a channel with one that a node wrote.
type Reduce func(current, write json.RawMessage) (json.RawMessage, error)

// ReduceBy combines the writes of a channel by a Go function: in the order of the nodes' names, one
// after the other. It must give the same for the same values. Before the first write, the channel
// has its [Initial] value, or the zero T; that of a slice or a map is empty.
func ReduceBy[T any](reduce func(current, write T) (T, error)) ChannelOption {
	return func(c *channel) {
		if !c.hasStart {
			Initial(emptyValue[T]())(c)
		}
		c.reduce = TypedReduce(reduce)
	}
}

// TypedReduce makes a Reduce of a function of values, for the channels of a graph file.
func TypedReduce[T any](reduce func(current, write T) (T, error)) Reduce {
	return func(current, write json.RawMessage) (json.RawMessage, error) {
		var before, next T
		if err := decodeJSON(current, &before); err != nil {
			return nil, Permanent(fmt.Errorf("the value of the channel: %w", err))
		}
		if err := decodeJSON(write, &next); err != nil {
			return nil, Permanent(fmt.Errorf("what was written: %w", err))
		}
		combined, err := reduce(before, next)
		if err != nil {
			return nil, err
		}
		return encodeJSON(combined)
	}
}

// emptyValue returns the zero T, or an empty slice or map.
func emptyValue[T any]() any {
	t := reflect.TypeFor[T]()
	switch t.Kind() {
	case reflect.Slice:
		return reflect.MakeSlice(t, 0, 0).Interface()
	case reflect.Map:
		return reflect.MakeMap(t).Interface()
	default:
		return reflect.Zero(t).Interface()
	}
}
