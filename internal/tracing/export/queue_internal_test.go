package export

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// heldExporter is a collector that answers when it is told to.
type heldExporter struct {
	entered chan struct{} // gets one for each batch
	answer  chan error
}

func (e *heldExporter) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error {
	e.entered <- struct{}{}
	return <-e.answer
}

func (*heldExporter) Shutdown(context.Context) error { return nil }

// counts are spans by outcome.
type counts struct {
	mu sync.Mutex
	of map[string]int
}

func (c *counts) CountSpans(outcome string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[outcome] += n
}

func TestSpansBeyondTheQueueAreDroppedAndCounted(t *testing.T) {
	collector := &heldExporter{entered: make(chan struct{}, 10), answer: make(chan error, 10)}
	counted := &counts{of: make(map[string]int)}
	core, lines := observer.New(zap.InfoLevel)
	e := Environment{queueSize: 4, batchSize: 1}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(newQueue(collector, &e, counted, zap.New(core))))
	tracer := provider.Tracer("test")
	end := func() {
		_, span := tracer.Start(t.Context(), "span")
		span.End()
	}
	end()
	<-collector.entered // the collector hangs from here on
	for range 9 {
		end()
	}
	counted.mu.Lock()
	require.Equal(t, map[string]int{OutcomeDropped: 6}, counted.of)
	counted.mu.Unlock()
	for range 4 {
		collector.answer <- nil
	}
	require.NoError(t, provider.ForceFlush(t.Context()))
	require.Equal(t, map[string]int{OutcomeDropped: 6, OutcomeSent: 4}, counted.of)

	for range 2 { // it fails, and is reported once
		collector.answer <- errors.New("away")
		end()
	}
	require.NoError(t, provider.ForceFlush(t.Context()))
	collector.answer <- nil
	end()
	require.NoError(t, provider.Shutdown(t.Context()))
	require.Equal(t, map[string]int{OutcomeDropped: 6, OutcomeSent: 5, OutcomeFailed: 2}, counted.of)
	require.Equal(t, 2, lines.Len())
}
