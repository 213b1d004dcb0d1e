package graph

import (
	"strings"

	"github.com/graphd-dev/graphd/internal/payload"
)

// Names of channels that are not state keys.
const (
	// Root is the channel of a graph whose whole state is a single value.
	Root = "__root__"
	// SendsChannel holds the Sends of a superstep.
	SendsChannel = "__pregel_tasks"

	triggerPrefix = "branch:to:"
	joinPrefix    = "join:"
)

// buildStateKeys compiles the declared channels.
func (b *builder) buildStateKeys() {
	if len(b.spec.Channels) == 0 {
		b.addProblem("channels", ReasonMissing, "the graph declares no channels, so it has no state")
	}
	for i := range b.spec.Channels {
		b.buildStateKey(&b.spec.Channels[i])
	}
	b.graph.InputKeys = b.resolveKeys("input", b.spec.Input)
	b.graph.OutputKeys = b.resolveKeys("output", b.spec.Output)
}

func (b *builder) buildStateKey(spec *ChannelSpec) {
	path := "channels." + spec.Name
	if _, taken := b.graph.channels[spec.Name]; taken {
		b.addProblem(path, ReasonDuplicateName, "channel %q is declared twice", spec.Name)
		return
	}
	b.checkChannelName(path, spec.Name, len(b.spec.Channels) == 1)
	reducer, ok := findReducer(spec.Reducer)
	if !ok {
		b.addUnknown(path+".reducer", ReasonUnknownReducer, "reducer", spec.Reducer, reducerNames)
	}
	value := reducer.Empty
	if spec.Default != "" && b.checkJSON(path+".default", spec.Default) && ok {
		value = payload.Trim(spec.Default)
		b.checkDefault(path+".default", reducer, value)
	}
	if ok {
		b.checkReducerFunction(path, spec, reducer)
		b.graph.hasUntracked = b.graph.hasUntracked || reducer.Kind == Untracked
	}
	b.graph.StateKeys = append(b.graph.StateKeys, b.graph.addChannel(Channel{
		Name: spec.Name, Kind: reducer.Kind, Default: value, IsStateKey: true, Function: spec.Function,
	}))
}

// checkReducerFunction checks that a function is named where it is needed.
func (b *builder) checkReducerFunction(path string, spec *ChannelSpec, r Reducer) {
	switch {
	case r.Kind == ByWorker && spec.Function == "":
		b.addProblem(path+".function", ReasonMissing, "reducer remote needs the name of the function in the worker")
	case r.Kind == ByWorker:
		b.graph.hasWorkerReducer = true
	case spec.Function != "":
		b.addProblem(path+".function", ReasonConflict, "a function goes with reducer remote, not with %s", r.Name)
	}
}

func (b *builder) checkDefault(path string, r Reducer, value payload.JSON) {
	kind := payload.KindOf(value)
	if r.acceptsDefault(kind) {
		return
	}
	if len(r.DefaultKinds) == 0 {
		b.addProblem(path, ReasonInvalidDefault, "reducer %s holds a value for one superstep only and takes no default", r.Name)
		return
	}
	names := make([]string, len(r.DefaultKinds))
	for i, k := range r.DefaultKinds {
		names[i] = k.String()
	}
	b.addProblem(path, ReasonInvalidDefault, "reducer %s needs a default of kind %s, not %s",
		r.Name, strings.Join(names, " or "), kind)
}

// addControlChannels adds the channels of edges and Sends.
func (b *builder) addControlChannels() {
	b.graph.StartChannel = b.graph.addChannel(Channel{Name: Start, Kind: Guard})
	b.graph.SendsChannel = b.graph.addChannel(Channel{Name: SendsChannel, Kind: TopicOnce})
	for _, n := range b.graph.Nodes {
		if n.Spec == nil {
			n.TriggerChannel = b.graph.StartChannel
		} else {
			kind := Trigger
			if n.Spec.Defer {
				kind = LastFinish
			}
			n.TriggerChannel = b.graph.addChannel(Channel{Name: triggerPrefix + n.Name, Kind: kind})
		}
		n.Triggers = []int{n.TriggerChannel}
	}
}

// addChannel adds a channel and returns its position.
func (g *Graph) addChannel(c Channel) int {
	if i, ok := g.channels[c.Name]; ok {
		return i
	}
	g.Channels = append(g.Channels, c)
	g.channels[c.Name] = len(g.Channels) - 1
	return len(g.Channels) - 1
}

// addBarrier adds the channel of a join, or finds it.
func (g *Graph) addBarrier(members []string, to *Node) (at int, added bool) {
	kind := Barrier
	if to.Spec.Defer {
		kind = BarrierFinish
	}
	before := len(g.Channels)
	at = g.addChannel(Channel{
		Name: joinPrefix + strings.Join(members, "+") + ":" + to.Name, Kind: kind, Members: members,
	})
	return at, len(g.Channels) > before
}
