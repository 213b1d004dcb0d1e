package edit

import (
	"context"
	"fmt"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// stateStep is one superstep of an update: from a state to the next.
type stateStep struct {
	update *stateUpdate
	number int
	writes []runtime.StateWrite
	state  *pregel.State
	edit   *superstep.Edit
	tasks  []*pregel.Task      // of the superstep
	done   []pregel.TaskWrites // writes of the superstep that stay
	isPast bool                // others have gone on from the state: its tasks are announced already
}

// applyStep adds the checkpoint of the superstep to a change.
func (s *stateStep) applyStep(ctx context.Context, t *commit.Tx) (*pregel.State, error) {
	if err := s.loadFinished(ctx); err != nil {
		return nil, err
	}
	var next *pregel.State
	var err error
	switch s.writes[0].AsNode {
	case runtime.AsCopy:
		next, err = s.applyCopy(t)
	case runtime.AsInput:
		next, err = s.applyInput(t, nil)
	case runtime.AsNewInput:
		next, err = s.applyInput(t, s.tasks)
	case runtime.AsEnd:
		next, err = s.applyEnd(ctx, t)
	default:
		next, err = s.applyWrites(ctx, t)
	}
	if err != nil {
		return nil, err
	}
	return next, s.putCheckpoint(t, next)
}

// loadFinished is the work that tasks of the newest superstep have done already.
// Of a superstep that this very update made there is none.
func (s *stateStep) loadFinished(ctx context.Context) error {
	u, cp := s.update, s.state.Checkpoint()
	s.isPast = s.number == 0 && u.req.Namespace == "" && cp.ID != u.head.Checkpoint
	if s.number == 0 && cp.ID != "" && !s.isPast {
		p, err := u.editor.reader.ReadPending(ctx, u.reservation, u.head.Thread, cp.ID)
		if err != nil {
			return err
		}
		if err := s.edit.LoadProgress(p); err != nil {
			return superstep.RefusalError(s.fieldPath(0, "values"), err)
		}
	}
	u.reservation.ReleaseUnused() // all that is large has been read
	s.tasks, s.done = s.edit.PlanTasks()
	return nil
}

// fieldPath is where in the request a write, or a part of it, stands.
func (s *stateStep) fieldPath(at int, part string) string {
	return s.update.fieldPath(s.number, at, part)
}

// applyWrites makes the checkpoint that the writers of the nodes would have made.
func (s *stateStep) applyWrites(ctx context.Context, t *commit.Tx) (*pregel.State, error) {
	taken := make(map[string]bool, len(s.writes))
	events := make([]checkpoint.Event, 0, len(s.writes))
	stamp := s.newCheckpointInfo(t, checkpoint.SourceUpdate)
	for i := range s.writes {
		w := &s.writes[i]
		if err := s.checkKeys(w, s.fieldPath(i, "values")); err != nil {
			return nil, err
		}
		n, err := s.findWriter(w)
		if err != nil {
			return nil, err
		}
		scheduled, err := s.matchTask(n, w, taken, s.fieldPath(i, "task_id"))
		if err != nil {
			return nil, err
		}
		// Sends come last and in order, and so do the writes of a request; a single write
		// comes at the place of the Send that it stands for.
		task := &pregel.Task{Node: n, IsPush: true, Index: len(s.tasks) + i}
		if scheduled != nil {
			task.ID = scheduled.ID
		}
		if scheduled != nil && scheduled.IsPush && len(s.writes) == 1 {
			task.Index = scheduled.Index
		}
		writes, f := s.edit.InterpretResult(ctx, task, pregel.Result{Update: w.Values, Goto: w.Goto})
		if f != nil && f.Reason == runtime.FailedLimit {
			return nil, runtime.LimitRefusal(s.fieldPath(i, "values"), graph.LimitErrorOf(f.Message, f.Details))
		}
		if f != nil {
			refused := runtime.Errorf(runtime.ReasonInvalidField, "%s", f.Message).WithViolation(s.fieldPath(i, "values"), "%s", f.Message)
			if f.Type != "" {
				refused = refused.With("failureType", f.Type)
			}
			return nil, refused
		}
		s.done = append(s.done, pregel.TaskWrites{Task: task, Writes: writes})
		events = append(events, checkpoint.Event{
			Kind: checkpoint.EventUpdate, Namespace: s.state.Namespace(), Step: stamp.Step,
			Node: n.Name, Task: task.ID, Value: s.edit.State().UpdateOf(writes),
		})
	}
	next, err := s.reduceAndApply(ctx, stamp)
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		t.EmitEvent(e)
	}
	return next, nil
}

// reduceAndApply applies all that was done in the superstep.
func (s *stateStep) reduceAndApply(ctx context.Context, stamp pregel.CheckpointInfo) (*pregel.State, error) {
	done, channel, f := s.edit.ReduceWrites(ctx, s.done)
	if f != nil {
		return nil, superstep.RefusalError(s.fieldPath(0, "values"), &pregel.UpdateError{Channel: channel, Problem: f.Message})
	}
	next, err := s.edit.State().ApplyStep(done, stamp)
	if err != nil {
		return nil, superstep.RefusalError(s.fieldPath(0, "values"), err)
	}
	return next, nil
}

