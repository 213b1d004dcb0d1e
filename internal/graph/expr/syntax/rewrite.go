package syntax

import (
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// RewriteTree changes a parsed expression so that it computes over JSON as people
// expect: arithmetic mixes whole numbers and fractions, map literals keep their
// order, and values that a function looks into are given to it in CEL's own
// types, while values that are only carried keep their text.
func RewriteTree(tree *ast.AST) {
	r := &rewriter{factory: ast.NewExprFactory(), info: tree.SourceInfo(), lastID: ast.MaxID(tree)}
	r.rewriteExpr(tree.Expr())
}

type rewriter struct {
	factory ast.ExprFactory
	info    *ast.SourceInfo
	lastID  int64
}

// newID makes a new node's id; it is said to stand where the old node stands.
func (r *rewriter) newID(where ast.Expr) int64 {
	r.lastID++
	if at, ok := r.info.GetOffsetRange(where.ID()); ok {
		r.info.SetOffsetRange(r.lastID, at)
	}
	return r.lastID
}

func (r *rewriter) rewriteExpr(e ast.Expr) {
	switch e.Kind() {
	case ast.CallKind:
		call := e.AsCall()
		for _, arg := range call.Args() {
			r.rewriteExpr(arg)
		}
		if call.IsMemberFunction() {
			r.rewriteExpr(call.Target())
		}
		r.rewriteCall(e, call)
	case ast.SelectKind:
		r.rewriteExpr(e.AsSelect().Operand())
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			r.rewriteExpr(element)
		}
	case ast.MapKind:
		for _, item := range e.AsMap().Entries() {
			r.rewriteExpr(item.AsMapEntry().Key())
			r.rewriteExpr(item.AsMapEntry().Value())
		}
		r.rewriteMapLiteral(e)
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		for _, part := range []ast.Expr{c.IterRange(), c.LoopCondition(), c.LoopStep(), c.Result()} {
			r.rewriteExpr(part)
		}
		// The initial value of a fold is CEL's own affair, unless it is the
		// value of a binding.
		if k := c.AccuInit().Kind(); k != ast.MapKind {
			r.rewriteExpr(c.AccuInit())
		}
		r.wrapLoop(e, c)
	case ast.IdentKind, ast.LiteralKind, ast.StructKind, ast.UnspecifiedExprKind:
	}
}

// rewriteMapLiteral turns {k: v} into a call that keeps the order of keys. A literal
// with optional entries stays CEL's.
func (r *rewriter) rewriteMapLiteral(e ast.Expr) {
	var pairs []ast.Expr
	for _, item := range e.AsMap().Entries() {
		if item.AsMapEntry().IsOptional() {
			return
		}
		pairs = append(pairs, item.AsMapEntry().Key(), item.AsMapEntry().Value())
	}
	e.SetKindCase(r.factory.NewCall(e.ID(), ObjectFunction, r.factory.NewList(r.newID(e), pairs, nil)))
}

func (r *rewriter) rewriteCall(e ast.Expr, call ast.CallExpr) {
	args := slices.Clone(call.Args())
	name := call.FunctionName()
	if function, ok := mixedOperator(name); ok && len(args) == 2 {
		if !isInternal(args[0]) && !isInternal(args[1]) {
			e.SetKindCase(r.factory.NewCall(e.ID(), function, args...))
		}
		return
	}
	if name == operators.Index {
		args[1] = r.wrapPlain(args[1])
		e.SetKindCase(r.factory.NewCall(e.ID(), name, args...))
		return
	}
	if passesArguments(name) || isNullComparison(name, args) {
		return
	}
	for i := range args {
		args[i] = r.wrapPlain(args[i])
	}
	if call.IsMemberFunction() {
		e.SetKindCase(r.factory.NewMemberCall(e.ID(), name, r.wrapPlainTarget(call.Target()), args...))
		return
	}
	e.SetKindCase(r.factory.NewCall(e.ID(), name, args...))
}

