package graph

import "encoding/json"

// Command is a result that updates the state and says where to go. The plain
// edges of the node are followed as well.
type Command struct {
	// Update is an update that a Func may return; nil updates nothing.
	Update any
	Goto   []Target
	// Parent hands update and targets to the graph around this one.
	Parent bool
}

// Target is a node to go to: see To and Send.
type Target struct {
	Node string
	// Input is the node's own input; nil = it runs on the state.
	Input any
}

// MarshalJSON writes the target as graph files and workers have it: the name of the node, or
// {"$send": [node, input]}.
func (t Target) MarshalJSON() ([]byte, error) {
	if t.Input == nil {
		return encodeJSON(t.Node)
	}
	return encodeJSON(struct {
		Send [2]any `json:"$send"`
	}{[2]any{t.Node, t.Input}})
}

// To runs a node in the next superstep, on the state.
func To(node string) Target { return Target{Node: node} }

// Send runs a node in the next superstep with an input of its own, in parallel
// with other nodes, as often as it is sent to.
func Send(node string, input any) Target {
	if input == nil {
		input = json.RawMessage("null")
	}
	return Target{Node: node, Input: input}
}

// Overwrite is an update of a channel that bypasses its reducer.
func Overwrite(value any) any { return overwriteValue{Value: value} }

type overwriteValue struct {
	Value any `json:"__overwrite__"`
}
