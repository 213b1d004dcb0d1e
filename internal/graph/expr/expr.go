// Package expr runs the expressions of a graph: CEL over JSON text.
//
// An expression sees the variables state, input, answer, context and error,
// the constant END, CEL's standard library with optionals, and the extensions
// for strings, lists, math, sets, encoders, bindings and two-variable
// comprehensions. send(node, value) makes a Send for branches and gotos.
//
// Values are decoded only as far as the expression looks. Values that it only
// carries come out as they went in, with the spelling of numbers and the order of
// keys. Where it computes, whole numbers are 64-bit integers, and + - * / accept
// a whole number and a fraction together, unlike plain CEL: JSON does not tell 20
// from 20.0 on purpose.
//
// An expression cannot hang and cannot exhaust the memory: CEL has no loops but
// over lists and maps, every function has a price in steps and bytes that is
// paid before it is called (see prices), and results are limited (see Options).
// There is no clock, no randomness and no I/O in it, so a replay computes the
// same.
package expr

import (
	"cmp"
	"fmt"
	"runtime"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/expr/syntax"
	"github.com/graphd-dev/graphd/internal/payload"
)

// Options bounds the cost of expressions.
type Options struct {
	// MaxSource is the longest expression, in code points; 0 = 16384.
	MaxSource int
	// MaxNesting is how deep comprehensions may be nested; 0 = 4.
	MaxNesting int
	// MaxSteps is the work of an evaluation, about one step per call, per part of
	// the body in each pass of a loop, and per 32 bytes of text handled; 0 =
	// 10,000,000, which is about a second.
	MaxSteps int64
	// MaxBytes bounds the allocations of an evaluation, with decoded values; 0 =
	// 64 MiB.
	MaxBytes int64
	// MaxResult is the longest result, in bytes of JSON; 0 = 4 MiB.
	MaxResult int64
	// MaxDepth is how deep a result may be nested; 0 = 128.
	MaxDepth int
	// MaxLargeEvals is how many evaluations that allocate more than 1 MiB run
	// at a time, others wait; 0 = one per processor, at most 4.
	MaxLargeEvals int
}

func (o Options) withDefaults() Options {
	if o.MaxSource == 0 {
		o.MaxSource = 16384
	}
	if o.MaxNesting == 0 {
		o.MaxNesting = 4
	}
	if o.MaxLargeEvals == 0 {
		o.MaxLargeEvals = min(runtime.GOMAXPROCS(0), 4)
	}
	o.MaxSteps = cmp.Or(o.MaxSteps, 10_000_000)
	o.MaxBytes = cmp.Or(o.MaxBytes, 64<<20)
	o.MaxResult = cmp.Or(o.MaxResult, 4<<20)
	o.MaxDepth = cmp.Or(o.MaxDepth, 128)
	return o
}

// Compiler compiles expressions. It is safe for concurrent use.
type Compiler struct {
	env            *cel.Env // the environment of programs
	checkEnv       *cel.Env // the environment of authors
	options        Options
	planner        *planner
	largeEvalSlots chan struct{} // of evaluations that need much memory
}

// New makes a compiler.
func New(options Options) (*Compiler, error) { return newCompiler(options) }

func newCompiler(options Options, more ...cel.EnvOption) (*Compiler, error) {
	return newCompilerOf(options, append(declareVariables(), more...)...)
}

// newCompilerOf makes a compiler of expressions that see the given variables.
func newCompilerOf(options Options, variables ...cel.EnvOption) (*Compiler, error) {
	options = options.withDefaults()
	env, err := cel.NewEnv(append(envOptions(options), variables...)...)
	if err != nil {
		return nil, fmt.Errorf("expression environment: %w", err)
	}
	checks, err := env.Extend(mixedArithmetic()...)
	if err != nil {
		return nil, fmt.Errorf("expression environment: %w", err)
	}
	plan, err := newPlanner(env)
	if err != nil {
		return nil, fmt.Errorf("expression environment: %w", err)
	}
	return &Compiler{
		env: env, checkEnv: checks, options: options, planner: plan, largeEvalSlots: make(chan struct{}, options.MaxLargeEvals),
	}, nil
}

