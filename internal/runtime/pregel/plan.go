package pregel

import (
	"cmp"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
)

// PlanTasks lists the tasks of the next superstep, in the order in which their writes
// will be applied, save that Sends come first. The error is a *TargetError when a Send
// names a node that the graph does not have.
func (s *State) PlanTasks() ([]*Task, error) {
	if s.IsFresh() {
		return nil, nil
	}
	p := planner{graph: s.graph, checkpoint: s.checkpoint}
	tasks, err := p.planPushes()
	if err != nil {
		return nil, err
	}
	return p.planPulls(tasks), nil
}

// SendIndexes returns the positions of the Sends that make tasks of the next superstep, by
// the ids of these tasks. It is nil without Sends, and where one no longer fits the graph.
func (s *State) SendIndexes() map[string]int {
	if s.IsFresh() {
		return nil
	}
	p := planner{graph: s.graph, checkpoint: s.checkpoint}
	tasks, err := p.planPushes()
	if err != nil || len(tasks) == 0 {
		return nil
	}
	indexes := make(map[string]int, len(tasks))
	for _, t := range tasks {
		indexes[t.ID] = t.Index
	}
	return indexes
}

// IsIdle reports whether no task is due.
func (s *State) IsIdle() bool {
	tasks, err := s.PlanTasks()
	return err == nil && len(tasks) == 0
}

// planner finds which nodes are due at a checkpoint.
type planner struct {
	graph      *graph.Graph
	checkpoint *checkpoint.Checkpoint
}

// planPushes plans a task for each Send that waits.
func (p planner) planPushes() ([]*Task, error) {
	c := &p.checkpoint.Channels[p.graph.SendsChannel]
	if c.List == nil {
		return nil, nil
	}
	tasks := make([]*Task, 0, len(c.List.Items))
	for i, item := range c.List.Items {
		name, input, err := decodeSend(item)
		if err != nil {
			return nil, err
		}
		n, ok := p.graph.Node(name)
		if !ok {
			return nil, &TargetError{Target: name, Known: nodeNames(p.graph)}
		}
		id := pushID(p.checkpoint.ID, p.checkpoint.Namespace, p.checkpoint.Step+1, name, i)
		tasks = append(tasks, &Task{ID: id, Node: n, IsPush: true, Index: i, Input: input})
	}
	return tasks, nil
}

// planPulls adds a task for each node that is triggered.
func (p planner) planPulls(tasks []*Task) []*Task {
	first := len(tasks)
	for _, n := range p.graph.Nodes {
		if p.isTriggered(n) {
			id := pullID(p.checkpoint.ID, p.checkpoint.Namespace, p.checkpoint.Step+1, n.Name)
			tasks = append(tasks, &Task{ID: id, Node: n})
		}
	}
	slices.SortFunc(tasks[first:], func(a, b *Task) int { return cmp.Compare(a.Node.Name, b.Node.Name) })
	return tasks
}

// isTriggered reports whether some trigger of a node holds a value the node has
// not reacted to.
func (p planner) isTriggered(n *graph.Node) bool {
	for _, t := range n.Triggers {
		c := &p.checkpoint.Channels[t]
		if c.Version > 0 && isAvailable(&p.graph.Channels[t], c) && c.Version > seenVersion(p.checkpoint.Seen, n.Name, c.Name) {
			return true
		}
	}
	return false
}

// seenVersion returns the newest version of a channel that a node has reacted to, 0 for
// none.
func seenVersion(seen []checkpoint.NodeSeen, node, channel string) uint64 {
	for i := range seen {
		if seen[i].Node != node {
			continue
		}
		for _, v := range seen[i].Versions {
			if v.Channel == channel {
				return v.Version
			}
		}
	}
	return 0
}
