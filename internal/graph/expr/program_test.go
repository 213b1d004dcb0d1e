package expr_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/expr"
	"github.com/graphd-dev/graphd/internal/payload"
)

func TestStateKeys(t *testing.T) {
	p, err := newCompiler(t).Compile(`has(state.b) && state["a"].b.c == state.?d.orValue(state.list[0].x) && input.z == state[input.k]`)
	require.NoError(t, err)
	program, ok := p.(*expr.Program)
	require.True(t, ok)
	require.Equal(t, []string{"a", "b", "d", "list"}, program.StateKeys())
}

//nolint:testifylint // require ends only the test's own goroutine
func TestProgramIsSafeForConcurrentUse(t *testing.T) {
	p, err := newCompiler(t).Compile(`state.items.map(i, {"id": i.id, "sum": i.qty * i.cost, "n": state.price})`)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				got, err := p.Eval(testVars())
				assert.NoError(t, err)
				assert.Equal(t, payload.JSON(`[{"id":"a","sum":2.2,"n":19.990},{"id":"b","sum":20,"n":19.990}]`), got)
			}
		})
	}
	wg.Wait()
}

// blockingState is a state with a large list, one of whose keys is read only when proceed is
// closed.
type blockingState struct{ entered, proceed chan struct{} }

func (s blockingState) Lookup(key string) (payload.JSON, bool) {
	switch key {
	case "large":
		return payload.JSON("[" + strings.Repeat("1,", 100_000) + "1]"), true
	case "late":
		close(s.entered)
		<-s.proceed
		return "1", true
	}
	return "", false
}

func (blockingState) Keys() []string { return []string{"large", "late"} }

// An evaluation that waits for the memory of another one ends when its caller no
// longer waits.
func TestACancelledCallerDoesNotWaitForASlot(t *testing.T) {
	c, err := expr.New(expr.Options{MaxLargeEvals: 1})
	require.NoError(t, err)
	p, err := c.Compile("size(state.large) + state.late")
	require.NoError(t, err)
	large, err := c.Compile("size(state.large)")
	require.NoError(t, err)
	s := blockingState{entered: make(chan struct{}), proceed: make(chan struct{})}
	first := make(chan error, 1)
	go func() {
		_, err := p.Eval(graph.Vars{State: s})
		first <- err
	}()
	<-s.entered

	cancelled := make(chan struct{})
	close(cancelled)
	_, err = large.Eval(graph.Vars{State: s, Cancelled: cancelled})
	require.ErrorIs(t, err, expr.ErrCancelled)
	close(s.proceed)
	require.NoError(t, <-first)
	result, err := large.Eval(graph.Vars{State: s, Cancelled: make(chan struct{})})
	require.NoError(t, err, "the slot is free again")
	require.Equal(t, payload.JSON("100001"), result)
}

func TestStateThatIsOneValue(t *testing.T) {
	c := newCompiler(t)
	for source, want := range map[string]payload.JSON{
		`state`: `[ 1.0, 2 ]`, `state[0] + 1`: "2.0", `state + [3]`: "[1.0,2,3]",
	} {
		p, err := c.Compile(source)
		require.NoError(t, err)
		got, err := p.Eval(graph.Vars{State: stateFields{{Key: graph.Root, Value: "[ 1.0, 2 ]"}}})
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestNoStateAtAll(t *testing.T) {
	p, err := newCompiler(t).Compile(`size(state) == 0 && answer == null`)
	require.NoError(t, err)
	got, err := p.Eval(graph.Vars{})
	require.NoError(t, err)
	require.Equal(t, payload.JSON("true"), got)
}

// FuzzCarry checks that whatever JSON goes through an expression untouched
// comes out byte for byte.
func FuzzCarry(f *testing.F) {
	for _, text := range []string{`1e400`, `{"a":[1.0,{"b":"\u00e9"}],"a":2}`, `-0`, `"x"`, `[null,true]`} {
		f.Add(text)
	}
	c, err := expr.New(expr.Options{})
	require.NoError(f, err)
	whole, err := c.Compile(`state.v`)
	require.NoError(f, err)
	inside, err := c.Compile(`{"k": [state.v, true ? state.v : null]}`)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		if payload.Validate(text, payload.Limits{MaxDepth: 100}) != nil || payload.KindOf(payload.JSON(text)) == payload.String {
			return // strings may be spelled anew
		}
		v := graph.Vars{State: stateFields{{Key: "v", Value: payload.JSON(text)}}}
		got, err := whole.Eval(v)
		require.NoError(t, err)
		want := payload.Trim(payload.JSON(text))
		require.Equal(t, want, got)
		got, err = inside.Eval(v)
		require.NoError(t, err)
		require.Equal(t, `{"k":[`+want+`,`+want+`]}`, got)
	})
}

// FuzzBudget runs whatever compiles with small limits: it ends, its result
// respects the limits, and it allocates little more than it is charged for.
func FuzzBudget(f *testing.F) {
	for _, h := range hostileExpressions(f) {
		f.Add(h.Expr)
	}
	for _, seed := range []string{
		`state.items.map(i, i.qty * i.cost)`, `state + {"a": 1}`, `"%s %d".format([state.text, state.n])`,
		`state.obj.transformMap(k, v, [v, v])`, `state.list.sortBy(x, -x).slice(0, 1)`, `math.greatest(state.list)`,
	} {
		f.Add(seed)
	}
	const most = 1 << 20
	c, err := expr.New(expr.Options{
		MaxSource: 2000, MaxSteps: 50_000, MaxBytes: most, MaxResult: 10_000, MaxDepth: 12,
	})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, source string) {
		p, err := c.Compile(source)
		if err != nil {
			require.ErrorAs(t, err, new(*expr.CompileError))
			return
		}
		before := allocatedBytes()
		result, err := p.Eval(testVars())
		require.Less(t, allocatedBytes()-before, int64(16*most))
		if err != nil {
			require.ErrorAs(t, err, new(*expr.EvalError))
			require.NotContains(t, err.Error(), "internal error")
			return
		}
		require.LessOrEqual(t, len(result), 10_000)
		require.NoError(t, payload.Validate(string(result), payload.Limits{}))
		require.LessOrEqual(t, payload.Depth(result), 12)
	})
}
