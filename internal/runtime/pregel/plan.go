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
	// Push tells a task made by a Send, the Index-th of the superstep, from
	// one that was triggered through channels.
	Push  bool
	Index int
	Input payload.JSON // of the Send
	// Failed is set for an error handler: the task it takes over for.
	Failed  *checkpoint.Failure
	Takes   string // id of that task
	handled *Task
}

// Plan lists the tasks of the next superstep, in the order in which their
// writes will be applied, save that Sends come first. It fails when a Send
// names a node that the graph does not have.
func (s *State) Plan() ([]*Task, error) {
	if s.Fresh() {
		return nil, nil
	}
	tasks, err := s.pushes()
	if err != nil {
		return nil, err
	}
	return s.pulls(tasks), nil
}

func (s *State) pushes() ([]*Task, error) {
	c := &s.cp.Channels[s.graph.Sends]
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
		id := pushID(s.cp.ID, s.cp.Namespace, s.NextStep(), name, i)
		tasks = append(tasks, &Task{ID: id, Node: n, Push: true, Index: i, Input: input})
	}
	return tasks, nil
}

func (s *State) pulls(tasks []*Task) []*Task {
	first := len(tasks)
	for _, n := range s.graph.Nodes {
		if s.triggered(n) {
			id := pullID(s.cp.ID, s.cp.Namespace, s.NextStep(), n.Name)
			tasks = append(tasks, &Task{ID: id, Node: n})
		}
	}
	slices.SortFunc(tasks[first:], func(a, b *Task) int { return cmp.Compare(a.Node.Name, b.Node.Name) })
	return tasks
}

// triggered reports whether some trigger of a node holds a value the node has
// not reacted to.
func (s *State) triggered(n *graph.Node) bool {
	for _, t := range n.Triggers {
		c := &s.cp.Channels[t]
		if c.Version > 0 && available(&s.graph.Channels[t], c) && c.Version > s.seenVersion(n.Name, c.Name) {
			return true
		}
	}
	return false
}

func (s *State) seenVersion(node, channel string) uint64 {
	for i := range s.cp.Seen {
		if s.cp.Seen[i].Node != node {
			continue
		}
		for _, v := range s.cp.Seen[i].Versions {
			if v.Channel == channel {
				return v.Version
			}
		}
	}
	return 0
}

// Shown orders planned tasks for people: Sends first, then the nodes as the
// graph declares them. They run, and are applied, in the order of their names.
func (s *State) Shown(tasks []*Task) []*Task {
	at := func(t *Task) int {
		if t.Push {
			return -1
		}
		return slices.Index(s.graph.Nodes, t.Node)
	}
	out := slices.Clone(tasks)
	slices.SortStableFunc(out, func(a, b *Task) int { return cmp.Compare(at(a), at(b)) })
	return out
}

// Idle reports whether nothing is due.
func (s *State) Idle() bool {
	tasks, err := s.Plan()
	return err == nil && len(tasks) == 0
}

// Handler returns the task that takes over for a failed one, or nil when its
// node has no error handler.
func (t *Task) Handler(f *checkpoint.Failure) *Task {
	h := t.Node.Handler
	if h == nil || t.handled != nil {
		return nil
	}
	return &Task{
		ID: HandlerID(h.Name, t.ID), Node: h, Push: true, Index: t.Index,
		Input: t.Input, Failed: f, Takes: t.ID, handled: t,
	}
}

// Next lists tasks in the form that a checkpoint keeps.
func Next(tasks []*Task) []checkpoint.NextTask {
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
