package runtime

import (
	"context"
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// execute runs the tasks of a superstep and waits for all of them. A lone task
// runs in place. While some are still running, what the others did is made
// durable, so that no finished sibling ever runs again.
func (l *loop) execute(ctx context.Context, w *work) {
	if limit := l.graph().Spec.StepTimeout; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errStepTimeout)
		defer cancel()
	}
	if len(w.run) == 1 {
		o := l.attemptAll(ctx, w.run[0])
		w.add(o)
		for w.takeOver(&w.fresh[len(w.fresh)-1]) != nil {
			l.handle(ctx, w)
		}
		return
	}
	l.executeMany(ctx, w)
}

// handle records a failure durably and runs the error handler that takes over.
func (l *loop) handle(ctx context.Context, w *work) {
	last := &w.fresh[len(w.fresh)-1]
	h := w.takeOver(last)
	last.handled = true
	if !l.store(w) {
		return
	}
	w.add(l.attemptAll(ctx, h))
}

// takeOver returns the handler task of a failure, or nil.
func (w *work) takeOver(o *outcome) *pregel.Task {
	if w.err != nil || o.failure == nil || o.handled || o.aborted {
		return nil
	}
	return o.task.Handler(o.failure)
}

func (w *work) add(o outcome) {
	if o.result.Parent && o.failure == nil && w.command == nil {
		r := o.result
		w.command = &r
	}
	o.late = w.cut && o.finished()
	w.fresh = append(w.fresh, o)
}

// executeMany runs tasks side by side. The first failure cuts the others off;
// what they finish all the same is kept.
func (l *loop) executeMany(ctx context.Context, w *work) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan outcome, len(w.run))
	slots := make(chan struct{}, l.session.engine.opts.Parallel)
	start := func(t *pregel.Task) {
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			ended <- l.attemptAll(ctx, t)
		}()
	}
	running := len(w.run)
	go func() {
		for _, t := range w.run {
			start(t)
		}
	}()
	for running > 0 {
		w.add(<-ended)
		running--
		for more := true; more && running > 0; {
			select {
			case o := <-ended:
				w.add(o)
				running--
			default:
				more = false
			}
		}
		for _, h := range w.handlers() {
			if !l.store(w) {
				break
			}
			running++
			go func() { ended <- l.attemptAll(ctx, h) }()
		}
		if w.failure() != nil || w.command != nil {
			w.cut = true
			cancel(ErrSibling)
		}
		if running > 0 && !l.store(w) {
			cancel(ErrSibling)
		}
	}
}

// handlers marks the failures that an error handler takes over and returns
// the handlers' tasks.
func (w *work) handlers() []*pregel.Task {
	var out []*pregel.Task
	for i := range w.fresh {
		if h := w.takeOver(&w.fresh[i]); h != nil {
			w.fresh[i].handled = true
			out = append(out, h)
		}
	}
	return out
}

// store makes what has ended so far durable, and then visible. It reports
// false when the store failed.
func (l *loop) store(w *work) bool {
	if w.err != nil {
		return false
	}
	if len(w.fresh) == 0 {
		return true
	}
	err := l.commit(func(t *tx) error {
		l.report(t, w)
		l.record(t, w)
		return nil
	})
	if err != nil {
		w.err = err
		return false
	}
	w.stored = append(w.stored, w.fresh...)
	w.fresh, w.recorded, w.told = nil, true, true
	return true
}

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
	s.topic.whisper(e)
}

// attempt runs the node once and works out what its result means.
func (l *loop) attempt(ctx context.Context, t *pregel.Task, n int) outcome {
	o := outcome{task: t}
	if ctx.Err() != nil {
		l.cutOff(ctx, &o)
		return o
	}
	started := l.session.engine.now()
	o.result = l.call(ctx, t, n)
	l.interpret(ctx, &o)
	l.stir()
	if t.Node.Kind != graph.KindStart {
		took := l.session.engine.now().Sub(started)
		l.session.engine.observer.NodeEnded(l.graph().Name, t.Node.Name, string(o.phase()), took)
	}
	return o
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
	}
	if t.Node.Kind == graph.KindRemote || b.InWorker {
		task.Triggers = l.state.Triggers(t)
	}
	r := l.session.engine.guard(ctx, task)
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

