package traces_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd"
	"github.com/graphd-dev/graphd/client"
	"github.com/graphd-dev/graphd/graph"
)

// BenchmarkChainOfTen runs a chain of ten trivial nodes in the process, without traces and with them.
func BenchmarkChainOfTen(b *testing.B) {
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	b.Cleanup(collector.Close)
	for name, endpoint := range map[string]string{"off": "", "on": collector.URL, "sampled=0.01": collector.URL} {
		b.Run("traces="+name, func(b *testing.B) {
			g, names := graph.New("chain").Channel("a"), []string{graph.Start}
			for i := range 10 {
				names = append(names, "n"+strconv.Itoa(i))
				g.Node(names[i+1], func(context.Context, graph.State) (any, error) { return json.RawMessage(`{"a": 1}`), nil })
			}
			variables := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}
			if name == "sampled=0.01" {
				variables["OTEL_TRACES_SAMPLER"], variables["OTEL_TRACES_SAMPLER_ARG"] = "parentbased_traceidratio", "0.01"
			}
			options := graphd.Options{Getenv: func(name string) string { return variables[name] }}
			e, err := graphd.OpenWith(b.Context(), graphd.Memory(), options, g.Chain(append(names, graph.End)...))
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				_, err := e.Invoke(b.Context(), client.Run{Graph: "chain", Input: map[string]any{}})
				require.NoError(b, err)
			}
			require.NoError(b, e.Close(context.WithoutCancel(b.Context())))
		})
	}
}
