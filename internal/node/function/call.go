package function

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	api "github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// call is one attempt of a function. It is the task that the function gets.
type call struct {
	runner *Runner
	task   *Task
	replay Replay

	finished chan struct{} // closed when outcome is set
	outcome  pregel.Result
}

// runFunction calls the function. With a time limit the function gets a goroutine
// of its own, so that the attempt ends in time even if the function does not.
// Without a limit the goroutine is not worth its microseconds.
func (c *call) runFunction(ctx context.Context, f api.Func) pregel.Result {
	_, limited := ctx.Deadline()
	if !limited && !c.task.HasTimeLimit && !c.runner.options.SeparateGoroutines {
		return c.callFunction(ctx, f)
	}
	c.finished = make(chan struct{})
	go contain.Func(func() { c.runInGoroutine(ctx, f) }, contain.LogPanic(c.runner.log, "a function panicked"))()
	select {
	case <-c.finished:
		return c.outcome
	case <-ctx.Done():
	}
	grace := time.NewTimer(c.runner.options.Grace)
	defer grace.Stop()
	select {
	case <-c.finished:
		return c.outcome
	case <-grace.C:
		return c.abandonFunction(ctx)
	}
}

// runInGoroutine sets the outcome, also of a function that ends its goroutine.
func (c *call) runInGoroutine(ctx context.Context, f api.Func) {
	defer close(c.finished)
	c.outcome.Failure = PanicFailure(nil)
	c.outcome = c.callFunction(ctx, f)
}

// abandonFunction ends the attempt of a function that still runs. Its later effects
// are ignored, because the effects of an attempt end with it.
func (c *call) abandonFunction(ctx context.Context) pregel.Result {
	c.runner.log.Warn("a function goes on after its context has ended", zap.String("node", c.task.Info.Node),
		zap.String("thread", c.task.Thread), zap.String("run", c.task.Info.Run))
	return FailedResult(&pregel.Failure{Failure: checkpoint.Failure{
		Reason: runtime.FailedNode, Type: "Abandoned",
		Message: "the function did not end with its context: " + context.Cause(ctx).Error(),
	}})
}

// callFunction calls the function and determines its outcome. A panic is a failure,
// also one in the encoding of the result.
func (c *call) callFunction(ctx context.Context, f api.Func) (r pregel.Result) {
	ended := false
	defer func() {
		if !ended {
			r = c.resolveOutcome(pregel.Result{Failure: PanicFailure(recover())})
		}
	}()
	value, err := f(api.WithTask(ctx, &c.task.Info, c), api.NewState(c.task.Input))
	switch {
	case err != nil:
		r = FailedResult(FailureOf(err))
	case c.task.Router != "":
		r = c.toRouterResult(value)
	default:
		r = c.toResult(value)
	}
	r = c.resolveOutcome(r)
	ended = true
	return r
}

// resolveOutcome replaces the result of the function if the replay differs or an
// interrupt was raised.
func (c *call) resolveOutcome(r pregel.Result) pregel.Result {
	asks, unused, differs := c.replay.finishReplay()
	if differs != nil {
		return FailedResult(FailureOf(differs))
	}
	if len(asks) > 0 {
		r = pregel.Result{Asks: asks}
	}
	r.UsedAnswers = c.replay.UsedAnswers()
	if len(asks) > 0 || r.Failure != nil || unused == "" {
		return r
	}
	if c.runner.options.StrictReplay {
		return FailedResult(FailureOf(&api.NonDeterministicError{Before: unused, Now: "the end of the function"}))
	}
	c.runner.log.Warn("a function ended without using all of its journal", zap.String("node", c.task.Info.Node),
		zap.String("thread", c.task.Thread), zap.String("run", c.task.Info.Run), zap.String("unused", unused))
	return r
}

// Ask returns the recorded answer of an interrupt, or raises it.
func (c *call) Ask(ctx context.Context, q api.Question) (json.RawMessage, error) {
	ask := pregel.Ask{
		Scope: c.scopeName(q.Scope), Key: q.Key, Reason: q.Reason, Message: q.Message,
		Value: payload.JSON(q.Value), Schema: payload.JSON(q.Schema), TTL: q.TTL,
		Expiry: checkpoint.ExpiryAction(q.Expiry), Default: payload.JSON(q.Default), Assignees: q.Assignees,
		Drift: checkpoint.Drift(q.Drift), DriftIgnore: q.DriftIgnore, Policy: policyOf(q.People),
		Priority: approval.Priority(q.Priority), Steps: stepsOf(q.Steps), Undo: q.Undo,
		Secret: q.Secret,
	}
	err := c.checkAsk(ctx, &ask)
	if err == nil {
		err = ask.HideSecrets()
	}
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	} else if err != nil {
		return nil, api.OfType("InvalidQuestion", api.Permanent(err))
	}
	answer, err := c.replay.answerOrRaise(ask)
	return json.RawMessage(answer), err
}

// policyOf returns the policy that a function gives to a question.
func policyOf(p *api.People) *approval.Policy {
	if p == nil {
		return nil
	}
	return &approval.Policy{
		Users: p.Users, Groups: p.Groups, Approvals: p.Approvals, Vetoes: p.Vetoes, Agree: p.Agree,
		NotRequester: p.NotRequester, Requester: p.Requester, Exclusive: p.Exclusive,
		NotContributor: p.NotContributor, Delegable: p.Delegable, RevealUsers: p.RevealUsers, RevealGroups: p.RevealGroups,
	}
}

