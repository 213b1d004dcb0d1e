package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	api "github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/node"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

func TestFunctionResults(t *testing.T) {
	type update struct {
		A int64  `json:"a"`
		B string `json:"b,omitempty"`
	}
	for name, c := range map[string]struct {
		value any
		want  pregel.Result
	}{
		"nothing":            {nil, pregel.Result{}},
		"a map":              {map[string]any{"b": "<&>", "a": int64(9007199254740993)}, pregel.Result{Update: `{"a":9007199254740993,"b":"<&>"}`}},
		"a struct":           {update{A: 9007199254740993}, pregel.Result{Update: `{"a":9007199254740993}`}},
		"JSON text as it is": {json.RawMessage(` {"b": 1.0, "a":1e2} `), pregel.Result{Update: ` {"b": 1.0, "a":1e2} `}},
		"JSON text inside":   {map[string]any{"a": json.RawMessage(`1.50`)}, pregel.Result{Update: `{"a":1.50}`}},
		"a json.Number":      {map[string]any{"a": json.Number("1.0")}, pregel.Result{Update: `{"a":1.0}`}},
		"no JSON text":       {json.RawMessage(nil), pregel.Result{Update: `null`}},
		"a nil map":          {map[string]any(nil), pregel.Result{Update: `null`}},
		"overwrite":          {map[string]any{"c": api.Overwrite([]int{1})}, pregel.Result{Update: `{"c":{"__overwrite__":[1]}}`}},
		"a command": {
			api.Command{Update: map[string]int{"a": 1}, Goto: []api.Target{api.To("other"), api.Send("n", []int{1})}},
			pregel.Result{Update: `{"a":1}`, Goto: []checkpoint.Send{{Node: "other"}, {Node: "n", Input: `[1]`}}},
		},
		"a pointer to a command": {&api.Command{Goto: []api.Target{api.To(api.End)}}, pregel.Result{Goto: []checkpoint.Send{{Node: "__end__"}}}},
		"no command":             {(*api.Command)(nil), pregel.Result{}},
		"several commands": {
			[]api.Command{
				{Update: map[string]any{"c": 1}, Goto: []api.Target{api.To("n")}},
				{},
				{Update: map[string]any{"c": 2, "a": 3}, Goto: []api.Target{api.To("other")}},
			},
			pregel.Result{Update: `{"c":1,"a":3,"c":2}`, Goto: []checkpoint.Send{{Node: "n"}, {Node: "other"}}},
		},
		"for the parent":     {api.Command{Update: map[string]int{"x": 1}, Parent: true}, pregel.Result{Update: `{"x":1}`, ToParent: true}},
		"a send":             {api.Send("n", nil), pregel.Result{Goto: []checkpoint.Send{{Node: "n", Input: "null"}}}},
		"an unknown channel": {map[string]int{"zzz": 1}, pregel.Result{Update: `{"zzz":1}`}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, runFunction(t, returnFunc(c.value)))
		})
	}
}

func TestFunctionResultsThatCannotBeUsed(t *testing.T) {
	for name, c := range map[string]struct {
		value any
		says  string
	}{
		"a number":           {42, "a node returns an object with a key per channel, or a graph.Command{Goto: …}, not number 42 (int)"},
		"a text":             {"done", `not string "done" (string)`},
		"a list of numbers":  {[]int{1, 2}, "not array [1,2] ([]int)"},
		"false":              {false, "not boolean false (bool)"},
		"a channel":          {make(chan int), "the result can't be written as JSON: json: unsupported type: chan int"},
		"not a number":       {map[string]any{"a": math.NaN()}, "unsupported value: NaN"},
		"broken JSON":        {json.RawMessage(`{"a":`), "not JSON"},
		"broken JSON inside": {map[string]any{"a": json.RawMessage(`{`)}, "unexpected end of JSON"},
		"not UTF-8":          {json.RawMessage("{\"a\":\"\xff\"}"), "invalid UTF-8"},
		"a key twice":        {json.RawMessage(`{"a":1,"a":2}`), `"a"`},
		"a list of targets":  {[]api.Target{api.To("n")}, "return graph.Command{Goto: …}"},
		"a nameless target":  {api.Command{Goto: []api.Target{{}}}, "a target names no node"},
		"a bad input":        {api.Send("n", math.Inf(1)), `the input for "n"`},
		"a command in a command": {
			[]api.Command{{Parent: true}, {Update: 1}}, "some of the commands are for the parent graph",
		},
		"a number in a command": {api.Command{Update: 1}, "not number 1 (int)"},
	} {
		t.Run(name, func(t *testing.T) {
			r := runFunction(t, returnFunc(c.value))
			require.NotNil(t, r.Failure)
			require.Equal(t, "INVALID_NODE_UPDATE", r.Failure.Reason)
			require.True(t, r.Failure.Permanent)
			require.Contains(t, r.Failure.Message, c.says)
			require.Empty(t, r.Update)
		})
	}
}

