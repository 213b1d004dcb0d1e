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
	// IsPush tells a task made by a Send, the Index-th of the superstep, from
	// one that was triggered through channels.
	IsPush bool
	Index  int
	Input  payload.JSON // of the Send
	// Failed is set for an error handler: the task it takes over for.
	Failed        *checkpoint.Failure
	HandledTaskID string // id of that task
	handledTask   *Task
}

// PlanTasks lists the tasks of the next superstep, in the order in which their
// writes will be applied, save that Sends come first. It fails when a Send
// names a node that the graph does not have.
func (s *State) PlanTasks() ([]*Task, error) {
	if s.IsFresh() {
		return nil, nil
	}
	tasks, err := s.planPushes()
	if err != nil {
		return nil, err
	}
	return s.planPulls(tasks), nil
}

func (s *State) planPushes() ([]*Task, error) {
	c := &s.checkpoint.Channels[s.graph.SendsChannel]
	if c.List == nil {
		return nil, nil
	}
	tasks := make([]*Task, 0, len(c.List.Items))
	for i, item := range c.List.Items {
		name, input, err := decodeSend(item)
		if err != nil {
			return nil, err
		}
		n, ok := s.graph.Node(name)
		if !ok {
			return nil, &TargetError{Target: name, Known: nodeNames(s.graph)}
		}
		id := pushID(s.checkpoint.ID, s.checkpoint.Namespace, s.NextStep(), name, i)
		tasks = append(tasks, &Task{ID: id, Node: n, IsPush: true, Index: i, Input: input})
	}
	return tasks, nil
}

func (s *State) planPulls(tasks []*Task) []*Task {
	first := len(tasks)
	for _, n := range s.graph.Nodes {
		if s.isTriggered(n) {
			id := pullID(s.checkpoint.ID, s.checkpoint.Namespace, s.NextStep(), n.Name)
			tasks = append(tasks, &Task{ID: id, Node: n})
		}
	}
	slices.SortFunc(tasks[first:], func(a, b *Task) int { return cmp.Compare(a.Node.Name, b.Node.Name) })
	return tasks
}

// isTriggered reports whether some trigger of a node holds a value the node has
// not reacted to.
func (s *State) isTriggered(n *graph.Node) bool {
	for _, t := range n.Triggers {
		c := &s.checkpoint.Channels[t]
		if c.Version > 0 && isAvailable(&s.graph.Channels[t], c) && c.Version > s.seenVersion(n.Name, c.Name) {
			return true
		}
	}
	return false
}

func (s *State) seenVersion(node, channel string) uint64 {
	for i := range s.checkpoint.Seen {
		if s.checkpoint.Seen[i].Node != node {
			continue
		}
		for _, v := range s.checkpoint.Seen[i].Versions {
			if v.Channel == channel {
				return v.Version
			}
		}
	}
	return 0
}

// SortForDisplay orders planned tasks for people: Sends first, then the nodes as the
// graph declares them. They run, and are applied, in the order of their names.
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

// IsIdle reports whether nothing is due.
func (s *State) IsIdle() bool {
	tasks, err := s.PlanTasks()
	return err == nil && len(tasks) == 0
}

// HandlerTask returns the task that takes over for a failed one, or nil when its
// node has no error handler.
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

// encodeSend is the form in which a Send waits in its channel.
func encodeSend(s checkpoint.Send) payload.JSON {
	return payload.Object([]payload.Field{
		{Key: "node", Value: payload.Quote(s.Node)}, {Key: "input", Value: s.Input},
	})
}

func decodeSend(item payload.JSON) (node string, input payload.JSON, err error) {
	name, _ := payload.Lookup(item, "node")
	input, ok := payload.Lookup(item, "input")
	if node, err = payload.Unquote(name); err != nil {
		return "", "", err
	}
	if !ok {
		input = payload.Null
	}
	return node, input, nil
}
