package superstep

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// runWithRetries runs one task until it succeeds, asks, or has failed for good.
func (fr *frame) runWithRetries(ctx context.Context, t *pregel.Task) outcome {
	for n := 1; ; n++ {
		at := fr.newAttempt(t, n)
		at.attemptTask(ctx)
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

// attemptTask runs the node once and interprets its result.
func (at *attempt) attemptTask(ctx context.Context) {
	if ctx.Err() != nil {
		at.cutOffAttempt(ctx)
		return
	}
	started := at.env.Now()
	at.performContained(at.traceAttempt(ctx))
	at.level.touchParent()
	if at.task.Node.Kind != graph.KindStart {
		at.observeAttempt(at.env.Now().Sub(started))
	}
	at.endTrace()
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
	at.outcome = outcome{task: at.task, attempt: at.attempt}
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
		return at.callNode(ctx, at.attempt, graph.Branch{}, at.state)
	}
}

// callSubgraph makes one attempt of a subgraph under the timeouts of its node.
func (at *attempt) callSubgraph(ctx context.Context) pregel.Result {
	t := at.task
	fx := &effects{frame: at.frame, task: t, attempt: at.attempt, span: at.span}
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
	if !ok || record.State != checkpoint.TaskReturned || at.attempt > 1 {
		return false
	}
	at.result = pregel.Result{Update: record.Update, Writes: record.Writes, Goto: record.Goto}
	return true
}