// TestCarriesStoredRepeats returns a value with a repeated key, which an earlier
// version has stored, in all the ways that a function has.
func TestCarriesStoredRepeats(t *testing.T) {
	const stored = `{"k":1,"k":2}`
	carry := func(f func(ctx context.Context, value json.RawMessage) (any, error)) pregel.Result {
		task := newTask(t, oneNodeGraph(t, "function: {}"), `{"a":`+stored+`}`)
		task.Effects = &effectRecorder{}
		return node.New(api.Functions{"n": func(ctx context.Context, state api.State) (any, error) {
			return f(ctx, state.Get("a"))
		}}, node.Options{}).Execute(t.Context(), task)
	}
	update := func(value json.RawMessage) any { return map[string]any{"b": value} }
	require.Equal(t, pregel.Result{Update: `{"b":` + stored + `}`}, carry(func(_ context.Context, value json.RawMessage) (any, error) {
		return update(value), nil
	}))
	require.Equal(t, pregel.Result{Goto: []checkpoint.Send{{Node: "other", Input: stored}}},
		carry(func(_ context.Context, value json.RawMessage) (any, error) { return api.Send("other", value), nil }))
	r := carry(func(ctx context.Context, value json.RawMessage) (any, error) { return api.Interrupt(ctx, value) })
	require.Nil(t, r.Failure)
	require.Equal(t, payload.JSON(stored), r.Asks[0].Value)
	require.Equal(t, pregel.Result{Update: `{"b":` + stored + `}`}, carry(func(ctx context.Context, value json.RawMessage) (any, error) {
		if err := api.Emit(ctx, "seen", value); err != nil {
			return nil, err
		}
		kept, err := api.Memo(ctx, "kept", func(context.Context) (json.RawMessage, error) { return value, nil })
		return update(kept), err
	}))
	r = carry(func(context.Context, json.RawMessage) (any, error) { return json.RawMessage(`{"a":1,"a":2}`), nil })
	require.Equal(t, "INVALID_NODE_UPDATE", r.Failure.Reason, "a channel has one value")
}

func TestResultsHaveASize(t *testing.T) {
	o := node.Options{Limits: payload.Limits{MaxBytes: 20, MaxDepth: 5}}
	r := runFunctionWith(t, o, returnFunc(map[string]string{"a": "a text that is far too long"}))
	require.Equal(t, "OUTPUT_TOO_LARGE", r.Failure.Reason)
	r = runFunctionWith(t, o, returnFunc(json.RawMessage(`{"a":[[[[[[1]]]]]]}`)))
	require.Equal(t, "LIMIT_EXCEEDED", r.Failure.Reason)
	require.Equal(t, map[string]string{"limit": "max-depth", "most": "5"}, r.Failure.Details)
	require.Contains(t, r.Failure.Message, "deeper")
	for _, kind := range []string{
		`expr: {update: {a: 'state.a + state.a'}}`, `ask: {value: '[state.a, state.a]'}`,
		`expr: {goto: 'send("n", state.a + state.a)'}`,
	} {
		task := newTask(t, oneNodeGraph(t, kind), `{"a":"0123456789"}`)
		r = node.New(nil, o).Execute(t.Context(), task)
		require.NotNil(t, r.Failure, kind)
		require.Equal(t, "OUTPUT_TOO_LARGE", r.Failure.Reason)
	}
}

func TestStateOfOneValueTakesAnyResult(t *testing.T) {
	g := compileGraph(t, "graph: g\nchannels: {__root__: {reducer: append}}\nnodes: {n: {function: {}}}\nedges: [START -> n]\n")
	task := newTask(t, g, `{"__root__":[1]}`)
	execute := func(v any) pregel.Result {
		return node.New(api.Functions{"n": returnFunc(v)}, node.Options{}).Execute(t.Context(), task)
	}
	require.Equal(t, pregel.Result{Update: "[2]"}, execute([]int{2}))
	require.Equal(t, pregel.Result{Update: `"x"`}, execute("x"))
	require.Equal(t, []checkpoint.Write{{Channel: "__root__", Value: "2"}, {Channel: "__root__", Value: "3"}},
		execute([]api.Command{{Update: 2}, {Update: 3}}).Writes)
}

