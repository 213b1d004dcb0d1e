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

// meterVariable is the name under which a step of a program finds the evaluation.
// Authors cannot write it.
const meterVariable = "@meter"

// functionBody is a function of our own: it charges the costs that only it can know.
type functionBody func(m *meter, x, y ref.Val, all []ref.Val) ref.Val

// planner puts a price before every call of a program. It is made once for all
// programs of a compiler.
type planner struct {
	prices    map[string]price
	bodies    map[string]functionBody
	overloads map[string]*functions.Overload // by overload, and by function
}

// newProgramPlan plans a program: it may spend MaxRegexSize on its constant patterns.
func (p *planner) newProgramPlan() *programPlan { return &programPlan{planner: p} }

type programPlan struct {
	*planner

	regexTotal int64 // instructions so far
}

// newPlanner refuses an environment with a function that has no price.
func newPlanner(env *cel.Env) (*planner, error) {
	p := &planner{prices: listPrices(), bodies: functionBodies(), overloads: map[string]*functions.Overload{}}
	for name, declared := range env.Functions() {
		bound, err := declared.Bindings()
		if err != nil {
			return nil, fmt.Errorf("function %s: %w", name, err)
		}
		for _, b := range bound {
			p.overloads[b.Operator] = b
		}
		if p.prices[name] == nil {
			return nil, fmt.Errorf("the function %s has no price", name)
		}
	}
	return p, nil
}

// decorateStep replaces calls and literals of lists and maps by steps that charge.
func (p *programPlan) decorateStep(step interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch step := step.(type) {
	case interpreter.InterpretableCall:
		return p.planCall(step)
	case interpreter.InterpretableConstructor:
		return chargeLiteral(step), nil
	}
	return step, nil
}

func (p *programPlan) planCall(step interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	name, args := step.Function(), step.Args()
	cost, ok := p.prices[name]
	if !ok {
		return nil, fmt.Errorf("the function %s has no price", name)
	}
	if name == overloads.Matches && len(args) == 2 {
		if pattern, ok := constantText(args[1]); ok {
			return p.planMatch(step, pattern)
		}
	}
	c := &chargedCall{InterpretableCall: step, args: args, price: cost, body: p.bodies[name]}
	if c.overload = p.overloads[step.OverloadID()]; c.overload == nil {
		c.overload = p.overloads[name]
	}
	if c.overload == nil {
		c.overload = &functions.Overload{}
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
	if found, ok := frame.ResolveName(meterVariable); ok {
		if e, ok := found.(*evaluation); ok {
			return &e.meter
		}
	}
	return nil
}

// chargedCall evaluates its arguments, pays, and calls.
type chargedCall struct {
	interpreter.InterpretableCall // the call that it charges

	args     []interpreter.InterpretableV2
	price    price
	body     functionBody
	overload *functions.Overload
}

// Exec evaluates the call.
func (c *chargedCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	var x, y ref.Val
	switch len(c.args) {
	case 0:
	case 1:
		x = c.args[0].Exec(frame)
	case 2:
		x = c.args[0].Exec(frame)
		if c.isPassedOn(x) {
			return x
		}
		y = c.args[1].Exec(frame)
	default:
		return c.execMany(frame)
	}
	if c.isPassedOn(x) {
		return x
	}
	if c.isPassedOn(y) {
		return y
	}
	m := meterOf(frame)
	if result := c.price(m, x, y, nil); result != nil {
		return c.labelError(result)
	}
	if c.body != nil {
		return c.labelError(c.body(m, x, y, nil))
	}
	return c.labelError(c.invokeOverload(x, y))
}

// execMany evaluates a call with three or more arguments.
func (c *chargedCall) execMany(frame *interpreter.ExecutionFrame) ref.Val {
	all := make([]ref.Val, len(c.args))
	for i, arg := range c.args {
		if all[i] = arg.Exec(frame); c.isPassedOn(all[i]) {
			return all[i]
		}
	}
	m := meterOf(frame)
	if result := c.price(m, all[0], all[1], all); result != nil {
		return c.labelError(result)
	}
	if c.body != nil {
		return c.labelError(c.body(m, all[0], all[1], all))
	}
	if c.overload.Function == nil || !c.acceptsOperand(all[0]) {
		return c.noOverloadError()
	}
	return c.labelError(c.overload.Function(all...))
}

// isPassedOn reports whether an argument is an error that the call passes on.
func (c *chargedCall) isPassedOn(arg ref.Val) bool {
	if arg == nil || c.overload.NonStrict {
		return false
	}
	return types.IsUnknownOrError(arg)
}

func (c *chargedCall) invokeOverload(x, y ref.Val) ref.Val {
	b := c.overload
	if x != nil && !c.acceptsOperand(x) {
		return c.noOverloadError()
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
	return c.noOverloadError()
}

// acceptsOperand reports whether the function accepts the first argument.
func (c *chargedCall) acceptsOperand(arg ref.Val) bool {
	need := c.overload.OperandTrait
	return need == 0 || c.overload.NonStrict && types.IsUnknownOrError(arg) || arg.Type().HasTrait(need)
}

func (c *chargedCall) noOverloadError() ref.Val {
	return types.NewErrWithNodeID(c.ID(), "no such overload: %s", c.Function())
}

// labelError says where an error comes from.
func (c *chargedCall) labelError(v ref.Val) ref.Val {
	if err, ok := v.(*types.Err); ok && err.NodeID() == 0 {
		return types.LabelErrNode(c.ID(), err)
	}
	return v
}

// Eval evaluates the call without a frame.
func (c *chargedCall) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, c.Exec)
}

// chargedLiteral charges a list or a map that the expression writes out.
type chargedLiteral struct {
	interpreter.InterpretableV2

	size int64 // elements, or keys and values
}

// Exec evaluates the literal.
func (l *chargedLiteral) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	m := meterOf(frame)
	m.chargeSteps(1)
	m.chargeBytes(l.size+4, 16)
	return l.InterpretableV2.Exec(frame)
}

// Eval evaluates the literal without a frame.
func (l *chargedLiteral) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, l.Exec)
}

// chargeLiteral charges a literal list or map; a literal of constants only is made
// once, with the program.
func chargeLiteral(step interpreter.InterpretableConstructor) interpreter.InterpretableV2 {
	values := step.InitVals()
	constant := true
	for _, v := range values {
		_, isConstant := v.(interpreter.InterpretableConst)
		constant = constant && isConstant
	}
	if constant {
		return step
	}
	return &chargedLiteral{InterpretableV2: step, size: int64(len(values))}
}

// opaqueStep hides the kind of a step from the library's optimizations.
type opaqueStep struct{ interpreter.InterpretableV2 }

// planMatch plans a match against a pattern that is translated once, when the program is
// made.
func (p *programPlan) planMatch(step interpreter.InterpretableCall, pattern string) (interpreter.InterpretableV2, error) {
	size := regexSize(pattern)
	if p.regexTotal += size; p.regexTotal > MaxRegexSize {
		return nil, newLimitError(limitRegex, MaxRegexSize, p.regexTotal)
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
	return opaqueStep{&chargedCall{
		InterpretableCall: step, args: step.Args(), overload: &functions.Overload{Binary: match},
		price: func(m *meter, x, _ ref.Val, _ []ref.Val) ref.Val {
			m.chargeRegexMatch(size, textLen(x))
			return nil
		},
	}}, nil
}
