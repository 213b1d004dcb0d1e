package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/expr"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// nodeFunc is the code of a function node in a test.
type nodeFunc func(ctx context.Context, t *nodeCall) pregel.Result

// nodeCall is one attempt, with the interrupt counter that an SDK would keep.
type nodeCall struct {
	*runtime.Task
	askCount int
}

// stateText reads a key of the node's state.
func (c *nodeCall) stateText(key string) string {
	if c.Send != "" {
		v, _ := payload.Lookup(c.Send, key)
		return string(v)
	}
	v, _ := c.State.Lookup(key)
	return string(v)
}

// askPanic unwinds a node to its interrupt.
type askPanic struct{ ask pregel.Ask }

// askNext returns the answer to the next interrupt, or unwinds.
func (c *nodeCall) askNext(value string) string {
	return c.askPeople(value, nil)
}

// askPeople is askNext for those whom a policy names.
func (c *nodeCall) askPeople(value string, policy *approval.Policy) string {
	i := c.askCount
	c.askCount++
	q := pregel.Ask{Index: i, Value: payload.JSON(value), Policy: policy}
	q.SetDriftDefaults(c.Graph.Spec)
	for _, a := range c.Journal.Answers {
		if a.Scope == "" && a.Key == "" && a.Index == i && a.Matches(&q) {
			return string(a.Value)
		}
	}
	panic(askPanic{q})
}

// nodeExecutor runs function nodes from a map and notes which were entered.
type nodeExecutor struct {
	funcs map[string]nodeFunc

	mu      sync.Mutex
	entered []string
}

func (n *nodeExecutor) Execute(ctx context.Context, t *runtime.Task) (r pregel.Result) {
	name := t.Node.Name
	if t.Router != "" {
		name = t.Router
	} else {
		n.mu.Lock()
		n.entered = append(n.entered, name)
		n.mu.Unlock()
	}
	defer func() {
		switch x := recover().(type) {
		case nil:
		case askPanic:
			r = pregel.Result{Asks: []pregel.Ask{x.ask}}
		default:
			panic(x)
		}
	}()
	code, ok := n.funcs[name]
	if !ok {
		return failedResult("no code for " + name)
	}
	return code(ctx, &nodeCall{Task: t})
}

// takeEntered returns the nodes that ran since the last call.
func (n *nodeExecutor) takeEntered() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := n.entered
	n.entered = nil
	return out
}

func failedResult(msg string) pregel.Result {
	return pregel.Result{Failure: &pregel.Failure{Failure: checkpoint.Failure{Reason: runtime.FailedNode, Message: msg, Type: "Boom"}}}
}

// updateNode returns a node that always writes the same.
func updateNode(json string) nodeFunc {
	return func(context.Context, *nodeCall) pregel.Result { return pregel.Result{Update: payload.JSON(json)} }
}

type graphCatalog map[string]*graph.Graph

func (c graphCatalog) Graph(name, _ string) (*graph.Graph, error) {
	g, ok := c[name]
	if !ok {
		return nil, runtime.Errorf(runtime.ReasonGraphNotFound, "no graph %q", name).With("graph", name)
	}
	return g, nil
}

// Versions lists the only version of a graph.
func (c graphCatalog) Versions(name string, _ int) []string {
	if g := c[name]; g != nil {
		return []string{g.Version}
	}
	return nil
}

// findSubgraph finds a subgraph.
func (c graphCatalog) findSubgraph(name, _ string) (*graph.Graph, bool) {
	g, ok := c[name]
	return g, ok
}

// fixture is an engine over a store with test graphs.
type fixture struct {
	t      testing.TB
	store  checkpoint.Store
	opts   engine.Options
	nodes  *nodeExecutor
	graphs graphCatalog
	engine *engine.Engine
}

func newFixture(tb testing.TB, code map[string]nodeFunc, specs ...*graph.Spec) *fixture {
	tb.Helper()
	return newFixtureOn(tb, guardTrails(tb, memory.New(memory.Options{})), engine.Options{}, code, specs...)
}

func newFixtureOn(
	tb testing.TB, store checkpoint.Store, opts engine.Options, code map[string]nodeFunc, specs ...*graph.Spec,
) *fixture {
	tb.Helper()
	w := &fixture{t: tb, store: store, opts: opts, nodes: &nodeExecutor{funcs: code}, graphs: graphCatalog{}}
	for _, s := range specs {
		w.compileGraph(s)
	}
	w.startEngine()
	return w
}

func (f *fixture) compileGraph(s *graph.Spec) {
	f.t.Helper()
	g, err := graph.Compile(s, graph.Env{
		Expressions: expressions,
		Lookup:      f.graphs.findSubgraph,
	})
	require.NoError(f.t, err)
	f.graphs[s.Name] = g
}

func (f *fixture) startEngine() {
	f.engine = engine.New(context.Background(), f.store, f.graphs, f.nodes, nil, f.opts)
	e := f.engine
	f.t.Cleanup(func() { closeEngine(f.t, e) })
}

// closeEngine closes an engine, which counts nothing as held then.
func closeEngine(tb testing.TB, e *engine.Engine) {
	tb.Helper()
	e.Close()
	require.Empty(tb, engine.DescribeLeaks(e))
}

