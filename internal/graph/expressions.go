package graph

import (
	"slices"

	"github.com/graphd-dev/graphd/internal/payload"
)

// expressionCompiler compiles the expressions of edges and nodes.
type expressionCompiler struct {
	*nameResolver

	expressions Expressions // nil = not available
	visibleKeys []int       // that the node at hand sees; nil = all
}

// compileExpression compiles an expression; "" is no expression.
func (c *expressionCompiler) compileExpression(path, source string) Program {
	if source == "" {
		return nil
	}
	if c.expressions == nil {
		c.addProblem(path, ReasonInvalidExpression, "expressions are not available here")
		return nil
	}
	p, err := c.expressions.Compile(source)
	if err != nil {
		c.addErrorProblem(path, ReasonInvalidExpression, "%v", err)
		return nil
	}
	c.checkStateKeys(path, p)
	return p
}

// typedProgram is a Program that knows the type of its value; "" = it depends.
type typedProgram interface{ ResultType() string }

// compileCondition compiles an expression that must come to true or false.
func (c *expressionCompiler) compileCondition(path, source string) Program {
	p := c.compileExpression(path, source)
	if t, ok := p.(typedProgram); ok {
		if kind := t.ResultType(); kind != "" && kind != "bool" {
			c.addProblem(path, ReasonInvalidExpression, "a condition must be true or false; this is always of type %s", kind)
		}
	}
	return p
}

// keyedProgram is a Program that tells which state keys it names.
type keyedProgram interface{ StateKeys() []string }

// checkStateKeys refuses an expression that names a key it can never see.
func (c *expressionCompiler) checkStateKeys(path string, p Program) {
	k, ok := p.(keyedProgram)
	if _, root := c.graph.channels[Root]; !ok || root {
		return
	}
	for _, key := range k.StateKeys() {
		at, known := c.graph.channels[key]
		switch {
		case !known || !c.graph.Channels[at].IsStateKey:
			c.addUnknown(path, ReasonUnknownChannel, "channel", key, c.keyNames)
		case c.visibleKeys != nil && !slices.Contains(c.visibleKeys, at):
			c.addProblem(path, ReasonUnknownChannel, "the expression reads %q, which is not among the node's reads", key)
		}
	}
}

func (c *expressionCompiler) compileAssignments(path string, list []Assignment) []Program {
	programs := make([]Program, len(list))
	seen := make(map[string]bool, len(list))
	for i, a := range list {
		at := path + "." + a.Channel
		if key, ok := c.graph.channels[a.Channel]; !ok || !c.graph.Channels[key].IsStateKey {
			c.addUnknown(at, ReasonUnknownChannel, "channel", a.Channel, c.keyNames)
		} else if seen[a.Channel] {
			c.addProblem(at, ReasonDuplicateName, "channel %q is assigned twice", a.Channel)
		}
		seen[a.Channel] = true
		if a.Expr == "" {
			c.addProblem(at, ReasonMissing, "the expression is empty; to write nothing leave the channel out, to write null say null")
		}
		programs[i] = c.compileExpression(at, a.Expr)
	}
	return programs
}

// constantProgram is a Program that always yields the same value.
type constantProgram payload.JSON

// Eval returns the value.
func (c constantProgram) Eval(Vars) (payload.JSON, error) { return payload.JSON(c), nil }
