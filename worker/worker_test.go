package worker_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/graph"
)

// update returns a node that writes an update.
func update(text string) graph.Func {
	return func(context.Context, graph.State) (any, error) { return json.RawMessage(text), nil }
}

func TestANodeRunsInAWorker(t *testing.T) {
	s := startServer(t)
	type state struct {
		N int64 `json:"n"`
	}
	w := serve(t, s.Address, graph.New("double").State(state{}).
		Node("twice", graph.Typed(func(_ context.Context, st state) (any, error) { return state{2 * st.N}, nil })).
		Chain(graph.Start, "twice", graph.End))
	requireOutput(t, `{"n":18014398509481986}`, s.invoke(t, "double", "t1", state{9007199254740993}))
	require.NotEmpty(t, w.Version("double"))
	require.NoError(t, w.stop())
}
