package expr

import (
	"fmt"
	"maps"

	"cel.dev/cel-go/common/ast"
)

// maxTypeDepth is how deep the lists and maps that an expression writes may lie
// within one another, bindings followed. The time to find the types of an
// expression grows with the cube of it.
const maxTypeDepth = 20

// depthFinder computes how deep the types of an expression are nested, or more.
type depthFinder struct {
	known map[string]int // of the variables of loops and bindings
}

func checkTypeDepth(source string, tree *ast.AST) error {
	f := &depthFinder{known: map[string]int{}}
	if depth := f.of(tree.Expr()); depth > maxTypeDepth {
		return &CompileError{Source: source, Issues: []Issue{{Line: 1, Column: 1, Message: fmt.Sprintf(
			"lists and maps lie within one another %d levels deep, the most is %d", depth, maxTypeDepth)}}}
	}
	return nil
}

func (f *depthFinder) of(e ast.Expr) int {
	switch e.Kind() {
	case ast.ListKind:
		return 1 + f.most(e.AsList().Elements()...)
	case ast.MapKind:
		deepest := 0
		for _, item := range e.AsMap().Entries() {
			deepest = max(deepest, f.most(item.AsMapEntry().Key(), item.AsMapEntry().Value()))
		}
		return 1 + deepest
	case ast.CallKind:
		return f.ofCall(e.AsCall())
	case ast.SelectKind:
		return f.of(e.AsSelect().Operand())
	case ast.IdentKind:
		return f.known[e.AsIdent()]
	case ast.ComprehensionKind:
		return f.ofLoop(e.AsComprehension())
	case ast.LiteralKind, ast.StructKind, ast.UnspecifiedExprKind:
	}
	return 0
}

func (f *depthFinder) most(all ...ast.Expr) int {
	deepest := 0
	for _, e := range all {
		deepest = max(deepest, f.of(e))
	}
	return deepest
}

func (f *depthFinder) ofCall(call ast.CallExpr) int {
	deepest := f.most(call.Args()...)
	if call.IsMemberFunction() {
		deepest = max(deepest, f.of(call.Target()))
	}
	switch call.FunctionName() {
	case "of", "ofNonZeroValue", "optional.of", "optional.ofNonZeroValue":
		deepest++
	}
	return deepest
}

func (f *depthFinder) ofLoop(c ast.ComprehensionExpr) int {
	over, start := f.of(c.IterRange()), f.of(c.AccuInit())
	restore := f.bind(map[string]int{c.IterVar(): over, c.IterVar2(): over, c.AccuVar(): start})
	deepest := max(over, f.most(c.LoopCondition(), c.LoopStep()), start)
	if !isBinding(c) {
		f.known[c.AccuVar()] = deepest
	}
	deepest = max(deepest, f.of(c.Result()))
	restore()
	return deepest
}

func (f *depthFinder) bind(names map[string]int) (restore func()) {
	before := map[string]int{}
	for name, depth := range names {
		before[name] = f.known[name]
		f.known[name] = depth
	}
	return func() {
		maps.Copy(f.known, before)
	}
}