func TestRouters(t *testing.T) {
	for name, c := range map[string]struct {
		value any
		want  []checkpoint.Send
	}{
		"a name":     {"other", []checkpoint.Send{{Node: "other"}}},
		"the end":    {api.End, []checkpoint.Send{{Node: "__end__"}}},
		"names":      {[]string{"n", "other"}, []checkpoint.Send{{Node: "n"}, {Node: "other"}}},
		"no names":   {[]string{}, []checkpoint.Send{}},
		"a send":     {api.Send("n", map[string]int{"x": 1}), []checkpoint.Send{{Node: "n", Input: `{"x":1}`}}},
		"sends":      {[]api.Target{api.Send("n", 1), api.To("other")}, []checkpoint.Send{{Node: "n", Input: "1"}, {Node: "other"}}},
		"no targets": {[]api.Target{}, nil},
		"JSON text":  {json.RawMessage(`["n",{"$send":["other",1.0]}]`), []checkpoint.Send{{Node: "n"}, {Node: "other", Input: "1.0"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := runFunction(t, returnFunc(c.value), asRouter)
			require.Nil(t, r.Failure)
			require.Equal(t, c.want, r.Goto)
			require.Empty(t, r.Update)
		})
	}
	for name, value := range map[string]any{
		"nothing": nil, "a number": 1, "an object": map[string]int{"n": 1}, "an empty name": "",
		"a command": api.Command{Goto: []api.Target{api.To("n")}}, "a list in a list": [][]string{{"n"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := runFunction(t, returnFunc(value), asRouter)
			require.NotNil(t, r.Failure)
			require.Equal(t, "INVALID_NODE_UPDATE", r.Failure.Reason)
			require.Contains(t, r.Failure.Message, `router "router"`)
		})
	}
}

type rateLimitedError struct{}

func (*rateLimitedError) Error() string { return "slow down" }

func TestFailures(t *testing.T) {
	plain := errors.New("no luck")
	for name, c := range map[string]struct {
		err  error
		want pregel.Failure
	}{
		"plain":     {plain, pregel.Failure{Failure: checkpoint.Failure{Type: "error", Message: "no luck"}}},
		"permanent": {api.Permanent(plain), pregel.Failure{Failure: checkpoint.Failure{Type: "error", Message: "no luck"}, Permanent: true}},
		"a type of Go": {
			fmt.Errorf("calling: %w", errors.Join(plain, &rateLimitedError{})),
			pregel.Failure{Failure: checkpoint.Failure{Type: "rateLimitedError", Message: "calling: no luck\nslow down"}},
		},
		"a type that was given": {
			api.OfType("RateLimited", api.RetryAfter(plain, time.Second)),
			pregel.Failure{Failure: checkpoint.Failure{Type: "RateLimited", Message: "no luck"}, RetryAfter: time.Second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := runFunction(t, func(context.Context, api.State) (any, error) { return map[string]int{"a": 1}, c.err })
			c.want.Reason = runtime.FailedNode
			require.Equal(t, pregel.Result{Failure: &c.want}, r)
		})
	}
	require.NoError(t, api.Permanent(nil))
	require.NoError(t, api.RetryAfter(nil, 1))
	require.NoError(t, api.OfType("x", nil))
}

func TestUnknownFunction(t *testing.T) {
	task := newTask(t, oneNodeGraph(t, "function: {name: analyse}"), `{}`)
	r := node.New(api.Functions{"analyze": returnFunc(nil), "void": nil}, node.Options{}).Execute(t.Context(), task)
	require.True(t, r.Failure.Permanent)
	require.Contains(t, r.Failure.Message, `no function "analyse" is registered in this process; did you mean "analyze"?`)
}

// FuzzResult checks that any text that a function returns is either accepted
// unchanged or refused.
func FuzzResult(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1}`, `null`, `[1`, `{"a":9007199254740993}`, `"x"`, ` {"a" : 1.0 }`, "{\"\xff\":1}"} {
		f.Add(seed)
	}
	g := oneNodeGraph(f, "function: {}")
	task := newTask(f, g, `{}`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, router := range []string{"", "n"} {
			attempt := *task
			attempt.Router = router
			r := node.New(api.Functions{"n": returnFunc(json.RawMessage(text))}, node.Options{}).Execute(t.Context(), &attempt)
			if r.Failure != nil {
				require.Contains(t, []string{runtime.FailedInvalidUpdate, runtime.FailedLimit}, r.Failure.Reason)
				continue
			}
			require.True(t, json.Valid([]byte(text)))
			if router == "" {
				require.Equal(t, payload.JSON(text), r.Update)
			}
		}
	})
}
