// Package graph is the interface for the Go code of a node.
//
// A node of kind function runs a Func that is registered under a name:
//
//	functions := graph.Functions{
//		"execute": func(ctx context.Context, state graph.State) (any, error) {
//			approved, err := graph.Ask[bool](ctx, map[string]any{"amount": 90})
//			if err != nil {
//				return nil, err
//			}
//			return map[string]any{"approved": approved}, nil
//		},
//	}
//
// # Asking and replay
//
// A question that has no answer yet ends the attempt: [Ask] returns an
// [*Interrupted] error, and the function returns it. Nothing waits in memory.
// When the answer has come, perhaps weeks later and in another process, the
// function runs again from its first line, and [Ask] returns the answer. Code
// before a question therefore runs once per attempt; [Memo] keeps a side effect
// from happening again.
//
// An attempt that has raised a question is waiting for the answer, with any
// result of the function: if it swallows the error, its result is dropped.
//
// # Context
//
// A function must end soon after its ctx has ended. A function that does not is
// given up: its result is dropped, its events and memos are refused, and another
// attempt may run beside it.
package graph

import (
	"context"
	"reflect"
)

// End is where a branch of a graph stops; a router or a goto may name it.
const End = "__end__"

// A Func is the code of a node or of a conditional edge.
//
// A node returns its updates: a map or a struct with a field per channel, a
// json.RawMessage holding an object (taken as it is), nil for nothing, a Command
// or several, or one Send. A graph whose state is a single value takes any value.
// A conditional edge returns where to go: a node's name or path key, a Target, a
// list of those, which may be mixed, or a json.RawMessage of the same.
//
// Any error fails the attempt; the node's retry policy decides about the next
// attempt. See [Permanent], [RetryAfter] and [OfType].
type Func func(ctx context.Context, state State) (any, error)

// Functions are functions by the name that graphs use for them.
type Functions map[string]Func

// Typed makes a Func of a function that takes the state as a struct. When it returns a struct, every
// field is an update, also one that is zero: `json:",omitempty"` leaves zero fields out, and a map
// has what it has.
func Typed[S any](f func(ctx context.Context, state S) (any, error)) Func {
	decode := newDecoder(reflect.TypeFor[*S]())
	return func(ctx context.Context, state State) (any, error) {
		var s S
		if err := state.unmarshal(&s, decode); err != nil {
			return nil, Permanent(unknownKeysType(err))
		}
		return f(ctx, s)
	}
}
