package node

import (
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// input is what a node sees as the state: its channels, or what a Send gave it.
type input struct {
	view pregel.View
	sent payload.JSON
	// whole says that what was sent is no object with a key per channel.
	whole bool
}

func inputOf(t *runtime.Task) input {
	if t.Send == "" || t.Router != "" {
		return input{view: t.State}
	}
	return input{sent: t.Send, whole: isRoot(t.Graph) || payload.KindOf(t.Send) != payload.ObjectKind}
}

func isRoot(g *graph.Graph) bool {
	_, root := g.ChannelIndex(graph.Root)
	return root
}

// Lookup returns the value of a key.
func (in *input) Lookup(key string) (payload.JSON, bool) {
	switch {
	case in.sent == "":
		return in.view.Lookup(key)
	case in.whole && key == graph.Root:
		return in.sent, true
	case in.whole:
		return "", false
	}
	return payload.Lookup(in.sent, key)
}

// Keys lists the keys that are set.
func (in *input) Keys() []string {
	switch {
	case in.sent == "":
		return in.view.Keys()
	case in.whole:
		return nil
	}
	var keys []string
	if err := payload.EachField(in.sent, func(key string, _ payload.JSON) bool {
		keys = append(keys, key)
		return true
	}); err != nil {
		return nil
	}
	return keys
}

// values shows an input to a function.
type values struct{ in *input }

// Lookup returns the JSON text of a key.
func (v values) Lookup(key string) (string, bool) {
	text, ok := v.in.Lookup(key)
	return string(text), ok
}

// Keys lists the keys that are set.
func (v values) Keys() []string { return v.in.Keys() }

// Text returns the whole input.
func (v values) Text() string {
	if v.in.sent != "" {
		return string(v.in.sent)
	}
	return string(v.in.view.Object())
}