// wrapPlainTarget leaves the namespace of a function, like math in math.abs, as it is.
func (r *rewriter) wrapPlainTarget(e ast.Expr) ast.Expr {
	if e.Kind() == ast.IdentKind && isNamespace(e.AsIdent()) {
		return e
	}
	return r.wrapPlain(e)
}

func isNamespace(name string) bool {
	switch name {
	case "math", "sets", "base64", "lists", "strings", "cel", "optional":
		return true
	}
	return false
}

// wrapPlain wraps an argument that may hold numbers with a spelling to keep.
func (r *rewriter) wrapPlain(e ast.Expr) ast.Expr {
	switch e.Kind() {
	case ast.ListKind:
		elements := slices.Clone(e.AsList().Elements())
		for i := range elements {
			elements[i] = r.wrapPlain(elements[i])
		}
		e.SetKindCase(r.factory.NewList(e.ID(), elements, e.AsList().OptionalIndices()))
		return e
	case ast.IdentKind:
		if isInternal(e) || e.AsIdent() == "END" {
			return e
		}
	case ast.CallKind:
		if name := e.AsCall().FunctionName(); !passesArguments(name) && name != operators.Index && name != ObjectFunction {
			return e // its result is plain already
		}
	case ast.SelectKind:
		if e.AsSelect().IsTestOnly() {
			return e
		}
	case ast.LiteralKind, ast.MapKind, ast.StructKind, ast.ComprehensionKind, ast.UnspecifiedExprKind:
		return e
	}
	return r.factory.NewCall(r.newID(e), PlainFunction, e)
}

// isNullComparison reports whether a call only asks whether a value is null.
func isNullComparison(name string, args []ast.Expr) bool {
	if name != operators.Equals && name != operators.NotEquals {
		return false
	}
	return slices.ContainsFunc(args, func(e ast.Expr) bool {
		return e.Kind() == ast.LiteralKind && e.AsLiteral() == types.NullValue
	})
}

// isInternal reports whether e is a variable that a macro made.
func isInternal(e ast.Expr) bool {
	return e.Kind() == ast.IdentKind && strings.HasPrefix(e.AsIdent(), "@")
}

// passesArguments reports whether a function hands its arguments on without looking
// into numbers, or is part of an expanded macro.
func passesArguments(name string) bool {
	if name == operators.In {
		return false
	}
	switch name {
	case operators.Conditional, operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot,
		operators.OptIndex, operators.OptSelect,
		"send", "string", "dyn", "type", "size",
		"optional.of", "optional.none", "or", "orValue", "value", "hasValue", "of", "none",
		"slice", "reverse", "flatten", "first", "last":
		return true
	}
	return strings.HasPrefix(name, "@") || strings.HasPrefix(name, "cel.@")
}

// wrapLoop wraps the range of a comprehension. A binding is a comprehension over
// nothing and stays as it is.
func (r *rewriter) wrapLoop(e ast.Expr, c ast.ComprehensionExpr) {
	if isBinding(c) {
		return
	}
	body := r.factory.NewLiteral(r.newID(e), types.Int(countNodes(c.LoopCondition())+countNodes(c.LoopStep())))
	e.SetKindCase(r.factory.NewComprehensionTwoVar(e.ID(), r.factory.NewCall(r.newID(e), EachFunction, c.IterRange(), body),
		c.IterVar(), c.IterVar2(), c.AccuVar(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()))
}

// isBinding reports whether a comprehension comes from cel.bind.
func isBinding(c ast.ComprehensionExpr) bool {
	return c.IterRange().Kind() == ast.ListKind && c.IterRange().AsList().Size() == 0
}

func countNodes(e ast.Expr) int {
	n := 0
	ast.PostOrderVisit(e, ast.NewExprVisitor(func(ast.Expr) { n++ }))
	return n
}
