package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/client"
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/worker"
)

// update returns a node that writes an update.
func update(text string) graph.Func {
	return func(context.Context, graph.State) (any, error) { return json.RawMessage(text), nil }
}

// oneNode is a graph of one node over the channels a and b.
func oneNode(name string, run graph.Func, options ...graph.NodeOption) *graph.Builder {
	return graph.New(name).Channel("a").Channel("b").
		Node("n", run, options...).Chain(graph.Start, "n", graph.End)
}

func TestANodeRunsInAWorker(t *testing.T) {
	s := startServer(t)
	type state struct {
		N int64 `json:"n"`
	}
	w := serve(t, s.Address, graph.New("double").State(state{}).
		Node("twice", graph.Typed(func(_ context.Context, st state) (any, error) { return state{2 * st.N}, nil })).
		Chain(graph.Start, "twice", graph.End))
	requireOutput(t, `{"n":18014398509481986}`, s.invoke(t, "double", "t1", state{9007199254740993}))
	require.NotEmpty(t, w.Version("double"))
	require.Empty(t, w.Version("other"))
	require.NoError(t, w.stop())
}

func TestANodeAsksAndRunsAgain(t *testing.T) {
	s := startServer(t)
	var memos, runs atomic.Int32
	var keys [2]atomic.Pointer[string]
	serve(t, s.Address, oneNode("ask", func(ctx context.Context, _ graph.State) (any, error) {
		n := runs.Add(1)
		price, err := graph.MemoWithKey(ctx, "price", func(_ context.Context, key string) (int32, error) {
			keys[0].Store(&key)
			return memos.Add(1) + 40, nil
		})
		if err != nil {
			return nil, err
		}
		if err := graph.Emit(ctx, "asking", n, graph.Durable()); err != nil {
			return nil, err
		}
		first, err := graph.Ask[string](ctx, map[string]any{"price": price}, graph.Reason("approval"))
		if err != nil {
			return nil, err
		}
		note, err := graph.Ask[string](graph.Scope(ctx, "note"), "why?", graph.Key("why"))
		if err != nil {
			return nil, err
		}
		if err := graph.Emit(ctx, "done", n, graph.Durable()); err != nil {
			return nil, err
		}
		return map[string]any{"a": price, "b": first + note}, nil
	}))
	o := s.invoke(t, "ask", "t1", map[string]any{})
	require.True(t, o.Waits(), o.Run)
	require.JSONEq(t, `{"price":41}`, o.Questions[0].GetValue().GetJson())
	require.Equal(t, "approval", o.Questions[0].GetReason())
	o, err := s.client.Resume(t.Context(), "t1", client.Answer{Value: "yes"})
	require.NoError(t, err)
	require.True(t, o.Waits(), o.Run)
	o, err = s.client.Resume(t.Context(), "t1", client.Answer{Value: "because"})
	require.NoError(t, err)
	requireOutput(t, `{"a":41,"b":"yesbecause"}`, o)
	require.Equal(t, int32(1), memos.Load())
	require.Len(t, *keys[0].Load(), 32)
	require.Equal(t, []string{"asking 1", "done 3"}, s.customEvents(t, "t1"), "events of a replay are dropped")
}

// customEvents lists the stored events of nodes.
func (s *server) customEvents(t *testing.T, thread string) (list []string) {
	t.Helper()
	events, err := s.client.Graphs().Watch(t.Context(), &graphdv1.WatchRequest{ThreadId: thread})
	require.NoError(t, err)
	for {
		e, err := events.Recv()
		if err != nil || e.GetEnd() != nil {
			return list
		}
		if c := e.GetCustom(); c != nil {
			list = append(list, c.GetName()+" "+c.GetValue().GetJson())
		}
	}
}