// interpret turns a result into writes, questions or a failure.
func (l *loop) interpret(ctx context.Context, o *outcome) {
	if o.result.Failure != nil {
		l.fail(ctx, o, o.result.Failure)
		return
	}
	if len(o.result.Asks) > 0 {
		l.questions(o)
		if o.failure == nil {
			o.waiting = append(o.waiting, o.result.Waiting...)
		}
		return
	}
	if len(o.result.Waiting) > 0 {
		o.waiting = o.result.Waiting
		return
	}
	if o.result.Parent {
		if l.level.root {
			l.fail(ctx, o, permanent(FailedInvalidUpdate, "a command for the parent graph, but this graph has no parent"))
		}
		return
	}
	if f := l.foresee(ctx, o); f != nil {
		l.fail(ctx, o, f)
		return
	}
	routes, f := l.route(ctx, o)
	if f != nil {
		l.fail(ctx, o, f)
		return
	}
	writes, err := l.state.Complete(o.task, o.result, routes)
	if err != nil {
		stored := updateFailure(err)
		l.fail(ctx, o, &pregel.Failure{Failure: *stored, Permanent: true})
		return
	}
	o.writes = writes
}

// route asks code for the decisions of the conditional edges that need it.
func (l *loop) route(ctx context.Context, o *outcome) (map[string][]checkpoint.Send, *pregel.Failure) {
	routers := pregel.Routers(o.task.Node)
	if len(routers) == 0 {
		return nil, nil
	}
	ahead, err := l.state.Ahead(o.task, o.result)
	if err != nil {
		return nil, &pregel.Failure{Failure: *updateFailure(err), Permanent: true}
	}
	routes := make(map[string][]checkpoint.Send, len(routers))
	for _, b := range routers {
		r := l.callNode(ctx, o.task, max(o.attempt, 1), b, ahead)
		switch {
		case r.Failure != nil:
			return nil, r.Failure
		case len(r.Asks) > 0:
			return nil, permanent(FailedInvalidUpdate, "a conditional edge cannot ask questions; ask in the node")
		}
		routes[b.Name] = r.Goto
	}
	return routes, nil
}

func permanent(reason, message string) *pregel.Failure {
	return &pregel.Failure{Failure: checkpoint.Failure{Reason: reason, Message: message}, Permanent: true}
}

// fail settles a failed attempt.
func (l *loop) fail(ctx context.Context, o *outcome, f *pregel.Failure) {
	o.fail(f)
	if ctx.Err() != nil {
		l.cutOff(ctx, o)
	}
}

// cutOff settles an attempt that was stopped from outside: it counts as if it
// had never begun, except that too slow a superstep is its tasks' failure.
func (l *loop) cutOff(ctx context.Context, o *outcome) {
	if !errors.Is(context.Cause(ctx), errStepTimeout) {
		o.aborted = true
		return
	}
	o.fail(permanent(FailedStepTimeout, "the superstep did not end within "+l.graph().Spec.StepTimeout.String()))
}

func (o *outcome) fail(f *pregel.Failure) {
	stored := f.Failure
	stored.Node = o.task.Node.Name
	o.result.Failure, o.failure = f, &stored
	o.writes, o.waiting, o.asks = nil, nil, nil
}

// questions turns what a task asks into stored questions. One that is open
// already stays as it is, one that was withdrawn unanswered is opened anew; one
// that was answered before can only be asked again by code that does not
// replay its journal.
func (l *loop) questions(o *outcome) {
	now := l.session.engine.now()
	for _, a := range o.result.Asks {
		id := pregel.InterruptID(o.task.ID, a.Scope, a.Key, a.Index)
		o.waiting = append(o.waiting, id)
		switch l.askedBefore(o.task.ID, id) {
		case "", checkpoint.InterruptCancelled, checkpoint.InterruptSuperseded:
			q := l.question(o.task, a, id)
			if a.TTL > 0 {
				q.Expires = now.Add(a.TTL)
			}
			o.asks = append(o.asks, q)
		case checkpoint.InterruptOpen:
			// The same question, asked again.
		default:
			o.fail(permanent(FailedNonDeterministic, "the node asked a question again that was answered; "+
				"on replay the same calls must come in the same order, or carry keys"))
			return
		}
	}
}

func (l *loop) askedBefore(task, id string) checkpoint.InterruptState {
	for _, i := range l.pending.interrupts[task] {
		if i.ID == id {
			return i.State
		}
	}
	return ""
}

func (l *loop) question(t *pregel.Task, a pregel.Ask, id string) checkpoint.Interrupt {
	cp := l.state.Checkpoint()
	return checkpoint.Interrupt{
		ID: id, Thread: l.session.thread, Run: l.run.ID, Graph: l.run.Graph,
		Namespace: cp.Namespace, Checkpoint: cp.ID, Node: t.Node.Name, Task: t.ID,
		Scope: a.Scope, Key: a.Key, Index: a.Index, Reason: a.Reason, Message: a.Message,
		Value: a.Value, Schema: a.Schema, State: checkpoint.InterruptOpen,
		Expiry: a.Expiry, Default: a.Default, Assignees: a.Assignees,
	}
}
