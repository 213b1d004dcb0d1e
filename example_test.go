package graphd_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"github.com/graphd-dev/graphd"
	"github.com/graphd-dev/graphd/client"
	"github.com/graphd-dev/graphd/graph"
)

// Refund is the state of the examples.
type Refund struct {
	Order    string   `json:"order,omitempty"`
	Amount   int      `json:"amount,omitempty"`
	Decision string   `json:"decision,omitempty"`
	Log      []string `json:"log,omitempty" graph:"append"`
}

func look(_ context.Context, r Refund) (any, error) {
	return Refund{Amount: 90, Log: []string{"looked up " + r.Order}}, nil
}

func decide(ctx context.Context, r Refund) (any, error) {
	decision, err := graph.Ask[string](ctx, map[string]any{"order": r.Order, "amount": r.Amount}, graph.Message("Refund this?"))
	if err != nil {
		return nil, err
	}
	return Refund{Decision: decision, Log: []string{"decided"}}, nil
}

func newRefunds() *graph.Builder {
	return graph.New("refunds").State(Refund{}).
		Node("look", graph.Typed(look)).
		Node("decide", graph.Typed(decide)).
		Chain(graph.Start, "look", "decide", graph.End)
}

func Example() {
	if err := runRefund(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Refund this? {"amount":90,"order":"8841"}
	// yes [looked up 8841 decided]
}

func runRefund(ctx context.Context) error {
	e, err := graphd.Open(ctx, graphd.Memory(), newRefunds())
	if err != nil {
		return err
	}
	defer e.Close(context.WithoutCancel(ctx))

	outcome, err := e.Invoke(ctx, client.Run{Graph: "refunds", Thread: "ticket-1", Input: Refund{Order: "8841"}})
	if err != nil {
		return err
	}
	for _, q := range outcome.Questions {
		fmt.Println(q.GetMessage(), q.GetValue().GetJson())
	}
	outcome, err = e.Resume(ctx, "ticket-1", client.AnswerTo(outcome.Questions[0], "yes"))
	if err != nil {
		return err
	}
	refund, err := client.Output[Refund](outcome)
	if err != nil {
		return err
	}
	fmt.Println(refund.Decision, refund.Log)
	return nil
}

// Another process answers what this one asks.
func ExampleEngine_Serve() {
	ctx := context.Background()
	e, err := graphd.Open(ctx, graphd.Memory(), newRefunds())
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- e.Serve(listener) }()

	if err := answerAll(ctx, listener.Addr().String(), e); err != nil {
		log.Fatal(err)
	}
	if err := e.Close(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("served:", <-served)
	// Output:
	// ticket-1 is yes
	// served: <nil>
}

// answerAll starts a run in the engine, and answers it over the network.
func answerAll(ctx context.Context, address string, e *graphd.Engine) error {
	if _, err := e.Invoke(ctx, client.Run{Graph: "refunds", Thread: "ticket-1", Input: Refund{Order: "8841"}}); err != nil {
		return err
	}
	c, err := client.Dial(address)
	if err != nil {
		return err
	}
	defer c.Close()
	for q, err := range c.Inbox(ctx, `graph = "refunds"`) {
		if err != nil {
			return err
		}
		outcome, err := c.Resume(ctx, q.GetThreadId(), client.AnswerTo(q, "yes"))
		if err != nil {
			return err
		}
		refund, err := client.Output[Refund](outcome)
		if err != nil {
			return err
		}
		fmt.Println(q.GetThreadId(), "is", refund.Decision)
	}
	return nil
}
