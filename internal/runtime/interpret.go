package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// interpret turns a result into writes, questions or a failure.
func (l *loop) interpret(ctx context.Context, o *outcome) {
	if o.result.Failure != nil {
		l.fail(ctx, o, o.result.Failure)
		return
	}
	if f := l.unheard(ctx, o); f != nil {
		l.fail(ctx, o, f)
		return
	}
	if f := l.checkUses(o); f != nil {
		l.fail(ctx, o, f)
		return
	}
	if len(o.result.Asks) > 0 {
		l.questions(ctx, o)
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
		case len(r.Asks)+len(r.Waiting) > 0:
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
	switch {
	case ctx.Err() != nil:
		l.cutOff(ctx, o)
	case o.task.Node.Kind == graph.KindGraph && (f.Reason == FailedCancelledByClient || f.Reason == stoppedHere):
		o.aborted, o.stopped = true, true
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
	o.writes, o.waiting, o.asks, o.superseded, o.restated, o.accepted = nil, nil, nil, nil, nil, nil
}

// questions turns what a task asks into stored questions.
func (l *loop) questions(ctx context.Context, o *outcome) {
	for _, a := range o.result.Asks {
		a.Settle(l.graph().Spec)
		if f := l.pose(ctx, o, &a); f != nil {
			l.fail(ctx, o, f)
			return
		}
	}
}

// pose adds one question to an outcome. One that is open already stays if it
// shows what is asked, one that was withdrawn unanswered is opened anew, and one
// that was answered is replaced if it is another question now.
func (l *loop) pose(ctx context.Context, o *outcome, a *pregel.Ask) *pregel.Failure {
	before := l.pending.standing(o.task.ID, a.Scope, a.Key, a.Index)
	round := nextRound(before)
	id := pregel.InterruptID(o.task.ID, a.Scope, a.Key, a.Index, round)
	if problem := l.unaskable(ctx, a, slices.Contains(o.waiting, id)); problem != "" {
		return permanent(FailedInvalidUpdate, problem)
	}
	o.waiting = append(o.waiting, id)
	switch {
	case before == nil:
		o.asks = append(o.asks, l.question(o.task, a, id))
	case before.State == checkpoint.InterruptOpen:
		l.restate(o, before, a)
	case answered(before):
		q := l.question(o.task, a, id)
		q.Round, q.Replaces = round, before.ID
		return o.replace(before, q, a, l.pending.replacedAnswers(o.task.ID, a.Scope, a.Key, a.Index))
	default:
		q := l.question(o.task, a, id)
		q.Round, q.Replaces, q.Differs = round, before.Replaces, before.Differs
		o.asks = append(o.asks, q)
	}
	return nil
}

// unaskable says why nobody could answer what a task asks, "" if somebody can.
func (l *loop) unaskable(ctx context.Context, a *pregel.Ask, twice bool) string {
	place := fmt.Sprintf("question %d of key %q in scope %q", a.Index+1, a.Key, a.Scope)
	schemas := l.session.engine.schemas
	switch {
	case twice:
		return "the node asks two things as " + place + "; each needs a place of its own"
	case a.Schema == "" || schemas == nil:
		return ""
	}
	wrong, err := schemas.Check(ctx, a.Schema, cmp.Or(a.Default, payload.Null))
	switch {
	case err != nil:
		return "the response schema of " + place + " can't be used: " + err.Error()
	case a.Default != "" && len(wrong) > 0:
		return "the default response of " + place + " does not fit its own schema: " + wrong[0].Field + " " + wrong[0].Description
	}
	return ""
}

// unheard refuses to wait for questions that the thread does not have: nobody
// could ever answer them. Graphs inside of graphs wait for their own.
func (l *loop) unheard(ctx context.Context, o *outcome) *pregel.Failure {
	if o.task.Node.Kind != graph.KindRemote {
		return nil
	}
	for _, id := range o.result.Waiting {
		_, err := l.session.engine.store.Interrupt(ctx, l.session.thread, id)
		if errors.Is(err, checkpoint.ErrInterruptNotFound) {
			return permanent(FailedInvalidUpdate, fmt.Sprintf("the node waits for question %q, which the thread does not have", id))
		}
	}
	return nil
}

func (l *loop) askedBefore(task, id string) checkpoint.InterruptState {
	for _, i := range l.pending.interrupts[task] {
		if i.ID == id {
			return i.State
		}
	}
	return ""
}

func (l *loop) question(t *pregel.Task, a *pregel.Ask, id string) checkpoint.Interrupt {
	cp := l.state.Checkpoint()
	q := checkpoint.Interrupt{
		ID: id, Thread: l.session.thread, Run: l.run.ID, Graph: l.run.Graph,
		Namespace: cp.Namespace, Checkpoint: cp.ID, Node: t.Node.Name, Task: t.ID,
		Scope: a.Scope, Key: a.Key, Index: a.Index, Reason: a.Reason, Message: a.Message,
		Value: a.Value, Schema: a.Schema, State: checkpoint.InterruptOpen,
		Expiry: a.Expiry, Default: a.Default, Assignees: a.Assignees,
		Seen: a.Seen(), Drift: a.Drift, DriftIgnore: a.DriftIgnore,
	}
	if a.TTL > 0 {
		q.Expires = l.session.engine.now().Add(a.TTL)
	}
	return q
}
