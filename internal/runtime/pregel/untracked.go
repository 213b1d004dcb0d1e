package pregel

import (
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// An untracked value lives in the process that runs the graph and is never
// stored. As in LangGraph, a Send loses only untracked keys at the top of its
// input.

// DurableWrites returns the writes of a task that may be stored.
func (s *State) DurableWrites(writes []checkpoint.Write) []checkpoint.Write {
	if !s.graph.HasUntracked() {
		return writes
	}
	kept := make([]checkpoint.Write, 0, len(writes))
	for _, w := range writes {
		i, ok := s.graph.ChannelIndex(w.Channel)
		switch {
		case ok && s.graph.Channels[i].Kind == graph.Untracked:
			continue
		case ok && i == s.graph.SendsChannel:
			w.Value = durableSend(s.graph, w.Value)
		}
		kept = append(kept, w)
	}
	return kept
}

// StoredCheckpoint returns the checkpoint in the form in which it may be
// stored.
func (s *State) StoredCheckpoint() *checkpoint.Checkpoint {
	cp := *s.checkpoint
	known := 0
	for i := range s.checkpoint.Channels {
		if wasWritten(&s.checkpoint.Channels[i]) {
			known++
		}
	}
	cp.Channels = make([]checkpoint.Channel, 0, known)
	for i := range s.checkpoint.Channels {
		ch := &s.checkpoint.Channels[i]
		if !wasWritten(ch) {
			continue
		}
		cp.Channels = append(cp.Channels, *ch)
		if i == s.graph.SendsChannel && ch.List != nil && s.graph.HasUntracked() {
			list := *ch.List
			list.Items = make([]payload.JSON, len(ch.List.Items))
			for k, item := range ch.List.Items {
				list.Items[k] = durableSend(s.graph, item)
			}
			cp.Channels[len(cp.Channels)-1].List = &list
		}
	}
	return &cp
}

// wasWritten reports whether a channel was ever written. An unwritten channel has
// the default of the graph.
func wasWritten(ch *checkpoint.Channel) bool {
	return ch.Version != 0 || ch.Value != "" || ch.List != nil || ch.Flag
}

// DurableValues returns the state keys that may be stored, as an object.
func (v *values) DurableValues() payload.JSON {
	if !v.graph.HasUntracked() {
		return v.Values()
	}
	return v.Object(slices.DeleteFunc(slices.Clone(v.graph.StateKeys), func(i int) bool {
		return v.graph.Channels[i].Kind == graph.Untracked
	}))
}

// DurableInput returns the part of a Send's input that may be stored.
func (s *State) DurableInput(input payload.JSON) payload.JSON { return durableInput(s.graph, input) }

func durableInput(g *graph.Graph, input payload.JSON) payload.JSON {
	if !g.HasUntracked() || payload.KindOf(input) != payload.ObjectKind {
		return input
	}
	fields, err := payload.Fields(input)
	if err != nil {
		return input
	}
	return payload.Object(slices.DeleteFunc(fields, func(f payload.Field) bool {
		i, ok := g.ChannelIndex(f.Key)
		return ok && g.Channels[i].Kind == graph.Untracked
	}))
}

func durableSend(g *graph.Graph, item payload.JSON) payload.JSON {
	node, input, err := decodeSend(item)
	if err != nil {
		return item
	}
	return encodeSend(checkpoint.Send{Node: node, Input: durableInput(g, input)})
}
