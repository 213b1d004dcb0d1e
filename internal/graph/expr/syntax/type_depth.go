package syntax

import (
	"fmt"
	"maps"

	"cel.dev/cel-go/common/ast"
)

// maxTypeDepth bounds the nesting of the lists and maps that an expression
// writes, bindings followed. The time to find the types of an expression grows
// with the cube of it.
const maxTypeDepth = 20

// depthFinder computes how deep the types of an expression are nested, or more.
type depthFinder struct {
	known map[string]int // of the variables of loops and bindings
}

// CheckTypeDepth refuses an expression whose types are nested too deeply.
func CheckTypeDepth(tree *ast.AST) error {
	f := &depthFinder{known: map[string]int{}}
	if depth := f.depthOf(tree.Expr()); depth > maxTypeDepth {
		return fmt.Errorf("lists and maps lie within one another %d levels deep, the most is %d", depth, maxTypeDepth)
	}
	return nil
}

func (f *depthFinder) depthOf(e ast.Expr) int {
	switch e.Kind() {
	case ast.ListKind:
		return 1 + f.maxDepthOf(e.AsList().Elements()...)
	case ast.MapKind:
		deepest := 0
		for _, item := range e.AsMap().Entries() {
			deepest = max(deepest, f.maxDepthOf(item.AsMapEntry().Key(), item.AsMapEntry().Value()))
		}
		return 1 + deepest
	case ast.CallKind:
		return f.callDepth(e.AsCall())
	case ast.SelectKind:
		return f.depthOf(e.AsSelect().Operand())
	case ast.IdentKind:
		return f.known[e.AsIdent()]
	case ast.ComprehensionKind:
		return f.loopDepth(e.AsComprehension())
	case ast.LiteralKind, ast.StructKind, ast.UnspecifiedExprKind:
	}
	return 0
}

func (f *depthFinder) maxDepthOf(all ...ast.Expr) int {
	deepest := 0
	for _, e := range all {
		deepest = max(deepest, f.depthOf(e))
	}
	return deepest
}

func (f *depthFinder) callDepth(call ast.CallExpr) int {
	deepest := f.maxDepthOf(call.Args()...)
	if call.IsMemberFunction() {
		deepest = max(deepest, f.depthOf(call.Target()))
	}
	switch call.FunctionName() {
	case "of", "ofNonZeroValue", "optional.of", "optional.ofNonZeroValue":
		deepest++
	}
	return deepest
}

func (f *depthFinder) loopDepth(c ast.ComprehensionExpr) int {
	over, start := f.depthOf(c.IterRange()), f.depthOf(c.AccuInit())
	restore := f.bindVariables(map[string]int{c.IterVar(): over, c.IterVar2(): over, c.AccuVar(): start})
	deepest := max(over, f.maxDepthOf(c.LoopCondition(), c.LoopStep()), start)
	if !isBinding(c) {
		f.known[c.AccuVar()] = deepest
	}
	deepest = max(deepest, f.depthOf(c.Result()))
	restore()
	return deepest
}

func (f *depthFinder) bindVariables(names map[string]int) (restore func()) {
	before := map[string]int{}
	for name, depth := range names {
		before[name] = f.known[name]
		f.known[name] = depth
	}
	return func() {
		maps.Copy(f.known, before)
	}
}
