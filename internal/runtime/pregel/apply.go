package pregel

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// TaskWrites is a finished task with its writes. A failed task whose error handler
// has run has none. Without a task they are writes of a call.
type TaskWrites struct {
	Task   *Task
	Writes []checkpoint.Write
}

// CheckpointInfo is what a new checkpoint has besides the state; none of it can be
// computed from the state.
type CheckpointInfo struct {
	ID       string
	Seq      uint64
	Time     time.Time
	Run      string
	Source   checkpoint.Source
	Step     int
	Metadata map[string]string
	Parents  map[string]string
	// IsSibling makes the new checkpoint a sibling of the checkpoint of the
	// state, not a child.
	IsSibling bool
}

// ApplyStep ends a superstep: it combines the writes of all its tasks with the
// state and returns the state at the next boundary. The order of the tasks does not
// matter. On error nothing has changed.
func (s *State) ApplyStep(done []TaskWrites, stamp CheckpointInfo) (*State, error) {
	e := s.newEdit(stamp.Seq)
	slices.SortStableFunc(done, compareByPath)
	e.recordReactions(done)
	if err := e.applyWrites(done); err != nil {
		return nil, err
	}
	e.clearAndRelease()
	next := e.buildCheckpoint(stamp)
	if err := next.checkStateGrowth(s); err != nil {
		return nil, err
	}
	return next, nil
}

// InjectWrites applies writes that no task made, such as the update of a command,
// without ending a superstep: triggers are neither consumed nor cleared.
func (s *State) InjectWrites(writes []checkpoint.Write) (*State, error) {
	next, err := s.injectWithin(writes, s.limits)
	if err != nil {
		return nil, err
	}
	if err := next.checkStateGrowth(s); err != nil {
		return nil, err
	}
	return next, nil
}

// InjectUnlimited is InjectWrites without limits, for writes that were accepted
// before.
func (s *State) InjectUnlimited(writes []checkpoint.Write) (*State, error) {
	return s.injectWithin(writes, Limits{})
}

func (s *State) injectWithin(writes []checkpoint.Write, limits Limits) (*State, error) {
	e := s.newEdit(0)
	e.limits = limits
	if err := e.applyWrites([]TaskWrites{{Writes: writes}}); err != nil {
		return nil, err
	}
	next := *s.checkpoint
	next.Channels, next.Seen, next.Updated = e.channels, e.seen, e.updatedNames()
	return e.buildState(&next), nil
}

// lookAhead is InjectWrites for a state that is only read to decide a conditional
// edge. It costs what was written, however long the lists are.
func (s *State) lookAhead(writes []checkpoint.Write) (*State, error) {
	e := s.newEdit(0)
	e.tails = make(map[int][]payload.JSON)
	if err := e.applyWrites([]TaskWrites{{Writes: writes}}); err != nil {
		return nil, err
	}
	next := *s.checkpoint
	next.Channels = e.channels
	ahead := e.buildState(&next)
	ahead.tails = e.tails
	return ahead, nil
}

// PartialState is the state with what some tasks of a superstep have written that
// is not over: what people see while other tasks wait. The order of the tasks does
// not matter.
func (s *State) PartialState(done []TaskWrites) (*State, error) {
	done = slices.Clone(done)
	slices.SortStableFunc(done, compareByPath)
	var writes []checkpoint.Write
	for _, d := range done {
		writes = append(writes, d.Writes...)
	}
	if len(writes) == 0 {
		return s, nil
	}
	return s.InjectUnlimited(writes)
}

// CopyToCheckpoint copies the state into a new checkpoint.
func (s *State) CopyToCheckpoint(stamp CheckpointInfo) *State {
	e := s.newEdit(stamp.Seq)
	for i := range e.channels {
		e.updated[i] = slices.Contains(s.checkpoint.Updated, e.channels[i].Name)
	}
	return e.buildCheckpoint(stamp)
}

// MoveToNamespace puts the state into another namespace, where nothing of it is stored.
func (s *State) MoveToNamespace(namespace string) *State {
	if namespace == s.checkpoint.Namespace {
		return s
	}
	e := s.newEdit(0)
	for i := range e.channels {
		c := &e.channels[i]
		c.Stored = 0
		if c.List != nil {
			c.List = &checkpoint.List{Items: slices.Clip(c.List.Items), Appended: len(c.List.Items)}
		}
	}
	next := *s.checkpoint
	next.Namespace, next.Channels = namespace, e.channels
	return e.buildState(&next)
}

// compareByPath orders tasks as LangGraph does: writes without a task first, triggered
// tasks by node name, Sends by position, a handler where its task was.
func compareByPath(a, b TaskWrites) int {
	if a.Task == nil || b.Task == nil {
		return cmp.Compare(pathRank(a.Task), pathRank(b.Task))
	}
	x, y := a.Task.failedOrSelf(), b.Task.failedOrSelf()
	if x.IsPush != y.IsPush {
		return cmp.Compare(pathRank(x), pathRank(y))
	}
	if x.IsPush {
		return cmp.Compare(x.Index, y.Index)
	}
	return cmp.Compare(x.Node.Name, y.Node.Name)
}

func pathRank(t *Task) int {
	switch {
	case t == nil:
		return 0
	case !t.failedOrSelf().IsPush:
		return 1
	default:
		return 2
	}
}

// failedOrSelf returns the failed task that a handler takes over for, or the task
// itself.
func (t *Task) failedOrSelf() *Task {
	if t.handledTask != nil {
		return t.handledTask
	}
	return t
}

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

