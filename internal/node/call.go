package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	api "github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// call is one attempt of a function: what the function sees as its task.
type call struct {
	mux  *Mux
	task *runtime.Task
	info api.Info
	in   input
	past replay

	done    chan struct{} // closed when outcome is set
	outcome pregel.Result
}

func newCall(m *Mux, t *runtime.Task) *call {
	c := &call{mux: m, task: t, in: inputOf(t)}
	c.info = api.Info{
		Thread: t.Thread, Run: t.Run, Graph: t.Graph.Name, GraphVersion: t.Graph.Version,
		Node: t.Node.Name, Task: t.ID, Namespace: t.Namespace, Step: t.Step, Attempt: t.Attempt,
		Metadata: t.Metadata, Context: string(t.Context), Input: string(t.Send), Failed: failureOf(t.Failed),
	}
	c.past.begin(t)
	return c
}

// run calls the function. Where a time limit is set, the function gets a
// goroutine of its own, so that the attempt ends in time even if the function
// does not; without a limit that is not worth its microseconds.
func (c *call) run(ctx context.Context, f api.Func) pregel.Result {
	_, limited := ctx.Deadline()
	if !limited && c.task.Node.IdleTimeout <= 0 && !c.mux.options.Apart {
		return c.attempt(ctx, f)
	}
	c.done = make(chan struct{})
	go contain.Func(func() { c.apart(ctx, f) }, contain.Log(c.mux.log, "a function panicked"))()
	select {
	case <-c.done:
		return c.outcome
	case <-ctx.Done():
	}
	grace := time.NewTimer(c.mux.options.Grace)
	defer grace.Stop()
	select {
	case <-c.done:
		return c.outcome
	case <-grace.C:
		return c.abandon(ctx)
	}
}

// apart leaves the outcome behind, also of a function that ends its goroutine.
func (c *call) apart(ctx context.Context, f api.Func) {
	defer close(c.done)
	c.outcome.Failure = panicked(nil)
	c.outcome = c.attempt(ctx, f)
}

// abandon gives up a function that goes on. What it still does is ignored: the
// effects of an attempt end with it.
func (c *call) abandon(ctx context.Context) pregel.Result {
	c.mux.log.Warn("a function goes on after its context has ended", zap.String("node", c.info.Node),
		zap.String("thread", c.info.Thread), zap.String("run", c.info.Run))
	return failed(&pregel.Failure{Failure: checkpoint.Failure{
		Reason: runtime.FailedNode, Type: "Abandoned",
		Message: "the function did not end with its context: " + context.Cause(ctx).Error(),
	}})
}

// attempt calls the function and works out what came of it. A panic, also in
// what encodes the result, is a failure.
func (c *call) attempt(ctx context.Context, f api.Func) (r pregel.Result) {
	ended := false
	defer func() {
		if !ended {
			r = c.settle(pregel.Result{Failure: panicked(recover())})
		}
	}()
	value, err := f(api.WithTask(ctx, &c.info, c), api.NewState(values{&c.in}))
	switch {
	case err != nil:
		r = failed(failureFrom(err))
	case c.task.Router != "":
		r = c.route(value)
	default:
		r = c.result(value)
	}
	r = c.settle(r)
	ended = true
	return r
}

// settle lets what happened on the way count for more than what was returned:
// a replay that differs, and a question that was raised.
func (c *call) settle(r pregel.Result) pregel.Result {
	asks, unused, differs := c.past.end()
	if differs != nil {
		return failed(failureFrom(differs))
	}
	if len(asks) > 0 {
		r = pregel.Result{Asks: asks}
	}
	r.Used = c.past.used
	if len(asks) > 0 || r.Failure != nil || unused == "" {
		return r
	}
	if c.mux.options.StrictReplay {
		return failed(failureFrom(&api.NonDeterministicError{Before: unused, Now: "the end of the function"}))
	}
	c.mux.log.Warn("a function ended without using all of its journal", zap.String("node", c.info.Node),
		zap.String("thread", c.info.Thread), zap.String("run", c.info.Run), zap.String("unused", unused))
	return r
}

