package tracing

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"

	"go.opentelemetry.io/otel/trace"
)

// spanIDs are the ids of one span.
type spanIDs struct {
	trace trace.TraceID
	span  trace.SpanID
}

// deriveRun derives the ids of the span of a run. Each server derives the same, at any time,
// so that nothing of a trace is stored.
func deriveRun(thread, run string) spanIDs {
	digest := digestTexts("graphd run", thread, run)
	var ids spanIDs
	copy(ids.trace[:], digest[:16])
	copy(ids.span[:], digest[16:24])
	return ids
}

// deriveQuestion derives the ids of the span of a question, in the trace of its run.
func deriveQuestion(thread, run, interrupt string) spanIDs {
	ids := deriveRun(thread, run)
	digest := digestTexts("graphd question", thread, interrupt)
	copy(ids.span[:], digest[:8])
	return ids
}

// digestTexts returns the digest of texts, each with its length.
func digestTexts(texts ...string) [sha256.Size]byte {
	h := sha256.New()
	for _, text := range texts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(text)))
		h.Write(size[:])
		h.Write([]byte(text))
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// spanContext returns the context of the span as other processes know it.
func (ids spanIDs) spanContext(isSampled bool) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: ids.trace, SpanID: ids.span, TraceFlags: trace.TraceFlags(0).WithSampled(isSampled), Remote: true,
	})
}

type idsKey struct{}

// withIDs returns a context in which the next span has these ids.
func withIDs(ctx context.Context, ids spanIDs) context.Context {
	return context.WithValue(ctx, idsKey{}, ids)
}

// IDs gives spans their ids: derived ones to runs and questions, random ones to others. It is
// the sdktrace.IDGenerator of the provider.
type IDs struct{}

// NewIDs returns the ids of a span that begins a trace.
func (IDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if ids, ok := ctx.Value(idsKey{}).(spanIDs); ok {
		return ids.trace, ids.span
	}
	var id trace.TraceID
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	}
	return id, randomSpanID()
}

// NewSpanID returns the id of a span inside a trace.
func (IDs) NewSpanID(ctx context.Context, of trace.TraceID) trace.SpanID {
	if ids, ok := ctx.Value(idsKey{}).(spanIDs); ok && ids.trace == of {
		return ids.span
	}
	return randomSpanID()
}

func randomSpanID() (id trace.SpanID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}
