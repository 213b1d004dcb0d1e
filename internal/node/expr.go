package node

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/node/function"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// executeExpr runs a node of kind expr.
func executeExpr(ctx context.Context, t *runtime.Task) pregel.Result {
	return evalUpdate(t.Node.Update, t.Node.Spec.Expr.Update, t.Node.Goto, newVars(ctx, t))
}

// newVars returns the variables of the expressions of a node.
func newVars(ctx context.Context, t *runtime.Task) graph.Vars {
	in := newTaskInput(t)
	return graph.Vars{State: &in, Input: t.Send, Context: t.Context, Failed: failureJSON(t.Failed), Cancelled: ctx.Done()}
}

// evalUpdate computes an update and the next nodes.
func evalUpdate(programs []graph.Program, list []graph.Assignment, goTo graph.Program, vars graph.Vars) pregel.Result {
	fields := make([]payload.Field, len(programs))
	for i, p := range programs {
		value, err := p.Eval(vars)
		if err != nil {
			return function.FailedResult(expressionFailure(list[i].Channel, err))
		}
		fields[i] = payload.Field{Key: list[i].Channel, Value: value}
	}
	r := pregel.Result{}
	switch {
	case len(fields) == 1 && fields[0].Key == graph.Root:
		r.Update = fields[0].Value
	case len(fields) > 0:
		r.Update = payload.Object(fields)
	}
	if goTo == nil {
		return r
	}
	targets, err := evalGoto(goTo, vars)
	if err != nil {
		return function.FailedResult(expressionFailure("goto", err))
	}
	r.Goto = targets
	return r
}

func evalGoto(p graph.Program, vars graph.Vars) ([]checkpoint.Send, error) {
	value, err := p.Eval(vars)
	if err != nil {
		return nil, err
	}
	if value == payload.Null {
		return nil, nil
	}
	return pregel.ParseTargets(value)
}

// expressionFailure returns the failure of an expression. The same state gives the
// same failure, so it is not retried.
func expressionFailure(where string, err error) *pregel.Failure {
	f := function.PermanentFailure(runtime.FailedNode, "ExpressionError", function.ClipText(fmt.Sprintf("%s: %v", where, err)))
	if limit, ok := errors.AsType[*graph.LimitError](err); ok {
		f.Reason, f.Details = runtime.FailedLimit, limit.Details()
	}
	return f
}

// failureJSON returns a failure as expressions see it.
func failureJSON(f *checkpoint.Failure) payload.JSON {
	if f == nil {
		return ""
	}
	return payload.Object([]payload.Field{
		{Key: "node", Value: payload.Quote(f.Node)},
		{Key: "reason", Value: payload.Quote(f.Reason)},
		{Key: "type", Value: payload.Quote(f.Type)},
		{Key: "message", Value: payload.Quote(f.Message)},
		{Key: "attempt", Value: payload.JSON(strconv.Itoa(f.Attempt))},
	})
}
