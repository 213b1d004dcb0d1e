package worker_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"os/signal"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/worker"
)

// Order is the state of the example.
type Order struct {
	Product string   `json:"product"`
	Charge  string   `json:"charge"`
	Log     []string `json:"log,omitempty" graph:"append"`
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

func ExampleDial() {
	orders := graph.New("orders").State(Order{}).Node("pay", graph.Typed(pay)).Chain(graph.Start, "pay", graph.End)
	if err := runSecurely(context.Background(), orders, &tls.Config{}, nil); err != nil {
		log.Print(err)
	}
}

func runSecurely(ctx context.Context, orders *graph.Builder, config *tls.Config, token credentials.PerRPCCredentials) error {
	w, err := worker.Dial("graphd.internal:7700", worker.Options{Graphs: []*graph.Builder{orders}},
		grpc.WithTransportCredentials(credentials.NewTLS(config)), grpc.WithPerRPCCredentials(token))
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

const tripFile = `
graph: trip
channels: {product: {}, charge: {}, log: append, price: {reducer: remote, function: sum, default: 0}}
nodes: {book: {remote: {}}, pay: {remote: {}}}
edges: [START -> book, pay -> END]
conditional_edges: [{from: book, router: choose, in_worker: true, then: [pay]}]
`

func book(context.Context, Order) (any, error) { return map[string]any{"price": 300}, nil }

func choose(context.Context, graph.State) (any, error) { return "pay", nil }

func sum(current, write int) (int, error) { return current + write, nil }

func ExampleNodes() {
	w, err := worker.Dial("localhost:7700", worker.Options{Nodes: []worker.Nodes{{
		File:      []byte(tripFile),
		Functions: graph.Functions{"book": graph.Typed(book), "pay": graph.Typed(pay)},
		Routers:   graph.Functions{"choose": choose},
		Reducers:  map[string]graph.Reduce{"sum": graph.TypedReduce(sum)},
	}}})
	fmt.Println(w != nil, err)
	// Output: true <nil>
}
