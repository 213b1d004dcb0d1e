package graph

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/graphd-dev/graphd/internal/payload"
)

// Env is what the compiler knows besides the Spec. Every field may be nil; then
// what it stands for is not checked, except that a Spec with expressions needs
// Expressions and one with subgraphs needs Lookup.
type Env struct {
	Expressions Expressions
	Lookup      GraphLookup
	// HasFunction reports whether a node function or router is registered.
	HasFunction func(name string) bool
	// CheckSchema compiles a JSON Schema.
	CheckSchema func(schema payload.JSON) error
	// CheckValue checks a value against a JSON Schema.
	CheckValue func(schema, value payload.JSON) error
	// Limits bound the Spec, and what it comes to with the graphs in it.
	Limits Limits
	// Line gives the line of a Problem's path in the file, 0 = unknown.
	Line func(path string) int
}

// Compile checks a Spec and resolves its names. It reports everything that is
// wrong in one *BuildError. The Spec must not be changed afterwards.
func Compile(spec *Spec, env Env) (*Graph, error) {
	b := &builder{
		spec: spec,
		env:  env,
		graph: &Graph{
			Name: spec.Name, Version: spec.Version, Spec: spec,
			InterruptBefore: spec.InterruptBefore, InterruptAfter: spec.InterruptAfter,
			channels: make(map[string]int), nodes: make(map[string]*Node),
		},
		problemList: problemList{lineOf: env.Line},
	}
	if !b.exceedsLimits() {
		b.buildGraph()
	}
	if len(b.found) > 0 {
		slices.SortStableFunc(b.found, func(x, y Problem) int { return cmp.Compare(x.Line, y.Line) })
		return nil, &BuildError{Graph: spec.Name, Problems: b.found}
	}
	if b.graph.Version == "" {
		b.graph.Version = Digest(spec)
	}
	return b.graph, nil
}

func (b *builder) buildGraph() {
	b.checkHeader()
	b.buildStateKeys()
	b.declareNodes()
	b.addControlChannels()
	b.buildEdges()
	b.buildBranches()
	b.buildNodes()
	b.countExpanded()
	b.resolveHandlers()
	b.checkGraphPolicy()
	b.checkBreakpoints()
	b.checkReachability()
}

// builder carries one compilation. Each of its steps goes on after a problem,
// as far as what is left makes sense.
type builder struct {
	problemList

	spec  *Spec
	env   Env
	graph *Graph
	// hasIncoming marks nodes that an edge, a branch or a goto names as target.
	hasIncoming map[*Node]bool
	hasEntry    bool               // something leads away from START
	branchNames map[[2]string]bool // conditional edges, by source and name
	// visibleKeys are the keys that the node at hand sees; nil = all.
	visibleKeys []int
}

func (b *builder) checkHeader() {
	b.checkName("graph", "graph", b.spec.Name, "/@|:")
	if b.spec.Version != "" {
		b.checkName("version", "version", b.spec.Version, "/@|:")
	}
	b.checkSchema("input_schema", b.spec.InputSchema)
	b.checkSchema("output_schema", b.spec.OutputSchema)
	b.checkSchema("context_schema", b.spec.ContextSchema)
}

func (b *builder) checkSchema(path string, schema payload.JSON) bool {
	if schema == "" || !b.checkJSON(path, schema) {
		return false
	}
	if k := payload.KindOf(schema); k != payload.ObjectKind && k != payload.Bool {
		b.addProblem(path, ReasonInvalidSchema, "a JSON Schema is an object or a boolean, not %s", k)
		return false
	}
	if b.env.CheckSchema == nil {
		return true
	}
	if err := b.env.CheckSchema(schema); err != nil {
		b.addErrorProblem(path, ReasonInvalidSchema, "not a valid JSON Schema: %v", err)
		return false
	}
	return true
}

func (b *builder) checkJSON(path string, value payload.JSON) bool {
	// Repeated keys are refused where graphs come in; an earlier version has kept some.
	if err := payload.Validate(string(value), payload.Limits{RepeatedKeys: payload.AllowRepeatedKeys}); err != nil {
		b.addProblem(path, ReasonInvalidJSON, "%v", err)
		return false
	}
	return true
}

// compileExpression compiles an expression; "" is no expression.
func (b *builder) compileExpression(path, source string) Program {
	if source == "" {
		return nil
	}
	if b.env.Expressions == nil {
		b.addProblem(path, ReasonInvalidExpression, "expressions are not available here")
		return nil
	}
	p, err := b.env.Expressions.Compile(source)
	if err != nil {
		b.addErrorProblem(path, ReasonInvalidExpression, "%v", err)
		return nil
	}
	b.checkStateKeys(path, p)
	return p
}

// typedProgram is a Program that knows the type of its value; "" = it depends.
type typedProgram interface{ ResultType() string }

// compileCondition compiles an expression that must come to true or false.
func (b *builder) compileCondition(path, source string) Program {
	p := b.compileExpression(path, source)
	if t, ok := p.(typedProgram); ok {
		if kind := t.ResultType(); kind != "" && kind != "bool" {
			b.addProblem(path, ReasonInvalidExpression, "a condition must be true or false; this is always of type %s", kind)
		}
	}
	return p
}

// keyedProgram is a Program that tells which state keys it names.
type keyedProgram interface{ StateKeys() []string }

// checkStateKeys refuses an expression that names a key it can never see.
func (b *builder) checkStateKeys(path string, p Program) {
	k, ok := p.(keyedProgram)
	if _, root := b.graph.channels[Root]; !ok || root {
		return
	}
	for _, key := range k.StateKeys() {
		at, known := b.graph.channels[key]
		switch {
		case !known || !b.graph.Channels[at].IsStateKey:
			b.addUnknown(path, ReasonUnknownChannel, "channel", key, b.keyNames)
		case b.visibleKeys != nil && !slices.Contains(b.visibleKeys, at):
			b.addProblem(path, ReasonUnknownChannel, "the expression reads %q, which is not among the node's reads", key)
		}
	}
}

// addChannel adds a channel and returns its position.
func (b *builder) addChannel(c Channel) int {
	if i, ok := b.graph.channels[c.Name]; ok {
		return i
	}
	b.graph.Channels = append(b.graph.Channels, c)
	b.graph.channels[c.Name] = len(b.graph.Channels) - 1
	return len(b.graph.Channels) - 1
}

// constantProgram is a Program that always yields the same value.
type constantProgram payload.JSON

// Eval returns the value.
func (l constantProgram) Eval(Vars) (payload.JSON, error) { return payload.JSON(l), nil }

func indexPath(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
