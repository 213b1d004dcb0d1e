package pregel

import (
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// State is a graph at a superstep boundary. It is immutable.
type State struct {
	graph      *graph.Graph
	checkpoint *checkpoint.Checkpoint
	// untracked holds values that are never stored, by channel position.
	untracked map[int]payload.JSON
	// sharedUpTo is the number of the checkpoint at which another branch of the
	// history may also append: lists stored up to it must not grow in place.
	sharedUpTo uint64
	topVersion uint64 // greatest channel version
	// tails are elements that come after those of lists, by channel position, in
	// a state that is only looked at ahead: the lists themselves are not copied.
	tails map[int][]payload.JSON
	// messageIndexes know the ids of lists of messages, by channel position, so that a
	// superstep need not read the messages that are there already.
	messageIndexes map[int]*payload.MessageIndex
	limits         Limits
	listSizes      []int64 // of lists, by channel position; nil without limits
	totalSize      int64   // size of all state keys; 0 without limits
}

// NewState returns the state of a graph that has never run in this namespace.
func NewState(g *graph.Graph, namespace string, limits Limits) *State {
	return LoadState(g, &checkpoint.Checkpoint{Namespace: namespace, Step: -2}, false, limits)
}

// LoadState binds a checkpoint to a graph. Channels that the graph does not have
// (a key was removed) are kept behind the others and never looked at. Forked
// says that later checkpoints than this one exist. The limits hold for what
// follows the state; one that is only read needs none.
func LoadState(g *graph.Graph, cp *checkpoint.Checkpoint, forked bool, limits Limits) *State {
	s := &State{graph: g, checkpoint: cp, limits: limits}
	bound := *cp
	bound.Channels = alignChannels(g, cp.Channels)
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
	s.checkpoint = &bound
	if forked {
		s.sharedUpTo = allShared
	}
	s.measureChannels()
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

// allShared marks every list as shared with another branch: the state begins one.
const allShared = ^uint64(0)

// beginsBranch reports whether the state's next checkpoint begins a branch.
func (s *State) beginsBranch() bool { return s.sharedUpTo == allShared }

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

// NextStep is the number of the superstep that would run now.
func (s *State) NextStep() int { return s.checkpoint.Step + 1 }

// valueAt returns what a channel holds as JSON text, its default included.
func (s *State) valueAt(i int) (payload.JSON, bool) {
	c, spec := &s.checkpoint.Channels[i], &s.graph.Channels[i]
	switch {
	case spec.Kind == graph.Untracked:
		v, ok := s.untracked[i]
		return v, ok
	case c.List != nil:
		items := c.List.Items
		if tail := s.tails[i]; len(tail) > 0 {
			items = slices.Concat(items, tail)
		}
		if len(items) == 0 && spec.Kind == graph.Topic {
			return "", false
		}
		return payload.Array(items), true
	case c.Value != "":
		return c.Value, spec.Kind != graph.LastFinish || c.Flag
	case c.Version == 0 && spec.Default != "":
		return spec.Default, true
	}
	return "", false
}

// Value returns a state key's value, or false when it is unset.
func (s *State) Value(key string) (payload.JSON, bool) {
	i, ok := s.graph.ChannelIndex(key)
	if !ok || !s.graph.Channels[i].IsStateKey {
		return "", false
	}
	return s.valueAt(i)
}

// Object returns the given state keys as one JSON object, in the graph's
// order, leaving out those that are unset. For a graph whose state is one
// value it returns that value, or "".
func (s *State) Object(keys []int) payload.JSON {
	if i, ok := s.graph.ChannelIndex(rootChannel); ok {
		v, _ := s.valueAt(i)
		return v
	}
	fields := make([]payload.Field, 0, len(keys))
	for _, i := range keys {
		if v, ok := s.valueAt(i); ok {
			fields = append(fields, payload.Field{Key: s.graph.Channels[i].Name, Value: v})
		}
	}
	return payload.Object(fields)
}

// rootChannel is the channel of a graph whose state is one value.
const rootChannel = "__root__"

// Values returns all state keys as people see them.
func (s *State) Values() payload.JSON { return s.Object(s.graph.StateKeys) }

// Output returns the keys that the graph declares as its result.
func (s *State) Output() payload.JSON { return s.Object(s.graph.OutputKeys) }

// StartInput is the input that waits for the start node, "" when there is none.
func (s *State) StartInput() payload.JSON {
	return s.checkpoint.Channels[s.graph.StartChannel].Value
}

// HasOutputChanged reports whether the last superstep changed a state key.
func (s *State) HasOutputChanged() bool {
	for _, name := range s.checkpoint.Updated {
		if i, ok := s.graph.ChannelIndex(name); ok && s.graph.Channels[i].IsStateKey {
			return true
		}
	}
	return false
}

// View is what one task sees of the state: the channels its node reads.
type View struct {
	state     *State
	positions []int
}

// NodeView returns the view of a node.
func (s *State) NodeView(n *graph.Node) View { return View{state: s, positions: n.Reads} }

// FullView returns the view of what decides a conditional edge: every state key.
func (s *State) FullView() View { return View{state: s, positions: s.graph.StateKeys} }

// Lookup returns the value of a key the node reads, or false when it is unset.
func (v View) Lookup(key string) (payload.JSON, bool) {
	i, ok := v.state.graph.ChannelIndex(key)
	if !ok || !slices.Contains(v.positions, i) {
		return "", false
	}
	return v.state.valueAt(i)
}

// Keys lists the keys that are set.
func (v View) Keys() []string {
	keys := make([]string, 0, len(v.positions))
	for _, i := range v.positions {
		if _, ok := v.state.valueAt(i); ok {
			keys = append(keys, v.state.graph.Channels[i].Name)
		}
	}
	return keys
}

// Object returns the view as one JSON object.
func (v View) Object() payload.JSON {
	if v.state == nil {
		return "{}"
	}
	return v.state.Object(v.positions)
}

// JoinNamespace appends one level to a namespace.
func JoinNamespace(parent, level string) string {
	if parent == "" {
		return level
	}
	return parent + "|" + level
}

// NodePath drops the task ids of a namespace: "a:1|b:2" becomes "a|b".
func NodePath(namespace string) string {
	if !strings.Contains(namespace, ":") {
		return namespace
	}
	levels := strings.Split(namespace, "|")
	for i, l := range levels {
		levels[i], _, _ = strings.Cut(l, ":")
	}
	return strings.Join(levels, "|")
}

// nodeNames lists the nodes people may name, for messages.
func nodeNames(g *graph.Graph) []string {
	names := make([]string, 0, len(g.Nodes))
	for _, n := range g.Nodes {
		if n.Kind != graph.KindStart {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names
}

// channelNames lists channels by position, for messages.
func channelNames(g *graph.Graph, positions []int) []string {
	names := make([]string, len(positions))
	for i, p := range positions {
		names[i] = g.Channels[p].Name
	}
	return names
}

// LastNode is the node that reacted last, or false when two did so in the
// same superstep. Before the first superstep it is the start node.
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