func TestAnAnswerIsForWhatWasShown(t *testing.T) {
	s := startServer(t)
	var runs atomic.Int32
	var used atomic.Bool
	changing := func(options ...graph.AskOption) graph.Func {
		return func(ctx context.Context, _ graph.State) (any, error) {
			answer, err := graph.Ask[string](ctx, runs.Add(1), options...)
			if err == nil {
				used.Store(true)
			}
			return map[string]any{"b": answer}, err
		}
	}
	serve(t, s.Address, oneNode("again", changing()), oneNode("fail", changing(graph.Reason("approval"))), oneNode("accept", changing(graph.OnDrift(graph.DriftAccept))))
	for name, want := range map[string]graphdv1.RunState{
		"again": graphdv1.RunState_RUN_STATE_INTERRUPTED, "fail": graphdv1.RunState_RUN_STATE_FAILED,
	} {
		require.True(t, s.invoke(t, name, name, map[string]any{}).Waits())
		o, err := s.client.Resume(t.Context(), name, client.Answer{Value: "yes"})
		require.NoError(t, err)
		require.Equal(t, want, o.Run.GetState(), o.Run.GetFailure())
		require.False(t, used.Load())
	}
	require.True(t, s.invoke(t, "accept", "accept", map[string]any{}).Waits())
	o, err := s.client.Resume(t.Context(), "accept", client.Answer{Value: "yes"})
	require.NoError(t, err)
	requireOutput(t, `{"b":"yes"}`, o)
}

func TestAChangedOrderOfCallsFailsTheTask(t *testing.T) {
	s := startServer(t)
	var runs atomic.Int32
	serve(t, s.Address, oneNode("moved", func(ctx context.Context, _ graph.State) (any, error) {
		if runs.Add(1) == 1 {
			return graph.Interrupt(ctx, "a", graph.Key("one"))
		}
		return graph.Memo(ctx, "one", func(context.Context) (int, error) { return 1, nil })
	}))
	require.True(t, s.invoke(t, "moved", "t1", map[string]any{}).Waits())
	o, err := s.client.Resume(t.Context(), "t1", client.Answer{Value: "yes"})
	require.NoError(t, err)
	f := requireFailure(t, "NonDeterministic", o)
	require.Equal(t, "NON_DETERMINISTIC_NODE", f.GetReason())
	require.Contains(t, f.GetMessage(), `before it was question number 1 of key "one", now it is memo`)
}

func TestDismissedQuestions(t *testing.T) {
	s := startServer(t)
	serve(t, s.Address, oneNode("dismiss", func(ctx context.Context, _ graph.State) (any, error) {
		_, err := graph.Ask[string](ctx, "?")
		if dismissed, ok := errors.AsType[*graph.DismissedError](err); ok {
			return map[string]any{"b": dismissed.Note}, nil
		}
		return nil, err
	}))
	require.True(t, s.invoke(t, "dismiss", "t1", map[string]any{}).Waits())
	o, err := s.client.Resume(t.Context(), "t1", client.Answer{Dismiss: "no longer needed"})
	require.NoError(t, err)
	requireOutput(t, `{"b":"no longer needed"}`, o)
}

func TestSecretPartsReachTheNodeOnly(t *testing.T) {
	s := startServer(t)
	serve(t, s.Address, oneNode("secret", func(ctx context.Context, _ graph.State) (any, error) {
		answer, err := graph.Ask[map[string]string](ctx, map[string]any{"card": "4111", "for": "tea"}, graph.Secret("/card"))
		return map[string]any{"a": len(answer["card"])}, err
	}))
	o := s.invoke(t, "secret", "t1", map[string]any{})
	require.True(t, o.Waits(), o.Run)
	require.JSONEq(t, `{"card":{"__redacted__":true},"for":"tea"}`, o.Questions[0].GetValue().GetJson())
	o, err := s.client.Resume(t.Context(), "t1", client.Answer{Value: map[string]string{"card": "secret"}})
	require.NoError(t, err)
	requireOutput(t, `{"a":6}`, o)
}

func TestRoutesReducersAndSends(t *testing.T) {
	s := startServer(t)
	g := graph.New("fan").Channel("words").
		Channel("n", graph.ReduceBy(func(a, b int) (int, error) { return a + b, nil })).
		Node("split", update(`{}`)).
		Node("count", func(_ context.Context, st graph.State) (any, error) {
			var word string
			err := json.Unmarshal([]byte(st.Raw()), &word)
			return map[string]int{"n": len(word)}, err
		}).
		Node("again", update(`{"n":100}`)).
		Edge(graph.Start, "split").
		Route("split", func(_ context.Context, st graph.State) (any, error) {
			var words []string
			if err := st.Decode("words", &words); err != nil {
				return nil, err
			}
			var all []graph.Target
			for _, w := range words {
				all = append(all, graph.Send("count", w))
			}
			return all, nil
		}, "count").
		Route("count", func(_ context.Context, st graph.State) (any, error) {
			if string(st.Get("n")) == "" {
				return nil, errors.New("n is unset")
			}
			return "again", nil
		}, "again", graph.End).
		Edge("again", graph.End)
	serve(t, s.Address, g)
	requireOutput(t, `{"words":["a","bb","ccc"],"n":106}`, s.invoke(t, "fan", "t1", map[string]any{"words": []string{"a", "bb", "ccc"}}))
}

