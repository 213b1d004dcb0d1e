package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/graphd-dev/graphd"
	"github.com/graphd-dev/graphd/client"
	"github.com/graphd-dev/graphd/graph"
)

// openShop opens an engine with a graph for the examples: it has the client of a server.
func openShop() *graphd.Engine {
	shop := graph.New("shop").Channel("said").
		Node("ask", func(ctx context.Context, _ graph.State) (any, error) {
			said, err := graph.Ask[string](ctx, "coffee?")
			return map[string]any{"said": said}, err
		}).
		Chain(graph.Start, "ask", graph.End)
	e, err := graphd.Open(context.Background(), graphd.Memory(), shop)
	if err != nil {
		log.Fatal(err)
	}
	return e
}

func ExampleClient_Stream() {
	ctx, e := context.Background(), openShop()
	defer e.Close(ctx)
	if err := follow(ctx, e.Client); err != nil {
		fmt.Println(err)
	}
	// Output:
	// asks "coffee?"
	// ask wrote {"said":"yes"}
	// RUN_STATE_SUCCEEDED
}

func follow(ctx context.Context, c *client.Client) error {
	for event, err := range c.Stream(ctx, client.Run{Graph: "shop", Thread: "t-1", Input: map[string]any{}}) {
		if err != nil {
			return err
		}
		for _, q := range event.GetInterrupt().GetInterrupts() {
			fmt.Println("asks", q.GetValue().GetJson())
		}
	}
	for event, err := range c.StreamResume(ctx, "t-1", client.Answer{Value: "yes"}) {
		if err != nil {
			return err
		}
		if update := event.GetUpdate(); update != nil {
			fmt.Println(event.GetNode(), "wrote", update.GetValues().GetJson())
		}
		if end := event.GetEnd(); end != nil {
			fmt.Println(end.GetRun().GetState())
		}
	}
	return nil
}

func ExampleReason() {
	ctx, e := context.Background(), openShop()
	defer e.Close(ctx)
	outcome, err := e.Invoke(ctx, client.Run{Graph: "shop", Thread: "t-1", Input: map[string]any{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	question := outcome.Questions[0]
	for _, said := range []string{"yes", "no"} {
		fmt.Println(answer(ctx, e.Client, client.AnswerTo(question, said)))
	}
	// Output:
	// taken
	// another caller was first
}

func answer(ctx context.Context, c *client.Client, a client.Answer) string {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, err := c.Resume(ctx, "t-1", a)
	switch {
	case errors.Is(err, client.InterruptAlreadyResolved):
		return "another caller was first"
	case err != nil:
		return err.Error()
	default:
		return "taken"
	}
}
