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

// attempt is one attempt of a task, with its outcome so far. Nothing refers to it when
// it is over: it lives on the stack.
type attempt struct {
	*frame
	outcome

	number int // 1 = the first
}

// newAttempt begins an attempt of a task.
func (fr *frame) newAttempt(t *pregel.Task, n int) attempt {
	return attempt{frame: fr, outcome: outcome{task: t}, number: n}
}

// runWithRetries runs one task until it succeeds, asks, or has failed for good.
func (fr *frame) runWithRetries(ctx context.Context, t *pregel.Task) outcome {
	for n := 1; ; n++ {
		at := fr.newAttempt(t, n)
		at.attemptTask(ctx)
		at.attempt = n
		if at.failure == nil || at.isAborted {
			return at.outcome
		}
		delay, again := retryDelay(t.Node.Retry, at.result.Failure, n)
		if !again {
			return at.outcome
		}
		fr.publishEphemeral(checkpoint.Event{
			Kind: checkpoint.EventTask, Node: t.Node.Name, Task: t.ID, Attempt: n,
			Phase: checkpoint.PhaseRetrying, Failure: at.failure, Delay: delay,
		})
		if backoff.Sleep(ctx, delay) != nil {
			at.cutOffAttempt(ctx)
			return at.outcome
		}
	}
}

// publishEphemeral sends an event that is not stored to the current followers.
func (fr *frame) publishEphemeral(e checkpoint.Event) {
	e.Ephemeral, e.Time, e.Run = true, fr.env.Now(), fr.run.ID
	e.Namespace, e.Step = fr.state.Namespace(), fr.state.NextStep()
	fr.thread.Followers.PublishEphemeral(e)
}

// attemptTask runs the node once and interprets its result.
func (at *attempt) attemptTask(ctx context.Context) {
	if ctx.Err() != nil {
		at.cutOffAttempt(ctx)
		return
	}
	started := at.env.Now()
	at.performContained(ctx)
	at.level.touchParent()
	if at.task.Node.Kind != graph.KindStart {
		at.observeAttempt(at.env.Now().Sub(started))
	}
}

// performContained runs the node of the task. A panic around the node, as in the check
// of a schema, fails the task.
func (at *attempt) performContained(ctx context.Context) {
	if p := contain.Call(func() { at.performTask(ctx) }); p != nil {
		at.failPanicked(p)
	}
}

// panickedOutcome returns the outcome of a task for which the engine panicked.
func (fr *frame) panickedOutcome(t *pregel.Task, p *contain.PanicError) outcome {
	at := fr.newAttempt(t, 1)
	at.failPanicked(p)
	return at.outcome
}

// failPanicked fails the task, in place of any outcome so far.
func (at *attempt) failPanicked(p *contain.PanicError) {
	at.thread.Log.Error("the engine panicked; a task fails", append(p.Fields(),
		zap.String("node", at.task.Node.Name), zap.String("task", at.task.ID))...)
	at.outcome = outcome{task: at.task}
	at.setFailure(&pregel.Failure{Failure: *InternalFailure(), Permanent: true})
}

func (at *attempt) performTask(ctx context.Context) {
	if !at.restoreResult() {
		at.result = at.callTask(ctx)
	}
	at.interpretOnce(ctx)
}

// interpretOnce interprets a result. It keeps the result of a task that is to be
// interpreted again.
func (at *attempt) interpretOnce(ctx context.Context) {
	result := at.result
	at.interpretResult(ctx)
	if at.isAborted && result.Failure == nil {
		at.returned = &result
	}
}

// observeAttempt reports an attempt to the observer.
func (at *attempt) observeAttempt(took time.Duration) {
	at.env.Observer.NodeEnded(at.Graph().Name, at.task.Node.Name, string(at.taskPhase()), took)
}

// callTask runs the task: the start node, a subgraph, or the node's code.
func (at *attempt) callTask(ctx context.Context) pregel.Result {
	switch at.task.Node.Kind {
	case graph.KindStart:
		return at.startResult()
	case graph.KindGraph:
		return at.callSubgraph(ctx)
	default:
		return at.callNode(ctx, at.number, graph.Branch{}, at.state)
	}
}

// callNode makes one attempt of a node, or of the router of a conditional edge, under
// the node's timeouts.
func (at *attempt) callNode(ctx context.Context, n int, b graph.Branch, state *pregel.State) pregel.Result {
	t := at.task
	fx := &effects{frame: at.frame, task: t, attempt: n}
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
		Fence: at.thread.Fence, StillRemote: &fx.isStillRemote, Unresolved: &fx.isUnresolved,
	}
	isRemote := t.Node.Kind == graph.KindRemote || b.InWorker
	if isRemote {
		defer fx.trackRemoteTask(task)()
		task.Triggers = at.state.Triggers(t)
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

// callSubgraph makes one attempt of a subgraph under the timeouts of its node.
func (at *attempt) callSubgraph(ctx context.Context) pregel.Result {
	t := at.task
	fx := &effects{frame: at.frame, task: t, attempt: at.number}
	defer fx.endAttempt()
	ctx, cancel := fx.applyTimeouts(ctx, t.Node)
	defer cancel()
	r := fx.runSubgraph(ctx)
	if f := timeoutFailure(ctx, t.Node); f != nil && r.Failure != nil {
		return pregel.Result{Failure: f}
	}
	return r
}

// restoreResult takes the result that the node returned before the run was handed over.
// Only the first attempt may use it: a later attempt is made because that result was no
// good.
func (at *attempt) restoreResult() bool {
	record, ok := at.pending.tasks[at.task.ID]
	if !ok || record.State != checkpoint.TaskReturned || at.number > 1 {
		return false
	}
	at.result = pregel.Result{Update: record.Update, Writes: record.Writes, Goto: record.Goto}
	return true
}
