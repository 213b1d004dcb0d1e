package node

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	api "github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/node/function"
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
		return function.FailedResult(expressionFailure("when", err))
	}
	if !needed {
		return evalUpdate(t.Node.Otherwise, t.Node.Spec.Ask.Otherwise, t.Node.Goto, vars)
	}
	key, err := evalText(t.Node.Key, vars)
	if err != nil {
		return function.FailedResult(expressionFailure("key", err))
	}
	r := function.NewReplay(t.Journal, t.Graph.Spec)
	asked := buildAsk(t, key, vars)
	known := r.AnswerWithKey(key)
	if known == nil || asked.Failure != nil || !r.CanUseAnswer(known, &asked.Asks[0]) {
		return asked
	}
	switch {
	case known.Dismissed:
		return function.FailedResult(function.FailureOf(&api.DismissedError{Question: "the question", Note: known.Reason}))
	case known.Expired:
		return function.FailedResult(function.FailureOf(&api.ExpiredError{Question: "the question"}))
	}
	vars.Answer = known.Value
	result := evalUpdate(t.Node.Update, t.Node.Spec.Ask.Update, t.Node.Goto, vars)
	if known.HasSecrets {
		result = hideSecrets(t.Graph, result)
	}
	result.UsedAnswers = r.UsedAnswers()
	return result
}

// hideSecrets makes failures of a result show no secret part of the answer: those of its
// expressions, and of targets that are no nodes.
func hideSecrets(g *graph.Graph, result pregel.Result) pregel.Result {
	if result.Failure != nil {
		hideFailure(result.Failure)
		return result
	}
	for i := range result.Goto {
		target := result.Goto[i].Node
		if n, ok := g.Node(target); target != graph.End && (!ok || n.Kind == graph.KindStart) {
			return function.FailedResult(function.PermanentFailure(runtime.FailedUnknownTarget, "UnknownTarget",
				"goto: names no node; its name is not shown, because the answer has secret parts"))
		}
	}
	return result
}

// hideFailure takes the text of an expression out of a failure: it may repeat a secret part of the
// answer.
func hideFailure(f *pregel.Failure) {
	if where, _, ok := strings.Cut(f.Message, ": "); ok {
		f.Message = where + ": can't be evaluated; why is not shown, because the answer has secret parts"
	}
}

func buildAsk(t *runtime.Task, key string, vars graph.Vars) pregel.Result {
	spec := t.Node.Spec.Ask
	message, err := evalText(t.Node.Message, vars)
	if err != nil {
		return function.FailedResult(expressionFailure("message", err))
	}
	value := payload.Null
	if t.Node.Value != nil {
		if value, err = t.Node.Value.Eval(vars); err != nil {
			return function.FailedResult(expressionFailure("value", err))
		}
	}
	assignees, err := evalNames(&spec.Assignees, t.Node.Assignees, vars)
	if err != nil {
		return function.FailedResult(expressionFailure("assignees", err))
	}
	if err := checkAssignees(assignees); err != nil {
		return function.FailedResult(expressionFailure("assignees", err))
	}
	ttl, err := evalTTL(t.Node, vars)
	if err != nil {
		return function.FailedResult(expressionFailure("ttl", err))
	}
	answer := spec.Default
	if t.Node.Default != nil {
		if answer, err = t.Node.Default.Eval(vars); err != nil {
			return function.FailedResult(expressionFailure("default_expr", err))
		}
	}
	policy, failure := evalPolicy(t.Node, vars)
	if failure != nil {
		return function.FailedResult(failure)
	}
	ask := pregel.Ask{
		Key: key, Reason: spec.Reason, Message: message, Value: value, Schema: spec.Schema,
		TTL: ttl, Expiry: checkpoint.ExpiryAction(spec.Expiry), Default: answer,
		Priority: graph.PriorityOf(spec.Priority), Steps: spec.ApprovalSteps(),
		Undo: spec.Undo, Assignees: assignees, Policy: policy, Drift: checkpoint.Drift(spec.Drift), DriftIgnore: spec.DriftIgnore,
		Secret: spec.Secret,
	}
	if err := ask.HideSecrets(); err != nil {
		return function.FailedResult(expressionFailure("ask", err))
	}
	return pregel.Result{Asks: []pregel.Ask{ask}}
}