func TestCommandsSubgraphsAndOverwrites(t *testing.T) {
	s := startServer(t)
	inner := graph.New("inner").Channel("log", graph.Reducer("append")).
		Node("first", func(context.Context, graph.State) (any, error) {
			return []graph.Command{{Update: map[string]any{"log": []string{"inner"}}}, {Update: map[string]any{"log": []string{"twice"}}}}, nil
		}).
		Node("up", func(ctx context.Context, _ graph.State) (any, error) {
			if graph.TaskInfo(ctx).Namespace == "" {
				return nil, errors.New("a subgraph has a namespace")
			}
			return graph.Command{Parent: true, Update: map[string]any{"log": []string{"from inner"}}, Goto: []graph.Target{graph.To("end")}}, nil
		}).
		Chain(graph.Start, "first", "up", graph.End)
	outer := graph.New("outer").Channel("log", graph.Reducer("append")).
		Subgraph("sub", inner, graph.Destinations("end")).
		Node("end", func(_ context.Context, st graph.State) (any, error) {
			return map[string]any{"log": graph.Overwrite([]any{"only", st.Get("log")})}, nil
		}).
		Edge(graph.Start, "sub")
	several := graph.New("several").Channel("log", graph.Reducer("append")).
		Node("n", func(context.Context, graph.State) (any, error) {
			var all []graph.Command
			for _, word := range []string{"one", "two", "three"} {
				all = append(all, graph.Command{Update: map[string]any{"log": []string{word}}})
			}
			return all, nil
		}).Chain(graph.Start, "n", graph.End)
	w := serve(t, s.Address, outer, several)
	requireOutput(t, `{"log":["only",["from inner"]]}`, s.invoke(t, "outer", "t1", map[string]any{"log": []string{}}))
	requireOutput(t, `{"log":["one","two","three"]}`, s.invoke(t, "several", "t2", map[string]any{}))
	require.NotEmpty(t, w.Version("inner"))
}

func TestFailuresRetriesAndHandlers(t *testing.T) {
	s := startServer(t)
	var attempts atomic.Int32
	flaky := func(ctx context.Context, _ graph.State) (any, error) {
		if n := attempts.Add(1); n < 3 {
			return nil, graph.OfType("Flaky", errors.New("not yet"))
		}
		return map[string]any{"a": graph.TaskInfo(ctx).Attempt}, nil
	}
	retry := graph.Retries(graph.Retry{MaxAttempts: 5, InitialInterval: 1e6, NoJitter: true, On: []string{"Flaky"}})
	fails := func(err error) graph.Func {
		return func(context.Context, graph.State) (any, error) { return nil, err }
	}
	serve(t, s.Address,
		oneNode("flaky", flaky, retry),
		oneNode("permanent", fails(graph.Permanent(graph.OfType("Flaky", errors.New("never")))), retry),
		oneNode("panics", func(context.Context, graph.State) (any, error) { panic("oh no") }),
		oneNode("wrong", func(context.Context, graph.State) (any, error) { return []int{1}, nil }),
		oneNode("large", func(context.Context, graph.State) (any, error) {
			return map[string]any{"a": strings.Repeat("x", 5<<20)}, nil
		}),
		oneNode("handled", fails(graph.OfType("Broken", errors.New("the wheel"))), graph.OnError("h")).
			Node("h", func(ctx context.Context, _ graph.State) (any, error) {
				f := graph.Failed(ctx)
				return map[string]any{"b": f.Node + " " + f.Type + " " + f.Message}, nil
			}))
	requireOutput(t, `{"a":3}`, s.invoke(t, "flaky", "flaky", map[string]any{}))
	requireFailure(t, "Flaky", s.invoke(t, "permanent", "permanent", map[string]any{}))
	f := requireFailure(t, "panic", s.invoke(t, "panics", "panics", map[string]any{}))
	require.Equal(t, "panic: oh no", f.GetMessage())
	require.Contains(t, f.GetStack(), "worker_test")
	require.NotContains(t, f.GetStack(), "internal/node/function")
	f = requireFailure(t, "InvalidResult", s.invoke(t, "wrong", "wrong", map[string]any{}))
	require.Equal(t, "INVALID_NODE_UPDATE", f.GetReason())
	f = requireFailure(t, "InvalidResult", s.invoke(t, "large", "large", map[string]any{}))
	require.Equal(t, "OUTPUT_TOO_LARGE", f.GetReason())
	requireOutput(t, `{"b":"n Broken the wheel"}`, s.invoke(t, "handled", "handled", map[string]any{}))
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	causes := make(chan error, 10)
	waits := func(ctx context.Context, _ graph.State) (any, error) {
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return nil, context.Cause(ctx)
	}
	serve(t, s.Address, oneNode("timeout", waits, graph.Timeout(50*time.Millisecond)), oneNode("idle", waits, graph.IdleTimeout(300*time.Millisecond)),
		oneNode("expires", func(ctx context.Context, _ graph.State) (any, error) {
			_, err := graph.Ask[string](ctx, "?", graph.ExpiresAfter(50*time.Millisecond, graph.FailNode))
			if expired, ok := errors.AsType[*graph.ExpiredError](err); ok {
				return map[string]any{"b": expired.Error()}, nil
			}
			return nil, err
		}))
	for _, name := range []string{"timeout", "idle"} {
		require.Equal(t, "NODE_TIMEOUT", s.invoke(t, name, name, map[string]any{}).Run.GetFailure().GetReason())
		_, ok := errors.AsType[*worker.StoppedError](receive(t, causes, "the end of the node"))
		require.True(t, ok)
	}
	require.True(t, s.invoke(t, "expires", "expires", map[string]any{}).Waits())
	for event, err := range s.client.Watch(t.Context(), "expires", nil) {
		require.NoError(t, err)
		if event.GetRunState().GetState() == graphdv1.RunState_RUN_STATE_SUCCEEDED {
			break
		}
	}
	requireOutput(t, `{"b":"question number 1 expired without an answer"}`, s.wait(t, "expires"))
}

