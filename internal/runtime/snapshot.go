package runtime

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// State reads a state. The newest one includes what the tasks of its superstep
// have finished so far; an older one is as it was. The errors are *Error:
// THREAD_NOT_FOUND, CHECKPOINT_NOT_FOUND, GRAPH_NOT_FOUND, INVALID_FIELD, and
// those of the store.
func (e *Engine) State(ctx context.Context, req StateRequest) (Snapshot, error) {
	return e.stateWithin(ctx, req, loadPatience)
}

// stateWithin is State for a caller that waits so long for room.
func (e *Engine) stateWithin(ctx context.Context, req StateRequest, patience time.Duration) (Snapshot, error) {
	return decide(ctx, e, func(seen *checkpoint.Head) (Snapshot, error) { return e.tryState(ctx, req, patience, seen) })
}

func (e *Engine) tryState(
	ctx context.Context, req StateRequest, patience time.Duration, seen *checkpoint.Head,
) (snap Snapshot, err error) {
	room := e.shownIn(ctx, req.Bytes)
	err = e.readLarge(ctx, room, patience, func() error {
		snap, err = e.readState(ctx, req, room, seen)
		return err
	})
	return snap, err
}

func (e *Engine) readState(ctx context.Context, req StateRequest, room *load, seen *checkpoint.Head) (Snapshot, error) {
	head, err := e.Thread(ctx, req.Thread)
	if err != nil {
		return Snapshot{}, err
	}
	*seen = head
	if head.Graph == "" {
		return Snapshot{Values: "{}", Checkpoint: &checkpoint.Checkpoint{}, LogID: head.LogID}, nil
	}
	r := &reader{engine: e, ctx: ctx, head: &head, subgraphs: req.Subgraphs, room: req.Bytes, load: room}
	snap, err := r.read(req.Namespace, req.Checkpoint)
	if errors.Is(err, errManyResults) {
		return snap, tooMuch(snap.Checkpoint, r.room)
	}
	if err != nil {
		return snap, err
	}
	if len(req.Keys) > 0 {
		snap.Values, err = selectKeys(snap.Values, req.Keys)
	}
	snap.LastEvent, snap.LogID = head.LastEvent, head.LogID
	return snap, err
}

func selectKeys(values payload.JSON, keys []string) (payload.JSON, error) {
	fields, err := payload.Fields(values)
	if err != nil {
		return values, Errorf(ReasonInvalidField, "the state is one value and has no keys").InField("keys", "must be empty for this graph")
	}
	fields = slices.DeleteFunc(fields, func(f payload.Field) bool { return !slices.Contains(keys, f.Key) })
	return payload.Object(fields), nil
}

// StateAt returns the values at a checkpoint.
func (e *Engine) StateAt(ctx context.Context, thread, namespace, id string) (payload.JSON, error) {
	head, err := e.Thread(ctx, thread)
	if err != nil {
		return "", err
	}
	var own load
	defer own.end()
	s, err := e.stateInRoom(ctx, e.shown(ctx, &own, 0), forever, &head, namespace, id)
	if err != nil {
		return "", err
	}
	return s.Values(), nil
}

// InputAt returns what a node sees of the state at a checkpoint. The errors are
// *Error: CHECKPOINT_NOT_FOUND, GRAPH_NOT_FOUND, and those of the store; a node
// that the graph no longer has sees nothing.
func (e *Engine) InputAt(ctx context.Context, thread, namespace, id, node string) (payload.JSON, error) {
	head, err := e.Thread(ctx, thread)
	if err != nil {
		return "", err
	}
	var own load
	defer own.end()
	s, err := e.stateInRoom(ctx, e.shown(ctx, &own, 0), forever, &head, namespace, id)
	if err != nil {
		return "", err
	}
	n, ok := s.Graph().Node(node)
	if !ok {
		return "", nil
	}
	return s.View(n).Object(), nil
}

