package expr

import (
	"fmt"
	"regexp"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// meterName is the name under which a step of a program finds the evaluation.
// Authors cannot write it.
const meterName = "@meter"

// operation is one of our own functions: it charges what only it can know.
type operation func(m *meter, x, y ref.Val, all []ref.Val) ref.Val

// planner puts a price before every call of a program. It is made once for all
// programs of a compiler.
type planner struct {
	prices     map[string]price
	operations map[string]operation
	bindings   map[string]*functions.Overload // by overload, and by function
}

// program plans one program: it may spend MaxRegex on its constant patterns.
func (p *planner) program() *programPlan { return &programPlan{planner: p} }

type programPlan struct {
	*planner

	regex int64 // instructions so far
}

// newPlanner refuses an environment with a function that has no price.
func newPlanner(env *cel.Env) (*planner, error) {
	p := &planner{prices: prices(), operations: operations(), bindings: map[string]*functions.Overload{}}
	for name, declared := range env.Functions() {
		bound, err := declared.Bindings()
		if err != nil {
			return nil, fmt.Errorf("function %s: %w", name, err)
		}
		for _, b := range bound {
			p.bindings[b.Operator] = b
		}
		if p.prices[name] == nil {
			return nil, fmt.Errorf("the function %s has no price", name)
		}
	}
	return p, nil
}

// decorate replaces calls and literals of lists and maps by ones that charge.
func (p *programPlan) decorate(step interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch step := step.(type) {
	case interpreter.InterpretableCall:
		return p.call(step)
	case interpreter.InterpretableConstructor:
		return construct(step), nil
	}
	return step, nil
}

func (p *programPlan) call(step interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	name, args := step.Function(), step.Args()
	cost, ok := p.prices[name]
	if !ok {
		return nil, fmt.Errorf("the function %s has no price", name)
	}
	if name == overloads.Matches && len(args) == 2 {
		if pattern, ok := constantText(args[1]); ok {
			return p.match(step, pattern)
		}
	}
	c := &call{InterpretableCall: step, args: args, cost: cost, own: p.operations[name]}
	if c.bound = p.bindings[step.OverloadID()]; c.bound == nil {
		c.bound = p.bindings[name]
	}
	if c.bound == nil {
		c.bound = &functions.Overload{}
	}
	return c, nil
}

func constantText(step interpreter.InterpretableV2) (string, bool) {
	constant, ok := step.(interpreter.InterpretableConst)
	if !ok {
		return "", false
	}
	text, ok := constant.Value().(types.String)
	return string(text), ok
}

func meterOf(frame *interpreter.ExecutionFrame) *meter {
	if found, ok := frame.ResolveName(meterName); ok {
		if e, ok := found.(*evaluation); ok {
			return &e.meter
		}
	}
	return nil
}

// call evaluates its arguments, pays, and calls.
type call struct {
	interpreter.InterpretableCall // what it is about

	args  []interpreter.InterpretableV2
	cost  price
	own   operation
	bound *functions.Overload
}

// Exec is a step of an evaluation.
func (c *call) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	var x, y ref.Val
	switch len(c.args) {
	case 0:
	case 1:
		x = c.args[0].Exec(frame)
	case 2:
		x = c.args[0].Exec(frame)
		if c.stops(x) {
			return x
		}
		y = c.args[1].Exec(frame)
	default:
		return c.long(frame)
	}
	if c.stops(x) {
		return x
	}
	if c.stops(y) {
		return y
	}
	m := meterOf(frame)
	if result := c.cost(m, x, y, nil); result != nil {
		return c.label(result)
	}
	if c.own != nil {
		return c.label(c.own(m, x, y, nil))
	}
	return c.label(c.invoke(x, y))
}

// long is a call with three or more arguments.
func (c *call) long(frame *interpreter.ExecutionFrame) ref.Val {
	all := make([]ref.Val, len(c.args))
	for i, arg := range c.args {
		if all[i] = arg.Exec(frame); c.stops(all[i]) {
			return all[i]
		}
	}
	m := meterOf(frame)
	if result := c.cost(m, all[0], all[1], all); result != nil {
		return c.label(result)
	}
	if c.own != nil {
		return c.label(c.own(m, all[0], all[1], all))
	}
	if c.bound.Function == nil || !c.suits(all[0]) {
		return c.missing()
	}
	return c.label(c.bound.Function(all...))
}

// stops reports whether an argument is an error that the call passes on.
func (c *call) stops(arg ref.Val) bool {
	if arg == nil || c.bound.NonStrict {
		return false
	}
	return types.IsUnknownOrError(arg)
}

func (c *call) invoke(x, y ref.Val) ref.Val {
	b := c.bound
	if x != nil && !c.suits(x) {
		return c.missing()
	}
	switch {
	case x == nil && b.Function != nil:
		return b.Function()
	case y == nil && b.Unary != nil:
		return b.Unary(x)
	case y == nil && b.Function != nil:
		return b.Function(x)
	case b.Binary != nil:
		return b.Binary(x, y)
	case b.Function != nil:
		return b.Function(x, y)
	}
	return c.missing()
}

// suits reports whether the first argument can what the function needs.
func (c *call) suits(arg ref.Val) bool {
	need := c.bound.OperandTrait
	return need == 0 || c.bound.NonStrict && types.IsUnknownOrError(arg) || arg.Type().HasTrait(need)
}

func (c *call) missing() ref.Val {
	return types.NewErrWithNodeID(c.ID(), "no such overload: %s", c.Function())
}

// label says where an error comes from.
func (c *call) label(v ref.Val) ref.Val {
	if err, ok := v.(*types.Err); ok && err.NodeID() == 0 {
		return types.LabelErrNode(c.ID(), err)
	}
	return v
}

// Eval is a step of an evaluation without a frame.
func (c *call) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, c.Exec)
}

// literal charges a list or a map that the expression writes out.
type literal struct {
	interpreter.InterpretableV2

	size int64 // elements, or keys and values
}

// Exec is a step of an evaluation.
func (l *literal) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	m := meterOf(frame)
	m.step(1)
	m.alloc(l.size+4, 16)
	return l.InterpretableV2.Exec(frame)
}

// Eval is a step of an evaluation without a frame.
func (l *literal) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, l.Exec)
}

// construct charges a literal list or map; one of constants only is made once,
// when the program is.
func construct(step interpreter.InterpretableConstructor) interpreter.InterpretableV2 {
	values := step.InitVals()
	constant := true
	for _, v := range values {
		_, isConstant := v.(interpreter.InterpretableConst)
		constant = constant && isConstant
	}
	if constant {
		return step
	}
	return &literal{InterpretableV2: step, size: int64(len(values))}
}

// opaque hides from the library's optimizations what a step is.
type opaque struct{ interpreter.InterpretableV2 }

// match is a match against a pattern that is translated once, when the
// program is made.
func (p *programPlan) match(step interpreter.InterpretableCall, pattern string) (interpreter.InterpretableV2, error) {
	size := regexSize(pattern)
	if p.regex += size; p.regex > MaxRegex {
		return nil, beyond(limitRegex, MaxRegex, p.regex)
	}
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	match := func(x, _ ref.Val) ref.Val {
		text, ok := x.(types.String)
		if !ok {
			return types.NoSuchOverloadErr()
		}
		return types.Bool(compiled.MatchString(string(text)))
	}
	return opaque{&call{
		InterpretableCall: step, args: step.Args(), bound: &functions.Overload{Binary: match},
		cost: func(m *meter, x, _ ref.Val, _ []ref.Val) ref.Val {
			m.matchRegex(size, textLen(x))
			return nil
		},
	}}, nil
}
