package node

import (
	"context"
	"fmt"

	api "github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// executeAsk runs a node of kind ask: it asks, or continues with the answer, or
// passes when its condition does not hold.
func executeAsk(ctx context.Context, t *runtime.Task) pregel.Result {
	vars := newVars(ctx, t)
	needed, err := evalCondition(t.Node.When, vars)
	if err != nil {
		return failedResult(expressionFailure("when", err))
	}
	if !needed {
		return evalUpdate(t.Node.Otherwise, t.Node.Spec.Ask.Otherwise, t.Node.Goto, vars)
	}
	key, err := evalText(t.Node.Key, vars)
	if err != nil {
		return failedResult(expressionFailure("key", err))
	}
	var r replay
	r.loadJournal(t)
	asked := buildAsk(t, key, vars)
	known := r.findAnswer(journalKey{key: key})
	if known == nil || asked.Failure != nil || !r.canUseAnswer(known, &asked.Asks[0]) {
		return asked
	}
	switch {
	case known.Dismissed:
		return failedResult(failureOfError(&api.DismissedError{Question: "the question", Note: known.Reason}))
	case known.Expired:
		return failedResult(failureOfError(&api.ExpiredError{Question: "the question"}))
	}
	vars.Answer = known.Value
	result := evalUpdate(t.Node.Update, t.Node.Spec.Ask.Update, t.Node.Goto, vars)
	result.UsedAnswers = r.usedAnswers
	return result
}

func buildAsk(t *runtime.Task, key string, vars graph.Vars) pregel.Result {
	spec := t.Node.Spec.Ask
	message, err := evalText(t.Node.Message, vars)
	if err != nil {
		return failedResult(expressionFailure("message", err))
	}
	value := payload.Null
	if t.Node.Value != nil {
		if value, err = t.Node.Value.Eval(vars); err != nil {
			return failedResult(expressionFailure("value", err))
		}
	}
	return pregel.Result{Asks: []pregel.Ask{{
		Key: key, Reason: spec.Reason, Message: message, Value: value, Schema: spec.Schema,
		TTL: spec.TTL, Expiry: checkpoint.ExpiryAction(spec.Expiry), Default: spec.Default,
		Assignees: spec.Assignees, Drift: checkpoint.Drift(spec.Drift), DriftIgnore: spec.DriftIgnore,
	}}}
}

// evalCondition evaluates a condition; an absent condition holds.
func evalCondition(p graph.Program, vars graph.Vars) (bool, error) {
	if p == nil {
		return true, nil
	}
	value, err := p.Eval(vars)
	switch {
	case err != nil:
		return false, err
	case value == "true", value == "false":
		return value == "true", nil
	}
	return false, fmt.Errorf("a condition must be true or false, not %s", shortenValue(value))
}

// evalText evaluates an expression that yields text. Other values become JSON; null
// and a missing expression become "".
func evalText(p graph.Program, vars graph.Vars) (string, error) {
	if p == nil {
		return "", nil
	}
	value, err := p.Eval(vars)
	switch {
	case err != nil || value == payload.Null:
		return "", err
	case payload.KindOf(value) == payload.String:
		return payload.Unquote(value)
	}
	return string(value), nil
}
