package superstep

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/placement"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// runSubgraph runs the graph of a node: a loop of its own in a namespace of the
// thread, that pauses and fails as the node does.
func (fx *effects) runSubgraph(ctx context.Context) pregel.Result {
	l, t := fx.loop, fx.task
	v := childGraph{
		parent: l, task: t, graph: t.Node.Sub, persistence: persistenceOf(t.Node), namespace: ChildNamespace(l.state, t),
		attempt: fx.attempt, resetIdleTimeout: fx.resetIdleTimeout, breakBefore: t.Node.Sub.InterruptBefore, breakAfter: t.Node.Sub.InterruptAfter,
	}
	child, err := v.newChildLoop()
	if err != nil {
		return fx.subgraphError(err)
	}
	defer child.releaseBytes()
	child.level.isStoppable = child.level.keepsCheckpoints && (l.level.isRoot || l.level.isStoppable)
	child.level.isOnlyTask = (l.level.isRoot || l.level.isOnlyTask) && len(l.tasks) == 1 && !l.Graph().HasUntracked()
	if err := child.beginSubgraph(ctx, fx.childInput()); err != nil {
		return fx.subgraphError(err)
	}
	return fx.subgraphResult(child, child.RunSupersteps(ctx))
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

// newChildLoop makes the loop of a subgraph in the state in which it goes on, or a
// fresh one.
func (v childGraph) newChildLoop() (*Loop, error) {
	l := v.parent
	child := &Loop{
		env: l.env, thread: l.thread, run: l.run, state: pregel.NewState(v.graph, v.namespace, l.env.Limits),
		level: level{
			keepsCheckpoints: v.persistence != persistDisabled && l.level.keepsCheckpoints, parentTask: v.task.ID, rootTask: cmp.Or(l.level.rootTask, v.task.ID), parents: l.childParents(),
			requiredCapabilities: l.level.requiredCapabilities, replay: l.level.replay, resetParentTimeout: v.resetIdleTimeout, maybeRerun: v.attempt > 1 || l.maybeBegun || l.level.maybeRerun,
		},
		breakBefore: v.breakBefore, breakAfter: v.breakAfter,
	}
	child.level.losesWorkOnStop = l.mustStay(v.task.Node)
	if !child.level.keepsCheckpoints {
		child.maybeHandedOut = l.isRecoveredInside(v.task.ID)
		child.level.requiredCapabilities = slices.Concat(child.level.requiredCapabilities, placement.CapabilitiesOfGraph(v.graph))
		return child, nil
	}
	then, err := v.replayCheckpoint()
	if err != nil {
		return nil, err
	}
	if then != nil {
		child.state, child.beginsWithCopy = pregel.LoadState(v.graph, then, true, l.env.Limits).MoveToNamespace(v.namespace), true
		child.level.isOnReplayPath, child.level.replayNamespace = true, then.Namespace
		return child, nil
	}
	if v.persistence == persistInherit && !l.maybeBegun && v.attempt == 1 && !v.maybeRerun {
		return child, nil
	}
	cp, err := l.currentCheckpoint(v.namespace)
	if errors.Is(err, checkpoint.ErrCheckpointNotFound) {
		return child, nil
	}
	if err != nil {
		return nil, runtime.TranslateStoreError(err)
	}
	child.state = pregel.LoadState(v.graph, cp, l.level.replay != nil, l.env.Limits)
	child.maybeBegun = l.isCurrentChild(cp)
	child.maybeHandedOut = child.maybeBegun && l.isRecoveredInside(v.task.ID)
	return child, nil
}

// childParents notes, for a subgraph, at which checkpoints the graphs around it stand.
func (l *Loop) childParents() map[string]string {
	parents := make(map[string]string, len(l.level.parents)+1)
	maps.Copy(parents, l.level.parents)
	parents[l.state.Namespace()] = l.state.Checkpoint().ID
	return parents
}

// childInput is what the subgraph gets: the Send's input, or the keys of the
// node's view that the subgraph accepts.
func (fx *effects) childInput() payload.JSON {
	l, t := fx.loop, fx.task
	if t.Input != "" {
		return t.Input
	}
	sub := t.Node.Sub
	if _, whole := sub.ChannelIndex(graph.Root); whole {
		return l.state.NodeView(t.Node).Object()
	}
	keys := make([]int, 0, len(t.Node.Reads))
	for _, i := range t.Node.Reads {
		if at, ok := sub.ChannelIndex(l.Graph().Channels[i].Name); ok && slices.Contains(sub.InputKeys, at) {
			keys = append(keys, i)
		}
	}
	return l.state.Object(keys)
}

// beginSubgraph prepares the subgraph's first superstep: it goes on where it stopped,
// or takes its input.
func (l *Loop) beginSubgraph(ctx context.Context, input payload.JSON) error {
	if l.maybeBegun {
		return l.continueSuperstep()
	}
	l.maxStep = l.state.NextStep() + 1 + l.stepLimit()
	first := l.state
	err := l.commitChange(func(t *commit.Tx) error {
		l.state = first // the change may have to be made again
		l.setHeldBytes(0)
		if l.beginsWithCopy {
			return l.branchCheckpoint(t)
		}
		if err := l.enterInput(t, input); err != nil {
			return err
		}
		l.runInlineOnEntry(ctx, t)
		return nil
	})
	if err != nil {
		return err
	}
	if l.beginsWithCopy && l.hasBreakpoints() {
		l.state = l.state.MarkBreakpointsPassed()
	}
	p, err := l.loadUnkeptProgress(l.state)
	l.setProgress(p)
	l.setHeldBytes(l.measureBytes())
	return err
}

// loadUnkeptProgress returns what is known of a superstep of a subgraph that keeps no
// checkpoints: it comes to the same one whenever its node is run again.
func (l *Loop) loadUnkeptProgress(s *pregel.State) (progress, error) {
	if l.level.keepsCheckpoints || !l.level.maybeRerun {
		return progress{}, nil
	}
	p, err := l.env.Store.Pending(l.thread.StoreCtx, l.thread.ID, s.Checkpoint().ID)
	return newProgress(p), runtime.TranslateStoreError(err)
}

func (l *Loop) setProgress(p progress) {
	l.pending, l.maybeBegun = p, len(p.tasks) > 0
}

// continueSuperstep takes up the superstep at which the loop stopped.
func (l *Loop) continueSuperstep() error {
	if err := l.reloadSuperstep(); err != nil {
		return err
	}
	l.mustReportState = true
	if err := l.checkDueNodes(); err != nil {
		return err
	}
	s, err := l.applyCommands(l.state)
	if err != nil {
		return err
	}
	l.state = s
	if l.hasBreakpoints() {
		l.state = l.state.MarkBreakpointsPassed()
	}
	if l.tasks, err = l.state.PlanTasks(); err != nil {
		return err
	}
	if l.maxStep == 0 {
		l.maxStep = l.state.NextStep() + 1 + l.stepLimit()
	}
	l.setHeldBytes(l.measureBytes())
	return nil
}

// hasBreakpoints reports whether the loop has breakpoints, which going on must pass.
func (l *Loop) hasBreakpoints() bool { return len(l.breakBefore) > 0 || len(l.breakAfter) > 0 }

// subgraphResult turns the end of a subgraph into the result of its node.
func (fx *effects) subgraphResult(child *Loop, v End) pregel.Result {
	l := fx.loop
	switch {
	case v.Err != nil:
		l.thread.Stop.AbandonRun()
		return fx.subgraphError(v.Err)
	case v.command != nil:
		r := *v.command
		r.ToParent = false
		return r
	case v.State == checkpoint.RunInterrupted:
		return pregel.Result{WaitingInterrupts: v.openInterrupts}
	case v.State == checkpoint.RunSucceeded:
		return pregel.Result{Update: fx.outputForParent(child.state)}
	case v.State == checkpoint.RunRunning:
		return pregel.Result{Failure: &pregel.Failure{Failure: checkpoint.Failure{Reason: reasonStoppedHere}}}
	default:
		f := v.Failure
		if f == nil {
			f = &checkpoint.Failure{Reason: runtime.FailedNode, Message: "the subgraph was stopped"}
		}
		return pregel.Result{Failure: &pregel.Failure{Failure: *f}}
	}
}

// reasonStoppedHere is why the node of a subgraph has not ended that goes on elsewhere.
// It is neither stored nor shown.
const reasonStoppedHere = "STOPPED_HERE"

// outputForParent is the output of a subgraph without the keys its parent does not have.
func (fx *effects) outputForParent(child *pregel.State) payload.JSON {
	l := fx.loop
	var keys []int
	g := child.Graph()
	for _, i := range g.OutputKeys {
		if at, ok := l.Graph().ChannelIndex(g.Channels[i].Name); ok && l.Graph().Channels[at].IsStateKey {
			keys = append(keys, i)
		}
	}
	return child.Object(keys)
}

func (fx *effects) subgraphError(err error) pregel.Result {
	l := fx.loop
	if errors.Is(err, checkpoint.ErrUnavailable) || errors.Is(err, ErrLeaseLost) {
		l.thread.Stop.AbandonRun() // the outcome of the node is unknown
	}
	f := &pregel.Failure{Failure: checkpoint.Failure{Reason: runtime.FailedNode, Message: err.Error()}}
	if own, ok := errors.AsType[*runtime.Error](err); ok {
		f.Reason, f.Message = own.Reason, own.Message
	}
	if _, bad := errors.AsType[*pregel.ResultError](err); bad {
		f.Reason, f.Permanent = runtime.FailedInvalidUpdate, true
	}
	if limit, beyond := errors.AsType[*graph.LimitError](err); beyond {
		f.Reason, f.Details, f.Permanent = runtime.FailedLimit, limit.Details(), true
	}
	return pregel.Result{Failure: f}
}

// ChildNamespace is where the subgraph of a task lives.
func ChildNamespace(s *pregel.State, t *pregel.Task) string {
	if IsPersistent(t.Node) {
		return pregel.JoinNamespace(pregel.NodePath(s.Namespace()), t.Node.Name)
	}
	return TaskNamespace(s.Namespace(), t.Node, t.ID)
}

// TaskNamespace is the namespace that belongs to one task.
func TaskNamespace(namespace string, n *graph.Node, task string) string {
	return pregel.JoinNamespace(namespace, n.Name+":"+task)
}
