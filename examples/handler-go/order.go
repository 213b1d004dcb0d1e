package main

import (
	"context"
	"strings"

	"github.com/graphd-dev/graphd/graph"
)

// order is the state of a session.
type order struct {
	Text    string `json:"text"`
	Status  string `json:"status"`
	Product string `json:"product"`
	Price   string `json:"price"`
	Reply   string `json:"reply"`
}

// The states of an order.
const (
	toBePaid  = "to be paid"
	paid      = "paid"
	cancelled = "cancelled"
)

// newOrders describes how an order is taken and paid.
func newOrders() *graph.Builder {
	return graph.New("orders").Describe("Takes an order, and asks the customer before it is paid.").State(order{}).
		Node("receive", graph.Typed(receive)).
		Node("payment", graph.Typed(askForPayment)).
		Chain(graph.Start, "receive", "payment", graph.End)
}

// receive writes down what is ordered.
func receive(_ context.Context, o order) (any, error) {
	return order{Text: o.Text, Status: toBePaid, Product: o.Text, Price: "49.90 EUR"}, nil
}

// bill is what the customer is asked about.
type bill struct {
	Question string `json:"question"`
	Product  string `json:"product"`
	Price    string `json:"price"`
}

// askForPayment asks the customer. It runs again from its first line when the answer has come.
func askForPayment(ctx context.Context, o order) (any, error) {
	answer, err := graph.Ask[string](ctx, bill{"Pay " + o.Price + " for " + o.Product + "? Say confirm.", o.Product, o.Price}, graph.Reason("payment"))
	if err != nil {
		return nil, err
	}
	if !strings.Contains(strings.ToLower(answer), "confirm") {
		return order{Status: cancelled, Reply: "The order of " + o.Product + " is cancelled."}, nil
	}
	receipt, err := graph.MemoWithKey(ctx, "pay", func(_ context.Context, idempotencyKey string) (string, error) {
		return "receipt " + idempotencyKey[:8], nil // the bank gets the whole key, and pays once
	})
	if err != nil {
		return nil, err
	}
	return order{Status: paid, Product: o.Product, Price: o.Price, Reply: o.Product + " is paid, " + receipt + "."}, nil
}
