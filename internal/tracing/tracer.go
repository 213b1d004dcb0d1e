// Package tracing makes spans of what a server does: of calls, and of the turns, supersteps,
// attempts, questions and store calls of runs. Spans have ids and names, and never values.
package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/ownership"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// Tracer traces what the engine does. It is safe for concurrent use.
type Tracer struct{ tracer trace.Tracer }

// scopeName is the name of the instrumentation.
const scopeName = "github.com/graphd-dev/graphd"

// New makes a tracer. The provider makes ids by IDs.
func New(provider trace.TracerProvider) *Tracer {
	return &Tracer{tracer: provider.Tracer(scopeName)}
}

// workSpan is a span of the engine, under way.
type workSpan struct{ trace.Span }

// Within returns ctx with the span.
func (s workSpan) Within(ctx context.Context) context.Context {
	return trace.ContextWithSpan(ctx, s.Span)
}

// Carrier returns the W3C trace context of the span.
func (s workSpan) Carrier() map[string]string { return carrierOf(s.SpanContext()) }

// carrierOf returns a W3C trace context, nil = the span has none.
func carrierOf(c trace.SpanContext) map[string]string {
	if !c.IsValid() {
		return nil
	}
	carrier := map[string]string{"traceparent": "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-" + (c.TraceFlags() & trace.FlagsSampled).String()}
	if state := c.TraceState().String(); state != "" {
		carrier["tracestate"] = state
	}
	return carrier
}

// IDs returns the ids of the trace and of the span.
func (s workSpan) IDs() (traceID, spanID string) {
	c := s.SpanContext()
	return c.TraceID().String(), c.SpanID().String()
}

// End ends the span of a superstep or an attempt.
func (s workSpan) End(e superstep.SpanEnd) {
	if !s.IsRecording() {
		return
	}
	if e.State != "" {
		s.SetAttributes(attribute.String(keyState, e.State))
	}
	if e.Reason != "" {
		s.SetAttributes(attribute.String(keyReason, clipText(e.Reason)))
	}
	if e.Reason != "" && e.State != string(checkpoint.RunCancelled) {
		s.SetStatus(codes.Error, clipText(e.Reason))
	}
	s.Span.End()
}

// stepSpan is the span of a superstep or of an attempt: it links to the questions that it asks.
type stepSpan struct {
	workSpan

	run *checkpoint.Run
}

// End ends the span.
func (s stepSpan) End(e superstep.SpanEnd) {
	if s.IsRecording() {
		s.linkQuestions(s.run, e.Asked)
	}
	s.workSpan.End(e)
}

// linkQuestions links a span to questions of a run.
func (s workSpan) linkQuestions(run *checkpoint.Run, interrupts []string) {
	for i, id := range interrupts {
		if i == maxLinks {
			return
		}
		s.AddLink(questionLink(run.Thread, run.ID, id))
	}
}

// maxLinks bounds the links of a span.
const maxLinks = 32

func questionLink(thread, run, interrupt string) trace.Link {
	return trace.Link{
		SpanContext: deriveQuestion(thread, run, interrupt).spanContext(true),
		Attributes:  []attribute.KeyValue{attribute.String(keyInterrupt, interrupt)},
	}
}

func runLink(thread, run string) trace.Link {
	return trace.Link{
		SpanContext: deriveRun(thread, run).spanContext(true), Attributes: []attribute.KeyValue{attribute.String(keyRun, clipText(run))},
	}
}

// TraceSuperstep implements superstep.Tracer.
func (t *Tracer) TraceSuperstep(ctx context.Context, s superstep.TracedStep) superstep.Span {
	if around := trace.SpanFromContext(ctx); isLeftOut(around) {
		return leftOutSpan{around}
	}
	_, span := t.tracer.Start(ctx, "superstep "+graphName(s.Graph.Name), trace.WithAttributes(stepAttributes(&s)...))
	return workSpan{span}
}

// TraceAttempt implements superstep.Tracer.
func (t *Tracer) TraceAttempt(ctx context.Context, a superstep.TracedAttempt) superstep.Span {
	if around := trace.SpanFromContext(ctx); isLeftOut(around) {
		return leftOutSpan{around}
	}
	name, attributes := "reducer "+clipText(a.Function), stepAttributes(&a.TracedStep)
	if a.Node != nil {
		name = "node " + clipText(a.Node.Name)
		attributes = append(attributes, attribute.String(keyNode, clipText(a.Node.Name)))
	}
	attributes = append(attributes, attribute.String(keyTask, a.Task), attribute.Int(keyAttempt, a.Attempt))
	_, span := t.tracer.Start(ctx, name, trace.WithAttributes(attributes...))
	s := stepSpan{workSpan{span}, a.Run}
	if span.IsRecording() {
		s.linkQuestions(a.Run, a.Answered)
	}
	return s
}

// isLeftOut reports whether the sampler has left out a span of this process. It leaves out all spans
// inside it then: those have the same trace.
func isLeftOut(around trace.Span) bool {
	c := around.SpanContext()
	return c.IsValid() && !c.IsSampled() && !c.IsRemote()
}

// leftOutSpan stands for a span inside one that is left out.
type leftOutSpan struct{ around trace.Span }

// Within returns ctx, which has the span around it.
func (leftOutSpan) Within(ctx context.Context) context.Context { return ctx }

// Carrier returns the trace context of the span around it, which says that it is left out.
func (s leftOutSpan) Carrier() map[string]string { return carrierOf(s.around.SpanContext()) }

// End does nothing.
func (leftOutSpan) End(superstep.SpanEnd) {}

// BeginTurn implements ownership.Tracer. A turn that no call begins is a trace of its own.
func (t *Tracer) BeginTurn(ctx context.Context) ownership.Turn {
	_, span := t.tracer.Start(ctx, "turn")
	return turnSpan{workSpan{span}, t, time.Now()}
}

// turnSpan is the span of a turn.
type turnSpan struct {
	workSpan

	tracer *Tracer
	began  time.Time
}

// EndTurn ends the span, and marks the turn in the trace of the run.
func (s turnSpan) EndTurn(ctx context.Context, run *checkpoint.Run, state string) {
	if run == nil {
		s.End(superstep.SpanEnd{State: state})
		return
	}
	attributes := append(runAttributes(run), attribute.String(keyState, state))
	s.tracer.markTurn(ctx, run, s.SpanContext(), s.began, attributes)
	if !s.IsRecording() {
		return
	}
	s.SetName("turn " + graphName(run.Graph))
	s.SetAttributes(attributes...)
	s.AddLink(runLink(run.Thread, run.ID))
	if f := run.Failure; f != nil && (run.State == checkpoint.RunFailed || run.State == checkpoint.RunTimedOut) {
		s.SetAttributes(attribute.String(keyReason, clipText(f.Reason)))
		s.SetStatus(codes.Error, clipText(f.Reason))
	}
	s.Span.End()
}
