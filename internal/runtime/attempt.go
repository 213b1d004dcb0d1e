package runtime

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// attemptAll runs one task until it succeeds, asks, or has failed for good.
func (l *loop) attemptAll(ctx context.Context, t *pregel.Task) outcome {
	for n := 1; ; n++ {
		o := l.attempt(ctx, t, n)
		o.attempt = n
		if o.failure == nil || o.aborted {
			return o
		}
		delay, again := retryDelay(t.Node.Retry, o.result.Failure, n)
		if !again {
			return o
		}
		l.announce(checkpoint.Event{
			Kind: checkpoint.EventTask, Node: t.Node.Name, Task: t.ID, Attempt: n,
			Phase: checkpoint.PhaseRetrying, Failure: o.failure, Delay: delay,
		})
		if pause(ctx, delay) != nil {
			l.cutOff(ctx, &o)
			return o
		}
	}
}

// announce tells those who look on now of something that is not kept.
func (l *loop) announce(e checkpoint.Event) {
	s := l.session
	e.Ephemeral, e.Time, e.Run = true, s.engine.now(), l.run.ID
	e.Namespace, e.Step = l.state.Namespace(), l.state.NextStep()
	s.topic.whisper(e, s.engine.tuner)
}

// attempt runs the node once and works out what its result means.
func (l *loop) attempt(ctx context.Context, t *pregel.Task, n int) outcome {
	o := outcome{task: t}
	if ctx.Err() != nil {
		l.cutOff(ctx, &o)
		return o
	}
	started := l.session.engine.now()
	l.perform(ctx, &o, n)
	l.stir()
	if t.Node.Kind != graph.KindStart {
		l.noted(&o, l.session.engine.now().Sub(started))
	}
	return o
}

// perform runs the node of an outcome's task. A panic in what surrounds the
// node, like the check of a schema, fails the task.
func (l *loop) perform(ctx context.Context, o *outcome, n int) {
	if p := contain.Call(func() { l.performOnce(ctx, o, n) }); p != nil {
		*o = l.panickedTask(o.task, p)
	}
}

// panickedTask is how a task ends on whose behalf the engine panicked.
func (l *loop) panickedTask(t *pregel.Task, p *contain.PanicError) outcome {
	l.session.log.Error("the engine panicked; a task fails", append(p.Fields(),
		zap.String("node", t.Node.Name), zap.String("task", t.ID))...)
	o := outcome{task: t}
	o.fail(&pregel.Failure{Failure: *internal(), Permanent: true})
	return o
}

func (l *loop) performOnce(ctx context.Context, o *outcome, n int) {
	before, known := l.returnedBefore(o.task, n)
	if o.result = before; !known {
		o.result = l.call(ctx, o.task, n)
	}
	result := o.result
	l.interpret(ctx, o)
	if o.aborted && result.Failure == nil {
		o.returned = &result
	}
}

// noted tells the observer of an attempt.
func (l *loop) noted(o *outcome, took time.Duration) {
	l.session.engine.observer.NodeEnded(l.graph().Name, o.task.Node.Name, string(o.phase()), took)
}

// stir tells the graph around a subgraph that the subgraph is at work.
func (l *loop) stir() {
	if l.level.alive != nil {
		l.level.alive()
	}
}

// call hands the task to whoever runs its node.
func (l *loop) call(ctx context.Context, t *pregel.Task, n int) pregel.Result {
	switch t.Node.Kind {
	case graph.KindStart:
		return l.startResult()
	case graph.KindGraph:
		return l.callGraph(ctx, t, n)
	default:
		return l.callNode(ctx, t, n, graph.Branch{}, l.state)
	}
}

// callNode makes one attempt of a node, or of the router of one of its
// conditional edges, under the node's timeouts.
func (l *loop) callNode(ctx context.Context, t *pregel.Task, n int, b graph.Branch, state *pregel.State) pregel.Result {
	fx := &effects{loop: l, task: t, attempt: n}
	fx.anew.due.Store(l.mayRepeat(t.ID, n))
	defer fx.end()
	ctx, cancel := fx.limit(ctx, t.Node)
	defer cancel()
	view := state.View(t.Node)
	if b.Router != "" {
		view = state.All()
	}
	task := &Task{
		Thread: l.session.thread, Run: l.run.ID, ID: t.ID, Graph: l.graph(), Node: t.Node,
		Namespace: l.state.Namespace(), Step: l.state.NextStep(), Attempt: n,
		State: view, Send: t.Input, Context: l.run.Request.Context,
		Failed: t.Failed, Router: b.Router, Branch: b.Name, InWorker: b.InWorker, Journal: l.journal(t.ID),
		Waited: l.pending.tasks[t.ID].Waiting,
		Stop:   l.stop, Checkpoint: l.state.Checkpoint().ID, Time: l.state.Checkpoint().Time,
		Effects: fx, Host: fx, Metadata: l.run.Metadata, Unwanted: l.session.work.Done(),
		Fence: l.session.fence, Lent: &fx.lent,
	}
	if t.Node.Kind == graph.KindRemote || b.InWorker {
		defer l.errand(task)()
		task.Triggers = l.state.Triggers(t)
		if n == 1 {
			task.Recovered = l.recovered(t.ID)
			task.HandedOut = l.session.recovery.handedOut(t.ID)
		}
	}
	r := l.session.engine.guard(ctx, task)
	if fx.lent.Load() {
		l.session.recovery.leave(t.ID, l.level.top)
	}
	if f := timedOut(ctx, t.Node); f != nil && r.Failure != nil {
		return pregel.Result{Failure: f}
	}
	return r
}

// callGraph makes one attempt of a subgraph under the timeouts of its node.
func (l *loop) callGraph(ctx context.Context, t *pregel.Task, n int) pregel.Result {
	fx := &effects{loop: l, task: t, attempt: n}
	defer fx.end()
	ctx, cancel := fx.limit(ctx, t.Node)
	defer cancel()
	r := l.subgraph(ctx, t, n, fx.alive)
	if f := timedOut(ctx, t.Node); f != nil && r.Failure != nil {
		return pregel.Result{Failure: f}
	}
	return r
}
