package worker_test

import (
	"context"
	"log"
	"os/signal"
	"syscall"

	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/worker"
)

// Order is the state of the example.
type Order struct {
	Product string   `json:"product"`
	Charge  string   `json:"charge"`
	Log     []string `json:"log" graph:"append"`
}

// chargeCard has an effect that must not happen twice: the system behind it knows the key.
func chargeCard(_ context.Context, key, product string) (string, error) { return key + product, nil }

func pay(ctx context.Context, o Order) (any, error) {
	approved, err := graph.Ask[bool](ctx, map[string]any{"buy": o.Product}, graph.Reason("approval"))
	if err != nil {
		return nil, err
	}
	if !approved {
		return map[string]any{"log": []string{"declined"}}, nil
	}
	charge, err := graph.MemoWithKey(ctx, "charge", func(ctx context.Context, key string) (string, error) {
		return chargeCard(ctx, key, o.Product)
	})
	return map[string]any{"charge": charge, "log": []string{"paid"}}, err
}

func ExampleRun() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	orders := graph.New("orders").State(Order{}).
		Node("pay", graph.Typed(pay)).
		Chain(graph.Start, "pay", graph.End)
	if err := worker.Run(ctx, "localhost:7700", orders); err != nil {
		log.Print(err)
	}
}
