package runtime

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// Names that UpdateState takes for as_node besides the graph's nodes.
const (
	AsInput = "__input__" // the values are an input
	AsCopy  = "__copy__"  // a sibling with the same content
	AsEnd   = graph.End   // without values: whatever was left to do is dropped
)

// UpdateState makes a new checkpoint as if a node had written the values: its
// edges fire, what was pending before is given up. Work that siblings have
// finished is kept. The errors are *Error: THREAD_NOT_FOUND, THREAD_BUSY,
// THREAD_INTERRUPTED, CHECKPOINT_NOT_FOUND, CHECKPOINT_CONFLICT,
// NODE_NOT_FOUND, AMBIGUOUS_NODE, INVALID_FIELD, REQUEST_ID_CONFLICT, and
// those of the store.
func (e *Engine) UpdateState(ctx context.Context, req UpdateStateRequest) (Snapshot, error) {
	return decide(ctx, e, func(seen *checkpoint.Head) (Snapshot, error) { return e.tryUpdateState(ctx, req, seen) })
}

func (e *Engine) tryUpdateState(ctx context.Context, req UpdateStateRequest, seen *checkpoint.Head) (Snapshot, error) {
	head, err := e.Thread(ctx, req.Thread)
	if err != nil {
		return Snapshot{}, err
	}
	*seen = head
	if req.RequestID != "" {
		old, err := e.request(ctx, req.Thread, req.RequestID, req.Digest)
		if err != nil {
			return Snapshot{}, err
		}
		if old != nil {
			return e.State(ctx, StateRequest{Thread: req.Thread, Namespace: req.Namespace})
		}
	}
	if err := e.updatable(ctx, &head, req); err != nil {
		return Snapshot{}, err
	}
	state, err := e.stateAt(ctx, &head, req.Namespace, req.Checkpoint)
	if err != nil {
		return Snapshot{}, err
	}
	if s := e.session(req.Thread); s != nil {
		return Snapshot{}, e.settling(ctx, req.Thread)
	}
	u := &stateUpdate{engine: e, req: req, head: head, state: state}
	if _, err := e.tryChange(ctx, head, func(t *tx) error { return u.build(ctx, t) }); err != nil {
		return Snapshot{}, err
	}
	*seen = checkpoint.Head{} // it is made: never again
	return e.State(ctx, StateRequest{Thread: req.Thread, Namespace: req.Namespace})
}

// updatable refuses an update that would lose something.
func (e *Engine) updatable(ctx context.Context, head *checkpoint.Head, req UpdateStateRequest) error {
	if head.Graph == "" {
		return Errorf(ReasonInvalidField, "thread %q has no graph yet; create it with one, or run it first", head.Thread).
			InField("thread_id", "must name a thread that has a graph")
	}
	if err := atCheckpoint(head, req.Expected); err != nil {
		return err
	}
	if head.State == checkpoint.ThreadBusy {
		return Errorf(ReasonThreadBusy, "run %q of the thread is active", head.Run).With("activeRunId", head.Run)
	}
	if head.Open == 0 || req.Supersede {
		return nil
	}
	open, err := e.openInterrupts(ctx, head.Thread)
	if err != nil {
		return err
	}
	dropped := slices.DeleteFunc(open, func(q checkpoint.Interrupt) bool {
		return q.Reason == checkpoint.ReasonBreakpoint || !within(q.Namespace, req.Namespace)
	})
	if len(dropped) == 0 {
		return nil
	}
	what := "open questions; answer them"
	if len(dropped) == 1 {
		what = "open question; answer it"
	}
	return Errorf(ReasonThreadInterrupted, "an update would drop %d %s first, or set supersede_interrupts", len(dropped), what).
		With("openInterruptIds", joinIDs(idsOf(dropped))).With("count", itoa(len(dropped)))
}

// within reports whether a namespace is another one or lies below it; outer
// may leave the task ids out.
func within(ns, outer string) bool {
	if !strings.Contains(outer, ":") {
		ns = pregel.NodePath(ns)
	}
	return outer == "" || ns == outer || strings.HasPrefix(ns, outer+"|")
}

// stateUpdate is one update of a state.
type stateUpdate struct {
	engine *Engine
	req    UpdateStateRequest
	head   checkpoint.Head
	state  *pregel.State
	l      *loop
}

func (u *stateUpdate) build(ctx context.Context, t *tx) error {
	u.l = &loop{
		session: u.engine.bystander(t.Thread),
		run:     &checkpoint.Run{ID: u.head.Run, Graph: u.state.Graph().Name, Metadata: u.state.Checkpoint().Metadata},
		state:   u.state,
		level:   level{root: u.req.Namespace == "", stored: true, parents: u.state.Checkpoint().Parents},
	}
	done, err := u.finished(ctx)
	if err != nil {
		return err
	}
	if err := u.apply(ctx, t, done); err != nil {
		return err
	}
	t.remember(u.req.RequestID, u.req.Digest, t.Head.Run)
	return u.afterwards(ctx, t)
}

