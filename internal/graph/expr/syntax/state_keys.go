package syntax

import (
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// FindStateKeys lists the keys that an expression reads from state by name.
func FindStateKeys(tree *ast.AST) []string {
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
