package superstep

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// runWithRetries runs one task until it succeeds, asks, or has failed for good.
func (l *Loop) runWithRetries(ctx context.Context, t *pregel.Task) outcome {
	for n := 1; ; n++ {
		o := l.attemptTask(ctx, t, n)
		o.attempt = n
		if o.failure == nil || o.isAborted {
			return o
		}
		delay, again := retryDelay(t.Node.Retry, o.result.Failure, n)
		if !again {
			return o
		}
		l.publishEphemeral(checkpoint.Event{
			Kind: checkpoint.EventTask, Node: t.Node.Name, Task: t.ID, Attempt: n,
			Phase: checkpoint.PhaseRetrying, Failure: o.failure, Delay: delay,
		})
		if backoff.Sleep(ctx, delay) != nil {
			o.cutOffAttempt(ctx, l)
			return o
		}
	}
}

// publishEphemeral sends an event that is not stored to the current followers.
func (l *Loop) publishEphemeral(e checkpoint.Event) {
	e.Ephemeral, e.Time, e.Run = true, l.env.Now(), l.run.ID
	e.Namespace, e.Step = l.state.Namespace(), l.state.NextStep()
	l.thread.Followers.PublishEphemeral(e)
}

// attemptTask runs the node once and works out what its result means.
func (l *Loop) attemptTask(ctx context.Context, t *pregel.Task, n int) outcome {
	o := outcome{task: t}
	if ctx.Err() != nil {
		o.cutOffAttempt(ctx, l)
		return o
	}
	started := l.env.Now()
	o.performContained(ctx, l, n)
	l.level.touchParent()
	if t.Node.Kind != graph.KindStart {
		o.observeAttempt(l, l.env.Now().Sub(started))
	}
	return o
}

// performContained runs the node of an outcome's task. A panic in what surrounds the
// node, like the check of a schema, fails the task.
func (o *outcome) performContained(ctx context.Context, l *Loop, n int) {
	if p := contain.Call(func() { o.performTask(ctx, l, n) }); p != nil {
		o.failPanicked(l, p)
	}
}

// panickedOutcome is how a task ends on whose behalf the engine panicked.
func (l *Loop) panickedOutcome(t *pregel.Task, p *contain.PanicError) outcome {
	o := outcome{task: t}
	o.failPanicked(l, p)
	return o
}

// failPanicked ends an outcome so, whatever it was before.
func (o *outcome) failPanicked(l *Loop, p *contain.PanicError) {
	l.thread.Log.Error("the engine panicked; a task fails", append(p.Fields(),
		zap.String("node", o.task.Node.Name), zap.String("task", o.task.ID))...)
	*o = outcome{task: o.task}
	o.setFailure(&pregel.Failure{Failure: *InternalFailure(), Permanent: true})
}

func (o *outcome) performTask(ctx context.Context, l *Loop, n int) {
	if !o.restoreResult(l, n) {
		o.result = o.callTask(ctx, l, n)
	}
	o.interpretOnce(ctx, l)
}

// interpretOnce works out what a result means, and keeps the result of a task that is
// to be interpreted again.
func (o *outcome) interpretOnce(ctx context.Context, l *Loop) {
	result := o.result
	o.interpretResult(ctx, l)
	if o.isAborted && result.Failure == nil {
		o.returned = &result
	}
}

// observeAttempt reports an attempt to the observer.
func (o *outcome) observeAttempt(l *Loop, took time.Duration) {
	l.env.Observer.NodeEnded(l.Graph().Name, o.task.Node.Name, string(o.taskPhase()), took)
}

// touchParent resets the idle timeout of the parent task.
func (v *level) touchParent() {
	if v.resetParentTimeout != nil {
		v.resetParentTimeout()
	}
}

// callTask runs the task: the start node, a subgraph, or the node's code.
func (o *outcome) callTask(ctx context.Context, l *Loop, n int) pregel.Result {
	switch o.task.Node.Kind {
	case graph.KindStart:
		return l.startResult()
	case graph.KindGraph:
		return o.callSubgraph(ctx, l, n)
	default:
		return o.callNode(ctx, l, n, graph.Branch{}, l.state)
	}
}

// callNode makes one attempt of a node, or of the router of one of its
// conditional edges, under the node's timeouts.
func (o *outcome) callNode(ctx context.Context, l *Loop, n int, b graph.Branch, state *pregel.State) pregel.Result {
	t := o.task
	fx := &effects{loop: l, task: t, attempt: n}
	fx.restartMark.isDue.Store(fx.mayRepeatEvents())
	defer fx.endAttempt()
	ctx, cancel := fx.applyTimeouts(ctx, t.Node)
	defer cancel()
	view := state.NodeView(t.Node)
	if b.Router != "" {
		view = state.FullView()
	}
	task := &runtime.Task{
		Thread: l.thread.ID, Run: l.run.ID, ID: t.ID, Graph: l.Graph(), Node: t.Node,
		Namespace: l.state.Namespace(), Step: l.state.NextStep(), Attempt: n,
		State: view, Send: t.Input, Context: l.run.Request.Context,
		Failed: t.Failed, Router: b.Router, Branch: b.Name, InWorker: b.InWorker, Journal: l.buildJournal(t.ID),
		LastWaiting: l.pending.tasks[t.ID].Waiting,
		MaxStep:     l.maxStep, Checkpoint: l.state.Checkpoint().ID, CheckpointTime: l.state.Checkpoint().Time,
		Effects: fx, Host: fx, Metadata: l.run.Metadata, Unwanted: l.thread.WorkDone,
		Fence: l.thread.Fence, StillRemote: &fx.isStillRemote,
	}
	if t.Node.Kind == graph.KindRemote || b.InWorker {
		defer fx.trackRemoteTask(task)()
		task.Triggers = l.state.Triggers(t)
		if n == 1 {
			task.RecoveredAt = l.recoveredAt(t.ID)
			task.HandedOut = l.thread.Recovery.wasHandedOut(t.ID)
		}
	}
	r := l.env.executeContained(ctx, task)
	if fx.isStillRemote.Load() {
		l.thread.Recovery.addLeft(t.ID, l.level.rootTask)
	}
	if f := timeoutFailure(ctx, t.Node); f != nil && r.Failure != nil {
		return pregel.Result{Failure: f}
	}
	return r
}

// callSubgraph makes one attempt of a subgraph under the timeouts of its node.
func (o *outcome) callSubgraph(ctx context.Context, l *Loop, n int) pregel.Result {
	t := o.task
	fx := &effects{loop: l, task: t, attempt: n}
	defer fx.endAttempt()
	ctx, cancel := fx.applyTimeouts(ctx, t.Node)
	defer cancel()
	r := fx.runSubgraph(ctx)
	if f := timeoutFailure(ctx, t.Node); f != nil && r.Failure != nil {
		return pregel.Result{Failure: f}
	}
	return r
}
