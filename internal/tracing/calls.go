package tracing

import (
	"strings"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/stats"
)

// NewCallHandler makes what traces the calls of a server. A call continues the trace of its
// client.
func NewCallHandler(provider trace.TracerProvider) stats.Handler {
	return otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(provider), otelgrpc.WithMeterProvider(noop.NewMeterProvider()),
		otelgrpc.WithPropagators(propagation.TraceContext{}), otelgrpc.WithFilter(isTraced),
	)
}

// isTraced reports whether a call has a span: health checks are not worth one, and the spans of
// attempts have what the calls of workers are about.
func isTraced(call *stats.RPCTagInfo) bool {
	for _, service := range []string{"/grpc.health.v1.Health/", "/grpc.reflection.", "/graphd.v1.WorkerService/"} {
		if strings.HasPrefix(call.FullMethodName, service) {
			return false
		}
	}
	return true
}