// reader puts snapshots of one thread together.
type reader struct {
	engine    *Engine
	ctx       context.Context //nolint:containedctx // lives as long as one call
	head      *checkpoint.Head
	load      *load // for what is read; nil = its size does not matter
	subgraphs bool
	room      int // bytes that what is shown beside the values may hold, 0 = any number
	held      int // of these
	questions
}

// hold counts what is shown. The error is errManyResults when it is too much for
// one answer.
func (r *reader) hold(bytes int) error {
	if r.held += bytes; r.room > 0 && r.held > r.room {
		return errManyResults
	}
	return nil
}

// sizeOfTask is about how many bytes a task adds to an answer.
func sizeOfTask(t *SnapshotTask) int {
	n := len(t.Result) + len(t.Namespace)
	if t.Failure != nil {
		n += len(t.Failure.Message) + len(t.Failure.Stack)
	}
	for i := range t.Interrupts {
		n += t.Interrupts[i].Size()
	}
	if t.State != nil {
		n += len(t.State.Values)
	}
	return n
}

func (r *reader) read(namespace, id string) (Snapshot, error) {
	s, err := r.engine.stateAt(r.ctx, r.load, r.head, namespace, id)
	if err != nil {
		return Snapshot{}, err
	}
	if id == "" {
		return r.present(s)
	}
	one := []*checkpoint.Checkpoint{s.Checkpoint()}
	results, err := r.results(one)
	if err != nil {
		return Snapshot{Checkpoint: one[0]}, err
	}
	r.show(one, nil)
	return r.past(s, results, true)
}

// present is the snapshot of the newest state, with the progress of the
// superstep under way.
func (r *reader) present(s *pregel.State) (Snapshot, error) {
	p, err := r.pending(s)
	if err != nil {
		return Snapshot{}, err
	}
	l := &loop{state: s, pending: newProgress(p), revisit: true}
	if l.state, err = l.inject(s); err != nil {
		l.state = s // a command that no longer fits shows when the run goes on
	}
	tasks, err := l.state.Plan()
	if err != nil {
		tasks = nil
	}
	l.tasks = tasks
	w := l.arrange()
	w.recallPreview(&l.pending)
	snap := Snapshot{Checkpoint: s.Checkpoint(), Values: w.partial().Values()}
	for _, t := range l.withHandlers() {
		one, open, err := r.task(l, t)
		if err == nil {
			err = r.hold(sizeOfTask(&one))
		}
		if err != nil {
			return snap, err
		}
		snap.Tasks = append(snap.Tasks, one)
		snap.Interrupts = append(snap.Interrupts, open...)
		if one.Result == "" && !l.takenOver(t) {
			snap.Next = append(snap.Next, t.Node.Name)
		}
	}
	for _, q := range p.Interrupts {
		if q.Reason == checkpoint.ReasonBreakpoint && q.State == checkpoint.InterruptOpen {
			snap.Interrupts = append(snap.Interrupts, q)
		}
	}
	return snap, nil
}

// withHandlers lists the tasks of the superstep, each followed by the error
// handler that has taken over for it.
func (l *loop) withHandlers() []*pregel.Task {
	all := make([]*pregel.Task, 0, len(l.tasks))
	for _, t := range l.state.Shown(l.tasks) {
		all = append(all, t)
		if h := handlerOf(t, l.pending.tasks[t.ID]); h != nil {
			all = append(all, h)
		}
	}
	return all
}

func (l *loop) takenOver(t *pregel.Task) bool {
	return handlerOf(t, l.pending.tasks[t.ID]) != nil
}

func (r *reader) pending(s *pregel.State) (checkpoint.Pending, error) {
	if s.Checkpoint().ID == "" {
		return checkpoint.Pending{}, nil
	}
	return r.engine.pendingWithin(r.ctx, r.load, r.head.Thread, s.Checkpoint().ID)
}

