package expr_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

func BenchmarkEval(b *testing.B) {
	for _, source := range []string{
		`state.n`, `state.n + 1`, `state.n > 2 && state.price < 30.0`,
		`{"request_type": "refund", "user": state.obj, "n": state.n}`,
		`state.items.map(i, i.qty * i.cost)`,
	} {
		b.Run(source, func(b *testing.B) {
			p, err := newCompiler(b).Compile(source)
			require.NoError(b, err)
			v := testVars()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Eval(v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestEvaluationIsBounded(t *testing.T) {
	items := make([]string, 20000)
	for i := range items {
		items[i] = strconv.Itoa(i)
	}
	big := payload.JSON("[" + strings.Join(items, ",") + "]")
	p, err := newCompiler(t).Compile(`state.l.map(x, state.l.filter(y, y > x).size())`)
	require.NoError(t, err)
	_, err = p.Eval(graph.Vars{State: stateFields{{Key: "l", Value: big}}})
	require.ErrorContains(t, err, "too much memory")
	require.ErrorAs(t, err, new(*graph.LimitError))
}
