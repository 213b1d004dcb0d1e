// Package traces_test has servers and workers send their spans to a receiver of OTLP, and looks at
// what these show of a run.
package traces_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/graphd-dev/graphd/client"
	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/testkit/built"
	"github.com/graphd-dev/graphd/tests/harness"
	"github.com/graphd-dev/graphd/worker"
)

// program makes and sends the spans of a program of a test.
func program(t *testing.T, name string, to *receiver) *sdktrace.TracerProvider {
	t.Helper()
	exporter, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpointURL(to.URL+"/v1/traces"))
	require.NoError(t, err)
	p := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", name))))
	t.Cleanup(func() { _ = p.Shutdown(context.WithoutCancel(t.Context())) })
	return p
}

// refund asks a person in a worker, and makes a span of its own.
func refund() *graph.Builder {
	return graph.New("refund").Channel("order").Channel("decision").
		Node("review", func(ctx context.Context, _ graph.State) (any, error) {
			_, own := trace.SpanFromContext(ctx).TracerProvider().Tracer("test").Start(ctx, "own work")
			defer own.End()
			answer, err := graph.Ask[string](ctx, "secret question")
			return map[string]any{"decision": answer}, err
		}).
		Chain(graph.Start, "review", graph.End)
}

// startWorker serves graphs until the test ends.
func startWorker(t *testing.T, address string, o worker.Options) {
	t.Helper()
	w, err := worker.Dial(address, o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(cancel)
	select {
	case <-w.Ready():
	case err := <-ended:
		require.NoError(t, err, "the worker has ended")
	}
}

// dialTraced makes a client whose calls have spans.
func dialTraced(t *testing.T, address string, tracers trace.TracerProvider) *client.Client {
	t.Helper()
	c, err := client.Dial(address, grpc.WithStatsHandler(otelgrpc.NewClientHandler(
		otelgrpc.WithTracerProvider(tracers), otelgrpc.WithPropagators(propagation.TraceContext{}))))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func TestARunIsTracedFromItsCallToItsEnd(t *testing.T) {
	to := startReceiver(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", to.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
	store := "sqlite:" + filepath.Join(t.TempDir(), "graphd.db")

	// The first server: a call begins a run, which asks.
	first := harness.StartServer(t, []string{built.Graphd(t)}, store)
	workers, clients := program(t, "worker", to), program(t, "shop", to)
	startWorker(t, first.Address, worker.Options{Graphs: []*graph.Builder{refund()}, Tracers: workers})
	ctx, call := clients.Tracer("test").Start(t.Context(), "buy")
	asked, err := dialTraced(t, first.Address, clients).Invoke(ctx, client.Run{
		Graph: "refund", Thread: "t1", Input: json.RawMessage(`{"order": "secret order"}`),
	})
	call.End()
	require.NoError(t, err)
	require.True(t, asked.Waits(), asked.Run)
	first.Stop(syscall.SIGTERM) // which sends what is left

	begun := to.spans()
	buy := one(t, begun, "buy")
	turn := one(t, ofTrace(begun, buy.trace()), "turn refund")
	require.Empty(t, named(begun, "run refund"), "it has not ended")
	node := one(t, ofTrace(begun, buy.trace()), "node review") // the work of a call is in its trace
	requireInside(t, begun, node, turn, buy)
	inWorker, own := one(t, begun, "run review"), one(t, begun, "own work")
	require.Equal(t, "worker", inWorker.service)
	requireInside(t, begun, own, inWorker, node)
	require.Equal(t, "interrupted", node.attribute("graphd.state"))

	// The second server knows nothing of the first: an answer goes on with the run.
	second := harness.StartServer(t, []string{built.Graphd(t)}, store)
	startWorker(t, second.Address, worker.Options{Graphs: []*graph.Builder{refund()}, Tracers: workers})
	ctx, call = clients.Tracer("test").Start(t.Context(), "decide")
	done, err := dialTraced(t, second.Address, clients).Resume(ctx, "t1", client.Answer{Value: "secret answer"})
	call.End()
	require.NoError(t, err)
	require.JSONEq(t, `{"order": "secret order", "decision": "secret answer"}`, done.Run.GetOutput().GetJson())
	second.Stop(syscall.SIGTERM)

	all := to.spans()
	decide := one(t, all, "decide")
	run, question := one(t, all, "run refund"), one(t, all, "question review")
	require.Equal(t, run.trace(), question.trace())
	require.Equal(t, run.id(), question.parent(), "the run has its questions")
	require.Equal(t, done.Run.GetRunId(), run.attribute("graphd.run"))
	require.Equal(t, "succeeded", run.attribute("graphd.state"))
	require.LessOrEqual(t, run.GetStartTimeUnixNano(), turn.GetStartTimeUnixNano()+uint64(1e9))
	require.Greater(t, run.GetEndTimeUnixNano(), question.GetStartTimeUnixNano())

	answered := one(t, ofTrace(all, decide.trace()), "node review")
	require.True(t, node.linksTo(question), "who asks leads to the question")
	require.True(t, answered.linksTo(question), "who uses the answer, too")
	turns := ofTrace(all, run.trace())
	require.Len(t, named(turns, "turn refund"), 2, "the trace of a run has its turns")
	require.True(t, named(turns, "turn refund")[0].linksTo(turn) || named(turns, "turn refund")[1].linksTo(turn))
	secondTurn := one(t, ofTrace(all, decide.trace()), "turn refund")
	require.True(t, secondTurn.linksTo(run))
	require.True(t, question.linksTo(secondTurn), "the question leads to where it was used")
	require.NotEmpty(t, named(ofTrace(all, decide.trace()), "store Apply"))
	require.NotContains(t, string(to.raw), "secret", "no span has a value")
	require.Empty(t, to.problems)
	require.NotContains(t, strings.Join(names(all), " "), "WorkerService")
}

// ofTrace returns the spans of a trace.
func ofTrace(all []span, traceID string) (found []span) {
	for _, s := range all {
		if s.trace() == traceID {
			found = append(found, s)
		}
	}
	return found
}

// requireInside requires that a span is inside others, from the inside out.
func requireInside(t *testing.T, all []span, inner span, outer ...span) {
	t.Helper()
	byID := make(map[string]span)
	for _, s := range all {
		byID[s.id()] = s
	}
	at := inner
	for _, want := range outer {
		for at.id() != want.id() {
			up, ok := byID[at.parent()]
			require.True(t, ok, "%q is not inside %q: %q has no parent", inner.GetName(), want.GetName(), at.GetName())
			at = up
		}
	}
}

func TestACallThatFailsNamesItsTrace(t *testing.T) {
	to := startReceiver(t)
	t.Setenv("OTEL_TRACES_EXPORTER", "otlp")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", to.URL+"/v1/traces")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=orders")
	server := harness.StartServer(t, []string{built.Graphd(t)}, "memory", "--http", "127.0.0.1:0")
	clients := program(t, "shop", to)
	ctx, call := clients.Tracer("test").Start(t.Context(), "buy")
	_, err := dialTraced(t, server.Address, clients).Invoke(ctx, client.Run{Graph: "none", Thread: "t1", Input: json.RawMessage(`{}`)})
	call.End()
	refused, ok := errors.AsType[*client.Error](err)
	require.True(t, ok, err)
	traceID := call.SpanContext().TraceID().String()
	require.Equal(t, traceID, refused.Details["traceId"])
	line := server.WaitForLine("finished call", `"trace_id":"`+traceID+`"`)
	require.Contains(t, line, `"span_id":"`)

	// A call over HTTP passes no connection of gRPC, and has a span like others.
	var listening struct {
		HTTP string `json:"http"`
	}
	require.NoError(t, json.Unmarshal([]byte(server.WaitForLine(`"msg":"serving"`)), &listening))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, strings.TrimSuffix(listening.HTTP, "/")+"/graphd.v1.ThreadService/GetThread", strings.NewReader(`{"threadId": "t1"}`))
	require.NoError(t, err)
	const outer = "0af7651916cd43dd8448eb211c80319c"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Traceparent", "00-"+outer+"-b7ad6b7169203331-01")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, errors.Join(err, answer.Body.Close()))
	require.Contains(t, string(text), "THREAD_NOT_FOUND")
	require.Contains(t, string(text), outer)
	found := to.await(t, "graphd.v1.ThreadService/GetThread", 1)[0]
	require.Equal(t, outer, found.trace())
	require.Equal(t, "b7ad6b7169203331", found.parent())
	require.Equal(t, "orders", found.service)
}

func TestACollectorThatHangsHoldsNothingUp(t *testing.T) {
	to := startReceiver(t)
	to.hold = make(chan struct{})
	t.Cleanup(func() { close(to.hold) }) // before the receiver is closed
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", to.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "8")
	server := harness.StartServer(t, []string{built.Graphd(t)}, "memory", "--metrics", "127.0.0.1:0")
	c := dialTraced(t, server.Address, program(t, "shop", startReceiver(t)))
	for range 100 {
		_, err := c.Invoke(t.Context(), client.Run{Graph: "none", Thread: "t1", Input: json.RawMessage(`{}`)})
		require.Error(t, err)
	}
	var listening struct {
		Metrics string `json:"metrics"`
	}
	require.NoError(t, json.Unmarshal([]byte(server.WaitForLine(`"msg":"serving"`)), &listening))
	answer, err := http.Get("http://" + listening.Metrics + "/metrics")
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, errors.Join(err, answer.Body.Close()))
	require.Regexp(t, `graphd_spans_total\{outcome="dropped"\} [1-9]`, string(text))
	server.SendSignal(syscall.SIGTERM)
	require.True(t, server.WaitForEnd(time.Minute), "a server that ends does not wait for ever")
}

func TestAServerRefusesVariablesThatItCantUse(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "zipkin")
	out, err := exec.CommandContext(t.Context(), built.Graphd(t), "serve", "--listen", "127.0.0.1:0", "--store", "memory").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), `OTEL_TRACES_EXPORTER is "zipkin"`)
	require.Contains(t, string(out), "want otlp, or none")
}