// task describes one task of the superstep under way, and the questions that
// are open below it.
func (r *reader) task(l *loop, t *pregel.Task) (SnapshotTask, []checkpoint.Interrupt, error) {
	out := SnapshotTask{ID: t.ID, Node: t.Node.Name}
	record, known := l.pending.tasks[t.ID]
	if known {
		out.Failure = record.Failure
		if record.State == checkpoint.TaskDone {
			out.Result = l.state.UpdateOf(record.Writes)
		}
	}
	var open []checkpoint.Interrupt
	for _, q := range l.pending.interrupts[t.ID] {
		if q.State == checkpoint.InterruptOpen {
			open = append(open, q)
		}
	}
	out.Interrupts = open
	if record.State == checkpoint.TaskDone { // what it asked, as in an older state
		out.Interrupts = l.pending.interrupts[t.ID]
	}
	if t.Node.Kind != graph.KindGraph {
		below, err := r.elsewhere(record, open) // in graphs that the node has called
		if err == nil && r.subgraphs && record.State == checkpoint.TaskWaiting {
			err = r.called(l, t, &out)
		}
		out.Interrupts = append(out.Interrupts, below...)
		return out, append(open, below...), err
	}
	out.Namespace = childNamespace(l.state, t)
	if !known && !r.subgraphs {
		return out, nil, nil
	}
	held := r.held
	child, err := r.read(out.Namespace, "")
	if !r.subgraphs { // of the state only the questions are shown
		r.held = held
	}
	if err != nil {
		var missing *Error
		if errors.As(err, &missing) && missing.Reason == ReasonCheckpointNotFound {
			out.Interrupts, err = r.open(record.Waiting)
			return out, out.Interrupts, err
		}
		return out, nil, err
	}
	if r.subgraphs {
		out.State = &child
	}
	if record.State == checkpoint.TaskDone && persistence(t.Node) != persist {
		if r.of != l {
			r.show([]*checkpoint.Checkpoint{{Namespace: l.state.Namespace(), Next: pregel.Next(l.tasks)}}, l)
		}
		out.Interrupts, err = r.below(out.Namespace)
		return out, nil, err
	}
	out.Interrupts = child.Interrupts
	return out, child.Interrupts, nil
}

// called reads the state of a graph that a waiting node has called; there is
// none if the graph keeps none, or if the node waits for itself.
func (r *reader) called(l *loop, t *pregel.Task, out *SnapshotTask) error {
	space := spaceOf(l.state.Namespace(), t.Node, t.ID)
	child, err := r.read(space, "")
	if missing, ok := errors.AsType[*Error](err); ok && missing.Reason == ReasonCheckpointNotFound {
		return nil
	}
	if err == nil {
		out.Namespace, out.State = space, &child
	}
	return err
}

// elsewhere reads the questions that a task waits for besides its own.
func (r *reader) elsewhere(record checkpoint.Task, own []checkpoint.Interrupt) ([]checkpoint.Interrupt, error) {
	if record.State != checkpoint.TaskWaiting {
		return nil, nil
	}
	return r.open(slices.DeleteFunc(slices.Clone(record.Waiting), func(id string) bool {
		return slices.ContainsFunc(own, func(q checkpoint.Interrupt) bool { return q.ID == id })
	}))
}

// open reads those of some questions that wait for an answer: a subgraph that
// keeps no checkpoints has no state of its own to find them in.
func (r *reader) open(ids []string) ([]checkpoint.Interrupt, error) {
	var out []checkpoint.Interrupt
	for _, id := range ids {
		q, err := r.engine.store.Interrupt(r.ctx, r.head.Thread, id)
		if err != nil {
			return nil, storeError(err)
		}
		if q.State == checkpoint.InterruptOpen {
			out = append(out, q)
		}
	}
	return out, nil
}

// childNamespace is where the subgraph of a task lives.
func childNamespace(s *pregel.State, t *pregel.Task) string {
	if persistence(t.Node) == persist {
		return pregel.JoinNamespace(pregel.NodePath(s.Namespace()), t.Node.Name)
	}
	return spaceOf(s.Namespace(), t.Node, t.ID)
}

// spaceOf is the namespace that belongs to one task.
func spaceOf(namespace string, n *graph.Node, task string) string {
	return pregel.JoinNamespace(namespace, n.Name+":"+task)
}