// Ask returns the recorded answer of a question, or raises it.
func (c *call) Ask(ctx context.Context, q api.Question) (json.RawMessage, error) {
	ask := pregel.Ask{
		Scope: c.scope(q.Scope), Key: q.Key, Reason: q.Reason, Message: q.Message,
		Value: payload.JSON(q.Value), Schema: payload.JSON(q.Schema), TTL: q.TTL,
		Expiry: checkpoint.ExpiryAction(q.Expiry), Default: payload.JSON(q.Default), Assignees: q.Assignees,
		Drift: checkpoint.Drift(q.Drift), DriftIgnore: q.DriftIgnore,
	}
	if err := c.askable(ctx, &ask); err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	} else if err != nil {
		return nil, api.OfType("InvalidQuestion", api.Permanent(err))
	}
	answer, err := c.past.ask(ask)
	return json.RawMessage(answer), err
}

// carriable refuses a value that the server does not carry. It may have come from the
// store, with keys that are repeated.
func (c *call) carriable(value payload.JSON) error {
	limits := c.mux.options.Limits
	limits.Repeats = payload.AnyRepeats
	return payload.Validate(string(value), limits)
}

// askable refuses a question that nobody could answer.
func (c *call) askable(ctx context.Context, a *pregel.Ask) error {
	if err := c.carriable(a.Value); err != nil {
		return fmt.Errorf("the payload of the question: %w", err)
	}
	if err := checkDrift(a); err != nil {
		return err
	}
	if a.Schema == "" || c.mux.options.Schemas == nil {
		return nil
	}
	sample := a.Default
	if sample == "" {
		sample = payload.Null
	}
	wrong, err := c.mux.options.Schemas.Check(ctx, a.Schema, sample)
	switch {
	case err != nil:
		return fmt.Errorf("the schema of the question: %w", err)
	case a.Default != "" && len(wrong) > 0:
		return fmt.Errorf("the default answer misses the schema: %s %s", wrong[0].Field, wrong[0].Description)
	}
	return nil
}

// checkDrift refuses a question that says nothing useful about replays.
func checkDrift(a *pregel.Ask) error {
	if a.Drift != checkpoint.DriftDefault && !slices.Contains(graph.Drifts(), string(a.Drift)) {
		return fmt.Errorf("unknown drift %q; use DriftFail, DriftAskAgain or DriftAccept", a.Drift)
	}
	if n := len(a.DriftIgnore); n > graph.MostDriftIgnore {
		return fmt.Errorf("%d parts of the question may differ; at most %d are allowed", n, graph.MostDriftIgnore)
	}
	for _, part := range a.DriftIgnore {
		if problem := graph.NotIgnorable(part); problem != "" {
			return fmt.Errorf("the part %q of the question that may differ %s", part, problem)
		}
	}
	return nil
}

// Memo returns the record of a key, or runs f and records what it returns.
func (c *call) Memo(
	ctx context.Context, scope, key string, f api.Effect,
) (json.RawMessage, error) {
	scope = c.scope(scope)
	recorded, index, err := c.past.memo(scope, key)
	if err != nil || recorded != "" {
		return json.RawMessage(recorded), err
	}
	value, err := f(ctx, api.IdempotencyKey(c.task.Thread, c.task.ID, scope, key, index))
	if err != nil {
		return nil, err
	}
	if err := c.carriable(payload.JSON(value)); err != nil {
		return nil, api.Permanent(fmt.Errorf("memo %q: %w", key, err))
	}
	stored, _, err := c.task.Effects.Remember(ctx, checkpoint.Memo{
		Task: c.task.ID, Scope: scope, Key: key, Index: index, Value: payload.JSON(value),
	})
	switch {
	case errors.Is(err, &runtime.Error{Reason: runtime.ReasonPayloadTooLarge}): // as it will be again
		return nil, api.Permanent(fmt.Errorf("memo %q was not recorded: %w", key, err))
	case err != nil:
		return nil, fmt.Errorf("memo %q was not recorded: %w", key, err)
	}
	return json.RawMessage(stored), nil
}

// Emit sends an event, unless it was seen before the replay.
func (c *call) Emit(e api.Event) error {
	if err := c.carriable(payload.JSON(e.Value)); err != nil {
		return api.Permanent(fmt.Errorf("the value of an event: %w", err))
	}
	if c.past.muted() {
		return nil
	}
	kind := checkpoint.EventCustom
	if e.Message {
		kind = checkpoint.EventMessage
	}
	c.task.Effects.Emit(runtime.Emission{
		Kind: kind, Name: e.Name, Value: payload.JSON(e.Value), Durable: e.Durable,
	})
	return nil
}

// scope keeps what a router does apart from what its node does.
func (c *call) scope(scope string) string {
	if c.task.Router == "" {
		return scope
	}
	return routerScope + c.task.Router + "/" + scope
}

const routerScope = "router:"

var errNoResult = errors.New("the function left its goroutine without a result")
