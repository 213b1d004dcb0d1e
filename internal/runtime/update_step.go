package runtime

import (
	"context"
	"fmt"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// stateStep is one superstep of an update: from a state to the next.
type stateStep struct {
	update *stateUpdate
	number int
	writes []StateWrite
	state  *pregel.State
	l      *loop
	done   []pregel.Done // what stays of the work of the superstep
	past   bool          // others have gone on from the state: its tasks are told of already
}

// perform adds the checkpoint of the superstep to a change.
func (s *stateStep) perform(ctx context.Context, t *tx) (*pregel.State, error) {
	s.l = s.update.l
	if err := s.finished(ctx); err != nil {
		return nil, err
	}
	var next *pregel.State
	var err error
	switch s.writes[0].AsNode {
	case AsCopy:
		next, err = s.copy(t)
	case AsInput:
		next, err = s.input(t)
	case AsEnd:
		next, err = s.end(ctx, t)
	default:
		next, err = s.write(ctx, t)
	}
	if err != nil {
		return nil, err
	}
	return next, s.put(t, next)
}

// finished is the work that tasks of the newest superstep have done already.
// Of a superstep that this very update made there is none.
func (s *stateStep) finished(ctx context.Context) error {
	u, cp := s.update, s.state.Checkpoint()
	s.l.pending = newProgress(checkpoint.Pending{})
	s.past = s.number == 0 && u.req.Namespace == "" && cp.ID != u.head.Checkpoint
	if s.number == 0 && cp.ID != "" && !s.past {
		p, err := u.engine.store.Pending(ctx, u.head.Thread, cp.ID)
		if err != nil {
			return storeError(err)
		}
		s.l.pending, s.l.revisit = newProgress(p), true
		if s.l.state, err = s.l.inject(s.state); err != nil {
			return refusal(s.field(0, "values"), err)
		}
	}
	tasks, err := s.l.state.Plan()
	if err != nil {
		tasks = nil
	}
	s.l.tasks = tasks
	s.done = s.l.arrange().done()
	return nil
}

// field is where in the request a write, or a part of it, stands.
func (s *stateStep) field(at int, part string) string { return s.update.field(s.number, at, part) }

// write makes the checkpoint that the writers of the nodes would have made.
func (s *stateStep) write(ctx context.Context, t *tx) (*pregel.State, error) {
	taken := make(map[string]bool, len(s.writes))
	told := make([]checkpoint.Event, 0, len(s.writes))
	stamp := s.stamp(t, checkpoint.SourceUpdate)
	for i := range s.writes {
		w := &s.writes[i]
		if err := s.known(w, s.field(i, "values")); err != nil {
			return nil, err
		}
		n, err := s.node(w)
		if err != nil {
			return nil, err
		}
		stead, err := s.stead(n, w, taken, s.field(i, "task_id"))
		if err != nil {
			return nil, err
		}
		// Sends come last and in order, and so do the writes of a request; a
		// single one comes where the Send does that it stands for.
		task := &pregel.Task{Node: n, Push: true, Index: len(s.l.tasks) + i}
		if stead != nil {
			task.ID = stead.ID
		}
		if stead != nil && stead.Push && len(s.writes) == 1 {
			task.Index = stead.Index
		}
		o := outcome{task: task, result: pregel.Result{Update: w.Values, Goto: w.Goto}, attempt: 1}
		s.l.interpret(ctx, &o)
		if o.failure != nil {
			if o.failure.Reason == FailedLimit {
				return nil, LimitRefusal(s.field(i, "values"), graph.LimitOf(o.failure.Message, o.failure.Details))
			}
			return nil, Errorf(ReasonInvalidField, "%s", o.failure.Message).InField(s.field(i, "values"), "%s", o.failure.Message)
		}
		s.done = append(s.done, pregel.Done{Task: task, Writes: o.writes})
		told = append(told, checkpoint.Event{
			Kind: checkpoint.EventUpdate, Namespace: s.state.Namespace(), Step: stamp.Step,
			Node: n.Name, Task: task.ID, Value: s.l.state.UpdateOf(o.writes),
		})
	}
	next, err := s.combine(ctx, stamp)
	if err != nil {
		return nil, err
	}
	for _, e := range told {
		t.emit(e)
	}
	return next, nil
}

// combine applies all that was done in the superstep.
func (s *stateStep) combine(ctx context.Context, stamp pregel.Stamp) (*pregel.State, error) {
	done, channel, f := s.l.combined(ctx, s.l.state, s.done, false)
	if f != nil {
		return nil, refusal(s.field(0, "values"), &pregel.UpdateError{Channel: channel, Problem: f.Message})
	}
	next, err := s.l.state.Apply(done, stamp)
	if err != nil {
		return nil, refusal(s.field(0, "values"), err)
	}
	return next, nil
}

// known refuses keys that are no channels. What a node returns may hold more
// than the graph has; an edit by hand is meant as it is written.
func (s *stateStep) known(w *StateWrite, field string) error {
	g := s.state.Graph()
	if _, whole := g.ChannelIndex(graph.Root); whole || payload.KindOf(w.Values) != payload.ObjectKind {
		return nil
	}
	fields, err := payload.Fields(w.Values)
	if err != nil {
		return refusal(field, &pregel.ResultError{Problem: "the values are not valid JSON: " + err.Error()})
	}
	var names []string
	for _, i := range g.State {
		names = append(names, g.Channels[i].Name)
	}
	for _, f := range fields {
		if !slices.Contains(names, f.Key) {
			problem := fmt.Sprintf("%q is no channel%s", f.Key, graph.Suggest(f.Key, names))
			return Errorf(ReasonInvalidField, "%s", problem).InField(field, "%s", problem)
		}
	}
	return nil
}

// node is the node that a write is attributed to.
func (s *stateStep) node(w *StateWrite) (*graph.Node, error) {
	g, name := s.state.Graph(), w.AsNode
	if name == "" {
		last, ok := s.state.LastNode()
		if !ok {
			return nil, Errorf(ReasonAmbiguousNode, "it is not clear which node ran last; say as_node")
		}
		name = last
	}
	n, ok := g.Node(name)
	if !ok {
		return nil, nodeNotFound(g, name)
	}
	return n, nil
}

// stead finds the task that a write stands for: the one it names, else one of
// the node that has not finished, else one that has, whose result it replaces.
func (s *stateStep) stead(n *graph.Node, w *StateWrite, taken map[string]bool, field string) (*pregel.Task, error) {
	var found *pregel.Task
	for _, planned := range s.l.tasks {
		if s.past && w.Task == "" {
			break
		}
		if planned.Node != n || taken[planned.ID] || (w.Task != "" && planned.ID != w.Task) {
			continue
		}
		if !s.isDone(planned.ID) {
			found = planned
			break
		}
		if found == nil {
			found = planned
		}
	}
	switch {
	case found != nil:
		taken[found.ID] = true
		s.done = slices.DeleteFunc(s.done, func(d pregel.Done) bool { return d.Task.ID == found.ID })
	case w.Task != "":
		return nil, Errorf(ReasonInvalidField, "node %q has no due task %q", n.Name, w.Task).
			InField(field, "must be the id of a task of %q that is due and that no other write stands for", n.Name)
	}
	return found, nil
}

func (s *stateStep) isDone(task string) bool {
	return slices.ContainsFunc(s.done, func(d pregel.Done) bool { return d.Task.ID == task })
}

func (s *stateStep) input(t *tx) (*pregel.State, error) {
	w, field := &s.writes[0], s.field(0, "values")
	if err := s.known(w, field); err != nil {
		return nil, err
	}
	if w.Values == "" {
		return nil, Errorf(ReasonInvalidField, "an input needs values").InField(field, "must be set")
	}
	writes, err := s.l.state.Input(w.Values)
	if err != nil {
		return nil, refusal(field, err)
	}
	next, err := s.l.state.Apply([]pregel.Done{{Writes: writes}}, s.l.stamp(t, checkpoint.SourceInput))
	if err != nil {
		return nil, refusal(field, err)
	}
	return next, nil
}

// end drops whatever is left to do; work that is finished counts.
func (s *stateStep) end(ctx context.Context, t *tx) (*pregel.State, error) {
	if !s.writes[0].empty() {
		return nil, Errorf(ReasonInvalidField, "values as %s are not possible", AsEnd).InField(s.field(0, "values"), "must be empty")
	}
	for _, task := range s.l.tasks {
		if !s.isDone(task.ID) {
			s.done = append(s.done, pregel.Done{Task: task})
		}
	}
	g := s.state.Graph()
	for i := range s.done {
		s.done[i].Writes = slices.DeleteFunc(slices.Clone(s.done[i].Writes), func(w checkpoint.Write) bool {
			at, ok := g.ChannelIndex(w.Channel)
			return ok && !g.Channels[at].State
		})
	}
	return s.combine(ctx, s.stamp(t, checkpoint.SourceUpdate))
}

// copy makes a sibling of the checkpoint: the same content under a new id.
func (s *stateStep) copy(t *tx) (*pregel.State, error) {
	if !s.writes[0].empty() {
		return nil, Errorf(ReasonInvalidField, "values as %s are not possible; write them in a superstep after it", AsCopy).
			InField(s.field(0, "values"), "must be empty")
	}
	if s.state.Fresh() {
		return nil, Errorf(ReasonInvalidField, "there is no checkpoint to copy").
			InField(s.field(0, "as_node"), "must not be %s here", AsCopy)
	}
	stamp := s.stamp(t, checkpoint.SourceFork)
	stamp.Sibling = true
	return s.state.Restamp(stamp), nil
}

func (s *stateStep) stamp(t *tx, source checkpoint.Source) pregel.Stamp {
	stamp := s.l.stamp(t, source)
	stamp.Step = max(stamp.Step, 0)
	return stamp
}

func (s *stateStep) put(t *tx, next *pregel.State) error {
	tasks, err := next.Plan()
	if err != nil {
		return refusal(s.field(0, "values"), err)
	}
	if old := s.state.Checkpoint(); old.ID != "" && len(s.l.pending.tasks) > 0 {
		t.ClearTasks = append(t.ClearTasks, old.ID)
	}
	s.l.put(t, next, tasks)
	return nil
}

func (w *StateWrite) empty() bool {
	return (w.Values == "" || w.Values == payload.Null) && len(w.Goto) == 0
}
