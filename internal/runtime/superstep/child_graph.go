package superstep

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/placement"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// childGraph is a graph that runs inside a task, and how it is kept: the graph of a
// subgraph node, or a graph that the node's code calls.
type childGraph struct {
	parent           *frame // in whose task it runs
	task             *pregel.Task
	graph            *graph.Graph
	persistence      string // inherit, persist or disabled
	namespace        string // the namespace it runs in
	attempt          int
	maybeRerun       bool   // the attempt may have run it before, in another worker
	resetIdleTimeout func() // called whenever the graph shows that it is at work
	breakBefore      []string
	breakAfter       []string
}

// How a subgraph is kept: fresh for each visit of its node, growing over all
// visits, or not at all.
const (
	persistInherit  = "inherit"
	persistAlways   = "persist"
	persistDisabled = "disabled"
)

// persistenceOf says how the subgraph of a node is kept.
func persistenceOf(n *graph.Node) string {
	if n.Spec.Graph.Persistence == "" {
		return persistInherit
	}
	return n.Spec.Graph.Persistence
}

// IsPersistent reports whether the subgraph of a node grows over all visits of it.
func IsPersistent(n *graph.Node) bool { return persistenceOf(n) == persistAlways }

// newChildLoop makes the loop of a subgraph, in the state in which it goes on or in a
// fresh state.
func (c childGraph) newChildLoop() (*graphLoop, error) {
	fr := c.parent
	child := &graphLoop{frame: frame{
		env: fr.env, thread: fr.thread, run: fr.run, state: pregel.NewState(c.graph, c.namespace, fr.env.Reader.LimitsOf(fr.thread.ID)),
		level: level{
			keepsCheckpoints: c.persistence != persistDisabled && fr.level.keepsCheckpoints,
			parentTask:       c.task.ID, rootTask: cmp.Or(fr.level.rootTask, c.task.ID), parents: c.listParents(),
			requiredCapabilities: fr.level.requiredCapabilities, replay: fr.level.replay, resetParentTimeout: c.resetIdleTimeout,
			maybeRerun: c.attempt > 1 || fr.maybeBegun || fr.level.maybeRerun,
		},
		breakBefore: c.breakBefore, breakAfter: c.breakAfter,
	}}
	child.level.losesWorkOnStop = fr.mustStay(c.task.Node)
	if !child.level.keepsCheckpoints {
		child.maybeHandedOut = fr.isRecoveredInside(c.task.ID)
		child.level.requiredCapabilities = slices.Concat(child.level.requiredCapabilities, placement.CapabilitiesOfGraph(c.graph))
		return child, nil
	}
	then, err := c.replayCheckpoint()
	if err != nil {
		return nil, err
	}
	if then != nil {
		child.state, child.beginsWithCopy = pregel.LoadState(c.graph, then, true, fr.env.Reader.LimitsOf(fr.thread.ID)).MoveToNamespace(c.namespace), true
		child.level.isOnReplayPath, child.level.replayNamespace = true, then.Namespace
		return child, nil
	}
	if c.persistence == persistInherit && !fr.maybeBegun && c.attempt == 1 && !c.maybeRerun {
		return child, nil
	}
	cp, err := c.currentCheckpoint()
	if errors.Is(err, checkpoint.ErrCheckpointNotFound) {
		return child, nil
	}
	if err != nil {
		return nil, runtime.TranslateStoreError(err)
	}
	child.state = pregel.LoadState(c.graph, cp, fr.level.replay != nil, fr.env.Reader.LimitsOf(fr.thread.ID))
	child.maybeBegun = c.isCurrent(cp)
	child.maybeHandedOut = child.maybeBegun && fr.isRecoveredInside(c.task.ID)
	return child, nil
}

// listParents returns, for a subgraph, the checkpoints of the graphs around it, by namespace.
func (c childGraph) listParents() map[string]string {
	fr := c.parent
	parents := make(map[string]string, len(fr.level.parents)+1)
	maps.Copy(parents, fr.level.parents)
	parents[fr.state.Namespace()] = fr.state.Checkpoint().ID
	return parents
}

// isCurrent reports whether a checkpoint of the graph was written while the graph
// around it stood where it stands.
func (c childGraph) isCurrent(cp *checkpoint.Checkpoint) bool {
	return cp.Parents[c.parent.state.Namespace()] == c.parent.state.Checkpoint().ID
}

// currentCheckpoint returns the newest checkpoint of a namespace; in a replay, the
// newest before.
func (c childGraph) currentCheckpoint() (*checkpoint.Checkpoint, error) {
	fr, ns := c.parent, c.namespace
	store, thread := fr.env.Store, fr.thread.ID
	cp, err := store.Checkpoint(fr.thread.StoreCtx, thread, ns, "")
	j := fr.level.replay
	if err != nil || j == nil || cp.Run == fr.run.ID {
		return cp, err
	}
	older, err := store.Checkpoints(fr.thread.StoreCtx, checkpoint.CheckpointQuery{
		Thread: thread, Namespace: ns, Before: j.beforeSeq, Limit: 1,
	})
	if err != nil {
		return nil, err
	}
	if len(older) == 0 {
		return nil, checkpoint.ErrCheckpointNotFound
	}
	return older[0], nil
}

// ChildNamespace returns the namespace of the subgraph of a task.
func ChildNamespace(s *pregel.State, t *pregel.Task) string {
	if IsPersistent(t.Node) {
		return pregel.JoinNamespace(pregel.NodePath(s.Namespace()), t.Node.Name)
	}
	return TaskNamespace(s.Namespace(), t.Node, t.ID)
}

// TaskNamespace returns the namespace that belongs to one task.
func TaskNamespace(namespace string, n *graph.Node, task string) string {
	return pregel.JoinNamespace(namespace, n.Name+":"+task)
}
