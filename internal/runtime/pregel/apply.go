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

// Done is a finished task with what it wrote. A task that failed and was taken
// over by its handler is done without writes.
type Done struct {
	Task   *Task
	Writes []checkpoint.Write
}

// Stamp is what a new checkpoint is marked with; none of it can be computed
// from the state.
type Stamp struct {
	ID       string
	Seq      uint64
	Time     time.Time
	Run      string
	Source   checkpoint.Source
	Step     int
	Metadata map[string]string
	Parents  map[string]string
	// Sibling makes the new checkpoint a sibling of the state's, not a child.
	Sibling bool
}

// Apply ends a superstep: it combines the writes of all its tasks with the
// state and returns the state at the next boundary. The order of done does not
// matter. On error nothing has changed.
func (s *State) Apply(done []Done, stamp Stamp) (*State, error) {
	e := s.edit(stamp.Seq)
	slices.SortStableFunc(done, byPath)
	e.react(done)
	if err := e.write(done); err != nil {
		return nil, err
	}
	e.sweep()
	next := e.checkpoint(stamp)
	if err := next.outgrown(s); err != nil {
		return nil, err
	}
	return next, nil
}

// Inject applies writes that no task made, such as the update of a command,
// without ending a superstep: triggers are neither consumed nor cleared.
func (s *State) Inject(writes []checkpoint.Write) (*State, error) {
	next, err := s.inject(writes, s.limits)
	if err != nil {
		return nil, err
	}
	if err := next.outgrown(s); err != nil {
		return nil, err
	}
	return next, nil
}

// Recall is Inject for writes that were accepted before, whatever the limits
// are now.
func (s *State) Recall(writes []checkpoint.Write) (*State, error) { return s.inject(writes, Limits{}) }

func (s *State) inject(writes []checkpoint.Write, limits Limits) (*State, error) {
	e := s.edit(0)
	e.limits = limits
	if err := e.write([]Done{{Writes: writes}}); err != nil {
		return nil, err
	}
	next := *s.cp
	next.Channels, next.Seen, next.Updated = e.channels, e.seen, e.updatedNames()
	return e.state(&next), nil
}

// lookAhead is Inject for a state that is only read by what decides a
// conditional edge. It costs what was written, however long the lists are.
func (s *State) lookAhead(writes []checkpoint.Write) (*State, error) {
	e := s.edit(0)
	e.tails = make(map[int][]payload.JSON)
	if err := e.write([]Done{{Writes: writes}}); err != nil {
		return nil, err
	}
	next := *s.cp
	next.Channels = e.channels
	ahead := e.state(&next)
	ahead.tails = e.tails
	return ahead, nil
}

// Partial is the state with what some tasks of a superstep have written that is
// not over: what people see while other tasks wait. The order of done does not
// matter.
func (s *State) Partial(done []Done) (*State, error) {
	done = slices.Clone(done)
	slices.SortStableFunc(done, byPath)
	var writes []checkpoint.Write
	for _, d := range done {
		writes = append(writes, d.Writes...)
	}
	if len(writes) == 0 {
		return s, nil
	}
	return s.Recall(writes)
}

// Restamp copies the state into a new checkpoint.
func (s *State) Restamp(stamp Stamp) *State {
	e := s.edit(stamp.Seq)
	for i := range e.channels {
		e.updated[i] = slices.Contains(s.cp.Updated, e.channels[i].Name)
	}
	return e.checkpoint(stamp)
}

// Move puts the state into another namespace, where nothing of it is stored.
func (s *State) Move(namespace string) *State {
	if namespace == s.cp.Namespace {
		return s
	}
	e := s.edit(0)
	for i := range e.channels {
		c := &e.channels[i]
		c.Stored = 0
		if c.List != nil {
			c.List = &checkpoint.List{Items: slices.Clip(c.List.Items), Fresh: len(c.List.Items)}
		}
	}
	next := *s.cp
	next.Namespace, next.Channels = namespace, e.channels
	return e.state(&next)
}

// byPath orders tasks as LangGraph does: writes without a task first, triggered
// tasks by node name, Sends by position, a handler where its task was.
func byPath(a, b Done) int {
	if a.Task == nil || b.Task == nil {
		return cmp.Compare(rank(a.Task), rank(b.Task))
	}
	x, y := a.Task.root(), b.Task.root()
	if x.Push != y.Push {
		return cmp.Compare(rank(x), rank(y))
	}
	if x.Push {
		return cmp.Compare(x.Index, y.Index)
	}
	return cmp.Compare(x.Node.Name, y.Node.Name)
}

func rank(t *Task) int {
	switch {
	case t == nil:
		return 0
	case !t.root().Push:
		return 1
	default:
		return 2
	}
}

