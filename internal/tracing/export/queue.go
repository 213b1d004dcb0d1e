package export

import (
	"context"
	"sync/atomic"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/zap"
)

// Outcomes of spans.
const (
	OutcomeSent    = "sent"
	OutcomeDropped = "dropped" // the queue was full
	OutcomeFailed  = "failed"  // the collector did not take them
)

// SpanCounter counts spans by what has become of them.
type SpanCounter interface {
	CountSpans(outcome string, n int)
}

// queue bounds the spans that wait for the collector, and counts what becomes of them. It
// drops a span that finds it full: no work waits for a collector. It stands on both sides of
// the batches of the SDK, which count no dropped span.
type queue struct {
	sdktrace.SpanProcessor // makes batches
	sdktrace.SpanExporter  // sends them

	size      int64
	waiting   atomic.Int64
	counter   SpanCounter
	log       *zap.Logger
	isFailing atomic.Bool
}

// newQueue makes a queue in front of an exporter.
func newQueue(exporter sdktrace.SpanExporter, e *Environment, counter SpanCounter, log *zap.Logger) *queue {
	q := &queue{SpanExporter: exporter, size: int64(e.queueSize), counter: counter, log: log}
	q.SpanProcessor = sdktrace.NewBatchSpanProcessor(sendingEnd{q}, sdktrace.WithMaxQueueSize(e.queueSize), sdktrace.WithMaxExportBatchSize(e.batchSize))
	return q
}

// OnEnd takes a span, or drops it.
func (q *queue) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if q.waiting.Add(1) > q.size {
		q.waiting.Add(-1)
		q.counter.CountSpans(OutcomeDropped, 1)
		return
	}
	q.SpanProcessor.OnEnd(s)
}

// Shutdown sends what waits, until ctx ends.
func (q *queue) Shutdown(ctx context.Context) error { return q.SpanProcessor.Shutdown(ctx) }

// sendingEnd is the end of a queue that sends.
type sendingEnd struct{ *queue }

// ExportSpans sends a batch. It logs the first failure, and the first success after it.
func (e sendingEnd) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	e.waiting.Add(-int64(len(spans)))
	if err != nil {
		e.counter.CountSpans(OutcomeFailed, len(spans))
		if e.isFailing.CompareAndSwap(false, true) {
			e.log.Warn("the collector of traces takes no spans; they are dropped", zap.Error(err))
		}
		return nil
	}
	e.counter.CountSpans(OutcomeSent, len(spans))
	if e.isFailing.CompareAndSwap(true, false) {
		e.log.Info("the collector of traces takes spans again")
	}
	return nil
}

// Shutdown ends the connections.
func (e sendingEnd) Shutdown(ctx context.Context) error { return e.SpanExporter.Shutdown(ctx) }