// declareVariables declares the variables of the expressions of graphs.
func declareVariables() []cel.EnvOption {
	return []cel.EnvOption{
		cel.Variable("state", cel.DynType),
		cel.Variable("input", cel.DynType),
		cel.Variable("answer", cel.DynType),
		cel.Variable("context", cel.DynType),
		cel.Variable("error", cel.DynType),
	}
}

// envOptions declares the functions of expressions.
func envOptions(options Options) []cel.EnvOption {
	return []cel.EnvOption{
		cel.Constant("END", cel.StringType, types.String(graph.End)),
		cel.OptionalTypes(),
		ext.Strings(), ext.Lists(), ext.Math(), ext.Sets(), ext.Encoders(),
		ext.Bindings(), ext.TwoVarComprehensions(),
		cel.ParserExpressionSizeLimit(options.MaxSource),
		cel.ASTValidators(cel.ValidateComprehensionNestingLimit(options.MaxNesting)),
		ownFunctions(),
	}
}

// Compile checks an expression and prepares it. The error is a *CompileError.
func (c *Compiler) Compile(source string) (graph.Program, error) {
	parsed, issues := c.env.Parse(source)
	if issues.Err() != nil {
		return nil, newCompileError(source, issues)
	}
	if err := syntax.CheckTypeDepth(parsed.NativeRep()); err != nil {
		return nil, singleIssue(source, err)
	}
	keys := syntax.FindStateKeys(parsed.NativeRep())
	// Check before rewriting, so that problems speak of the written text.
	written, issues := c.checkEnv.Check(parsed)
	if issues.Err() != nil {
		return nil, newCompileError(source, issues)
	}
	yields := written.OutputType()
	if parsed, issues = c.env.Parse(source); issues.Err() != nil {
		return nil, newCompileError(source, issues)
	}
	syntax.RewriteTree(parsed.NativeRep())
	checked, issues := c.env.Check(parsed)
	if issues.Err() != nil {
		return nil, newCompileError(source, issues)
	}
	program, err := c.env.Program(checked, cel.EvalOptions(cel.OptOptimize), cel.CustomDecoratorV2(c.planner.newProgramPlan().decorateStep))
	if err != nil {
		return nil, singleIssue(source, err)
	}
	return &Program{source: source, stateKeys: keys, resultType: yields, program: program, compiler: c}, nil
}

// Program is a compiled expression. It is safe for concurrent use.
type Program struct {
	source     string
	stateKeys  []string
	resultType *cel.Type
	program    cel.Program
	compiler   *Compiler
}

// StateKeys lists the state keys that the expression names, sorted. Keys that
// it computes are not among them.
func (p *Program) StateKeys() []string { return p.stateKeys }

// ResultType names the type of the expression's result, like "string"; "" when it
// depends on values.
func (p *Program) ResultType() string {
	if p.resultType == nil || p.resultType.Kind() == types.DynKind || p.resultType.Kind() == types.AnyKind {
		return ""
	}
	return p.resultType.TypeName()
}

// Eval computes the expression. The error is an *EvalError; it wraps a
// *graph.LimitError when the evaluation went beyond a limit, and ErrCancelled when it
// waited for memory and the caller no longer waits.
func (p *Program) Eval(vars graph.Vars) (result payload.JSON, err error) {
	e := &evaluation{vars: vars, meter: newMeter(&p.compiler.options, p.compiler.largeEvalSlots, vars.Cancelled)}
	defer func() {
		e.meter.releaseSlot()
		if cause := recover(); cause != nil {
			result, err = "", e.explainError(p.source, fmt.Errorf("internal error: %v", cause))
		}
	}()
	value, _, err := p.program.Eval(activation{e})
	if err != nil {
		return "", e.explainError(p.source, err)
	}
	text, err := encodeResult(&e.meter, value)
	if err != nil {
		return "", &EvalError{Source: p.source, Message: err.Error(), Err: err}
	}
	return text, nil
}
