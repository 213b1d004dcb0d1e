package expr

import (
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// rewrite changes a parsed expression so that it computes over JSON as people
// expect: arithmetic mixes whole numbers and fractions, map literals keep their
// order, and values that a function looks into are given to it in CEL's own
// types, while values that are only carried keep their text.
func rewrite(tree *ast.AST) {
	r := &rewriter{make: ast.NewExprFactory(), info: tree.SourceInfo(), last: ast.MaxID(tree)}
	r.walk(tree.Expr())
}

type rewriter struct {
	make ast.ExprFactory
	info *ast.SourceInfo
	last int64
}

// id makes a new node's id; it is said to stand where the old node stands.
func (r *rewriter) id(where ast.Expr) int64 {
	r.last++
	if at, ok := r.info.GetOffsetRange(where.ID()); ok {
		r.info.SetOffsetRange(r.last, at)
	}
	return r.last
}

func (r *rewriter) walk(e ast.Expr) {
	switch e.Kind() {
	case ast.CallKind:
		call := e.AsCall()
		for _, arg := range call.Args() {
			r.walk(arg)
		}
		if call.IsMemberFunction() {
			r.walk(call.Target())
		}
		r.call(e, call)
	case ast.SelectKind:
		r.walk(e.AsSelect().Operand())
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			r.walk(element)
		}
	case ast.MapKind:
		for _, item := range e.AsMap().Entries() {
			r.walk(item.AsMapEntry().Key())
			r.walk(item.AsMapEntry().Value())
		}
		r.mapLiteral(e)
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		for _, part := range []ast.Expr{c.IterRange(), c.LoopCondition(), c.LoopStep(), c.Result()} {
			r.walk(part)
		}
		// The initial value of a fold is CEL's own affair, unless it is the
		// value of a binding.
		if k := c.AccuInit().Kind(); k != ast.MapKind {
			r.walk(c.AccuInit())
		}
		r.loop(e, c)
	case ast.IdentKind, ast.LiteralKind, ast.StructKind, ast.UnspecifiedExprKind:
	}
}

// mapLiteral turns {k: v} into a call that keeps the order of keys. A literal
// with optional entries stays CEL's.
func (r *rewriter) mapLiteral(e ast.Expr) {
	var pairs []ast.Expr
	for _, item := range e.AsMap().Entries() {
		if item.AsMapEntry().IsOptional() {
			return
		}
		pairs = append(pairs, item.AsMapEntry().Key(), item.AsMapEntry().Value())
	}
	e.SetKindCase(r.make.NewCall(e.ID(), objectFunction, r.make.NewList(r.id(e), pairs, nil)))
}

func (r *rewriter) call(e ast.Expr, call ast.CallExpr) {
	args := slices.Clone(call.Args())
	name := call.FunctionName()
	if function, ok := arithmetic(name); ok && len(args) == 2 {
		if !isInternal(args[0]) && !isInternal(args[1]) {
			e.SetKindCase(r.make.NewCall(e.ID(), function, args...))
		}
		return
	}
	if name == operators.Index {
		args[1] = r.plain(args[1])
		e.SetKindCase(r.make.NewCall(e.ID(), name, args...))
		return
	}
	if carries(name) {
		return
	}
	for i := range args {
		args[i] = r.plain(args[i])
	}
	if call.IsMemberFunction() {
		e.SetKindCase(r.make.NewMemberCall(e.ID(), name, r.plainTarget(call.Target()), args...))
		return
	}
	e.SetKindCase(r.make.NewCall(e.ID(), name, args...))
}

// plainTarget leaves the namespace of a function, like math in math.abs, as it is.
func (r *rewriter) plainTarget(e ast.Expr) ast.Expr {
	if e.Kind() == ast.IdentKind && isNamespace(e.AsIdent()) {
		return e
	}
	return r.plain(e)
}

func isNamespace(name string) bool {
	switch name {
	case "math", "sets", "base64", "lists", "strings", "cel", "optional":
		return true
	}
	return false
}

// plain wraps an argument that may hold numbers with a spelling to keep.
func (r *rewriter) plain(e ast.Expr) ast.Expr {
	switch e.Kind() {
	case ast.ListKind:
		elements := slices.Clone(e.AsList().Elements())
		for i := range elements {
			elements[i] = r.plain(elements[i])
		}
		e.SetKindCase(r.make.NewList(e.ID(), elements, e.AsList().OptionalIndices()))
		return e
	case ast.IdentKind:
		if isInternal(e) || e.AsIdent() == "END" {
			return e
		}
	case ast.CallKind:
		if name := e.AsCall().FunctionName(); !carries(name) && name != operators.Index && name != objectFunction {
			return e // what it yields is plain already
		}
	case ast.SelectKind:
		if e.AsSelect().IsTestOnly() {
			return e
		}
	case ast.LiteralKind, ast.MapKind, ast.StructKind, ast.ComprehensionKind, ast.UnspecifiedExprKind:
		return e
	}
	return r.make.NewCall(r.id(e), plainFunction, e)
}

// isInternal reports whether e is a variable that a macro made.
func isInternal(e ast.Expr) bool {
	return e.Kind() == ast.IdentKind && strings.HasPrefix(e.AsIdent(), "@")
}

// carries reports whether a function hands its arguments on without looking
// into numbers, or is part of what a macro became.
func carries(name string) bool {
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

// stateKeys lists the keys that an expression reads from state by name.
func stateKeys(tree *ast.AST) []string {
	var keys []string
	visit := func(e ast.Expr) {
		switch e.Kind() {
		case ast.SelectKind:
			if isState(e.AsSelect().Operand()) {
				keys = append(keys, e.AsSelect().FieldName())
			}
		case ast.CallKind:
			call := e.AsCall()
			switch call.FunctionName() {
			case operators.Index, operators.OptIndex, operators.OptSelect:
				if key, ok := literalString(call.Args()[1]); ok && isState(call.Args()[0]) {
					keys = append(keys, key)
				}
			}
		case ast.ComprehensionKind, ast.IdentKind, ast.ListKind, ast.LiteralKind,
			ast.MapKind, ast.StructKind, ast.UnspecifiedExprKind:
		}
	}
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(visit))
	slices.Sort(keys)
	return slices.Compact(keys)
}

func isState(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == "state" }

func literalString(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}
