package superstep

import (
	"cmp"
	"context"
	"fmt"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// handleAsks turns the questions of a task into stored interrupts.
func (at *attempt) handleAsks(ctx context.Context) {
	if len(at.result.Asks) == 0 {
		return
	}
	type place struct {
		scope, key string
		index      int
	}
	asked := make(map[place]bool, len(at.result.Asks))
	for _, a := range at.result.Asks {
		where := place{a.Scope, a.Key, a.Index}
		if asked[where] {
			at.failAttempt(ctx, permanentFailure(runtime.FailedInvalidUpdate,
				"the node asks two things as "+placeText(&a)+"; each needs a place of its own"))
			return
		}
		asked[where] = true
		a.SetDriftDefaults(at.Graph().Spec)
		if err := a.HideSecrets(); err != nil {
			at.failAttempt(ctx, permanentFailure(runtime.FailedInvalidUpdate, placeText(&a)+": "+err.Error()))
			return
		}
		if f := at.poseInterrupt(ctx, &a); f != nil {
			at.failAttempt(ctx, f)
			return
		}
	}
}

// poseInterrupt adds one interrupt to an outcome. An open interrupt stays. A withdrawn
// interrupt is reopened if it shows the present question. An answered interrupt is
// replaced if it differs.
func (at *attempt) poseInterrupt(ctx context.Context, a *pregel.Ask) *pregel.Failure {
	before := at.pending.currentInterrupt(at.task.ID, a.Scope, a.Key, a.Index)
	round := nextRound(before, a)
	id := pregel.InterruptID(at.task.ID, a.Scope, a.Key, a.Index, round)
	asked := *a
	asked.Policy = at.completePolicy(a.Policy)
	if problem := at.env.checkAskable(ctx, &asked); problem != "" {
		return permanentFailure(runtime.FailedInvalidUpdate, problem)
	}
	at.openInterrupts = append(at.openInterrupts, id)
	switch {
	case before == nil:
		at.addInterrupt(a, id)
	case before.State == checkpoint.InterruptOpen:
		at.noteOpenReplacement(before, a)
	case before.State == checkpoint.InterruptRetractable: // compared when its answer takes effect
	case isAnswered(before):
		return at.replaceAnsweredInterrupt(before, a, id)
	case id == before.ID:
		q := at.addInterrupt(a, id)
		q.Round, q.Replaces, q.Differs, q.Trail = round, before.Replaces, before.Differs, before.FullTrail()
	case round > maxReplacements:
		return permanentFailure(runtime.FailedInvalidUpdate, fmt.Sprintf(
			"%s was withdrawn and asked in other words %d times, the limit; run the thread again from a checkpoint, which asks anew, "+
				"or name what changes in drift_ignore", positionText(a.Scope, a.Key, a.Index), maxReplacements))
	default:
		q := at.addInterrupt(a, id)
		q.Round, q.Replaces, q.Differs = round, before.ID, pregel.Differences(before, a)
	}
	return nil
}

// addInterrupt adds a question of a task to the new interrupts of its outcome.
func (at *attempt) addInterrupt(a *pregel.Ask, id string) *checkpoint.Interrupt {
	at.interrupts = append(at.interrupts, at.newInterrupt(a, id))
	return &at.interrupts[len(at.interrupts)-1]
}

// replaceAnsweredInterrupt replaces an answered interrupt, if the question has changed.
func (at *attempt) replaceAnsweredInterrupt(before *checkpoint.Interrupt, a *pregel.Ask, id string) *pregel.Failure {
	q := at.newInterrupt(a, id)
	q.Round, q.Replaces = before.Round+1, before.ID
	return at.replaceAnswered(before, q, a, at.pending.countReplacedAnswers(at.task.ID, a.Scope, a.Key, a.Index))
}

func (at *attempt) newInterrupt(a *pregel.Ask, id string) checkpoint.Interrupt {
	t := at.task
	cp := at.state.Checkpoint()
	q := checkpoint.Interrupt{
		ID: id, Thread: at.thread.ID, Run: at.run.ID, Graph: at.run.Graph,
		Namespace: cp.Namespace, Checkpoint: cp.ID, Node: t.Node.Name, Task: t.ID,
		Scope: a.Scope, Key: a.Key, Index: a.Index, Reason: a.Reason, Message: a.Message,
		Value: a.Value, Schema: a.Schema, State: checkpoint.InterruptOpen,
		Expiry: a.Expiry, Default: a.Default, Assignees: a.Assignees,
		ShownDigest: a.ShownDigest(), Drift: a.Drift, DriftIgnore: a.DriftIgnore,
		Policy: at.completePolicy(a.Policy), Priority: a.Priority, Steps: a.Steps,
		Secret: a.Secret, Hidden: a.Hidden,
	}
	if q.Undo = at.env.Undo; a.Undo != nil {
		q.Undo = *a.Undo
	}
	if a.TTL > 0 {
		q.Expires = at.env.Now().Add(a.TTL)
	}
	return q
}

// completePolicy names who asks for it where the node does not: who started the run.
func (at *attempt) completePolicy(p *approval.Policy) *approval.Policy {
	if p.IsZero() || p.Requester != "" {
		return p
	}
	complete := *p
	complete.Requester = at.run.StartedBy
	return &complete
}

// checkAskable says why no client could answer a question, "" if a client can.
func (e *Env) checkAskable(ctx context.Context, a *pregel.Ask) string {
	if problem := e.checkPolicy(a.Policy); problem != "" {
		return "the policy of " + placeText(a) + " can't be kept: " + problem
	}
	if problems := approval.CheckSteps(a.Policy, a.Steps, a.TTL); len(problems) > 0 {
		return "the steps of " + placeText(a) + " can't be taken: " + problems[0].Field + " " + problems[0].Text
	}
	if problem := approval.CheckUndo(a.Undo); problem != "" {
		return "the answer to " + placeText(a) + " can't be taken back so long: undo " + problem
	}
	if problem := e.checkSecret(a); problem != "" {
		return "the secret parts of " + placeText(a) + " can't be kept: " + problem
	}
	schemas := e.Schemas
	if a.Schema == "" || schemas == nil {
		return ""
	}
	answer, err := a.Hidden.Default.Restore(cmp.Or(a.Default, payload.Null))
	if err != nil {
		return "the default response of " + placeText(a) + ": " + err.Error()
	}
	wrong, err := schemas.Check(ctx, a.Schema, answer)
	switch {
	case err != nil:
		return "the response schema of " + placeText(a) + " can't be used: " + err.Error()
	case a.Default != "" && len(wrong) > 0:
		wrong = runtime.HideViolations(wrong, a.Secret)
		return "the default response of " + placeText(a) + " does not fit its own schema: " + wrong[0].Field + " " + wrong[0].Description
	}
	return ""
}

// checkSecret says why the server can't keep the secret parts of a question, "" if it can.
func (e *Env) checkSecret(a *pregel.Ask) string {
	switch {
	case len(a.Secret) > 0 && !e.KeepsSecrets:
		return "secret: the store is not encrypted; start the server with --encryption-keys, or ask without secret"
	case len(a.Secret) == 0 && a.Policy.NamesRevealers():
		return "people.reveal: the question has no secret parts; name them in secret, or leave reveal out"
	}
	return ""
}

// checkPolicy says why the server can't keep a policy, "" if it can.
func (e *Env) checkPolicy(p *approval.Policy) string {
	if p == nil {
		return ""
	}
	if problems := p.Check(); len(problems) > 0 {
		return "people." + problems[0].Field + " " + problems[0].Text
	}
	if p.NotRequester && p.Requester == "" && e.KnowsCallers {
		return "people.not_requester: it is not known who started the run; name the requester"
	}
	if p.NeedsCallers() && !e.KnowsCallers {
		return "the server does not know who calls; start it with --api-keys, --token-issuers or --certificate-rules"
	}
	if p.Agree == "" {
		return ""
	}
	if e.Conditions == nil {
		return "the server evaluates no conditions, so people.agree has no use"
	}
	if err := e.Conditions.Check(p.Agree); err != nil {
		return "people.agree: " + err.Error()
	}
	return ""
}

func placeText(a *pregel.Ask) string {
	return fmt.Sprintf("question %d of key %q in scope %q", a.Index+1, a.Key, a.Scope)
}
