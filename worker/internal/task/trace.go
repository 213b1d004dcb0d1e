package task

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// scopeName is the name of the instrumentation.
const scopeName = "github.com/graphd-dev/graphd/worker"

// NewTracer returns what makes the spans of tasks; nil = none are made.
func NewTracer(provider trace.TracerProvider) trace.Tracer {
	if provider == nil {
		return nil
	}
	return provider.Tracer(scopeName)
}

// beginTrace continues the trace of a task. It returns a span around the code of the task, nil =
// none is made: the spans of the code are then inside that of the server.
func (r *Runner) beginTrace(ctx context.Context, a *graphdv1.TaskAssignment) (context.Context, trace.Span) {
	if given := a.GetTrace(); len(given) > 0 {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier(given))
	}
	if r.tracer == nil {
		return ctx, nil
	}
	name := "run " + a.GetNode()
	if a.GetNode() == "" {
		name = "run " + a.GetFunction()
	}
	return r.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		attribute.String("graphd.thread", a.GetThreadId()), attribute.String("graphd.run", a.GetRunId()),
		attribute.String("graphd.graph", a.GetGraph()), attribute.String("graphd.graph_version", a.GetGraphVersion()),
		attribute.String("graphd.node", a.GetNode()), attribute.String("graphd.task", a.GetTaskId()),
		attribute.Int("graphd.attempt", int(a.GetAttempt())), attribute.Int("graphd.delivery", int(a.GetDelivery())),
	))
}

// endTrace ends the span of a task. The texts of failures may have values, so the span has their
// types alone.
func endTrace(span trace.Span, result *graphdv1.TaskResult) {
	if span == nil {
		return
	}
	if f := result.GetFailed(); f != nil {
		span.SetAttributes(attribute.String("error.type", f.GetType()))
		span.SetStatus(codes.Error, f.GetType())
	}
	span.End()
}
