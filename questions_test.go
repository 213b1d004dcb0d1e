package graphd_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd"
	"github.com/graphd-dev/graphd/client"
	"github.com/graphd-dev/graphd/graph"
)

// A question whose default answer is no answer says why, and so does one that is asked elsewhere.
func TestQuestionsThatCantBeAsked(t *testing.T) {
	for text, ask := range map[string]func(context.Context) (string, error){
		"the default answer misses the schema: got number, want string": func(ctx context.Context) (string, error) {
			return graph.Ask[string](ctx, "?", graph.DefaultAfter(time.Hour, 7))
		},
		"not called with the context of a node function: want the ctx that the function was given": func(context.Context) (string, error) {
			return graph.Ask[string](t.Context(), "?")
		},
	} {
		g := graph.New("g").State(strictOrder{}).Chain(graph.Start, "n").
			Node("n", func(ctx context.Context, _ graph.State) (any, error) { return ask(ctx) })
		o, err := open(t, graphd.Options{}, g).Invoke(t.Context(), client.Run{Graph: "g", Input: strictOrder{}})
		require.NoError(t, err)
		require.ErrorContains(t, o.Err(), text)
	}
}
