package node_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	api "github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/expr"
	"github.com/graphd-dev/graphd/internal/graph/graphfile"
	"github.com/graphd-dev/graphd/internal/node"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// effectRecorder records the effects of a node besides its result.
type effectRecorder struct {
	mu      sync.Mutex
	emitted []runtime.Emission
	memos   []checkpoint.Memo
}

func (e *effectRecorder) EmitEvent(em runtime.Emission) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.emitted = append(e.emitted, em)
}

func (e *effectRecorder) RecordMemo(_ context.Context, m checkpoint.Memo) (payload.JSON, bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, known := range e.memos {
		if known.Scope == m.Scope && known.Key == m.Key && known.Index == m.Index {
			return known.Value, true, nil
		}
	}
	e.memos = append(e.memos, m)
	return m.Value, false, nil
}

// compileGraph compiles a graph file of which a test gives only the relevant part.
func compileGraph(tb testing.TB, text string) *graph.Graph {
	tb.Helper()
	compiler, err := expr.New(expr.Options{})
	require.NoError(tb, err)
	spec, _, err := graphfile.Parse("g.yaml", []byte(text))
	require.NoError(tb, err)
	g, err := graph.Compile(spec, graph.Env{Expressions: compiler})
	require.NoError(tb, err)
	return g
}

// oneNodeGraph returns a graph with channels a, b, c and the node n.
func oneNodeGraph(tb testing.TB, kind string) *graph.Graph {
	tb.Helper()
	return compileGraph(tb, "graph: g\nversion: v1\nchannels: {a: {}, b: {}, c: {reducer: append}}\n"+
		"nodes:\n  n: {"+kind+"}\n  other: {function: {}}\nedges: [START -> n, START -> other]\n")
}

// newTask returns an attempt of node n over a state, an object.
func newTask(tb testing.TB, g *graph.Graph, state payload.JSON) *runtime.Task {
	tb.Helper()
	n, ok := g.Node("n")
	require.True(tb, ok)
	fields, err := payload.Fields(state)
	require.NoError(tb, err)
	writes := make([]checkpoint.Write, len(fields))
	for i, f := range fields {
		writes[i] = checkpoint.Write{Channel: f.Key, Value: f.Value}
	}
	s, err := pregel.NewState(g, "", pregel.Limits{}).InjectWrites(writes)
	require.NoError(tb, err)
	return &runtime.Task{
		Thread: "t", Run: "r", ID: "task", Graph: g, Node: n, Step: 1, Attempt: 1,
		State: s.NodeView(n), Effects: &effectRecorder{},
	}
}

// runFunction makes one attempt of a function node over {"a": 1}.
func runFunction(tb testing.TB, f api.Func, change ...func(*runtime.Task)) pregel.Result {
	tb.Helper()
	return runFunctionWith(tb, node.Options{}, f, change...)
}

func runFunctionWith(tb testing.TB, o node.Options, f api.Func, change ...func(*runtime.Task)) pregel.Result {
	tb.Helper()
	task := newTask(tb, oneNodeGraph(tb, "function: {}"), `{"a":1}`)
	for _, c := range change {
		c(task)
	}
	return node.New(api.Functions{"n": f, "router": f}, o).Execute(tb.Context(), task)
}

func returnFunc(v any) api.Func {
	return func(context.Context, api.State) (any, error) { return v, nil }
}

func withAnswers(list ...pregel.Answer) func(*runtime.Task) {
	return func(t *runtime.Task) { t.Journal.Answers = list }
}

// answerTo returns an answer to an interrupt that showed a value.
func answerTo(value payload.JSON, a pregel.Answer) pregel.Answer {
	a.ShownDigest = (&pregel.Ask{Value: value}).ShownDigest()
	return a
}

func withMemos(list ...checkpoint.Memo) func(*runtime.Task) {
	return func(t *runtime.Task) { t.Journal.Memos = list }
}

func asRouter(t *runtime.Task) { t.Router = "router" }

// requireText compares values as text, because a carried value must not be
// rewritten.
func requireText(tb testing.TB, want string, got payload.JSON) {
	tb.Helper()
	require.Equal(tb, want, string(got))
}

func TestAnExpressionBeyondItsBudgetSaysSo(t *testing.T) {
	task := newTask(t, oneNodeGraph(t, `expr: {update: {b: "lists.range(1000000).map(i, lists.range(1000)).size()"}}`), `{"a":1}`)
	r := node.New(nil, node.Options{}).Execute(t.Context(), task)
	require.Equal(t, "LIMIT_EXCEEDED", r.Failure.Reason)
	require.True(t, r.Failure.Permanent)
	require.Equal(t, "max-expression-bytes", r.Failure.Details["limit"])
	require.Equal(t, "67108864", r.Failure.Details["most"])
	require.Contains(t, r.Failure.Message, "--max-expression-bytes")
}

// A function gets its thread and its graph by the names that clients of its tenant have.
func TestAFunctionKnowsNoTenant(t *testing.T) {
	var got api.Info
	runFunction(t, func(ctx context.Context, _ api.State) (any, error) {
		got = api.TaskInfo(ctx)
		return nil, nil
	}, func(task *runtime.Task) {
		own := *task.Graph
		own.Name = "acme@g"
		task.Thread, task.Graph = "acme@t", &own
	})
	require.Equal(t, "t g", got.Thread+" "+got.Graph)

	task := newTask(t, oneNodeGraph(t, "remote: {}"), `{"a":1}`)
	own := *task.Graph
	own.Name = "acme@g"
	task.Graph = &own
	r := node.New(nil, node.Options{}).Execute(t.Context(), task)
	require.Equal(t, `node "n" of graph "g" runs in a worker, and this server connects to none`, r.Failure.Message)
}
