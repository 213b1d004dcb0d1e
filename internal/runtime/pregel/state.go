package pregel

import (
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// State is a graph at a superstep boundary. It is immutable.
type State struct {
	values

	// sharedUpTo is the number of the checkpoint at which another branch of the
	// history may also append: lists stored up to it must not grow in place.
	sharedUpTo uint64
	topVersion uint64 // greatest channel version
	// messageIndexes know the ids of lists of messages, by channel position, so that a
	// superstep need not read the messages that are there already.
	messageIndexes map[int]*payload.MessageIndex
	limits         Limits
	size           stateSize // zero without limits
}

// NewState returns the state of a graph that has never run in this namespace.
func NewState(g *graph.Graph, namespace string, limits Limits) *State {
	return LoadState(g, &checkpoint.Checkpoint{Namespace: namespace, Step: -2}, false, limits)
}

// LoadState binds a checkpoint to a graph. Channels that the graph does not have,
// because a key was removed, are kept behind the others and never read. forked is true
// when later checkpoints exist. The limits hold for the states that follow; a state that
// is only read needs none.
func LoadState(g *graph.Graph, cp *checkpoint.Checkpoint, forked bool, limits Limits) *State {
	bound := *cp
	bound.Channels = alignChannels(g, cp.Channels)
	s := &State{values: values{graph: g, checkpoint: &bound}, limits: limits}
	for i := range bound.Channels {
		c := &bound.Channels[i]
		s.topVersion = max(s.topVersion, c.Version)
		if c.List != nil {
			// The spare capacity belongs to the maker of the list.
			l := *c.List
			l.Items = slices.Clip(l.Items)
			c.List = &l
		}
	}
	if forked {
		s.sharedUpTo = allShared
	}
	if limits.isSet() {
		s.size = measureSize(&s.values)
	}
	return s
}

func alignChannels(g *graph.Graph, stored []checkpoint.Channel) []checkpoint.Channel {
	out := make([]checkpoint.Channel, len(g.Channels), len(g.Channels)+4)
	for i := range g.Channels {
		out[i].Name = g.Channels[i].Name
	}
	for i := range stored {
		if at, ok := g.ChannelIndex(stored[i].Name); ok {
			out[at] = adaptChannel(g.Channels[at].Kind, stored[i])
		} else if stored[i].Version > 0 {
			out = append(out, stored[i])
		}
	}
	return out
}

// allShared marks every list as shared with another branch, because the state
// begins a branch.
const allShared = ^uint64(0)

// adaptChannel lets a channel change between list and whole value when its reducer
// was changed while a thread waited.
func adaptChannel(k graph.ChannelKind, c checkpoint.Channel) checkpoint.Channel {
	switch {
	case k == graph.Barrier || k == graph.BarrierFinish:
		// A list of who has arrived, never anything else.
	case storesList(k) && c.List == nil && c.Value != "":
		if items, err := payload.Elements(c.Value); err == nil {
			c.List, c.Value, c.Stored = &checkpoint.List{Items: items, Appended: len(items)}, "", 0
		}
	case !storesList(k) && c.List != nil:
		c.Value, c.List, c.Stored = payload.Array(c.List.Items), nil, 0
	}
	return c
}

// Graph returns the graph the state belongs to.
func (s *State) Graph() *graph.Graph { return s.graph }

// Checkpoint returns the state in the form that stores keep.
func (s *State) Checkpoint() *checkpoint.Checkpoint { return s.checkpoint }

// Namespace returns where in the thread the state lives.
func (s *State) Namespace() string { return s.checkpoint.Namespace }

// IsFresh reports whether the namespace has never been written.
func (s *State) IsFresh() bool { return s.topVersion == 0 }

// NextStep returns the number of the next superstep.
func (s *State) NextStep() int { return s.checkpoint.Step + 1 }

// LastNode returns the node that reacted last, or false when two nodes did in
// the same superstep. Before the first superstep it is the start node.
func (s *State) LastNode() (string, bool) {
	var best, second uint64
	name := graph.Start
	for i := range s.checkpoint.Seen {
		n := &s.checkpoint.Seen[i]
		if _, ok := s.graph.Node(n.Node); !ok {
			continue
		}
		newest := uint64(0)
		for _, v := range n.Versions {
			newest = max(newest, v.Version)
		}
		if newest > best {
			best, second, name = newest, best, n.Node
		} else {
			second = max(second, newest)
		}
	}
	return name, best == 0 || best != second
}
