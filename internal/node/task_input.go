package node

import (
	api "github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/node/function"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// taskInput is the state that a node sees: its channels, or the value of a Send.
type taskInput struct {
	view      pregel.View
	sendInput payload.JSON
	// isSingleValue is set if the input of the Send is not an object with a key per
	// channel.
	isSingleValue bool
}

func newTaskInput(t *runtime.Task) taskInput {
	if t.Send == "" || t.Router != "" {
		return taskInput{view: t.State}
	}
	return taskInput{sendInput: t.Send, isSingleValue: hasRootChannel(t.Graph) || payload.KindOf(t.Send) != payload.ObjectKind}
}

func hasRootChannel(g *graph.Graph) bool {
	_, root := g.ChannelIndex(graph.Root)
	return root
}

// Lookup returns the value of a key.
func (t *taskInput) Lookup(key string) (payload.JSON, bool) {
	switch {
	case t.sendInput == "":
		return t.view.Lookup(key)
	case t.isSingleValue && key == graph.Root:
		return t.sendInput, true
	case t.isSingleValue:
		return "", false
	}
	return payload.Lookup(t.sendInput, key)
}

// Keys lists the keys that are set.
func (t *taskInput) Keys() []string {
	switch {
	case t.sendInput == "":
		return t.view.Keys()
	case t.isSingleValue:
		return nil
	}
	var keys []string
	if err := payload.EachField(t.sendInput, func(key string, _ payload.JSON) bool {
		keys = append(keys, key)
		return true
	}); err != nil {
		return nil
	}
	return keys
}

// inputValues shows an input to a function.
type inputValues struct{ input *taskInput }

// Lookup returns the JSON text of a key.
func (v inputValues) Lookup(key string) (string, bool) {
	text, ok := v.input.Lookup(key)
	return string(text), ok
}

// Keys lists the keys that are set.
func (v inputValues) Keys() []string { return v.input.Keys() }

// Text returns the whole input.
func (v inputValues) Text() string {
	if v.input.sendInput != "" {
		return string(v.input.sendInput)
	}
	return string(v.input.view.Object())
}

// newFunctionTask returns what an attempt of a function may depend on.
func newFunctionTask(t *runtime.Task) *function.Task {
	input := newTaskInput(t)
	f := &function.Task{
		Info: api.Info{
			Thread: tenant.ClientName(t.Thread), Run: t.Run, Graph: tenant.ClientName(t.Graph.Name), GraphVersion: t.Graph.Version,
			Node: t.Node.Name, Task: t.ID, Namespace: t.Namespace, Step: t.Step, Attempt: t.Attempt,
			Metadata: t.Metadata, Context: string(t.Context), Input: string(t.Send), Failed: toAPIFailure(t.Failed),
		},
		Thread: t.Thread, Input: inputValues{&input}, Router: t.Router, HasTimeLimit: t.Node.IdleTimeout > 0,
		Journal: t.Journal, Spec: t.Graph.Spec, Effects: t.Effects,
	}
	if hasRootChannel(t.Graph) {
		f.State = function.SingleValue
	}
	return f
}

// toAPIFailure converts the failure that an error handler handles.
func toAPIFailure(f *checkpoint.Failure) *api.Failure {
	if f == nil {
		return nil
	}
	return &api.Failure{
		Node: f.Node, Reason: f.Reason, Type: f.Type, Message: f.Message,
		Attempt: f.Attempt, Details: f.Details,
	}
}