func TestQuestionsOfGoroutinesGoOutTogether(t *testing.T) {
	s := startServer(t)
	serve(t, s.Address, oneNode("both", func(ctx context.Context, _ graph.State) (any, error) {
		var answers [2]string
		var failures [2]error
		var all sync.WaitGroup
		for i, name := range []string{"left", "right"} {
			all.Go(func() { answers[i], failures[i] = graph.Ask[string](graph.Scope(ctx, name), name) })
		}
		all.Wait()
		return map[string]any{"a": answers}, errors.Join(failures[:]...)
	}))
	o := s.invoke(t, "both", "t1", map[string]any{})
	require.Len(t, o.Questions, 2)
	var answers []client.Answer
	for _, q := range o.Questions {
		answers = append(answers, client.Answer{Question: q.GetInterruptId(), Value: "to " + strings.Trim(q.GetValue().GetJson(), `"`)})
	}
	o, err := s.client.Resume(t.Context(), "t1", answers...)
	require.NoError(t, err)
	requireOutput(t, `{"a":["to left","to right"]}`, o)
}

func TestAPanicOfAReducerEndsOneRun(t *testing.T) {
	s := startServer(t)
	serve(t, s.Address, graph.New("broken").
		Channel("n", graph.ReduceBy(func(int, int) (int, error) { panic("no sum") })).
		Node("n", update(`{"n":1}`)).Chain(graph.Start, "n", graph.End),
		oneNode("other", update(`{"a":1}`)))
	f := requireFailure(t, "panic", s.invoke(t, "broken", "t1", map[string]any{}))
	require.Contains(t, f.GetMessage(), "no sum")
	requireOutput(t, `{"a":1}`, s.invoke(t, "other", "t2", map[string]any{}))
}

// file is a graph of the server: a worker serves what is in it.
const file = `
graph: filed
channels: {a: {}, n: {reducer: remote, function: sum, default: 1}}
nodes: {first: {remote: {}}, second: {remote: {}}}
edges: [START -> first, second -> END]
conditional_edges: [{from: first, router: choose, in_worker: true, then: [second]}]
`

// newFiledNodes has the functions of the file.
func newFiledNodes() worker.Nodes {
	return worker.Nodes{
		Graph:     "filed",
		Functions: graph.Functions{"first": update(`{"n":2}`), "second": update(`{"n":3,"a":true}`)},
		Routers:   graph.Functions{"choose": func(context.Context, graph.State) (any, error) { return "second", nil }},
		Reducers: map[string]graph.Reduce{"sum": func(current, write json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`"` + strings.Trim(string(current), `"`) + "+" + string(write) + `"`), nil
		}},
	}
}

