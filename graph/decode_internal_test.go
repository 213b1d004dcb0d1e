package graph

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

type listOfLists []listOfLists

type treeNode struct {
	Next  *treeNode
	Table map[string][2]treeNode
}

type treeWithAny struct {
	Next *treeWithAny
	Rest map[string]any
}

func TestNumbersKeepTheirDigitsInEveryAny(t *testing.T) {
	const digits = "12345678901234567890123"
	for _, v := range []any{
		new(any), new(map[string]any), new([]any), new([1]any), new(struct{ A any }), new(struct{ A *[]any }), new(treeWithAny),
	} {
		require.True(t, mayHoldAny(reflect.TypeOf(v), nil), "%T", v)
	}
	var value any
	require.NoError(t, decodeJSON([]byte(digits), &value))
	require.Equal(t, json.Number(digits), value)
	var deep treeWithAny
	require.NoError(t, decodeJSON([]byte(`{"Next":{"Rest":{"x":[`+digits+`]}}}`), &deep))
	require.Equal(t, map[string]any{"x": []any{json.Number(digits)}}, deep.Next.Rest)
}

func TestTypesWithoutAnyNeedNoDecoder(t *testing.T) {
	for _, v := range []any{new(int), new(string), new(listOfLists), new(treeNode), new(struct{ A []byte })} {
		require.False(t, mayHoldAny(reflect.TypeOf(v), nil), "%T", v)
	}
	var n treeNode
	require.NoError(t, decodeJSON([]byte(`{"Table":{"a":[{},{"Next":{}}]}}`), &n))
	require.NotNil(t, n.Table["a"][1].Next)
	require.Error(t, decodeJSON([]byte(`{}`), nil))
}