// root is the task itself, or the one that a handler takes over for.
func (t *Task) root() *Task {
	if t.handled != nil {
		return t.handled
	}
	return t
}

// edit is a superstep while it is being applied.
type edit struct {
	from      *State
	seq       uint64
	next      uint64 // version of every channel the superstep changes
	bump      bool   // tasks ran, as opposed to an injected write
	channels  []checkpoint.Channel
	seen      []checkpoint.NodeSeen
	changed   bool   // some channel has the next version
	updated   []bool // by position: changed and available
	written   []bool
	untracked map[int]payload.JSON
	tails     map[int][]payload.JSON // nil unless the state is only looked at ahead
	indexes   map[int]*payload.MessageIndex
	sizes     []int64
	limits    Limits
}

func (s *State) edit(seq uint64) *edit {
	n := len(s.cp.Channels)
	marks := make([]bool, 2*n)
	return &edit{
		from: s, seq: seq, next: s.top + 1,
		channels: slices.Clone(s.cp.Channels), seen: s.cp.Seen,
		updated: marks[:n:n], written: marks[n:], untracked: s.untracked, indexes: s.indexes, sizes: s.sizes, limits: s.limits,
	}
}

func (e *edit) cell(i int) cell {
	return cell{
		spec: &e.from.graph.Channels[i], ch: &e.channels[i],
		seq: e.seq, seal: e.from.sealed, extra: e.from.cp.ID,
	}
}

// mark notes that a channel changed in this superstep.
func (e *edit) mark(i int) {
	e.channels[i].Version, e.changed = e.next, true
	e.updated[i] = available(&e.from.graph.Channels[i], &e.channels[i])
}

// react records which versions the finished tasks have reacted to, and resets
// the triggers that fired.
func (e *edit) react(done []Done) {
	for _, d := range done {
		if d.Task == nil || d.Task.handled != nil {
			continue
		}
		e.bump = true
		if !d.Task.Push {
			e.see(d.Task.Node)
		}
	}
	for _, d := range done {
		if d.Task == nil || d.Task.Push {
			continue
		}
		for _, t := range d.Task.Node.Triggers {
			if e.cell(t).consume() {
				e.channels[t].Version, e.changed = e.next, true
			}
		}
	}
}

func (e *edit) see(n *graph.Node) {
	versions := make([]checkpoint.SeenVersion, 0, len(n.Triggers))
	for _, t := range n.Triggers {
		if c := &e.from.cp.Channels[t]; c.Version > 0 {
			versions = append(versions, checkpoint.SeenVersion{Channel: c.Name, Version: c.Version})
		}
	}
	e.setSeen(n.Name, versions)
}