// stepsOf returns the steps that a function gives to a question.
func stepsOf(given []api.Step) []approval.Step {
	var steps []approval.Step
	for _, s := range given {
		steps = append(steps, approval.Step{
			After: s.After, Escalates: s.Escalates, Users: s.Users, Groups: s.Groups, Priority: approval.Priority(s.Priority),
		})
	}
	return steps
}

// checkValue returns an error for a value that the server does not accept. The
// value may come from the store, with repeated keys.
func (c *call) checkValue(value payload.JSON) error {
	limits := c.runner.options.Limits
	limits.RepeatedKeys = payload.AllowRepeatedKeys
	return payload.Validate(string(value), limits)
}

// checkAsk returns an error for an interrupt that cannot be answered.
func (c *call) checkAsk(ctx context.Context, a *pregel.Ask) error {
	if err := c.checkValue(a.Value); err != nil {
		return fmt.Errorf("the payload of the question: %w", err)
	}
	if err := checkDrift(a); err != nil {
		return err
	}
	if a.Schema == "" || c.runner.options.Schemas == nil {
		return nil
	}
	var wrong []runtime.Violation
	var err error
	if a.Default == "" {
		err = c.runner.options.Schemas.CheckSchema(a.Schema)
	} else {
		wrong, err = c.runner.options.Schemas.Check(ctx, a.Schema, a.Default)
	}
	switch {
	case err != nil:
		return fmt.Errorf("the schema of the question: %w", err)
	case len(wrong) > 0:
		wrong = runtime.HideViolations(wrong, a.Secret)
		return fmt.Errorf("the default answer misses the schema: %s", strings.TrimSpace(wrong[0].Field+" "+wrong[0].Description))
	}
	return nil
}

// checkDrift returns an error for an unknown drift policy, and for parts that can't
// be ignored.
func checkDrift(a *pregel.Ask) error {
	if a.Drift != checkpoint.DriftDefault && !slices.Contains(graph.Drifts(), string(a.Drift)) {
		return fmt.Errorf("unknown drift %q; use DriftFail, DriftAskAgain or DriftAccept", a.Drift)
	}
	if n := len(a.DriftIgnore); n > graph.MaxDriftIgnore {
		return fmt.Errorf("%d parts of the question may differ; at most %d are allowed", n, graph.MaxDriftIgnore)
	}
	for _, part := range a.DriftIgnore {
		if problem := graph.IgnoreProblem(part); problem != "" {
			return fmt.Errorf("the part %q of the question that may differ %s", part, problem)
		}
	}
	return nil
}

// Memo returns the record of a key, or runs f and records its result.
func (c *call) Memo(
	ctx context.Context, scope, key string, f api.Effect,
) (json.RawMessage, error) {
	scope = c.scopeName(scope)
	recorded, index, err := c.replay.nextMemo(scope, key)
	if err != nil || recorded != "" {
		return json.RawMessage(recorded), err
	}
	if begin := c.task.BeginEffect; begin != nil {
		if err := begin(ctx); err != nil {
			return nil, err
		}
	}
	value, err := f(ctx, api.IdempotencyKey(c.task.Info.Thread, c.task.Info.Task, scope, key, index))
	if err != nil {
		return nil, err
	}
	if err := c.checkValue(payload.JSON(value)); err != nil {
		return nil, api.Permanent(fmt.Errorf("memo %q: %w", key, err))
	}
	stored, _, err := c.task.Effects.RecordMemo(ctx, checkpoint.Memo{
		Task: c.task.Info.Task, Scope: scope, Key: key, Index: index, Value: payload.JSON(value),
	})
	switch {
	case errors.Is(err, &runtime.Error{Reason: runtime.ReasonPayloadTooLarge}): // it would be too large again
		return nil, api.Permanent(fmt.Errorf("memo %q was not recorded: %w", key, err))
	case err != nil:
		return nil, fmt.Errorf("memo %q was not recorded: %w", key, err)
	}
	return json.RawMessage(stored), nil
}

// Emit sends an event, unless it was seen before the replay.
func (c *call) Emit(e api.Event) error {
	if err := c.checkValue(payload.JSON(e.Value)); err != nil {
		return api.Permanent(fmt.Errorf("the value of an event: %w", err))
	}
	if c.replay.isReplaying() {
		return nil
	}
	kind := checkpoint.EventCustom
	if e.Message {
		kind = checkpoint.EventMessage
	}
	c.task.Effects.EmitEvent(runtime.Emission{
		Kind: kind, Name: e.Name, Value: payload.JSON(e.Value), Durable: e.Durable,
	})
	return nil
}

// scopeName puts the scopes of a router under a prefix, to separate them from those
// of its node.
func (c *call) scopeName(scope string) string {
	if c.task.Router == "" {
		return scope
	}
	return routerScopePrefix + c.task.Router + "/" + scope
}

const routerScopePrefix = "router:"

var errNoResult = errors.New("the function left its goroutine without a result")