// chainSpec returns a spec of nodes in a line, all functions, over the given channels.
func chainSpec(name string, channels []graph.ChannelSpec, names ...string) *graph.Spec {
	s := &graph.Spec{Name: name, Channels: channels}
	from := graph.Start
	for _, n := range names {
		s.Nodes = append(s.Nodes, functionNode(n))
		s.Edges = append(s.Edges, newEdge(from, n))
		from = n
	}
	s.Edges = append(s.Edges, newEdge(from, graph.End))
	return s
}

func functionNode(name string) graph.NodeSpec {
	return graph.NodeSpec{Name: name, Function: &graph.FunctionSpec{}}
}

func newEdge(from, to string) graph.EdgeSpec { return graph.EdgeSpec{From: []string{from}, To: to} }

// runToStop starts a run and waits for its stop.
func (f *fixture) runToStop(thread, graphName, input string) checkpoint.Run {
	f.t.Helper()
	return f.beginAndWait(runtime.StartRequest{
		Thread: thread, CreateThread: true, Graph: graphName,
		Request: checkpoint.RunRequest{Input: payload.JSON(input)},
	})
}

func (f *fixture) beginAndWait(req runtime.StartRequest) checkpoint.Run {
	f.t.Helper()
	s, err := f.engine.Start(f.t.Context(), req)
	require.NoError(f.t, err)
	return f.waitRun(s)
}

func (f *fixture) waitRun(s *runtime.Started) checkpoint.Run {
	f.t.Helper()
	r, err := f.engine.WaitRun(f.t.Context(), s.Run.Thread, s.Run.ID)
	require.NoError(f.t, err)
	return r
}

// answerSingle resumes with a single answer and waits for the stop.
func (f *fixture) answerSingle(thread, value string) checkpoint.Run {
	f.t.Helper()
	s, err := f.engine.Resume(f.t.Context(), runtime.ResumeRequest{
		Thread: thread, Single: &runtime.Response{Value: payload.JSON(value)},
	})
	require.NoError(f.t, err)
	return f.waitRun(s)
}

func (f *fixture) stateValues(thread string) string {
	f.t.Helper()
	s, err := f.engine.State(f.t.Context(), runtime.StateRequest{Thread: thread})
	require.NoError(f.t, err)
	return string(s.Values)
}

func (f *fixture) readState(thread string) runtime.Snapshot {
	f.t.Helper()
	s, err := f.engine.State(f.t.Context(), runtime.StateRequest{Thread: thread})
	require.NoError(f.t, err)
	return s
}

// describeEvents lists the events of a thread, one short line each.
func (f *fixture) describeEvents(thread string, kinds ...checkpoint.EventKind) []string {
	f.t.Helper()
	events, err := f.store.Events(f.t.Context(), thread, 0, 0)
	require.NoError(f.t, err)
	var out []string
	for _, e := range events {
		if len(kinds) > 0 && !slices.Contains(kinds, e.Kind) {
			continue
		}
		out = append(out, describeEvent(e))
	}
	return out
}

func describeEvent(e checkpoint.Event) string {
	where := pregel.NodePath(e.Namespace)
	if where != "" {
		where += "/"
	}
	switch e.Kind {
	case checkpoint.EventRunState:
		s := "run " + string(e.State)
		if e.Failure != nil {
			s += " " + e.Failure.Reason
		}
		return s
	case checkpoint.EventUpdate:
		s := where + e.Node + " " + string(e.Value)
		if e.Cached {
			s += " cached"
		}
		return s
	case checkpoint.EventTask:
		return fmt.Sprintf("%s%s %s", where, e.Node, e.Phase)
	case checkpoint.EventCheckpoint:
		return fmt.Sprintf("%scheckpoint %s %d", where, e.Source, e.Step)
	case checkpoint.EventInterrupt:
		var vs []string
		for _, i := range e.Interrupts {
			vs = append(vs, string(i.Value))
		}
		return where + e.Node + " asks " + strings.Join(vs, ",")
	case checkpoint.EventResolved:
		return fmt.Sprintf("%d resolved %s", len(e.Interrupts), e.Interrupts[0].State)
	default:
		return where + string(e.Kind)
	}
}

// errorMeta returns a parameter of the refusal of a call.
func errorMeta(err error, key string) string {
	if e, ok := errors.AsType[*runtime.Error](err); ok {
		return e.Meta[key]
	}
	return ""
}

// errorReason returns the reason of a refused call.
func errorReason(err error) string {
	if e, ok := errors.AsType[*runtime.Error](err); ok {
		return e.Reason
	}
	if err == nil {
		return ""
	}
	return "!" + err.Error()
}

func parseNumber(s string) int {
	var n int
	_ = json.Unmarshal([]byte(s), &n)
	return n
}

// expressions compiles the expressions of all tests, as one compiler does those of all graphs
// of a server. It is made before the tests: what is made in a bubble of synctest must not be
// used outside.
var expressions = newExpressions()

func newExpressions() graph.Expressions {
	e, err := expr.New(expr.Options{})
	if err != nil {
		panic(err)
	}
	return e
}