func TestAWorkerServesAGraphOfTheServer(t *testing.T) {
	s := startServer(t)
	_, err := s.client.Registry().PutGraph(t.Context(), &graphdv1.PutGraphRequest{
		Definition: &graphdv1.PutGraphRequest_Document{Document: file},
	})
	require.NoError(t, err)
	serveWith(t, s.Address, worker.Options{Nodes: []worker.Nodes{newFiledNodes()}})
	requireOutput(t, `{"a":true,"n":"1+2+3"}`, s.invoke(t, "filed", "t1", map[string]any{}))
}

func TestAWorkerBringsAGraphFileAlong(t *testing.T) {
	s := startServer(t)
	n := newFiledNodes()
	n.File, n.Graph = []byte(file), ""
	serveWith(t, s.Address, worker.Options{Nodes: []worker.Nodes{n}})
	requireOutput(t, `{"a":true,"n":"1+2+3"}`, s.invoke(t, "filed", "t1", map[string]any{}))
}

func TestTheFunctionsOfAFileAreThoseThatItNames(t *testing.T) {
	for text, change := range map[string]func(*worker.Nodes){
		`worker: Nodes[0].Graph is "other", and the file has the graph "filed": want the same, or none`:                             func(n *worker.Nodes) { n.Graph = "other" },
		`worker: Nodes[0].Version is "1": want none with a File, which may have a version itself`:                                   func(n *worker.Nodes) { n.Version = "1" },
		"worker: Nodes[0].Functions has functions for [first]: want one for each of the remote nodes of the file: first, second":    func(n *worker.Nodes) { delete(n.Functions, "second") },
		"worker: Nodes[0].Routers has functions for []: want one for each of the routers in workers of the file: choose":            func(n *worker.Nodes) { n.Routers = nil },
		"worker: Nodes[0].Reducers has functions for [sum, total]: want one for each of the functions of channels of the file: sum": func(n *worker.Nodes) { n.Reducers["total"] = n.Reducers["sum"] },
		"worker: Nodes[0].Functions has no function under \"first\": want a function":                                               func(n *worker.Nodes) { n.Functions["first"] = nil },
	} {
		n := newFiledNodes()
		n.File = []byte(file)
		change(&n)
		_, err := worker.Dial("127.0.0.1:1", worker.Options{Nodes: []worker.Nodes{n}})
		require.EqualError(t, err, text)
	}
	_, err := worker.Dial("127.0.0.1:1", worker.Options{Nodes: []worker.Nodes{{File: []byte("graph: g\nchanels: {}\n")}}})
	require.ErrorContains(t, err, "worker: Nodes[0].File: ")
	require.ErrorContains(t, err, "chanels")
}

func TestTheExampleOfTheDocs(t *testing.T) {
	s := startServer(t)
	serve(t, s.Address, graph.New("orders").State(Order{}).Node("pay", graph.Typed(pay)).Chain(graph.Start, "pay", graph.End))
	for thread, c := range map[string]struct {
		answer bool
		log    []string
	}{"t1": {true, []string{"paid"}}, "t2": {false, []string{"declined"}}} {
		require.True(t, s.invoke(t, "orders", thread, map[string]any{"product": "tea"}).Waits())
		o, err := s.client.Resume(t.Context(), thread, client.Answer{Value: c.answer})
		require.NoError(t, err)
		got, err := client.Decode[Order](o.Run.GetOutput())
		require.NoError(t, err)
		require.Equal(t, c.log, got.Log)
		require.Equal(t, c.answer, strings.HasSuffix(got.Charge, "tea"))
	}
}

func TestAStateThatIsOneValue(t *testing.T) {
	s := startServer(t)
	_, err := s.client.Registry().PutGraph(t.Context(), &graphdv1.PutGraphRequest{Definition: &graphdv1.PutGraphRequest_Document{
		Document: "graph: root\nchannels: {__root__: {}}\nnodes: {n: {remote: {}}}\nedges: [START -> n, n -> END]\n",
	}})
	require.NoError(t, err)
	serveWith(t, s.Address, worker.Options{Nodes: []worker.Nodes{{Graph: "root", Functions: graph.Functions{
		"n": func(_ context.Context, st graph.State) (any, error) { return []string{st.Raw(), "and"}, nil },
	}}}})
	requireOutput(t, `["[1]","and"]`, s.invoke(t, "root", "t1", []int{1}))
}
