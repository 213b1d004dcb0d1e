package graph

import (
	"strings"

	"github.com/graphd-dev/graphd/internal/payload"
)

// Names of channels that are not state keys.
const (
	// Root is the channel of a graph whose whole state is one value.
	Root = "__root__"
	// SendsChannel holds the Sends of one superstep.
	SendsChannel = "__pregel_tasks"

	triggerPrefix = "branch:to:"
	joinPrefix    = "join:"
)

// stateKeys compiles the declared channels.
func (b *builder) stateKeys() {
	if len(b.spec.Channels) == 0 {
		b.add("channels", ReasonMissing, "the graph declares no channels, so it has no state")
	}
	for i := range b.spec.Channels {
		b.stateKey(&b.spec.Channels[i])
	}
	b.g.Input = b.keys("input", b.spec.Input)
	b.g.Output = b.keys("output", b.spec.Output)
}

func (b *builder) stateKey(spec *ChannelSpec) {
	path := "channels." + spec.Name
	if _, taken := b.g.channels[spec.Name]; taken {
		b.add(path, ReasonDuplicateName, "channel %q is declared twice", spec.Name)
		return
	}
	b.channelName(path, spec.Name)
	reducer, ok := findReducer(spec.Reducer)
	if !ok {
		b.unknown(path+".reducer", ReasonUnknownReducer, "reducer", spec.Reducer, reducerNames)
	}
	value := reducer.Empty
	if spec.Default != "" && b.json(path+".default", spec.Default) && ok {
		value = payload.Trim(spec.Default)
		b.checkDefault(path+".default", reducer, value)
	}
	if ok {
		b.reducerFunction(path, spec, reducer)
		b.g.secrets = b.g.secrets || reducer.Kind == Untracked
	}
	b.g.State = append(b.g.State, b.channel(Channel{
		Name: spec.Name, Kind: reducer.Kind, Default: value, State: true, Function: spec.Function,
	}))
}

// reducerFunction checks that a function is named where one is needed.
func (b *builder) reducerFunction(path string, spec *ChannelSpec, r Reducer) {
	switch {
	case r.Kind == ByWorker && spec.Function == "":
		b.add(path+".function", ReasonMissing, "reducer remote needs the name of the function in the worker")
	case r.Kind == ByWorker:
		b.g.byWorker = true
	case spec.Function != "":
		b.add(path+".function", ReasonConflict, "a function goes with reducer remote, not with %s", r.Name)
	}
}

func (b *builder) checkDefault(path string, r Reducer, value payload.JSON) {
	kind := payload.KindOf(value)
	if r.fits(kind) {
		return
	}
	if len(r.Takes) == 0 {
		b.add(path, ReasonInvalidDefault, "reducer %s holds a value for one superstep only and takes no default", r.Name)
		return
	}
	names := make([]string, len(r.Takes))
	for i, k := range r.Takes {
		names[i] = k.String()
	}
	b.add(path, ReasonInvalidDefault, "reducer %s needs a default of kind %s, not %s",
		r.Name, strings.Join(names, " or "), kind)
}

// madeChannels adds what edges and Sends are compiled to.
func (b *builder) madeChannels() {
	b.g.StartChannel = b.channel(Channel{Name: Start, Kind: Guard})
	b.g.Sends = b.channel(Channel{Name: SendsChannel, Kind: TopicOnce})
	for _, n := range b.g.Nodes {
		if n.Spec == nil {
			n.Channel = b.g.StartChannel
		} else {
			kind := Trigger
			if n.Spec.Defer {
				kind = LastFinish
			}
			n.Channel = b.channel(Channel{Name: triggerPrefix + n.Name, Kind: kind})
		}
		n.Triggers = []int{n.Channel}
	}
}

// barrier adds the channel of a join, or finds it.
func (b *builder) barrier(members []string, to *Node) (at int, added bool) {
	kind := Barrier
	if to.Spec.Defer {
		kind = BarrierFinish
	}
	before := len(b.g.Channels)
	at = b.channel(Channel{
		Name: joinPrefix + strings.Join(members, "+") + ":" + to.Name, Kind: kind, Members: members,
	})
	return at, len(b.g.Channels) > before
}