// checkKeys refuses keys that are no channels. The result of a node may have keys that
// the graph lacks. An edit by hand is meant as it is written.
func (s *stateStep) checkKeys(w *runtime.StateWrite, field string) error {
	g := s.state.Graph()
	if _, whole := g.ChannelIndex(graph.Root); whole || payload.KindOf(w.Values) != payload.ObjectKind {
		return nil
	}
	fields, err := payload.Fields(w.Values)
	if err != nil {
		return superstep.RefusalError(field, &pregel.ResultError{Problem: "the values are not valid JSON: " + err.Error()})
	}
	var names []string
	for _, i := range g.StateKeys {
		names = append(names, g.Channels[i].Name)
	}
	for _, f := range fields {
		if !slices.Contains(names, f.Key) {
			problem := fmt.Sprintf("%q is no channel%s", f.Key, graph.Suggest(f.Key, names))
			return runtime.Errorf(runtime.ReasonInvalidField, "%s", problem).WithViolation(field, "%s", problem)
		}
	}
	return nil
}

// findWriter is the node that a write is attributed to.
func (s *stateStep) findWriter(w *runtime.StateWrite) (*graph.Node, error) {
	g, name := s.state.Graph(), w.AsNode
	if name == "" {
		last, ok := s.state.LastNode()
		if !ok {
			return nil, runtime.Errorf(runtime.ReasonAmbiguousNode, "it is not clear which node ran last; say as_node")
		}
		name = last
	}
	n, ok := g.Node(name)
	if !ok {
		return nil, runtime.NodeNotFoundError(g, name)
	}
	return n, nil
}

// matchTask finds the task that a write stands for: the named task, else an unfinished
// task of the node, else a finished task, whose result it replaces.
func (s *stateStep) matchTask(n *graph.Node, w *runtime.StateWrite, taken map[string]bool, field string) (*pregel.Task, error) {
	var found *pregel.Task
	for _, planned := range s.tasks {
		if s.isPast && w.Task == "" {
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
		s.done = slices.DeleteFunc(s.done, func(d pregel.TaskWrites) bool { return d.Task.ID == found.ID })
	case w.Task != "":
		return nil, runtime.Errorf(runtime.ReasonInvalidField, "node %q has no due task %q", n.Name, w.Task).
			WithViolation(field, "must be the id of a task of %q that is due and that no other write stands for", n.Name)
	}
	return found, nil
}

func (s *stateStep) isDone(task string) bool {
	return slices.ContainsFunc(s.done, func(d pregel.TaskWrites) bool { return d.Task.ID == task })
}

// applyInput applies the values as an input, and drops tasks that are due.
func (s *stateStep) applyInput(t *commit.Tx, dropped []*pregel.Task) (*pregel.State, error) {
	w, field := &s.writes[0], s.fieldPath(0, "values")
	if err := s.checkKeys(w, field); err != nil {
		return nil, err
	}
	if w.Values == "" {
		return nil, runtime.Errorf(runtime.ReasonInvalidField, "an input needs values").WithViolation(field, "must be set")
	}
	writes, err := s.edit.State().InputWrites(w.Values)
	if err != nil {
		return nil, superstep.RefusalError(field, err)
	}
	done := []pregel.TaskWrites{{Writes: writes}}
	for _, task := range dropped {
		done = append(done, pregel.TaskWrites{Task: task})
	}
	next, err := s.edit.State().ApplyStep(done, s.edit.NewCheckpointInfo(t, checkpoint.SourceInput))
	if err != nil {
		return nil, superstep.RefusalError(field, err)
	}
	return next, nil
}

// applyEnd drops the tasks that have not finished. The results of finished tasks count.
func (s *stateStep) applyEnd(ctx context.Context, t *commit.Tx) (*pregel.State, error) {
	if !s.writes[0].IsEmpty() {
		return nil, runtime.Errorf(runtime.ReasonInvalidField, "values as %s are not possible", runtime.AsEnd).
			WithViolation(s.fieldPath(0, "values"), "must be empty")
	}
	for _, task := range s.tasks {
		if !s.isDone(task.ID) {
			s.done = append(s.done, pregel.TaskWrites{Task: task})
		}
	}
	g := s.state.Graph()
	for i := range s.done {
		s.done[i].Writes = slices.DeleteFunc(slices.Clone(s.done[i].Writes), func(w checkpoint.Write) bool {
			at, ok := g.ChannelIndex(w.Channel)
			return ok && !g.Channels[at].IsStateKey
		})
	}
	return s.reduceAndApply(ctx, s.newCheckpointInfo(t, checkpoint.SourceUpdate))
}

// applyCopy makes a sibling of the checkpoint: the same content under a new id.
func (s *stateStep) applyCopy(t *commit.Tx) (*pregel.State, error) {
	if !s.writes[0].IsEmpty() {
		return nil, runtime.Errorf(runtime.ReasonInvalidField, "values as %s are not possible; write them in a superstep after it", runtime.AsCopy).
			WithViolation(s.fieldPath(0, "values"), "must be empty")
	}
	if s.state.IsFresh() {
		return nil, runtime.Errorf(runtime.ReasonInvalidField, "there is no checkpoint to copy").
			WithViolation(s.fieldPath(0, "as_node"), "must not be %s here", runtime.AsCopy)
	}
	stamp := s.newCheckpointInfo(t, checkpoint.SourceFork)
	stamp.IsSibling = true
	return s.state.CopyToCheckpoint(stamp), nil
}

func (s *stateStep) newCheckpointInfo(t *commit.Tx, source checkpoint.Source) pregel.CheckpointInfo {
	stamp := s.edit.NewCheckpointInfo(t, source)
	stamp.Step = max(stamp.Step, 0)
	return stamp
}

func (s *stateStep) putCheckpoint(t *commit.Tx, next *pregel.State) error {
	tasks, err := next.PlanTasks()
	if err != nil {
		return superstep.RefusalError(s.fieldPath(0, "values"), err)
	}
	if old := s.state.Checkpoint(); old.ID != "" && s.edit.HasProgress() {
		t.ClearTasks = append(t.ClearTasks, old.ID)
	}
	s.edit.PutCheckpoint(t, next, tasks)
	return nil
}