func (e *edit) setSeen(node string, versions []checkpoint.SeenVersion) {
	if len(e.seen) == 0 || (len(e.from.cp.Seen) > 0 && &e.seen[0] == &e.from.cp.Seen[0]) {
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

// indexed is a write with the position of its channel.
type indexed struct {
	channel int
	write   checkpoint.Write
}

// write groups the writes by channel, in path order, and updates each channel
// once. Writes for channels that the graph no longer has are dropped.
func (e *edit) write(done []Done) error {
	if err := e.from.checkStep(done, e.limits); err != nil {
		return err
	}
	var few [16]indexed // on the stack; more writes spill to the heap
	all := few[:0]
	if n := writes(done); n > len(few) {
		all = make([]indexed, 0, n)
	}
	for _, d := range done {
		for _, w := range d.Writes {
			if i, ok := e.from.graph.ChannelIndex(w.Channel); ok {
				all = append(all, indexed{i, w})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b indexed) int { return a.channel - b.channel })
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
		if err := e.update(channel, group); err != nil {
			return err
		}
	}
	return nil
}

func writes(done []Done) (n int) {
	for i := range done {
		n += len(done[i].Writes)
	}
	return n
}

func (e *edit) update(i int, writes []checkpoint.Write) error {
	c := e.cell(i)
	c.size = e.measured(i)
	switch c.spec.Kind {
	case graph.Messages:
		index := e.indexes[i]
		c.index = &index
		defer func() { e.setIndex(i, index) }()
		if e.tails != nil && len(writes) == 1 { // a second write would look for the first one
			c.tail = new([]payload.JSON)
		}
	case graph.Append, graph.Topic:
		if e.tails != nil {
			c.tail = new([]payload.JSON)
		}
	default:
	}
	changed, err := c.update(writes)
	if err != nil {
		return err
	}
	if c.tail != nil && len(*c.tail) > 0 {
		e.tails[i] = *c.tail
	}
	e.written[i] = true
	if changed {
		e.mark(i)
	}
	if c.spec.Kind == graph.Untracked {
		e.track(i)
	}
	return e.resized(i, c.size)
}

// setIndex notes the index of a list of messages; nil for one that is not known
// any more.
func (e *edit) setIndex(i int, index *payload.MessageIndex) {
	if e.indexes[i] == index {
		return
	}
	e.indexes = maps.Clone(e.indexes) // the state before has its own
	if e.indexes == nil {
		e.indexes = make(map[int]*payload.MessageIndex, 1)
	}
	e.indexes[i] = index
	if index == nil {
		delete(e.indexes, i)
	}
}

// track moves an untracked value out of what will be stored.
func (e *edit) track(i int) {
	next := make(map[int]payload.JSON, len(e.untracked)+1)
	maps.Copy(next, e.untracked)
	next[i] = e.channels[i].Value
	e.channels[i].Value = ""
	e.untracked = next
}

// sweep clears what lives for one superstep only, and releases deferred nodes
// when nothing else is left to do.
func (e *edit) sweep() {
	if !e.bump {
		return
	}
	specs := e.from.graph.Channels
	for i := range specs {
		if !e.written[i] && e.cell(i).clear() {
			e.mark(i)
		}
	}
	if e.triggersSomething() {
		return
	}
	for i := range specs {
		if e.cell(i).finish() {
			e.mark(i)
		}
	}
}

func (e *edit) triggersSomething() bool {
	for i := range e.from.graph.Channels {
		if e.updated[i] && isTrigger(e.from.graph.Channels[i].Kind) {
			return true
		}
	}
	return false
}

func isTrigger(k graph.Kind) bool {
	switch k {
	case graph.Trigger, graph.LastFinish, graph.Barrier, graph.BarrierFinish, graph.Guard:
		return true
	default:
		return false
	}
}

func (e *edit) updatedNames() []string {
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

// checkpoint closes the edit: everything changed since the last checkpoint is
// marked as stored by this one.
func (e *edit) checkpoint(stamp Stamp) *State {
	for i := range e.channels {
		c := &e.channels[i]
		if c.Version == 0 || c.Stored != 0 || (c.Value == "" && c.List == nil) {
			continue
		}
		c.Stored = stamp.Seq
		if c.List != nil {
			c.List = number(c.List, stamp.Seq)
		}
	}
	if e.from.forked() {
		e.branchOff(stamp.Seq)
	}
	old := e.from.cp
	parent := old.ID
	if stamp.Sibling {
		parent = old.Parent
	}
	return e.state(&checkpoint.Checkpoint{
		ID: stamp.ID, Seq: stamp.Seq, Parent: parent, Namespace: old.Namespace,
		Graph: e.from.graph.Name, Version: e.from.graph.Version, Run: stamp.Run,
		Source: stamp.Source, Step: stamp.Step, Time: stamp.Time,
		Metadata: stamp.Metadata, Parents: stamp.Parents,
		Channels: e.channels, Seen: e.seen, Updated: e.updatedNames(),
	})
}

// branchOff gives every list a segment of its own at the first checkpoint of a
// branch: what was stored before may grow on another one.
func (e *edit) branchOff(seq uint64) {
	for i := range e.channels {
		c := &e.channels[i]
		if c.List == nil || len(c.List.Segments) == 0 || c.List.Segments[len(c.List.Segments)-1].ID == seq {
			continue
		}
		own := *c.List
		own.Segments = append(slices.Clip(own.Segments), checkpoint.Segment{ID: seq})
		own.Fresh = 0
		c.List, c.Stored = &own, seq
	}
}

// number names the stored list that was begun between two checkpoints.
func number(l *checkpoint.List, seq uint64) *checkpoint.List {
	next := *l
	next.Segments = slices.Clone(l.Segments)
	if len(next.Segments) == 0 {
		next.Segments = []checkpoint.Segment{{ID: seq, Len: len(l.Items)}}
		next.Fresh = len(l.Items)
	}
	for i := range next.Segments {
		if next.Segments[i].ID == 0 {
			next.Segments[i].ID = seq
		}
	}
	return &next
}

func (e *edit) state(cp *checkpoint.Checkpoint) *State {
	sealed := e.from.sealed
	if e.from.forked() && e.seq > 0 {
		sealed = e.seq - 1
	}
	top := e.from.top
	if e.changed { // else a state that is loaded again would count on from less
		top = e.next
	}
	s := &State{
		graph: e.from.graph, cp: cp, untracked: e.untracked, sealed: sealed, top: top, indexes: e.indexes,
		limits: e.from.limits, sizes: e.sizes,
	}
	if s.limits.any() {
		s.total = s.sum()
	}
	return s
}
