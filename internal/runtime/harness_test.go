package runtime_test

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

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/expr"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// node is the code of a function node in a test.
type node func(ctx context.Context, t *call) pregel.Result

// call is one attempt, with the question counter that an SDK would keep.
type call struct {
	*runtime.Task
	asked int
}

// get reads a key of the node's state.
func (c *call) get(key string) string {
	if c.Send != "" {
		v, _ := payload.Lookup(c.Send, key)
		return string(v)
	}
	v, _ := c.State.Lookup(key)
	return string(v)
}

// errAsk unwinds a node to its question.
type errAsk struct{ ask pregel.Ask }

// ask returns the answer to the next question, or unwinds.
func (c *call) ask(value string) string {
	i := c.asked
	c.asked++
	q := pregel.Ask{Index: i, Value: payload.JSON(value)}
	q.Settle(c.Graph.Spec)
	for _, a := range c.Journal.Answers {
		if a.Scope == "" && a.Key == "" && a.Index == i && a.Fits(&q) {
			return string(a.Value)
		}
	}
	panic(errAsk{q})
}

// nodes runs function nodes from a map and notes which were entered.
type nodes struct {
	code map[string]node

	mu  sync.Mutex
	ran []string
}

func (n *nodes) Execute(ctx context.Context, t *runtime.Task) (r pregel.Result) {
	name := t.Node.Name
	if t.Router != "" {
		name = t.Router
	} else {
		n.mu.Lock()
		n.ran = append(n.ran, name)
		n.mu.Unlock()
	}
	defer func() {
		switch x := recover().(type) {
		case nil:
		case errAsk:
			r = pregel.Result{Asks: []pregel.Ask{x.ask}}
		default:
			panic(x)
		}
	}()
	code, ok := n.code[name]
	if !ok {
		return fail("no code for " + name)
	}
	return code(ctx, &call{Task: t})
}

// take returns the nodes that ran since the last call.
func (n *nodes) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := n.ran
	n.ran = nil
	return out
}

func fail(msg string) pregel.Result {
	return pregel.Result{Failure: &pregel.Failure{Failure: checkpoint.Failure{Reason: runtime.FailedNode, Message: msg, Type: "Boom"}}}
}

// update is a node that always writes the same.
func update(json string) node {
	return func(context.Context, *call) pregel.Result { return pregel.Result{Update: payload.JSON(json)} }
}

type catalog map[string]*graph.Graph

func (c catalog) Graph(name, _ string) (*graph.Graph, error) {
	g, ok := c[name]
	if !ok {
		return nil, runtime.Errorf(runtime.ReasonGraphNotFound, "no graph %q", name).With("graph", name)
	}
	return g, nil
}

// lookup finds a subgraph.
func (c catalog) lookup(name, _ string) (*graph.Graph, bool) {
	g, ok := c[name]
	return g, ok
}

// bench is an engine over a store with test graphs.
type world struct {
	t      testing.TB
	store  checkpoint.Store
	opts   runtime.Options
	nodes  *nodes
	graphs catalog
	engine *runtime.Engine
}

func newWorld(tb testing.TB, code map[string]node, specs ...*graph.Spec) *world {
	tb.Helper()
	return newWorldOn(tb, memory.New(memory.Options{}), runtime.Options{}, code, specs...)
}

func newWorldOn(
	tb testing.TB, store checkpoint.Store, opts runtime.Options, code map[string]node, specs ...*graph.Spec,
) *world {
	tb.Helper()
	w := &world{t: tb, store: store, opts: opts, nodes: &nodes{code: code}, graphs: catalog{}}
	for _, s := range specs {
		w.compile(s)
	}
	w.start()
	return w
}

func (w *world) compile(s *graph.Spec) {
	w.t.Helper()
	g, err := graph.Compile(s, graph.Env{
		Expressions: newExpr(),
		Lookup:      w.graphs.lookup,
	})
	require.NoError(w.t, err)
	w.graphs[s.Name] = g
}

