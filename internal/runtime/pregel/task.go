package pregel

import (
	"cmp"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// Task is one execution of a node in the next superstep.
type Task struct {
	ID   string
	Node *graph.Node
	// IsPush is true for a task made by a Send, the Index-th of the superstep,
	// and false for a task that was triggered through channels.
	IsPush bool
	Index  int
	Input  payload.JSON // of the Send
	// Failed is set for an error handler: the task it takes over for.
	Failed        *checkpoint.Failure
	HandledTaskID string // id of that task
	handledTask   *Task
}

// HandlerTask returns the task that handles a failed task, or nil when the node
// has no error handler.
func (t *Task) HandlerTask(f *checkpoint.Failure) *Task {
	h := t.Node.Handler
	if h == nil || t.handledTask != nil {
		return nil
	}
	return &Task{
		ID: HandlerID(h.Name, t.ID), Node: h, IsPush: true, Index: t.Index,
		Input: t.Input, Failed: f, HandledTaskID: t.ID, handledTask: t,
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

// pushTrigger represents a Send among the triggers of a task.
const pushTrigger = "__pregel_push"

// Triggers names, in order, the channels that a planned task waits on. Like
// LangGraph it names all of them, not just those that were written.
func (s *State) Triggers(t *Task) []string {
	if t.IsPush {
		return []string{pushTrigger}
	}
	names := make([]string, len(t.Node.Triggers))
	for i, c := range t.Node.Triggers {
		names[i] = s.graph.Channels[c].Name
	}
	slices.Sort(names)
	return names
}

// SortForDisplay orders planned tasks for display: Sends first, then the nodes as
// the graph declares them. The tasks run, and are applied, in the order of their
// names.
func (s *State) SortForDisplay(tasks []*Task) []*Task {
	at := func(t *Task) int {
		if t.IsPush {
			return -1
		}
		return slices.Index(s.graph.Nodes, t.Node)
	}
	out := slices.Clone(tasks)
	slices.SortStableFunc(out, func(a, b *Task) int { return cmp.Compare(at(a), at(b)) })
	return out
}

// NextTasks lists tasks in the form that a checkpoint keeps.
func NextTasks(tasks []*Task) []checkpoint.NextTask {
	if len(tasks) == 0 {
		return nil
	}
	next := make([]checkpoint.NextTask, len(tasks))
	for i, t := range tasks {
		next[i] = checkpoint.NextTask{ID: t.ID, Node: t.Node.Name}
	}
	return next
}
