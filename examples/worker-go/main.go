// Command worker-go serves the graph orders to a graphd server: it asks a person before it charges
// the card.
//
//	graphd serve --store memory
//	go run . --server localhost:7700
//	graphd run orders --thread order-1 --input '{"product": "tea"}'
//	graphd resume order-1 --value true
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/worker"
)

// Order is the state of a thread.
type Order struct {
	Product string   `json:"product,omitempty"`
	Receipt string   `json:"receipt,omitempty"`
	Log     []string `json:"log,omitempty" graph:"append"`
}

func main() {
	server := flag.String("server", "localhost:7700", "address of the server")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := worker.Run(ctx, *server, newOrders())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker-go:", err)
		os.Exit(1)
	}
}

func newOrders() *graph.Builder {
	return graph.New("orders").State(Order{}).
		Node("approve", graph.Typed(approve)).
		Node("charge", graph.Typed(charge),
			graph.Timeout(time.Minute), graph.Retries(graph.Retry{MaxAttempts: 5, On: []string{"Busy"}})).
		Edge(graph.Start, "approve").
		Edge("charge", graph.End)
}

// approve asks a person. It runs again from its first line when the answer has come.
func approve(ctx context.Context, o Order) (any, error) {
	approved, err := graph.Ask[bool](ctx, map[string]any{"buy": o.Product},
		graph.Reason("approval"), graph.Schema(map[string]any{"type": "boolean"}))
	if err != nil {
		return nil, err
	}
	if !approved {
		return Order{Log: []string{"declined"}}, nil
	}
	return graph.Command{Update: Order{Log: []string{"approved"}}, Goto: []graph.Target{graph.To("charge")}}, nil
}

// charge takes the money once, however often it is run.
func charge(ctx context.Context, o Order) (any, error) {
	receipt, err := graph.MemoWithKey(ctx, "charge", func(ctx context.Context, idempotencyKey string) (string, error) {
		return chargeCard(ctx, o.Product, idempotencyKey)
	})
	if errors.Is(err, errBusy) {
		return nil, graph.OfType("Busy", err)
	}
	if err != nil {
		return nil, err
	}
	return Order{Receipt: receipt, Log: []string{"charged"}}, graph.Emit(ctx, "charged", receipt)
}

var errBusy = errors.New("the bank is busy")

// chargeCard stands for a call of a bank, which knows the key and takes the money once for each.
func chargeCard(_ context.Context, product, idempotencyKey string) (string, error) {
	if product == "" {
		return "", graph.Permanent(errors.New("nothing was ordered"))
	}
	return "receipt " + idempotencyKey[:8], nil
}