// finished is the work that tasks of the newest superstep have done already.
func (u *stateUpdate) finished(ctx context.Context) ([]pregel.Done, error) {
	cp := u.state.Checkpoint()
	if cp.ID == "" || (u.req.Namespace == "" && cp.ID != u.head.Checkpoint) {
		return nil, nil
	}
	p, err := u.engine.store.Pending(ctx, u.head.Thread, cp.ID)
	if err != nil {
		return nil, storeError(err)
	}
	u.l.pending, u.l.revisit = newProgress(p), true
	if u.l.state, err = u.l.inject(u.state); err != nil {
		return nil, refusal("values", err)
	}
	tasks, err := u.l.state.Plan()
	if err != nil {
		tasks = nil
	}
	u.l.tasks = tasks
	return u.l.arrange().done(), nil
}

func (u *stateUpdate) apply(ctx context.Context, t *tx, done []pregel.Done) error {
	switch u.req.AsNode {
	case AsCopy:
		return u.copy(t)
	case AsEnd:
		return u.end(ctx, t, done)
	}
	if err := u.known(); err != nil {
		return err
	}
	if u.req.AsNode == AsInput {
		return u.input(t)
	}
	n, err := u.node()
	if err != nil {
		return err
	}
	return u.write(ctx, t, n, done)
}

// known refuses keys that are no channels. What a node returns may hold more
// than the graph has; an edit by hand is meant as it is written.
func (u *stateUpdate) known() error {
	g := u.state.Graph()
	if _, whole := g.ChannelIndex(graph.Root); whole || payload.KindOf(u.req.Values) != payload.ObjectKind {
		return nil
	}
	fields, err := payload.Fields(u.req.Values)
	if err != nil {
		return refusal("values", &pregel.ResultError{Problem: "the values are not valid JSON: " + err.Error()})
	}
	var names []string
	for _, i := range g.State {
		names = append(names, g.Channels[i].Name)
	}
	for _, f := range fields {
		if !slices.Contains(names, f.Key) {
			problem := fmt.Sprintf("%q is no channel%s", f.Key, graph.Suggest(f.Key, names))
			return Errorf(ReasonInvalidField, "%s", problem).InField("values", "%s", problem)
		}
	}
	return nil
}

// node is the node that the update is attributed to.
func (u *stateUpdate) node() (*graph.Node, error) {
	g := u.state.Graph()
	if u.req.AsNode != "" {
		n, ok := g.Node(u.req.AsNode)
		if !ok {
			return nil, nodeNotFound(g, u.req.AsNode)
		}
		return n, nil
	}
	name, ok := u.state.LastNode()
	if !ok {
		return nil, Errorf(ReasonAmbiguousNode, "it is not clear which node ran last; say as_node")
	}
	n, ok := g.Node(name)
	if !ok {
		return nil, nodeNotFound(g, name)
	}
	return n, nil
}

// write makes the checkpoint that the node's writers would have made.
func (u *stateUpdate) write(ctx context.Context, t *tx, n *graph.Node, done []pregel.Done) error {
	task := &pregel.Task{Node: n, Push: true}
	task.ID, done = u.stead(n, done)
	o := outcome{task: task, result: pregel.Result{Update: u.req.Values}, attempt: 1}
	u.l.interpret(ctx, &o)
	if o.failure != nil {
		return Errorf(ReasonInvalidField, "%s", o.failure.Message).InField("values", "%s", o.failure.Message)
	}
	stamp := u.stamp(t, checkpoint.SourceUpdate)
	done, channel, f := u.l.combined(ctx, u.l.state, append(done, pregel.Done{Task: task, Writes: o.writes}), false)
	if f != nil {
		return refusal("values", &pregel.UpdateError{Channel: channel, Problem: f.Message})
	}
	next, err := u.l.state.Apply(done, stamp)
	if err != nil {
		return refusal("values", err)
	}
	t.emit(checkpoint.Event{
		Kind: checkpoint.EventUpdate, Namespace: u.state.Namespace(), Step: stamp.Step,
		Node: n.Name, Task: task.ID, Value: u.l.state.UpdateOf(o.writes),
	})
	return u.put(t, next)
}

// stead finds the task that the update stands for: one of the node that has
// not finished, else one that has, whose result it replaces.
func (u *stateUpdate) stead(n *graph.Node, done []pregel.Done) (string, []pregel.Done) {
	id := ""
	for _, planned := range u.l.tasks {
		if planned.Node != n {
			continue
		}
		id = planned.ID
		if !slices.ContainsFunc(done, func(d pregel.Done) bool { return d.Task.ID == id }) {
			return id, done
		}
	}
	return id, slices.DeleteFunc(done, func(d pregel.Done) bool { return d.Task.ID == id })
}

