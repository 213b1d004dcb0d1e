package graphd_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd"
	"github.com/graphd-dev/graphd/client"
	"github.com/graphd-dev/graphd/graph"
)

type strictOrder struct {
	Product string `json:"product,omitempty"`
	Paid    bool   `json:"paid,omitempty"`
}

// newStrict makes a graph whose node asks, and writes what it is told.
func newStrict(isStrict bool) *graph.Builder {
	b := graph.New("strict").State(strictOrder{}).
		Node("pay", graph.Typed(func(ctx context.Context, _ strictOrder) (any, error) {
			return graph.Ask[map[string]any](ctx, "what to write?")
		})).
		Node("confirm", graph.Typed(func(ctx context.Context, o strictOrder) (any, error) {
			answer, err := graph.Ask[strictOrder](ctx, o.Product)
			return answer, err
		})).
		Chain(graph.Start, "pay", "confirm", graph.End)
	if isStrict {
		b.Strict()
	}
	return b
}

// A strict graph says which key of an input, an update or an answer is unknown.
func TestAStrictGraphRefusesUnknownKeys(t *testing.T) {
	e := open(t, graphd.Options{}, newStrict(true))
	_, err := e.Invoke(t.Context(), client.Run{Graph: "strict", Thread: "t1", Input: map[string]any{"produkt": "tea"}})
	require.ErrorIs(t, err, client.InvalidField)
	require.ErrorContains(t, err, `unknown input key "produkt"; the graph takes paid, product`)

	_, err = e.Invoke(t.Context(), client.Run{Graph: "strict", Thread: "t1", Input: strictOrder{Product: "tea"}})
	require.NoError(t, err)
	o, err := e.Resume(t.Context(), "t1", client.Answer{Value: map[string]any{"pade": true}})
	require.NoError(t, err)
	require.ErrorIs(t, o.Err(), client.InvalidNodeUpdate)
	require.ErrorContains(t, o.Err(), `unknown channel "pade"; the graph has paid, product`)

	_, err = e.Invoke(t.Context(), client.Run{Graph: "strict", Thread: "t2", Input: strictOrder{Product: "tea"}})
	require.NoError(t, err)
	_, err = e.Resume(t.Context(), "t2", client.Answer{Value: map[string]any{"paid": false}})
	require.NoError(t, err)
	_, err = e.Resume(t.Context(), "t2", client.Answer{Value: map[string]any{"pade": true}})
	require.ErrorIs(t, err, client.ResponseSchemaMismatch)
	require.ErrorContains(t, err, "pade")
	_, err = e.Resume(t.Context(), "t2", client.Answer{Value: map[string]any{"paid": "yes"}})
	require.ErrorIs(t, err, client.ResponseSchemaMismatch, "fields have types")
	o, err = e.Resume(t.Context(), "t2", client.Answer{Value: strictOrder{Paid: true}})
	require.NoError(t, err)
	got, err := client.Output[strictOrder](o)
	require.NoError(t, err)
	require.Equal(t, strictOrder{Product: "tea", Paid: true}, got)
}

// Another graph drops such keys, as encoding/json does.
func TestAGraphDropsUnknownKeys(t *testing.T) {
	e := open(t, graphd.Options{}, newStrict(false))
	_, err := e.Invoke(t.Context(), client.Run{Graph: "strict", Thread: "t1", Input: map[string]any{"produkt": "tea", "product": "milk"}})
	require.NoError(t, err)
	_, err = e.Resume(t.Context(), "t1", client.Answer{Value: map[string]any{"pade": true}})
	require.NoError(t, err)
	o, err := e.Resume(t.Context(), "t1", client.Answer{Value: map[string]any{"pade": false, "paid": true}})
	require.NoError(t, err)
	got, err := client.Output[strictOrder](o)
	require.NoError(t, err)
	require.Equal(t, strictOrder{Product: "milk", Paid: true}, got)
}

// A value that is sent has the keys of the struct that its node takes, here and in a worker.
func TestAStrictGraphSendsKnownKeys(t *testing.T) {
	type item struct {
		Name string `json:"name"`
	}
	bothPlaces(t, func(t *testing.T, inWorker bool) {
		for key, isKnown := range map[string]bool{"name": true, "nama": false} {
			g := graph.New("routed").State(routed{}).Strict().Edge(graph.Start, "first").
				Node("first", func(context.Context, graph.State) (any, error) { return nil, nil }).
				Node("take", graph.Typed(func(_ context.Context, i item) (any, error) { return routed{Visits: []string{i.Name}}, nil })).
				Route("first", func(context.Context, graph.State) (any, error) {
					return graph.Send("take", map[string]any{key: "tea"}), nil
				}, "take")
			o := runRouted(t, inWorker, g)
			if isKnown {
				got, err := client.Output[routed](o)
				require.NoError(t, err)
				require.Equal(t, []string{"tea"}, got.Visits)
				continue
			}
			require.ErrorContains(t, o.Err(), `unknown key "/nama": want name`)
			require.Equal(t, "UnknownKey", o.Run.GetFailure().GetType())
			require.Equal(t, "take", o.Run.GetFailure().GetNode())
		}
	})
}