// evalTTL evaluates how long a question waits: an expression yields a duration like "30m", a
// number of seconds, or null for no end.
func evalTTL(n *graph.Node, vars graph.Vars) (time.Duration, error) {
	if n.TTL == nil {
		return n.Spec.Ask.TTL, nil
	}
	value, err := n.TTL.Eval(vars)
	if err != nil || value == payload.Null {
		return 0, err
	}
	var ttl time.Duration
	switch payload.KindOf(value) {
	case payload.String:
		text, err := payload.Unquote(value)
		if err != nil {
			return 0, err
		}
		if ttl, err = graph.ParseDuration(text); err != nil {
			return 0, fmt.Errorf("must yield a duration like 30m, not %s", function.ShortenValue(value))
		}
	case payload.Number:
		seconds, err := strconv.ParseFloat(string(value), 64)
		if err != nil || seconds > maxTTL.Seconds() {
			return 0, fmt.Errorf("must yield at most %s, not %s seconds", maxTTL, function.ShortenValue(value))
		}
		ttl = time.Duration(seconds * float64(time.Second))
	default:
		return 0, fmt.Errorf("must yield a duration like 30m, a number of seconds, or null, not %s", function.ShortenValue(value))
	}
	if ttl <= 0 || ttl > maxTTL {
		return 0, fmt.Errorf("must yield more than 0s and at most %s, not %s", maxTTL, ttl)
	}
	return ttl, nil
}

// maxTTL bounds a time that an expression yields.
const maxTTL = 100 * 365 * 24 * time.Hour

// checkAssignees refuses names beyond the bounds of an interrupt: each is a tag in the store.
func checkAssignees(names []string) error {
	if n := len(names); n > approval.MaxAssignees {
		return fmt.Errorf("yields %d names; at most %d are allowed", n, approval.MaxAssignees)
	}
	for i, name := range names {
		if name == "" || len(name) > approval.MaxNameLength {
			return fmt.Errorf("name %d has %d bytes; want 1 to %d", i+1, len(name), approval.MaxNameLength)
		}
	}
	return nil
}

// evalPolicy computes who may answer, and how many must.
func evalPolicy(n *graph.Node, vars graph.Vars) (*approval.Policy, *pregel.Failure) {
	spec := n.Spec.Ask.People
	if spec == nil {
		return nil, nil
	}
	p := spec.Policy()
	var err error
	if p.Users, err = evalNames(&spec.Users, n.Users, vars); err != nil {
		return nil, expressionFailure("people.users", err)
	}
	if p.Groups, err = evalNames(&spec.Groups, n.Groups, vars); err != nil {
		return nil, expressionFailure("people.groups", err)
	}
	if isNamed := !spec.Users.IsEmpty() || !spec.Groups.IsEmpty(); isNamed && len(p.Users)+len(p.Groups) == 0 {
		return nil, expressionFailure("people", errors.New("the expressions yield no name, and then every caller might answer; yield at least one user or group"))
	}
	if n.Requester == nil {
		return &p, nil
	}
	named, err := evalNames(&graph.NamesSpec{}, n.Requester, vars)
	if err == nil && (len(named) != 1 || named[0] == "") {
		err = errors.New("must yield the name of one caller")
	}
	if err != nil {
		return nil, expressionFailure("people.requester", err)
	}
	p.Requester = named[0]
	return &p, nil
}

// evalNames evaluates an expression that yields a name, a list of names, or null for
// no name; without an expression the names are those of the spec.
func evalNames(s *graph.NamesSpec, p graph.Program, vars graph.Vars) ([]string, error) {
	if p == nil {
		return s.Names, nil
	}
	value, err := p.Eval(vars)
	if err != nil {
		return nil, err
	}
	items := []payload.JSON{value}
	if value == payload.Null {
		return nil, nil
	}
	if payload.KindOf(value) == payload.ArrayKind {
		if items, err = payload.Elements(value); err != nil {
			return nil, err
		}
	}
	names := make([]string, len(items))
	for i, item := range items {
		if payload.KindOf(item) != payload.String {
			return nil, fmt.Errorf("must yield a name or a list of names, not %s", function.ShortenValue(value))
		}
		if names[i], err = payload.Unquote(item); err != nil {
			return nil, err
		}
	}
	return names, nil
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
	return false, fmt.Errorf("a condition must be true or false, not %s", function.ShortenValue(value))
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
