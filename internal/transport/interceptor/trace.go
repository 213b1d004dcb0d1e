package interceptor

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
)

// addTraceID adds the id of the trace of a call to the ids of its error.
func addTraceID(ctx context.Context, ids map[string]string) {
	if c := trace.SpanContextFromContext(ctx); c.IsValid() {
		ids["traceId"] = c.TraceID().String()
	}
}

// traceLogFields returns the fields by which a line of the log belongs to the span of a call.
func (i *Interceptors) traceLogFields(ctx context.Context) []zap.Field {
	if i.tracer == nil {
		return nil
	}
	c := trace.SpanContextFromContext(ctx)
	if !c.IsValid() {
		return nil
	}
	return []zap.Field{zap.String("trace_id", c.TraceID().String()), zap.String("span_id", c.SpanID().String())}
}

// withCallerTrace adds the trace of the program that has the server in it to the metadata of a
// call, as what traces the calls of a connection does.
func (i *Interceptors) withCallerTrace(ctx context.Context) context.Context {
	if i.tracer == nil || !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	given, _ := metadata.FromOutgoingContext(ctx)
	if len(given.Get("traceparent")) > 0 {
		return ctx
	}
	return metadata.NewOutgoingContext(ctx, metadata.Join(given, metadata.New(carrier)))
}

// traceDirectCall begins the span of a call that passes no connection, as gRPC does for others,
// and returns what ends it; nil = calls are not traced.
func (i *Interceptors) traceDirectCall(ctx context.Context, method string) (context.Context, func(err error)) {
	handler := i.tracer
	if handler == nil {
		return ctx, nil
	}
	ctx = handler.TagRPC(ctx, &stats.RPCTagInfo{FullMethodName: method})
	began := time.Now()
	handler.HandleRPC(ctx, &stats.Begin{BeginTime: began})
	return ctx, func(err error) {
		handler.HandleRPC(ctx, &stats.End{BeginTime: began, EndTime: time.Now(), Error: err})
	}
}
