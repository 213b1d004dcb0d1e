package graph_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/graphd-dev/graphd/graph"
)

// The first attempt ends with the question. When the answer has come, the function runs
// again from its first line, and Ask returns the answer.
func ExampleAsk() {
	approve := func(ctx context.Context, _ graph.State) (any, error) {
		approved, err := graph.Ask[bool](ctx, map[string]any{"amount": 90}, graph.Reason("approval"))
		if err != nil {
			return nil, err
		}
		return map[string]any{"approved": approved}, nil
	}
	_, err := approve(graph.WithTask(context.Background(), nil, &fakeTask{}), graph.State{})
	fmt.Println(err)
	update, err := approve(graph.WithTask(context.Background(), nil, &fakeTask{answer: json.RawMessage("true")}), graph.State{})
	fmt.Println(update, err)
	// Output:
	// waiting for the answer to question 1
	// map[approved:true] <nil>
}

// The key for the other system is the same on every attempt, so that the system can
// refuse a second payment.
func ExampleMemoWithKey() {
	ctx := graph.WithTask(context.Background(), nil, &fakeTask{})
	payment, err := graph.MemoWithKey(ctx, "payment", func(_ context.Context, idempotencyKey string) (string, error) {
		return "paid once under the key " + idempotencyKey, nil
	})
	fmt.Println(payment, err)
	// Output: paid once under the key the same each time <nil>
}

// A test calls a function with a Task of its own.
func ExampleWithTask() {
	greet := func(ctx context.Context, state graph.State) (any, error) {
		var name string
		if err := state.Decode("name", &name); err != nil {
			return nil, err
		}
		return map[string]any{"greeting": "Hello " + name}, graph.Emit(ctx, "greeted", name)
	}
	task := &fakeTask{}
	ctx := graph.WithTask(context.Background(), &graph.Info{Node: "greet"}, task)
	update, err := greet(ctx, graph.NewState(jsonValues(`{"name": "Ana"}`)))
	fmt.Println(update, err, task.events[0].Name)
	// Output: map[greeting:Hello Ana] <nil> greeted
}
