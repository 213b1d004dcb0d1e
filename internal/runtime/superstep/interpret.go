package superstep

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// interpretResult turns a result into writes, interrupts or a failure.
func (o *outcome) interpretResult(ctx context.Context, l *Loop) {
	if o.result.Failure != nil {
		o.failAttempt(ctx, l, o.result.Failure)
		return
	}
	if f := o.checkWaiting(ctx, l); f != nil {
		o.failAttempt(ctx, l, f)
		return
	}
	if f := o.checkUsedAnswers(l); f != nil {
		o.failAttempt(ctx, l, f)
		return
	}
	if len(o.result.Asks) > 0 {
		o.handleAsks(ctx, l)
		if o.failure == nil {
			o.openInterrupts = append(o.openInterrupts, o.result.WaitingInterrupts...)
		}
		return
	}
	if len(o.result.WaitingInterrupts) > 0 {
		o.openInterrupts = o.result.WaitingInterrupts
		return
	}
	if o.result.ToParent {
		if l.level.isRoot {
			o.failAttempt(ctx, l, permanentFailure(runtime.FailedInvalidUpdate, "a command for the parent graph, but this graph has no parent"))
		}
		return
	}
	if f := o.reduceForRouting(ctx, l); f != nil {
		o.failAttempt(ctx, l, f)
		return
	}
	routes, f := o.callRouters(ctx, l)
	if f != nil {
		o.failAttempt(ctx, l, f)
		return
	}
	writes, err := l.state.CompleteTask(o.task, o.result, routes)
	if err != nil {
		stored := updateFailure(err)
		o.failAttempt(ctx, l, &pregel.Failure{Failure: *stored, Permanent: true})
		return
	}
	o.writes = writes
}

// callRouters asks code for the decisions of the conditional edges that need it.
func (o *outcome) callRouters(ctx context.Context, l *Loop) (map[string][]checkpoint.Send, *pregel.Failure) {
	routers := pregel.CodeBranches(o.task.Node)
	if len(routers) == 0 {
		return nil, nil
	}
	ahead, err := l.state.BranchState(o.task, o.result)
	if err != nil {
		return nil, &pregel.Failure{Failure: *updateFailure(err), Permanent: true}
	}
	routes := make(map[string][]checkpoint.Send, len(routers))
	for _, b := range routers {
		r := o.callNode(ctx, l, max(o.attempt, 1), b, ahead)
		switch {
		case r.Failure != nil:
			return nil, r.Failure
		case len(r.Asks)+len(r.WaitingInterrupts) > 0:
			return nil, permanentFailure(runtime.FailedInvalidUpdate, "a conditional edge cannot ask questions; ask in the node")
		}
		routes[b.Name] = r.Goto
	}
	return routes, nil
}

func permanentFailure(reason, message string) *pregel.Failure {
	return &pregel.Failure{Failure: checkpoint.Failure{Reason: reason, Message: message}, Permanent: true}
}

// failAttempt settles a failed attempt.
func (o *outcome) failAttempt(ctx context.Context, l *Loop, f *pregel.Failure) {
	o.setFailure(f)
	switch {
	case ctx.Err() != nil:
		o.cutOffAttempt(ctx, l)
	case o.task.Node.Kind == graph.KindGraph && (f.Reason == runtime.FailedCancelledByClient || f.Reason == reasonStoppedHere):
		o.isAborted, o.isSubgraphStopped = true, true
	}
}

// cutOffAttempt ends an attempt that was stopped from outside: it counts as if it
// had never begun, except that too slow a superstep is its tasks' failure.
func (o *outcome) cutOffAttempt(ctx context.Context, l *Loop) {
	if !errors.Is(context.Cause(ctx), errStepTimeout) {
		o.isAborted = true
		return
	}
	o.setFailure(permanentFailure(runtime.FailedStepTimeout, "the superstep did not end within "+l.Graph().Spec.StepTimeout.String()))
}

func (o *outcome) setFailure(f *pregel.Failure) {
	stored := f.Failure
	stored.Node = o.task.Node.Name
	o.result.Failure, o.failure = f, &stored
	o.writes, o.openInterrupts, o.interrupts, o.superseded, o.openReplacements, o.accepted = nil, nil, nil, nil, nil, nil
}

// handleAsks turns what a task asks into stored interrupts.
func (o *outcome) handleAsks(ctx context.Context, l *Loop) {
	if len(o.result.Asks) == 0 {
		return
	}
	type place struct {
		scope, key string
		index      int
	}
	asked := make(map[place]bool, len(o.result.Asks))
	for _, a := range o.result.Asks {
		at := place{a.Scope, a.Key, a.Index}
		if asked[at] {
			o.failAttempt(ctx, l, permanentFailure(runtime.FailedInvalidUpdate,
				"the node asks two things as "+placeText(&a)+"; each needs a place of its own"))
			return
		}
		asked[at] = true
		a.SetDriftDefaults(l.Graph().Spec)
		if f := o.poseInterrupt(ctx, l, &a); f != nil {
			o.failAttempt(ctx, l, f)
			return
		}
	}
}

