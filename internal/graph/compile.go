package graph

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/graphd-dev/graphd/internal/payload"
)

// Env is what the compiler must know of the world around a Spec. Every field
// may be nil; then what it stands for is not checked, except that a Spec with
// expressions needs Expressions and one with subgraphs needs Lookup.
type Env struct {
	Expressions Expressions
	Lookup      Lookup
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
		g: &Graph{
			Name: spec.Name, Version: spec.Version, Spec: spec,
			InterruptBefore: spec.InterruptBefore, InterruptAfter: spec.InterruptAfter,
			channels: make(map[string]int), nodes: make(map[string]*Node),
		},
		problems: problems{line: env.Line},
	}
	if !b.oversized() {
		b.build()
	}
	if len(b.found) > 0 {
		slices.SortStableFunc(b.found, func(x, y Problem) int { return cmp.Compare(x.Line, y.Line) })
		return nil, &BuildError{Graph: spec.Name, Problems: b.found}
	}
	if b.g.Version == "" {
		b.g.Version = Digest(spec)
	}
	return b.g, nil
}

func (b *builder) build() {
	b.header()
	b.stateKeys()
	b.declareNodes()
	b.madeChannels()
	b.edges()
	b.branches()
	b.nodeDetails()
	b.expand()
	b.handlers()
	b.limits()
	b.breakpoints()
	b.reach()
}

// builder carries one compilation. Each of its steps goes on after a problem,
// as far as what is left makes sense.
type builder struct {
	problems

	spec *Spec
	env  Env
	g    *Graph
	// incoming marks nodes that an edge, a branch or a goto names as target.
	incoming map[*Node]bool
	entry    bool               // something leads away from START
	named    map[[2]string]bool // conditional edges, by source and name
	// reads are the keys that the node at hand sees; nil = all.
	reads []int
}

func (b *builder) header() {
	b.name("graph", "graph", b.spec.Name, "/@|:")
	if b.spec.Version != "" {
		b.name("version", "version", b.spec.Version, "/@|:")
	}
	b.schema("input_schema", b.spec.InputSchema)
	b.schema("output_schema", b.spec.OutputSchema)
	b.schema("context_schema", b.spec.ContextSchema)
}

func (b *builder) schema(path string, schema payload.JSON) bool {
	if schema == "" || !b.json(path, schema) {
		return false
	}
	if k := payload.KindOf(schema); k != payload.ObjectKind && k != payload.Bool {
		b.add(path, ReasonInvalidSchema, "a JSON Schema is an object or a boolean, not %s", k)
		return false
	}
	if b.env.CheckSchema == nil {
		return true
	}
	if err := b.env.CheckSchema(schema); err != nil {
		b.addError(path, ReasonInvalidSchema, "not a valid JSON Schema: %v", err)
		return false
	}
	return true
}

func (b *builder) json(path string, value payload.JSON) bool {
	// Repeated keys are refused where graphs come in; an earlier version has kept some.
	if err := payload.Validate(string(value), payload.Limits{Repeats: payload.AnyRepeats}); err != nil {
		b.add(path, ReasonInvalidJSON, "%v", err)
		return false
	}
	return true
}

// program compiles an expression; "" is no expression.
func (b *builder) program(path, source string) Program {
	if source == "" {
		return nil
	}
	if b.env.Expressions == nil {
		b.add(path, ReasonInvalidExpression, "expressions are not available here")
		return nil
	}
	p, err := b.env.Expressions.Compile(source)
	if err != nil {
		b.addError(path, ReasonInvalidExpression, "%v", err)
		return nil
	}
	b.checkKeys(path, p)
	return p
}

// typed is a Program that knows the type of its value; "" = it depends.
type typed interface{ Yields() string }

// condition compiles an expression that must come to true or false.
func (b *builder) condition(path, source string) Program {
	p := b.program(path, source)
	if t, ok := p.(typed); ok {
		if kind := t.Yields(); kind != "" && kind != "bool" {
			b.add(path, ReasonInvalidExpression, "a condition must be true or false; this is always of type %s", kind)
		}
	}
	return p
}

// keyed is a Program that tells which state keys it names.
type keyed interface{ StateKeys() []string }

// checkKeys refuses an expression that names a key it can never see.
func (b *builder) checkKeys(path string, p Program) {
	k, ok := p.(keyed)
	if _, root := b.g.channels[Root]; !ok || root {
		return
	}
	for _, key := range k.StateKeys() {
		at, known := b.g.channels[key]
		switch {
		case !known || !b.g.Channels[at].State:
			b.unknown(path, ReasonUnknownChannel, "channel", key, b.keyNames)
		case b.reads != nil && !slices.Contains(b.reads, at):
			b.add(path, ReasonUnknownChannel, "the expression reads %q, which is not among the node's reads", key)
		}
	}
}

// channel adds a channel and returns its position.
func (b *builder) channel(c Channel) int {
	if i, ok := b.g.channels[c.Name]; ok {
		return i
	}
	b.g.Channels = append(b.g.Channels, c)
	b.g.channels[c.Name] = len(b.g.Channels) - 1
	return len(b.g.Channels) - 1
}

// literal is a Program that always yields the same value.
type literal payload.JSON

// Eval returns the value.
func (l literal) Eval(Vars) (payload.JSON, error) { return payload.JSON(l), nil }

func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
