package expr_test

import (
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/expr"
	"github.com/graphd-dev/graphd/internal/payload"
)

// hostileExpression is an expression of testdata/hostile.yaml.
type hostileExpression struct {
	Name  string `yaml:"name"`
	Limit string `yaml:"limit"`
	Expr  string `yaml:"expr"`
}

func hostileExpressions(tb testing.TB) []hostileExpression {
	tb.Helper()
	text, err := os.ReadFile("testdata/hostile.yaml")
	require.NoError(tb, err)
	var all []hostileExpression
	require.NoError(tb, yaml.Unmarshal(text, &all))
	return all
}

// allocatedBytes returns how many bytes the process has allocated since it began.
func allocatedBytes() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// TestHostileExpressionsAreRefused also measures that what is charged is what
// is allocated: the bytes of an evaluation stay near the limit.
func TestHostileExpressionsAreRefused(t *testing.T) {
	all := hostileExpressions(t)
	require.GreaterOrEqual(t, len(all), 25)
	// A fifth of what a server allows, so that the test takes a fifth of the time.
	const most = 13 << 20
	c, err := expr.New(expr.Options{MaxSteps: 2_000_000, MaxBytes: most, MaxResult: 800 << 10})
	require.NoError(t, err)
	for _, h := range all {
		t.Run(h.Name, func(t *testing.T) {
			before := allocatedBytes()
			p, err := c.Compile(h.Expr)
			if err == nil {
				before = allocatedBytes()
				_, err = p.Eval(graph.Vars{})
			}
			used := allocatedBytes() - before
			require.Error(t, err)
			t.Logf("%d KiB, %s", used>>10, firstWords(err))
			require.Less(t, used, int64(2*most))
			requireLimit(t, h.Limit, err)
		})
	}
}

func requireLimit(t *testing.T, want string, err error) {
	t.Helper()
	var over *graph.LimitError
	switch want {
	case "":
		require.NotErrorAs(t, err, &over)
		return
	case "compile":
		require.ErrorAs(t, err, new(*expr.CompileError))
		return
	case "regex": // of a constant while it is compiled
		require.ErrorContains(t, err, "the regular expressions are too large")
		return
	}
	require.ErrorAs(t, err, &over)
	limits := map[string]string{
		"steps": expr.LimitSteps, "bytes": expr.LimitBytes, "result": expr.LimitResult, "depth": expr.LimitDepth,
	}
	if want != "any" {
		require.Equal(t, limits[want], over.Limit)
	}
	require.Contains(t, err.Error(), "--"+over.Limit, "the error names the flag")
}

func firstWords(err error) string {
	text := err.Error()
	return text[:min(len(text), 100)]
}

// TestCarriedValuesAreCharged looks into large values of the state.
func TestCarriedValuesAreCharged(t *testing.T) {
	const most = 64 << 20
	many := payload.JSON("[" + strings.Repeat("1,", 3<<20) + "1]")
	object := &strings.Builder{}
	object.WriteString(`{"k":1`)
	for i := range 200_000 {
		object.WriteString(`,"k` + strconv.Itoa(i) + `":1`)
	}
	object.WriteString("}")
	deep := payload.JSON(strings.Repeat("[", 128) + strings.Repeat("]", 128))
	state := stateFields{
		{Key: "many", Value: many},
		{Key: "object", Value: payload.JSON(object.String())},
		{Key: "deep", Value: deep},
		{Key: "inner", Value: `{"list":` + many[:400_000] + `1]}`},
		{Key: "text", Value: payload.JSON(`"` + strings.Repeat(`\n`, 1<<20) + `"`)},
	}
	for source, limit := range map[string]string{
		`state.many`:                expr.LimitBytes,
		`state`:                     expr.LimitResult,
		`size(state.many)`:          expr.LimitBytes,
		`state.many.all(x, x == 1)`: expr.LimitBytes,
		`state.object.k`:            expr.LimitBytes,
		`[state.deep]`:              expr.LimitDepth,
		`{"a": state.deep}`:         expr.LimitDepth,
		`lists.range(100).map(i, state.inner.list[0])`:        expr.LimitBytes,
		`lists.range(100).map(i, state.inner == state.inner)`: expr.LimitBytes,
	} {
		t.Run(source, func(t *testing.T) {
			p, err := newCompiler(t).Compile(source)
			require.NoError(t, err)
			before := allocatedBytes()
			_, err = p.Eval(graph.Vars{State: state})
			require.Less(t, allocatedBytes()-before, int64(2*most))
			var over *graph.LimitError
			require.ErrorAs(t, err, &over)
			require.Equal(t, limit, over.Limit, over.Error())
		})
	}
	for source, want := range map[string]payload.JSON{`state.deep`: deep, `size(state.text)`: "1048576"} {
		p, err := newCompiler(t).Compile(source)
		require.NoError(t, err)
		got, err := p.Eval(graph.Vars{State: state})
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}
