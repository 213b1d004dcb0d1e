package pregel

import (
	"maps"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// stateEdit applies one superstep to a state.
type stateEdit struct {
	before         *State
	seq            uint64
	nextVersion    uint64 // version of every channel the superstep changes
	endsStep       bool   // tasks ran, as opposed to an injected write
	channels       []checkpoint.Channel
	seen           []checkpoint.NodeSeen
	hasChanged     bool   // some channel has the next version
	updated        []bool // by position: changed and available
	written        []bool
	untracked      map[int]payload.JSON
	tails          map[int][]payload.JSON // nil unless the state is only looked at ahead
	messageIndexes map[int]*payload.MessageIndex
	listSizes      []int64
	limits         Limits
}

func newStateEdit(s *State, seq uint64) *stateEdit {
	n := len(s.checkpoint.Channels)
	marks := make([]bool, 2*n)
	return &stateEdit{
		before: s, seq: seq, nextVersion: s.topVersion + 1,
		channels: slices.Clone(s.checkpoint.Channels), seen: s.checkpoint.Seen,
		updated: marks[:n:n], written: marks[n:], untracked: s.untracked, messageIndexes: s.messageIndexes,
		listSizes: s.size.lists, limits: s.limits,
	}
}

func (e *stateEdit) channelAt(i int) channelEdit {
	return channelEdit{
		spec: &e.before.graph.Channels[i], channel: &e.channels[i],
		seq: e.seq, sharedUpTo: e.before.sharedUpTo, idSeed: e.before.checkpoint.ID,
	}
}

// markChanged marks a channel as changed in this superstep.
func (e *stateEdit) markChanged(i int) {
	e.channels[i].Version, e.hasChanged = e.nextVersion, true
	e.updated[i] = isAvailable(&e.before.graph.Channels[i], &e.channels[i])
}

// recordReactions records which versions the finished tasks have reacted to, and resets
// the triggers that fired.
func (e *stateEdit) recordReactions(done []TaskWrites) {
	for _, d := range done {
		if d.Task == nil || d.Task.handledTask != nil {
			continue
		}
		e.endsStep = true
		if !d.Task.IsPush {
			e.recordSeen(d.Task.Node)
		}
	}
	for _, d := range done {
		if d.Task == nil || d.Task.IsPush {
			continue
		}
		for _, t := range d.Task.Node.Triggers {
			if e.channelAt(t).consumeTrigger() {
				e.channels[t].Version, e.hasChanged = e.nextVersion, true
			}
		}
	}
}

func (e *stateEdit) recordSeen(n *graph.Node) {
	versions := make([]checkpoint.SeenVersion, 0, len(n.Triggers))
	for _, t := range n.Triggers {
		if c := &e.before.checkpoint.Channels[t]; c.Version > 0 {
			versions = append(versions, checkpoint.SeenVersion{Channel: c.Name, Version: c.Version})
		}
	}
	e.setSeen(n.Name, versions)
}

func (e *stateEdit) setSeen(node string, versions []checkpoint.SeenVersion) {
	if len(e.seen) == 0 || (len(e.before.checkpoint.Seen) > 0 && &e.seen[0] == &e.before.checkpoint.Seen[0]) {
		e.seen = append(make([]checkpoint.NodeSeen, 0, len(e.seen)+1), e.seen...)
	}
	for i := range e.seen {
		if e.seen[i].Node == node {
			e.seen[i].Versions = versions
			return
		}
	}
	e.seen = append(e.seen, checkpoint.NodeSeen{Node: node, Versions: versions})
}

// indexedWrite is a write with the position of its channel.
type indexedWrite struct {
	channel int
	write   checkpoint.Write
}

// applyWrites groups the writes by channel, in path order, and updates each channel
// once. Writes for channels that the graph no longer has are dropped.
func (e *stateEdit) applyWrites(done []TaskWrites) error {
	if err := e.limits.checkStepWrites(e.before.graph, done); err != nil {
		return err
	}
	var few [16]indexedWrite // on the stack; more writes spill to the heap
	all := few[:0]
	if n := countWrites(done); n > len(few) {
		all = make([]indexedWrite, 0, n)
	}
	for _, d := range done {
		for _, w := range d.Writes {
			if i, ok := e.before.graph.ChannelIndex(w.Channel); ok {
				all = append(all, indexedWrite{i, w})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b indexedWrite) int { return a.channel - b.channel })
	var some [4]checkpoint.Write
	group := some[:0]
	for len(all) > 0 {
		channel, n := all[0].channel, 1
		for n < len(all) && all[n].channel == channel {
			n++
		}
		group = slices.Grow(group[:0], n)
		for _, w := range all[:n] {
			group = append(group, w.write)
		}
		all = all[n:]
		if err := e.updateChannel(channel, group); err != nil {
			return err
		}
	}
	return nil
}

// updateChannel combines the writes to a channel with its value.
func (e *stateEdit) updateChannel(i int, writes []checkpoint.Write) error {
	c := e.channelAt(i)
	c.listSize = e.newListSize(i)
	switch c.spec.Kind {
	case graph.Messages:
		index := e.messageIndexes[i]
		c.messageIndex = &index
		defer func() { e.setMessageIndex(i, index) }()
		if e.tails != nil && len(writes) == 1 { // a second write would look for the first
			c.tail = new([]payload.JSON)
		}
	case graph.Append, graph.Topic:
		if e.tails != nil {
			c.tail = new([]payload.JSON)
		}
	default:
	}
	changed, err := c.applyWrites(writes)
	if err != nil {
		return err
	}
	if c.tail != nil && len(*c.tail) > 0 {
		e.tails[i] = *c.tail
	}
	e.written[i] = true
	if changed {
		e.markChanged(i)
	}
	if c.spec.Kind == graph.Untracked {
		e.moveUntracked(i)
	}
	return e.checkValueGrowth(i, c.listSize)
}

// setMessageIndex sets the index of a list of messages; nil = unknown.
func (e *stateEdit) setMessageIndex(i int, index *payload.MessageIndex) {
	if e.messageIndexes[i] == index {
		return
	}
	e.messageIndexes = maps.Clone(e.messageIndexes) // the state before has its own
	if e.messageIndexes == nil {
		e.messageIndexes = make(map[int]*payload.MessageIndex, 1)
	}
	e.messageIndexes[i] = index
	if index == nil {
		delete(e.messageIndexes, i)
	}
}

// moveUntracked moves an untracked value out of the part that is stored.
func (e *stateEdit) moveUntracked(i int) {
	next := make(map[int]payload.JSON, len(e.untracked)+1)
	maps.Copy(next, e.untracked)
	next[i] = e.channels[i].Value
	e.channels[i].Value = ""
	e.untracked = next
}

// clearAndRelease clears the channels that last for one superstep, and releases
// deferred nodes when no other task is due.
func (e *stateEdit) clearAndRelease() {
	if !e.endsStep {
		return
	}
	specs := e.before.graph.Channels
	for i := range specs {
		if !e.written[i] && e.channelAt(i).clearUnwritten() {
			e.markChanged(i)
		}
	}
	if e.triggersAny() {
		return
	}
	for i := range specs {
		if e.channelAt(i).releaseDeferred() {
			e.markChanged(i)
		}
	}
}

func (e *stateEdit) triggersAny() bool {
	for i := range e.before.graph.Channels {
		if e.updated[i] && isTrigger(e.before.graph.Channels[i].Kind) {
			return true
		}
	}
	return false
}