func (u *stateUpdate) put(t *tx, next *pregel.State) error {
	tasks, err := next.Plan()
	if err != nil {
		return refusal("values", err)
	}
	if old := u.state.Checkpoint(); old.ID != "" && len(u.l.pending.tasks) > 0 {
		t.ClearTasks = append(t.ClearTasks, old.ID)
	}
	u.l.put(t, next, tasks)
	return nil
}

func (u *stateUpdate) stamp(t *tx, source checkpoint.Source) pregel.Stamp {
	stamp := u.l.stamp(t, source)
	stamp.Step = max(stamp.Step, 0)
	return stamp
}

func (u *stateUpdate) input(t *tx) error {
	if u.req.Values == "" {
		return Errorf(ReasonInvalidField, "an input needs values").InField("values", "must be set")
	}
	writes, err := u.l.state.Input(u.req.Values)
	if err != nil {
		return refusal("values", err)
	}
	stamp := u.l.stamp(t, checkpoint.SourceInput)
	next, err := u.l.state.Apply([]pregel.Done{{Writes: writes}}, stamp)
	if err != nil {
		return refusal("values", err)
	}
	return u.put(t, next)
}

// end drops whatever is left to do; work that is finished counts.
func (u *stateUpdate) end(ctx context.Context, t *tx, done []pregel.Done) error {
	if u.req.Values != "" && u.req.Values != payload.Null {
		return Errorf(ReasonInvalidField, "values as %s are not possible", AsEnd).InField("values", "must be empty")
	}
	for _, task := range u.l.tasks {
		if !slices.ContainsFunc(done, func(d pregel.Done) bool { return d.Task.ID == task.ID }) {
			done = append(done, pregel.Done{Task: task})
		}
	}
	for i := range done {
		done[i].Writes = slices.DeleteFunc(slices.Clone(done[i].Writes), func(w checkpoint.Write) bool {
			at, ok := u.state.Graph().ChannelIndex(w.Channel)
			return ok && !u.state.Graph().Channels[at].State
		})
	}
	done, channel, f := u.l.combined(ctx, u.l.state, done, false)
	if f != nil {
		return refusal("values", &pregel.UpdateError{Channel: channel, Problem: f.Message})
	}
	next, err := u.l.state.Apply(done, u.stamp(t, checkpoint.SourceUpdate))
	if err != nil {
		return refusal("values", err)
	}
	return u.put(t, next)
}

// copy makes a sibling of the checkpoint: the same content under a new id.
func (u *stateUpdate) copy(t *tx) error {
	if u.state.Fresh() {
		return Errorf(ReasonInvalidField, "there is no checkpoint to copy").InField("as_node", "must not be %s here", AsCopy)
	}
	stamp := u.stamp(t, checkpoint.SourceFork)
	stamp.Sibling = true
	return u.put(t, u.state.Restamp(stamp))
}

// afterwards settles the thread: questions that the update made pointless are
// closed, and a failed thread is well again.
func (u *stateUpdate) afterwards(ctx context.Context, t *tx) error {
	if u.req.Namespace != "" {
		return u.engine.void(ctx, t, u.state.Namespace())
	}
	if t.Head.State == checkpoint.ThreadIdle {
		return nil
	}
	if t.Head.State == checkpoint.ThreadInterrupted {
		if !u.req.Supersede {
			return nil // a breakpoint: Resume goes on from the new checkpoint
		}
		if err := u.engine.supersede(ctx, t); err != nil {
			return fmt.Errorf("close the questions: %w", err)
		}
	}
	t.Head.State = checkpoint.ThreadIdle
	return nil
}

// void closes the questions of a subgraph that has moved on without answers.
func (e *Engine) void(ctx context.Context, t *tx, ns string) error {
	if t.Head.Open == 0 {
		return nil
	}
	open, err := e.openInterrupts(ctx, t.Thread)
	if err != nil {
		return err
	}
	closed := slices.DeleteFunc(open, func(q checkpoint.Interrupt) bool {
		return q.Reason == checkpoint.ReasonBreakpoint || !within(q.Namespace, ns)
	})
	for i := range closed {
		closed[i].State, closed[i].Updated = checkpoint.InterruptSuperseded, t.now
	}
	if len(closed) == 0 {
		return nil
	}
	t.Interrupts = append(t.Interrupts, closed...)
	t.Head.Open -= len(closed)
	t.emit(checkpoint.Event{Kind: checkpoint.EventResolved, Interrupts: closed})
	return nil
}
