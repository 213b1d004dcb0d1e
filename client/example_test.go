package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/graphd-dev/graphd"
	"github.com/graphd-dev/graphd/client"
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
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

func ExampleClient_Items() {
	ctx, e := context.Background(), openShop()
	defer e.Close(ctx)
	if err := remember(ctx, e.Client); err != nil {
		fmt.Println(err)
	}
	// Output:
	// likes {Drink:tea}
	// none ITEM_NOT_FOUND
}

// Likes is what a person likes.
type Likes struct {
	Drink string `json:"drink"`
}

func remember(ctx context.Context, c *client.Client) error {
	value, err := client.Encode(Likes{Drink: "tea"})
	if err != nil {
		return err
	}
	ann := []string{"users", "ann"}
	if _, err := c.Items().PutItem(ctx, &graphdv1.PutItemRequest{Namespace: ann, Key: "likes", Value: value}); err != nil {
		return client.FromGRPC(err)
	}
	filter, err := client.Encode(map[string]any{"drink": "tea"})
	if err != nil {
		return err
	}
	found, err := c.Items().SearchItems(ctx, &graphdv1.SearchItemsRequest{NamespacePrefix: []string{"users"}, Filter: filter})
	if err != nil {
		return client.FromGRPC(err)
	}
	for _, item := range found.GetItems() {
		likes, err := client.Decode[Likes](item.GetValue())
		if err != nil {
			return err
		}
		fmt.Printf("%s %+v\n", item.GetKey(), likes)
	}
	_, err = c.Items().GetItem(ctx, &graphdv1.GetItemRequest{Namespace: ann, Key: "none"})
	if refused := client.FromGRPC(err); errors.Is(refused, client.ItemNotFound) {
		fmt.Println("none", client.ItemNotFound)
	}
	return nil
}
