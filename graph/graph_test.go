package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/graph"
)

// fakeTask answers every question the same way: a Task for tests of functions.
type fakeTask struct {
	answer json.RawMessage
	asked  []graph.Question
	events []graph.Event
}

func (d *fakeTask) Ask(_ context.Context, q graph.Question) (json.RawMessage, error) {
	d.asked = append(d.asked, q)
	if d.answer == nil {
		return nil, &graph.Interrupted{Scope: q.Scope, Key: q.Key}
	}
	return d.answer, nil
}

func (*fakeTask) Memo(
	ctx context.Context, _, _ string, run graph.Effect,
) (json.RawMessage, error) {
	return run(ctx, "the same each time")
}

func (d *fakeTask) Emit(e graph.Event) error {
	d.events = append(d.events, e)
	return nil
}

// jsonValues is a State made of one JSON text.
type jsonValues string

func (t jsonValues) Lookup(key string) (string, bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(t), &fields) != nil {
		return "", false
	}
	value, ok := fields[key]
	return string(value), ok
}

func (jsonValues) Keys() []string { return nil }

func (t jsonValues) Text() string { return string(t) }

func refund(ctx context.Context, state graph.State) (any, error) {
	var amount json.Number
	if err := state.Decode("amount", &amount); err != nil {
		return nil, graph.Permanent(err)
	}
	payment, err := graph.Memo(ctx, "payment", func(context.Context) (string, error) { return "p-1", nil })
	if err != nil {
		return nil, err
	}
	approved, err := graph.Ask[bool](ctx, map[string]any{"amount": amount}, graph.Reason("approval"))
	if err != nil {
		return nil, err
	}
	if err := graph.Emit(ctx, "decided", approved); err != nil {
		return nil, err
	}
	return graph.Command{Update: map[string]any{"payment": payment}, Goto: []graph.Target{graph.To("pay")}}, nil
}

func TestAFunctionCanBeTestedAlone(t *testing.T) {
	d := &fakeTask{answer: json.RawMessage("true")}
	ctx := graph.WithTask(t.Context(), &graph.Info{Node: "refund"}, d)
	require.Equal(t, "refund", graph.TaskInfo(ctx).Node)
	result, err := refund(ctx, graph.NewState(jsonValues(`{"amount": 9007199254740993.50}`)))
	require.NoError(t, err)
	require.Equal(t, graph.Command{
		Update: map[string]any{"payment": "p-1"}, Goto: []graph.Target{{Node: "pay"}},
	}, result)
	require.Equal(t, []graph.Question{{
		Reason: "approval", Value: json.RawMessage(`{"amount":9007199254740993.50}`), Schema: json.RawMessage(`{"type":"boolean"}`),
	}}, d.asked)
	require.Equal(t, []graph.Event{{Name: "decided", Value: json.RawMessage("true")}}, d.events)

	_, err = refund(graph.WithTask(t.Context(), nil, &fakeTask{}), graph.NewState(jsonValues(`{"amount":1}`)))
	waiting, ok := errors.AsType[*graph.Interrupted](err)
	require.True(t, ok)
	require.EqualError(t, waiting, "waiting for the answer to question 1")
	_, err = refund(ctx, graph.State{})
	require.EqualError(t, err, `state key "amount" is not set or not read by the node; nothing is set`)
}

// askedSchema returns the schema of a question for an answer of a type.
func askedSchema[T any](t *testing.T, options ...graph.AskOption) string {
	t.Helper()
	d := &fakeTask{answer: json.RawMessage("null")}
	_, err := graph.Ask[T](graph.WithTask(t.Context(), nil, d), "?", options...)
	require.NoError(t, err)
	return string(d.asked[0].Schema)
}

func TestAnswersHaveTheSchemaOfTheirType(t *testing.T) {
	require.JSONEq(t, `{"type":"boolean"}`, askedSchema[bool](t))
	require.JSONEq(t, `{"type":"integer"}`, askedSchema[int64](t))
	require.JSONEq(t, `{"type":"integer","minimum":0}`, askedSchema[uint8](t))
	require.JSONEq(t, `{"type":"number"}`, askedSchema[float64](t))
	require.JSONEq(t, `{"type":"string"}`, askedSchema[string](t))
	require.JSONEq(t, `{"type":"number"}`, askedSchema[json.Number](t))
	require.JSONEq(t, `{"type":"object"}`, askedSchema[struct{ N int }](t))
	require.JSONEq(t, `{"type":"object"}`, askedSchema[map[string]int](t))
	require.Empty(t, askedSchema[any](t))
	require.Empty(t, askedSchema[[]int](t))
	require.Empty(t, askedSchema[*bool](t))
	require.Empty(t, askedSchema[time.Time](t), "its JSON is its own")
	require.Empty(t, askedSchema[json.RawMessage](t))
	require.JSONEq(t, `{"enum":["yes","no"]}`, askedSchema[string](t, graph.Schema(json.RawMessage(`{"enum":["yes","no"]}`))))
}

func ExampleTyped() {
	double := graph.Typed(func(_ context.Context, s struct{ N int }) (any, error) {
		return map[string]int{"n": 2 * s.N}, nil
	})
	result, err := double(context.Background(), graph.NewState(jsonValues(`{"n": 21}`)))
	fmt.Println(result, err)
	// Output: map[n:42] <nil>
}

// The key is part of what other languages build on.
func TestTheIdempotencyKeyOfAMemo(t *testing.T) {
	key := graph.IdempotencyKey("ticket-1", "4e25bf63", "call/ü", "charge", 2)
	require.Equal(t, "2e511abe24e0685900e632224b78d16c", key)
	require.NotEqual(t, graph.IdempotencyKey("a", "b", "", "", 0), graph.IdempotencyKey("ab", "", "", "", 0))
}

func TestAMemoWithItsKey(t *testing.T) {
	ctx := graph.WithTask(t.Context(), &graph.Info{}, &fakeTask{})
	got, err := graph.MemoWithKey(ctx, "charge", func(_ context.Context, key string) (string, error) { return "by " + key, nil })
	require.NoError(t, err)
	require.Equal(t, "by the same each time", got)
}
