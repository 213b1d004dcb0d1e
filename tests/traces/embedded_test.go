package traces_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/graphd-dev/graphd"
	"github.com/graphd-dev/graphd/client"
	"github.com/graphd-dev/graphd/graph"
)

// An engine in the process of its user is inside the span of the program, and so are its functions:
// for calls with an answer, and for streams.
func TestAnEngineInTheProcessContinuesItsTrace(t *testing.T) {
	to := startReceiver(t)
	variables := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": to.URL}
	seen := make(chan trace.SpanContext, 2)
	g := graph.New("local").Channel("a").Node("n", func(ctx context.Context, _ graph.State) (any, error) {
		seen <- trace.SpanContextFromContext(ctx)
		return json.RawMessage(`{"a": 1}`), nil
	}).Chain(graph.Start, "n", graph.End)
	e, err := graphd.OpenWith(t.Context(), graphd.Memory(), graphd.Options{Getenv: func(name string) string { return variables[name] }}, g)
	require.NoError(t, err)
	ctx, outer := program(t, "app", to).Tracer("test").Start(t.Context(), "outer")
	_, err = e.Invoke(ctx, client.Run{Graph: "local", Thread: "t1", Input: map[string]any{}})
	require.NoError(t, err)
	for _, err := range e.Stream(ctx, client.Run{Graph: "local", Thread: "t2", Input: map[string]any{}}) {
		require.NoError(t, err)
	}
	outer.End()
	require.NoError(t, e.Close(context.WithoutCancel(t.Context())))
	nodes := named(to.spans(), "node n")
	require.Len(t, nodes, 2)
	for _, node := range nodes {
		require.Equal(t, outer.SpanContext().TraceID().String(), node.trace())
		requireInside(t, to.spans(), node, one(t, to.spans(), "outer"))
	}
	ids := []string{nodes[0].id(), nodes[1].id()}
	require.Contains(t, ids, (<-seen).SpanID().String())
	require.Contains(t, ids, (<-seen).SpanID().String())
}
