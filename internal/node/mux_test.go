package node_test

import (
	"context"
	"encoding/json"
	"errors"
	goruntime "runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	api "github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/node"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

func executeTask(tb testing.TB, task *runtime.Task) pregel.Result {
	tb.Helper()
	return node.New(nil, node.Options{}).Execute(tb.Context(), task)
}

func TestFunctionSeesTheStateAndItself(t *testing.T) {
	var info api.Info
	f := func(ctx context.Context, s api.State) (any, error) {
		info = api.TaskInfo(ctx)
		var whole struct{ A, B json.RawMessage }
		require.NoError(t, s.Unmarshal(&whole))
		requireText(t, "1", payload.JSON(whole.A))
		requireText(t, `{"a":1,"c":[]}`, payload.JSON(s.Raw()))
		require.Equal(t, []string{"a", "c"}, s.Keys())
		requireText(t, "1", payload.JSON(s.Get("a")))
		require.Nil(t, s.Get("b"))
		var n int
		require.NoError(t, s.Decode("a", &n))
		require.ErrorContains(t, s.Decode("b", &n), `state key "b" is not set or not read by the node; set are a, c`)
		require.ErrorContains(t, s.Decode("a", &whole), `state key "a"`)
		return nil, nil
	}
	r := runFunction(t, f, func(t *runtime.Task) {
		t.Context, t.Metadata = `{"user":1.0}`, map[string]string{"k": "v"}
		t.Failed = &checkpoint.Failure{Node: "other", Reason: "NODE_FAILED", Type: "T", Message: "m", Attempt: 3}
	})
	require.Nil(t, r.Failure)
	require.Equal(t, api.Info{
		Thread: "t", Run: "r", Graph: "g", GraphVersion: "v1", Node: "n", Task: "task", Step: 1, Attempt: 1,
		Metadata: map[string]string{"k": "v"}, Context: `{"user":1.0}`,
		Failed: &api.Failure{Node: "other", Reason: "NODE_FAILED", Type: "T", Message: "m", Attempt: 3},
	}, info)
}

func TestTypedFunction(t *testing.T) {
	f := api.Typed(func(_ context.Context, s struct{ A int }) (any, error) { return map[string]int{"b": s.A + 1}, nil })
	requireText(t, `{"b":2}`, runFunction(t, f).Update)
	bad := api.Typed(func(_ context.Context, s struct{ A string }) (any, error) { return nil, nil })
	require.True(t, runFunction(t, bad).Failure.Permanent)
}

func TestSendIsTheInput(t *testing.T) {
	for sent, want := range map[payload.JSON]string{
		`{"x": 1.0, "a": null}`: `{"x":1.0,"keys":["x","a"]}`,
		`[1]`:                   `{"x":null,"keys":null}`,
		`null`:                  `{"x":null,"keys":null}`,
	} {
		r := runFunction(t, func(ctx context.Context, s api.State) (any, error) {
			require.Equal(t, string(sent), s.Raw())
			require.Equal(t, string(sent), api.TaskInfo(ctx).Input)
			return struct {
				X    json.RawMessage `json:"x"`
				Keys []string        `json:"keys"`
			}{s.Get("x"), s.Keys()}, nil
		}, func(t *runtime.Task) { t.Send = sent })
		require.Equal(t, payload.JSON(want), r.Update)
	}
	// A conditional edge decides on the state, also after a Send.
	r := runFunction(t, func(_ context.Context, s api.State) (any, error) {
		requireText(t, `{"a":1,"c":[]}`, payload.JSON(s.Raw()))
		return "n", nil
	}, asRouter, func(t *runtime.Task) { t.Send = `{"x":1}` })
	require.Nil(t, r.Failure)
}

type panickingError struct{}

func (panickingError) Error() string { panic("again") }

func panicFunc(how func()) api.Func {
	return func(context.Context, api.State) (any, error) {
		how()
		return nil, nil
	}
}

func TestPanics(t *testing.T) {
	var none map[string]int
	for says, f := range map[string]api.Func{
		"panic: boom":                      panicFunc(func() { panic("boom") }),
		"panic: assignment to entry":       panicFunc(func() { none["x"] = 1 }),
		"panic: bad luck":                  panicFunc(func() { panic(errors.New("bad luck")) }),
		"a node_test.panickingError whose": panicFunc(func() { panic(panickingError{}) }),
	} {
		r := runFunction(t, f)
		require.NotNil(t, r.Failure, says)
		require.Equal(t, "NODE_FAILED", r.Failure.Reason)
		require.Equal(t, "panic", r.Failure.Type)
		require.Contains(t, r.Failure.Message, says)
		lines := strings.Split(r.Failure.Stack, "\n")
		require.Contains(t, lines[0], "node_test.TestPanics")
		require.Contains(t, lines[0], "node/mux_test.go:")
		require.Contains(t, lines[len(lines)-1], "panicFunc")
		require.NotContains(t, r.Failure.Stack, "runtime.")
	}
	r := runFunction(t, returnFunc(marshaler(func() ([]byte, error) { panic("in the result") })))
	require.Contains(t, r.Failure.Message, "in the result")
	r = runFunctionWith(t, node.Options{SeparateGoroutines: true}, panicFunc(func() { goruntime.Goexit() }))
	require.Equal(t, "Goexit", r.Failure.Type)
}

type marshaler func() ([]byte, error)

func (m marshaler) MarshalJSON() ([]byte, error) { return m() }

func panicDeep(n int) {
	if n == 0 {
		panic("deep")
	}
	panicDeep(n - 1)
}

func TestStackIsTrimmed(t *testing.T) {
	r := runFunction(t, panicFunc(func() { panicDeep(50) }))
	require.Len(t, strings.Split(r.Failure.Stack, "\n"), 20)
}

func TestExecuteEndsWithItsContext(t *testing.T) {
	task := newTask(t, oneNodeGraph(t, "function: {}"), `{}`)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("too slow"))
		defer cancel()
		release := make(chan struct{})
		fx := &effectRecorder{}
		attempt := *task
		attempt.Effects = fx
		started := time.Now()
		r := node.New(api.Functions{"n": func(ctx context.Context, _ api.State) (any, error) {
			<-release
			return nil, nil
		}}, node.Options{}).Execute(ctx, &attempt)
		require.Equal(t, 1500*time.Millisecond, time.Since(started))
		require.Equal(t, "Abandoned", r.Failure.Type)
		require.Contains(t, r.Failure.Message, "too slow")
		close(release)
	})
	for _, o := range []node.Options{{SeparateGoroutines: true}, {}} {
		synctest.Test(t, func(t *testing.T) {
			// Without a deadline: the caller cancels.
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			attempt := *task
			idle := *task.Node
			idle.IdleTimeout = time.Hour
			attempt.Node = &idle
			release := make(chan struct{})
			defer close(release)
			r := node.New(api.Functions{"n": func(context.Context, api.State) (any, error) {
				<-release
				return nil, nil
			}}, o).Execute(ctx, &attempt)
			require.Equal(t, "Abandoned", r.Failure.Type)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		attempt := *task
		r := node.New(api.Functions{"n": func(ctx context.Context, _ api.State) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}, node.Options{}).Execute(ctx, &attempt)
		require.ErrorContains(t, ctx.Err(), "deadline")
		require.Equal(t, "context deadline exceeded", r.Failure.Message)
	})
}

