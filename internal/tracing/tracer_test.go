package tracing_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
	"github.com/graphd-dev/graphd/internal/tracing"
)

// newTracer makes a tracer, and what has its spans.
func newTracer(t *testing.T, options ...sdktrace.TracerProviderOption) (*tracing.Tracer, *tracetest.InMemoryExporter) {
	t.Helper()
	to := tracetest.NewInMemoryExporter()
	return tracing.New(sdktrace.NewTracerProvider(append(options, sdktrace.WithSyncer(to), sdktrace.WithIDGenerator(tracing.IDs{}))...)), to
}

// Servers of different builds add to the trace of a run: the ids never change.
func TestIDsAreDerived(t *testing.T) {
	tracer, _ := newTracer(t)
	require.Equal(t, map[string]string{"traceparent": "00-4cb96cb88f79d166b962d33acbbdeefb-01bda9ccc1edfea8-01"}, tracer.RunCarrier(t.Context(), "t1", "r1"))
	require.Equal(t, map[string]string{"traceparent": "00-4cb96cb88f79d166b962d33acbbdeefb-21fcff0caee0e89f-01"}, tracer.QuestionCarrier(t.Context(), "t1", "r1", "q1"))
	require.NotEqual(t, tracer.RunCarrier(t.Context(), "t1", "r1"), tracer.RunCarrier(t.Context(), "t", "1r1"))
}

func TestTheTraceOfARunIsSampledAsAWhole(t *testing.T) {
	tracer, to := newTracer(t, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(0.5))))
	kept := 0
	for i := range 100 {
		to.Reset()
		thread := "t" + strings.Repeat("x", i)
		run := checkpoint.Run{ID: "r", Thread: thread, Graph: "g", State: checkpoint.RunSucceeded, Created: time.Unix(1, 0)}
		turn := tracer.BeginTurn(t.Context())
		turn.EndTurn(t.Context(), &run, "succeeded")
		change := &commit.Tx{Now: time.Unix(2, 0)}
		change.Runs = []checkpoint.Run{run}
		change.Interrupts = []checkpoint.Interrupt{{ID: "q", Thread: thread, Run: "r", Node: "n", State: checkpoint.InterruptConsumed, Created: time.Unix(1, 0)}}
		tracer.TraceChange(t.Context(), change)
		isKept := strings.HasSuffix(tracer.RunCarrier(t.Context(), thread, "r")["traceparent"], "-01")
		want := 0
		if isKept {
			kept++
			want = 3 // the run, its question, and the mark of its turn
		}
		got := 0
		for _, s := range to.GetSpans() {
			if strings.Contains(tracer.RunCarrier(t.Context(), thread, "r")["traceparent"], s.SpanContext.TraceID().String()) {
				got++
			}
		}
		require.Equal(t, want, got, thread)
	}
	require.Greater(t, kept, 10)
	require.Less(t, kept, 90)
}

func TestTextsOfSpansAreBounded(t *testing.T) {
	tracer, to := newTracer(t)
	long := strings.Repeat("ä", 1000)
	span := tracer.TraceAttempt(t.Context(), superstep.TracedAttempt{
		TracedStep: superstep.TracedStep{Run: &checkpoint.Run{ID: long, Thread: long, Graph: long}, Graph: &graph.Graph{Name: long}, Namespace: long, Step: 1},
		Node:       &graph.Node{Name: long}, Task: "t", Attempt: 1, Answered: make([]string, 1000),
	})
	span.End(superstep.SpanEnd{State: "failed", Reason: long})
	got := to.GetSpans()[0]
	require.Len(t, got.Links, 32)
	require.LessOrEqual(t, len(got.Name), 140)
	for _, a := range got.Attributes {
		if a.Value.Type() == attribute.STRING {
			require.LessOrEqual(t, len(a.Value.AsString()), 128, a.Key)
			require.NotContains(t, a.Value.AsString(), "\uFFFD")
		}
	}
}

func TestSpansInsideOneThatIsLeftOutAreLeftOut(t *testing.T) {
	tracer, to := newTracer(t, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample())))
	turn := tracer.BeginTurn(t.Context())
	run := checkpoint.Run{ID: "r", Thread: "t", Graph: "g"}
	ctx := turn.Within(t.Context())
	step := tracer.TraceSuperstep(ctx, superstep.TracedStep{Run: &run, Graph: &graph.Graph{Name: "g"}})
	attempt := tracer.TraceAttempt(step.Within(ctx), superstep.TracedAttempt{TracedStep: superstep.TracedStep{Run: &run, Graph: &graph.Graph{Name: "g"}}, Node: &graph.Node{Name: "n"}})
	traceID, spanID := turn.IDs()
	require.Equal(t, map[string]string{"traceparent": "00-" + traceID + "-" + spanID + "-00"}, attempt.Carrier(), "workers leave it out, too")
	attempt.End(superstep.SpanEnd{State: "failed", Reason: "NODE_FAILED"})
	step.End(superstep.SpanEnd{})
	turn.EndTurn(ctx, &run, "succeeded")
	require.Empty(t, to.GetSpans())
}

func TestAStoreCallOutsideOfSpansIsNotTraced(t *testing.T) {
	tracer, _ := newTracer(t)
	require.Nil(t, tracer.TraceStoreCall(t.Context(), "Head"))
}