// poseInterrupt adds one interrupt to an outcome. An open one stays and a withdrawn one
// is reopened if it shows what is asked, and an answered one is replaced if it differs.
func (o *outcome) poseInterrupt(ctx context.Context, l *Loop, a *pregel.Ask) *pregel.Failure {
	before := l.pending.currentInterrupt(o.task.ID, a.Scope, a.Key, a.Index)
	round := nextRound(before, a)
	id := pregel.InterruptID(o.task.ID, a.Scope, a.Key, a.Index, round)
	if problem := l.env.checkAskable(ctx, a); problem != "" {
		return permanentFailure(runtime.FailedInvalidUpdate, problem)
	}
	o.openInterrupts = append(o.openInterrupts, id)
	switch {
	case before == nil:
		o.addInterrupt(l, a, id)
	case before.State == checkpoint.InterruptOpen:
		o.noteOpenReplacement(l, before, a)
	case isAnswered(before):
		return o.replaceAnsweredInterrupt(l, before, a, id)
	case id == before.ID:
		q := o.addInterrupt(l, a, id)
		q.Round, q.Replaces, q.Differs = round, before.Replaces, before.Differs
	case round > maxReplacements:
		return permanentFailure(runtime.FailedInvalidUpdate, fmt.Sprintf(
			"%s was withdrawn and asked in other words %d times, the limit; run the thread again from a checkpoint, which asks anew, "+
				"or name what changes in drift_ignore", positionText(a.Scope, a.Key, a.Index), maxReplacements))
	default:
		q := o.addInterrupt(l, a, id)
		q.Round, q.Replaces, q.Differs = round, before.ID, pregel.Differences(before, a)
	}
	return nil
}

// addInterrupt adds what a task asks to the new questions of its outcome.
func (o *outcome) addInterrupt(l *Loop, a *pregel.Ask, id string) *checkpoint.Interrupt {
	o.interrupts = append(o.interrupts, o.newInterrupt(l, a, id))
	return &o.interrupts[len(o.interrupts)-1]
}

// replaceAnsweredInterrupt asks in place of a question that was answered, if it is another one now.
func (o *outcome) replaceAnsweredInterrupt(l *Loop, before *checkpoint.Interrupt, a *pregel.Ask, id string) *pregel.Failure {
	q := o.newInterrupt(l, a, id)
	q.Round, q.Replaces = before.Round+1, before.ID
	return o.replaceAnswered(before, q, a, l.pending.countReplacedAnswers(o.task.ID, a.Scope, a.Key, a.Index))
}

// checkAskable says why no client could answer what a task asks, "" if one can.
func (e *Env) checkAskable(ctx context.Context, a *pregel.Ask) string {
	schemas := e.Schemas
	if a.Schema == "" || schemas == nil {
		return ""
	}
	wrong, err := schemas.Check(ctx, a.Schema, cmp.Or(a.Default, payload.Null))
	switch {
	case err != nil:
		return "the response schema of " + placeText(a) + " can't be used: " + err.Error()
	case a.Default != "" && len(wrong) > 0:
		return "the default response of " + placeText(a) + " does not fit its own schema: " + wrong[0].Field + " " + wrong[0].Description
	}
	return ""
}

func placeText(a *pregel.Ask) string {
	return fmt.Sprintf("question %d of key %q in scope %q", a.Index+1, a.Key, a.Scope)
}

// checkWaiting refuses to wait for interrupts that the thread does not have. Called
// graphs wait for their own.
func (o *outcome) checkWaiting(ctx context.Context, l *Loop) *pregel.Failure {
	if o.task.Node.Kind != graph.KindRemote {
		return nil
	}
	for _, id := range o.result.WaitingInterrupts {
		_, err := l.env.Store.Interrupt(ctx, l.thread.ID, id)
		if errors.Is(err, checkpoint.ErrInterruptNotFound) {
			return permanentFailure(runtime.FailedInvalidUpdate, fmt.Sprintf("the node waits for question %q, which the thread does not have", id))
		}
	}
	return nil
}

func (p *progress) interruptState(task, id string) checkpoint.InterruptState {
	for _, i := range p.interrupts[task] {
		if i.ID == id {
			return i.State
		}
	}
	return ""
}

func (o *outcome) newInterrupt(l *Loop, a *pregel.Ask, id string) checkpoint.Interrupt {
	t := o.task
	cp := l.state.Checkpoint()
	q := checkpoint.Interrupt{
		ID: id, Thread: l.thread.ID, Run: l.run.ID, Graph: l.run.Graph,
		Namespace: cp.Namespace, Checkpoint: cp.ID, Node: t.Node.Name, Task: t.ID,
		Scope: a.Scope, Key: a.Key, Index: a.Index, Reason: a.Reason, Message: a.Message,
		Value: a.Value, Schema: a.Schema, State: checkpoint.InterruptOpen,
		Expiry: a.Expiry, Default: a.Default, Assignees: a.Assignees,
		ShownDigest: a.ShownDigest(), Drift: a.Drift, DriftIgnore: a.DriftIgnore,
	}
	if a.TTL > 0 {
		q.Expires = l.env.Now().Add(a.TTL)
	}
	return q
}