func TestExpressions(t *testing.T) {
	for name, c := range map[string]struct {
		kind  string
		state payload.JSON
		want  pregel.Result
	}{
		"updates":       {`expr: {update: {a: 'state.b', c: '[state.b]'}}`, `{"b":9007199254740993}`, pregel.Result{Update: `{"a":9007199254740993,"c":[9007199254740993]}`}},
		"goes":          {`expr: {goto: '"other"'}`, `{}`, pregel.Result{Goto: []checkpoint.Send{{Node: "other"}}}},
		"goes nowhere":  {`expr: {goto: 'null'}`, `{}`, pregel.Result{}},
		"goes and sets": {`expr: {update: {a: '1'}, goto: '[END, send("other", state.b)]'}`, `{"b":1.0}`, pregel.Result{Update: `{"a":1}`, Goto: []checkpoint.Send{{Node: "__end__"}, {Node: "other", Input: "1.0"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, executeTask(t, newTask(t, oneNodeGraph(t, c.kind), c.state)))
		})
	}
}

func TestExpressionVariables(t *testing.T) {
	g := oneNodeGraph(t, `expr: {update: {a: 'error.message', b: 'context.user', c: '[input]'}}`)
	task := newTask(t, g, `{}`)
	task.Context, task.Send = `{"user":1.0}`, `{"x":2.0}`
	task.Failed = &checkpoint.Failure{Message: "it broke"}
	require.Equal(t, pregel.Result{Update: `{"a":"it broke","b":1.0,"c":[{"x":2.0}]}`}, executeTask(t, task))

	task = newTask(t, oneNodeGraph(t, `expr: {update: {b: 'state.a'}}`), `{"a":"of the graph"}`)
	task.Send = `{"a":"of the send"}`
	require.Equal(t, pregel.Result{Update: `{"b":"of the send"}`}, executeTask(t, task))
	task = newTask(t, oneNodeGraph(t, `expr: {update: {b: 'input'}}`), `{"a":"of the graph"}`)
	task.Send = `17`
	require.Equal(t, pregel.Result{Update: `{"b":17}`}, executeTask(t, task))
}

func TestExpressionsThatFail(t *testing.T) {
	for kind, says := range map[string]string{
		`expr: {update: {b: 'state.a'}}`:                       "b: state has no key \"a\"",
		`expr: {goto: '1'}`:                                    "goto: must yield a node name",
		`ask: {when: 'dyn(1)', value: '1'}`:                    "when: a condition must be true or false, not 1",
		`ask: {value: 'state.a'}`:                              "value: state has no key",
		`ask: {message: 'state.a'}`:                            "message: state has no key",
		`ask: {value: '1', when: 'false', goto: '[["n"]]'}`:    "goto: must yield a node name",
		`ask: {value: '1', when: 'state.a', update: {a: '1'}}`: "when: state has no key",
	} {
		r := executeTask(t, newTask(t, oneNodeGraph(t, kind), `{}`))
		require.NotNil(t, r.Failure, kind)
		require.Equal(t, "ExpressionError", r.Failure.Type)
		require.True(t, r.Failure.Permanent)
		require.Contains(t, r.Failure.Message, says)
	}
}

func TestAsk(t *testing.T) {
	g := oneNodeGraph(t, `ask: {when: 'state.a > 1', value: '{"n": state.a}', message: '"really " + string(state.a) + "?"', `+
		`key: k, reason: approval, schema: {type: boolean}, assignees: [ann], ttl: 1h, expiry: resume_default, default: false, `+
		`update: {b: answer}, otherwise: {b: '"not asked"'}, goto: 'answer == null ? END : "other"'}`)
	require.Equal(t, pregel.Result{Asks: []pregel.Ask{{
		Key: "k", Reason: "approval", Message: "really 2?", Value: `{"n":2}`, Schema: `{"type":"boolean"}`,
		TTL: time.Hour, Expiry: checkpoint.ExpiryResumeDefault, Default: "false", Assignees: []string{"ann"},
	}}}, executeTask(t, newTask(t, g, `{"a":2}`)))

	require.Equal(t, pregel.Result{Update: `{"b":"not asked"}`, Goto: []checkpoint.Send{{Node: "__end__"}}},
		executeTask(t, newTask(t, g, `{"a":1}`)))

	task := newTask(t, g, `{"a":2}`)
	shown := pregel.Ask{Message: "really 2?", Value: `{"n":2}`, Schema: `{"type":"boolean"}`}
	task.Journal.Answers = []pregel.Answer{{Key: "other", Value: "1"}, {Key: "k", Value: "true", ShownDigest: shown.ShownDigest()}}
	require.Equal(t, pregel.Result{Update: `{"b":true}`, Goto: []checkpoint.Send{{Node: "other"}}}, executeTask(t, task))
}

func TestAskTakesEveryAnswer(t *testing.T) {
	g := oneNodeGraph(t, `ask: {value: '1', update: {b: answer}}`)
	for _, answer := range []payload.JSON{`null`, `false`, `0`, `""`, `9007199254740993`, `{"x": 1.0}`} {
		task := newTask(t, g, `{}`)
		task.Journal.Answers = []pregel.Answer{answerTo("1", pregel.Answer{Value: answer})}
		require.Equal(t, pregel.Result{Update: `{"b":` + answer + `}`}, executeTask(t, task))
	}
	task := newTask(t, g, `{}`)
	task.Journal.Answers = []pregel.Answer{answerTo("1", pregel.Answer{Dismissed: true, Reason: "spam"})}
	r := executeTask(t, task)
	require.Equal(t, "Dismissed", r.Failure.Type)
	require.Equal(t, "the question was dismissed: spam", r.Failure.Message)
	task.Journal.Answers = []pregel.Answer{answerTo("1", pregel.Answer{Expired: true})}
	r = executeTask(t, task)
	require.Equal(t, "INTERRUPT_EXPIRED", r.Failure.Reason)
	require.True(t, r.Failure.Permanent)
}

func TestAskWithMessageOnly(t *testing.T) {
	r := executeTask(t, newTask(t, oneNodeGraph(t, `ask: {message: '"ok?"'}`), `{}`))
	require.Equal(t, []pregel.Ask{{Message: "ok?", Value: "null"}}, r.Asks)
	r = executeTask(t, newTask(t, oneNodeGraph(t, `ask: {message: '[1]'}`), `{}`))
	require.Equal(t, "[1]", r.Asks[0].Message)
}

type remoteExecutor struct{}

func (remoteExecutor) Execute(context.Context, *runtime.Task) pregel.Result {
	return pregel.Result{Update: `{"a":"from afar"}`}
}

func TestRemote(t *testing.T) {
	task := newTask(t, oneNodeGraph(t, `remote: {}`), `{}`)
	r := executeTask(t, task)
	require.Equal(t, "NO_WORKER_AVAILABLE", r.Failure.Reason)
	require.True(t, r.Failure.Permanent)
	require.Contains(t, r.Failure.Message, `node "n" of graph "g"`)
	r = node.New(nil, node.Options{Remote: remoteExecutor{}}).Execute(t.Context(), task)
	requireText(t, `{"a":"from afar"}`, r.Update)
}

func TestNodesOfTheEngine(t *testing.T) {
	g := oneNodeGraph(t, "function: {}")
	r := executeTask(t, &runtime.Task{Graph: g, Node: g.Nodes[0]})
	require.Equal(t, graph.Start, g.Nodes[0].Name)
	require.Equal(t, "INTERNAL", r.Failure.Reason)
}

func BenchmarkFunction(b *testing.B) {
	task := newTask(b, oneNodeGraph(b, "function: {}"), `{"a":1}`)
	for name, f := range map[string]api.Func{
		"text": returnFunc(json.RawMessage(`{"a":2}`)),
		"map":  func(context.Context, api.State) (any, error) { return map[string]any{"a": 2}, nil },
	} {
		for place, apart := range map[string]bool{"inline": false, "apart": true} {
			m := node.New(api.Functions{"n": f}, node.Options{SeparateGoroutines: apart})
			b.Run(name+"/"+place, func(b *testing.B) {
				ctx, cancel := context.WithCancel(b.Context())
				defer cancel()
				b.ReportAllocs()
				for b.Loop() {
					if r := m.Execute(ctx, task); r.Failure != nil {
						b.Fatal(r.Failure.Message)
					}
				}
			})
		}
	}
}

func BenchmarkExpression(b *testing.B) {
	task := newTask(b, oneNodeGraph(b, `expr: {update: {a: 'state.a + 1'}}`), `{"a":1}`)
	m := node.New(nil, node.Options{})
	b.ReportAllocs()
	for b.Loop() {
		if r := m.Execute(b.Context(), task); r.Failure != nil {
			b.Fatal(r.Failure.Message)
		}
	}
}