func (s *State) newEdit(seq uint64) *stateEdit {
	n := len(s.checkpoint.Channels)
	marks := make([]bool, 2*n)
	return &stateEdit{
		before: s, seq: seq, nextVersion: s.topVersion + 1,
		channels: slices.Clone(s.checkpoint.Channels), seen: s.checkpoint.Seen,
		updated: marks[:n:n], written: marks[n:], untracked: s.untracked, messageIndexes: s.messageIndexes, listSizes: s.listSizes, limits: s.limits,
	}
}

func (e *stateEdit) channelAt(i int) channelEdit {
	return channelEdit{
		spec: &e.before.graph.Channels[i], channel: &e.channels[i],
		seq: e.seq, sharedUpTo: e.before.sharedUpTo, idSeed: e.before.checkpoint.ID,
	}
}

// markChanged notes that a channel changed in this superstep.
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
	if err := e.before.checkStepWrites(done, e.limits); err != nil {
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

func countWrites(done []TaskWrites) (n int) {
	for i := range done {
		n += len(done[i].Writes)
	}
	return n
}

func (e *stateEdit) updateChannel(i int, writes []checkpoint.Write) error {
	c := e.channelAt(i)
	c.listSize = e.newListSize(i)
	switch c.spec.Kind {
	case graph.Messages:
		index := e.messageIndexes[i]
		c.messageIndex = &index
		defer func() { e.setMessageIndex(i, index) }()
		if e.tails != nil && len(writes) == 1 { // a second write would look for the first one
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

// setMessageIndex notes the index of a list of messages; nil for one that is not known
// any more.
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

// moveUntracked moves an untracked value out of what will be stored.
func (e *stateEdit) moveUntracked(i int) {
	next := make(map[int]payload.JSON, len(e.untracked)+1)
	maps.Copy(next, e.untracked)
	next[i] = e.channels[i].Value
	e.channels[i].Value = ""
	e.untracked = next
}

// clearAndRelease clears what lives for one superstep only, and releases deferred nodes
// when nothing else is left to do.
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

func isTrigger(k graph.ChannelKind) bool {
	switch k {
	case graph.Trigger, graph.LastFinish, graph.Barrier, graph.BarrierFinish, graph.Guard:
		return true
	default:
		return false
	}
}

func (e *stateEdit) updatedNames() []string {
	n := 0
	for _, u := range e.updated {
		if u {
			n++
		}
	}
	names := make([]string, 0, n)
	for i, u := range e.updated {
		if u {
			names = append(names, e.channels[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// buildCheckpoint closes the edit: everything changed since the last checkpoint is
// marked as stored by this one.
func (e *stateEdit) buildCheckpoint(stamp CheckpointInfo) *State {
	for i := range e.channels {
		c := &e.channels[i]
		if c.Version == 0 || c.Stored != 0 || (c.Value == "" && c.List == nil) {
			continue
		}
		c.Stored = stamp.Seq
		if c.List != nil {
			c.List = numberSegments(c.List, stamp.Seq)
		}
	}
	if e.before.beginsBranch() {
		e.startSegments(stamp.Seq)
	}
	old := e.before.checkpoint
	parent := old.ID
	if stamp.IsSibling {
		parent = old.Parent
	}
	return e.buildState(&checkpoint.Checkpoint{
		ID: stamp.ID, Seq: stamp.Seq, Parent: parent, Namespace: old.Namespace,
		Graph: e.before.graph.Name, Version: e.before.graph.Version, Run: stamp.Run,
		Source: stamp.Source, Step: stamp.Step, Time: stamp.Time,
		Metadata: stamp.Metadata, Parents: stamp.Parents,
		Channels: e.channels, Seen: e.seen, Updated: e.updatedNames(),
	})
}

// startSegments gives every list a segment of its own at the first checkpoint of a
// branch: what was stored before may grow on another one.
func (e *stateEdit) startSegments(seq uint64) {
	for i := range e.channels {
		c := &e.channels[i]
		if c.List == nil || len(c.List.Segments) == 0 || c.List.Segments[len(c.List.Segments)-1].ID == seq {
			continue
		}
		own := *c.List
		own.Segments = append(slices.Clip(own.Segments), checkpoint.Segment{ID: seq})
		own.Appended = 0
		c.List, c.Stored = &own, seq
	}
}

// numberSegments names the stored list that was begun between two checkpoints.
func numberSegments(l *checkpoint.List, seq uint64) *checkpoint.List {
	next := *l
	next.Segments = slices.Clone(l.Segments)
	if len(next.Segments) == 0 {
		next.Segments = []checkpoint.Segment{{ID: seq, Len: len(l.Items)}}
		next.Appended = len(l.Items)
	}
	for i := range next.Segments {
		if next.Segments[i].ID == 0 {
			next.Segments[i].ID = seq
		}
	}
	return &next
}

func (e *stateEdit) buildState(cp *checkpoint.Checkpoint) *State {
	sealed := e.before.sharedUpTo
	if e.before.beginsBranch() && e.seq > 0 {
		sealed = e.seq - 1
	}
	top := e.before.topVersion
	if e.hasChanged { // else a state that is loaded again would count on from less
		top = e.nextVersion
	}
	s := &State{
		graph: e.before.graph, checkpoint: cp, untracked: e.untracked, sharedUpTo: sealed, topVersion: top, messageIndexes: e.messageIndexes,
		limits: e.before.limits, listSizes: e.listSizes,
	}
	if s.limits.isSet() {
		s.totalSize = s.sumSizes()
	}
	return s
}
