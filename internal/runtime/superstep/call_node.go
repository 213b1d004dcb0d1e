package superstep

import (
	"context"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// callNode makes one attempt of a node, or of the router of a conditional edge, under
// the node's timeouts.
func (at *attempt) callNode(ctx context.Context, n int, b graph.Branch, state *pregel.State) pregel.Result {
	t := at.task
	fx := &effects{frame: at.frame, task: t, attempt: n, span: at.span}
	fx.restartMark.isDue.Store(fx.mayRepeatEvents())
	defer fx.endAttempt()
	ctx, cancel := fx.applyTimeouts(ctx, t.Node)
	defer cancel()
	view := state.NodeView(t.Node)
	if b.Router != "" {
		view = state.FullView()
	}
	task := &runtime.Task{
		Thread: at.thread.ID, Run: at.run.ID, ID: t.ID, Graph: at.Graph(), Node: t.Node,
		Namespace: at.state.Namespace(), Step: at.state.NextStep(), Attempt: n,
		State: view, Send: t.Input, Context: at.run.Request.Context,
		Failed: t.Failed, Router: b.Router, Branch: b.Name, InWorker: b.InWorker, Journal: at.buildJournal(t.ID),
		LastWaiting: at.pending.tasks[t.ID].Waiting,
		MaxStep:     at.maxStep, Checkpoint: at.state.Checkpoint().ID, CheckpointTime: at.state.Checkpoint().Time,
		Effects: fx, Host: fx, Metadata: at.run.Metadata, Unwanted: at.thread.WorkDone,
		Fence: at.thread.Fence, StillRemote: &fx.isStillRemote, Unresolved: &fx.isUnresolved, Trace: carrierOf(at.span),
	}
	isRemote := t.Node.Kind == graph.KindRemote || b.InWorker
	if isRemote {
		defer fx.trackRemoteTask(task)()
		task.Triggers, task.Digests = at.state.Triggers(t), &at.digests
		if n == 1 {
			task.RecoveredAt = at.recoveredAt(t.ID)
			task.HandedOut = at.thread.Recovery.wasHandedOut(t.ID)
		}
	}
	r := at.env.executeContained(ctx, task)
	if f := fx.refusedVersion.Load(); f != nil {
		r = pregel.Result{Failure: &pregel.Failure{Failure: *f}}
	}
	if isRemote {
		fx.noteHolder()
	}
	if f := timeoutFailure(ctx, t.Node); f != nil && r.Failure != nil {
		return pregel.Result{Failure: f}
	}
	return r
}