func (w *world) start() {
	w.engine = runtime.New(context.Background(), w.store, w.graphs, w.nodes, nil, w.opts)
	e := w.engine
	w.t.Cleanup(func() { closeEngine(w.t, e) })
}

// closeEngine closes an engine, which counts nothing as held then.
func closeEngine(tb testing.TB, e *runtime.Engine) {
	tb.Helper()
	e.Close()
	require.Empty(tb, runtime.Leaked(e))
}

// chain is a spec of nodes in a line, all functions, over the given channels.
func chain(name string, channels []graph.ChannelSpec, names ...string) *graph.Spec {
	s := &graph.Spec{Name: name, Channels: channels}
	from := graph.Start
	for _, n := range names {
		s.Nodes = append(s.Nodes, function(n))
		s.Edges = append(s.Edges, edge(from, n))
		from = n
	}
	s.Edges = append(s.Edges, edge(from, graph.End))
	return s
}

func function(name string) graph.NodeSpec {
	return graph.NodeSpec{Name: name, Function: &graph.FunctionSpec{}}
}

func edge(from, to string) graph.EdgeSpec { return graph.EdgeSpec{From: []string{from}, To: to} }

// run starts a run and waits for its stop.
func (w *world) run(thread, graphName, input string) checkpoint.Run {
	w.t.Helper()
	return w.begin(runtime.StartRequest{
		Thread: thread, CreateThread: true, Graph: graphName,
		Request: checkpoint.RunRequest{Input: payload.JSON(input)},
	})
}

func (w *world) begin(req runtime.StartRequest) checkpoint.Run {
	w.t.Helper()
	s, err := w.engine.Start(w.t.Context(), req)
	require.NoError(w.t, err)
	return w.wait(s)
}

func (w *world) wait(s runtime.Started) checkpoint.Run {
	w.t.Helper()
	r, err := w.engine.WaitRun(w.t.Context(), s.Run.Thread, s.Run.ID)
	require.NoError(w.t, err)
	return r
}

// answer resumes with a single answer and waits for the stop.
func (w *world) answer(thread, value string) checkpoint.Run {
	w.t.Helper()
	s, err := w.engine.Resume(w.t.Context(), runtime.ResumeRequest{
		Thread: thread, Single: &runtime.Response{Value: payload.JSON(value)},
	})
	require.NoError(w.t, err)
	return w.wait(s)
}

func (w *world) values(thread string) string {
	w.t.Helper()
	s, err := w.engine.State(w.t.Context(), runtime.StateRequest{Thread: thread})
	require.NoError(w.t, err)
	return string(s.Values)
}

func (w *world) state(thread string) runtime.Snapshot {
	w.t.Helper()
	s, err := w.engine.State(w.t.Context(), runtime.StateRequest{Thread: thread})
	require.NoError(w.t, err)
	return s
}

// transcript lists the events of a thread, one short line each.
func (w *world) transcript(thread string, kinds ...checkpoint.EventKind) []string {
	w.t.Helper()
	events, err := w.store.Events(w.t.Context(), thread, 0, 0)
	require.NoError(w.t, err)
	var out []string
	for _, e := range events {
		if len(kinds) > 0 && !slices.Contains(kinds, e.Kind) {
			continue
		}
		out = append(out, line(e))
	}
	return out
}

func line(e checkpoint.Event) string {
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

// meta is a parameter of the refusal of a call.
func meta(err error, key string) string {
	if e, ok := errors.AsType[*runtime.Error](err); ok {
		return e.Meta[key]
	}
	return ""
}

// reason is the reason of a refused call.
func reason(err error) string {
	if e, ok := errors.AsType[*runtime.Error](err); ok {
		return e.Reason
	}
	if err == nil {
		return ""
	}
	return "!" + err.Error()
}

func number(s string) int {
	var n int
	_ = json.Unmarshal([]byte(s), &n)
	return n
}

func newExpr() graph.Expressions {
	e, err := expr.New(expr.Options{})
	if err != nil {
		panic(err)
	}
	return e
}
