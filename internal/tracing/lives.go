package tracing

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
)

// The trace of a run shows its life: the run from its start to its end, its turns, and its
// questions from asked to used. Its ids are derived from that of the run, so that servers add
// to it that know nothing of one another. What is done in a turn is in the trace of the call
// that began the turn; links lead from one to the other.

// TraceStoreCall implements commit.Tracer. Calls outside of all spans are not traced.
func (t *Tracer) TraceStoreCall(ctx context.Context, name string) func(err error) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return nil
	}
	_, span := t.tracer.Start(ctx, "store "+name, trace.WithSpanKind(trace.SpanKindClient))
	return func(err error) {
		result, isFault := storeResult(err)
		span.SetAttributes(attribute.String(keyResult, result))
		if isFault {
			span.SetStatus(codes.Error, result)
		}
		span.End()
	}
}

// storeResult names the result of a store call. Texts of errors may have values.
func storeResult(err error) (result string, isFault bool) {
	switch {
	case err == nil:
		return "ok", false
	case errors.Is(err, checkpoint.ErrConflict):
		return "conflict", false
	case errors.Is(err, checkpoint.ErrThreadNotFound), errors.Is(err, checkpoint.ErrCheckpointNotFound), errors.Is(err, checkpoint.ErrRunNotFound),
		errors.Is(err, checkpoint.ErrInterruptNotFound), errors.Is(err, checkpoint.ErrRequestNotFound):
		return "not_found", false
	case errors.Is(err, checkpoint.ErrUnavailable):
		return "unavailable", true
	}
	return "error", true
}

// TraceChange implements commit.Tracer.
func (t *Tracer) TraceChange(ctx context.Context, change *commit.Tx) {
	by := workSpan{trace.SpanFromContext(ctx)}
	for i := range change.Runs {
		switch run := &change.Runs[i]; {
		case run.State.Terminal():
			t.reportRun(ctx, run, change.Now)
		case run.State == checkpoint.RunQueued && by.IsRecording():
			by.AddLink(runLink(run.Thread, run.ID))
		}
	}
	for i := range change.Interrupts {
		q := &change.Interrupts[i]
		switch q.State {
		case checkpoint.InterruptOpen:
		case checkpoint.InterruptAnswered, checkpoint.InterruptRetractable:
			if by.IsRecording() && i < maxLinks {
				by.AddLink(questionLink(q.Thread, q.Run, q.ID))
			}
		case checkpoint.InterruptConsumed, checkpoint.InterruptExpired, checkpoint.InterruptCancelled, checkpoint.InterruptSuperseded:
			t.reportQuestion(ctx, q, change.Now)
		}
	}
}

// beginRun begins the span of a run in its trace. It is not reported unless it is ended.
func (t *Tracer) beginRun(ctx context.Context, thread, run, graph string, at time.Time, attributes []attribute.KeyValue) trace.Span {
	_, span := t.tracer.Start(withIDs(ctx, deriveRun(thread, run)), "run "+graphName(graph),
		trace.WithNewRoot(), trace.WithTimestamp(at), trace.WithAttributes(attributes...))
	return span
}

// reportRun reports a run that has ended.
func (t *Tracer) reportRun(ctx context.Context, run *checkpoint.Run, at time.Time) {
	span := t.beginRun(ctx, run.Thread, run.ID, run.Graph, run.Created, append(runAttributes(run), attribute.String(keyState, string(run.State))))
	if f := run.Failure; f != nil {
		span.SetAttributes(attribute.String(keyReason, clipText(f.Reason)))
		if run.State == checkpoint.RunFailed || run.State == checkpoint.RunTimedOut {
			span.SetStatus(codes.Error, clipText(f.Reason))
		}
	}
	span.End(trace.WithTimestamp(at))
}

// markTurn adds to the trace of a run that there was a turn.
func (t *Tracer) markTurn(ctx context.Context, run *checkpoint.Run, turn trace.SpanContext, began time.Time, attributes []attribute.KeyValue) {
	within := trace.ContextWithSpan(ctx, t.beginRun(ctx, run.Thread, run.ID, run.Graph, run.Created, nil))
	_, span := t.tracer.Start(within, "turn "+graphName(run.Graph),
		trace.WithTimestamp(began), trace.WithAttributes(attributes...), trace.WithLinks(trace.Link{SpanContext: turn}))
	span.End()
}

// reportQuestion reports a question that was used, or that is not asked any more, in the span of ctx.
func (t *Tracer) reportQuestion(ctx context.Context, q *checkpoint.Interrupt, at time.Time) {
	within := trace.ContextWithSpan(ctx, t.beginRun(ctx, q.Thread, q.Run, q.Graph, q.Created, nil))
	options := []trace.SpanStartOption{
		trace.WithTimestamp(q.Created), trace.WithAttributes(append(threadAttributes(q.Thread, q.Run),
			attribute.String(keyNode, clipText(q.Node)), attribute.String(keyTask, q.Task), attribute.String(keyInterrupt, q.ID),
			attribute.String(keyState, string(q.State)))...),
	}
	if by := trace.SpanContextFromContext(ctx); by.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: by}))
	}
	_, span := t.tracer.Start(withIDs(within, deriveQuestion(q.Thread, q.Run, q.ID)), "question "+clipText(q.Node), options...)
	span.End(trace.WithTimestamp(at))
}

// RunCarrier returns the W3C trace context of the span of a run.
func (t *Tracer) RunCarrier(ctx context.Context, thread, run string) map[string]string {
	return carrierOf(deriveRun(thread, run).spanContext(t.keepsRun(ctx, thread, run)))
}

// QuestionCarrier returns the W3C trace context of the span of a question.
func (t *Tracer) QuestionCarrier(ctx context.Context, thread, run, interrupt string) map[string]string {
	return carrierOf(deriveQuestion(thread, run, interrupt).spanContext(t.keepsRun(ctx, thread, run)))
}

// keepsRun reports whether the sampler keeps the trace of a run.
func (t *Tracer) keepsRun(ctx context.Context, thread, run string) bool {
	return t.beginRun(ctx, thread, run, "", time.Now(), nil).SpanContext().IsSampled()
}
