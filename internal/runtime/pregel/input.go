package pregel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// InputWrites turns the input of a run into the write that starts it. The start node
// drops keys that the graph does not take; a strict graph refuses them here. An input
// without any key starts the graph too. The error is a *ResultError.
func (s *State) InputWrites(input payload.JSON) ([]checkpoint.Write, error) {
	if err := checkInput(s.graph, input); err != nil {
		return nil, err
	}
	return []checkpoint.Write{{Channel: s.graph.Channels[s.graph.StartChannel].Name, Value: input}}, nil
}

// RestrictInput returns the keys of an input that the graph takes.
func (s *State) RestrictInput(input payload.JSON) payload.JSON {
	w := writeCollector{graph: s.graph, task: &Task{Node: s.graph.Nodes[0]}}
	if err := w.addObject(input); err != nil {
		return input
	}
	if len(w.writes) == 0 {
		return "{}"
	}
	return s.UpdateOf(w.writes)
}

// checkInput checks the keys of an input.
func checkInput(g *graph.Graph, input payload.JSON) error {
	if _, root := g.ChannelIndex(rootChannel); root {
		return nil
	}
	fields, err := payload.Fields(input)
	if err != nil {
		return &ResultError{Problem: "the input must be an object with a key per channel: " + err.Error()}
	}
	if !g.Spec.Strict {
		return nil
	}
	for _, f := range fields {
		if i, ok := g.ChannelIndex(f.Key); !ok || !slices.Contains(g.InputKeys, i) {
			return &ResultError{Problem: fmt.Sprintf("unknown input key %q; the graph takes %s",
				f.Key, strings.Join(channelNames(g, g.InputKeys), ", "))}
		}
	}
	return nil
}
