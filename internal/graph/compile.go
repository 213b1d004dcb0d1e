package graph

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/graphd-dev/graphd/internal/payload"
)

// Env is the input of the compiler besides the Spec. Every field may be nil; then
// the compiler leaves its check out. But a Spec with expressions needs
// Expressions, and a Spec with subgraphs needs Lookup.
type Env struct {
	Expressions Expressions
	Lookup      GraphLookup
	// HasFunction reports whether a node function or router is registered.
	HasFunction func(name string) bool
	// CheckSchema compiles a JSON Schema.
	CheckSchema func(schema payload.JSON) error
	// CheckValue checks a value against a JSON Schema.
	CheckValue func(schema, value payload.JSON) error
	// CheckCondition compiles a condition over an answer.
	CheckCondition func(condition string) error
	// HasNoCallers says that the server does not know who calls.
	HasNoCallers bool
	// HasNoKeys says that the server stores its records unencrypted.
	HasNoKeys bool
	// CheckEndpoint reports why the server may not dial an endpoint.
	CheckEndpoint func(endpoint string) error
	// Limits bound the Spec, and its size together with the graphs in it.
	Limits Limits
	// Line gives the line of a Problem's path in the file, 0 = unknown.
	Line func(path string) int
}

// Compile checks a Spec and resolves its names. It returns a *BuildError with all
// problems. The Spec must not be changed afterwards.
func Compile(spec *Spec, env Env) (*Graph, error) {
	b := &builder{
		spec: spec,
		env:  env,
		nameResolver: nameResolver{
			problemList: problemList{lineOf: env.Line},
			graph: &Graph{
				Name: spec.Name, Version: spec.Version, Spec: spec,
				InterruptBefore: spec.InterruptBefore, InterruptAfter: spec.InterruptAfter,
				channels: make(map[string]int), nodes: make(map[string]*Node),
			},
			hasIncoming: make(map[*Node]bool),
		},
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

// builder carries a compilation. Each of its steps goes on after a problem, as
// far as the rest makes sense. Edges, nodes, error handlers and the search for
// lost nodes have types of their own, which share its names and problems.
type builder struct {
	nameResolver

	spec *Spec
	env  Env
}

func (b *builder) buildGraph() {
	b.checkHeader()
	b.buildStateKeys()
	b.declareNodes()
	b.addControlChannels()
	names := &b.nameResolver
	expressions := expressionCompiler{nameResolver: names, expressions: b.env.Expressions}
	edges := edgeBuilder{expressionCompiler: expressions, spec: b.spec, hasFunction: b.env.HasFunction}
	edges.buildEdges()
	edges.buildBranches()
	nodes := nodeBuilder{expressionCompiler: expressions, spec: b.spec, env: &b.env}
	nodes.buildNodes()
	b.countExpanded()
	handlers := handlerResolver{nameResolver: names, spec: b.spec}
	handlers.resolveHandlers()
	b.checkGraphPolicy()
	b.checkBreakpoints()
	walk := reachability{nameResolver: names, spec: b.spec, hasEntry: edges.hasEntry}
	walk.checkReachability()
}

func (b *builder) checkHeader() {
	b.checkName("graph", "graph", b.spec.Name, "/@|:")
	if b.spec.Version != "" {
		b.checkName("version", "version", b.spec.Version, "/@|:")
	}
	b.checkSchema("input_schema", b.spec.InputSchema, b.env.CheckSchema)
	b.checkSchema("output_schema", b.spec.OutputSchema, b.env.CheckSchema)
	b.checkSchema("context_schema", b.spec.ContextSchema, b.env.CheckSchema)
}

// checkSchema checks a JSON Schema; a nil compile leaves its keywords unchecked.
func (p *problemList) checkSchema(path string, schema payload.JSON, compile func(payload.JSON) error) bool {
	if schema == "" || !p.checkJSON(path, schema) {
		return false
	}
	if k := payload.KindOf(schema); k != payload.ObjectKind && k != payload.Bool {
		p.addProblem(path, ReasonInvalidSchema, "a JSON Schema is an object or a boolean, not %s", k)
		return false
	}
	if compile == nil {
		return true
	}
	if err := compile(schema); err != nil {
		p.addErrorProblem(path, ReasonInvalidSchema, "not a valid JSON Schema: %v", err)
		return false
	}
	return true
}

func (p *problemList) checkJSON(path string, value payload.JSON) bool {
	// Repeated keys are refused where graphs come in; an earlier version has kept some.
	if err := payload.Validate(string(value), payload.Limits{RepeatedKeys: payload.AllowRepeatedKeys}); err != nil {
		p.addProblem(path, ReasonInvalidJSON, "%v", err)
		return false
	}
	return true
}

func indexPath(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
