package expr_test

import (
	"testing"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/graph/expr"
)

// TestEveryFunctionHasAPrice walks all that the environment declares.
func TestEveryFunctionHasAPrice(t *testing.T) {
	require.Empty(t, expr.Unpriced(t))
	require.Empty(t, expr.UnusedPrices(t))
}

// TestAFunctionWithoutAPriceIsRefused adds functions to the environment.
func TestAFunctionWithoutAPriceIsRefused(t *testing.T) {
	own := cel.Function("novel", cel.Overload("novel_dyn", []*cel.Type{cel.DynType}, cel.DynType,
		cel.UnaryBinding(func(v ref.Val) ref.Val { return v })))
	_, err := expr.NewWith(expr.Options{}, own)
	require.ErrorContains(t, err, "the function novel has no price")
	_, err = expr.NewWith(expr.Options{}, ext.Regex())
	require.ErrorContains(t, err, "has no price")
	_, err = expr.NewWith(expr.Options{}, cel.Constant("ONE", cel.IntType, types.Int(1)))
	require.NoError(t, err)
}
