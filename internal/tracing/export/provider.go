// Package export sends spans to a collector of OpenTelemetry over OTLP, as the variables OTEL_…
// of the environment say.
package export

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"google.golang.org/grpc/credentials"
)

// Options make a Provider. Headers, compression, timeouts and attributes of the resource are in
// the variables OTEL_… of the environment.
type Options struct {
	Environment Environment // with a collector
	TLS         *tls.Config // nil = the CAs of the system
	Host        string      // where the server runs
	Version     string      // of graphd
	IDs         sdktrace.IDGenerator
	Counter     SpanCounter
	Log         *zap.Logger
}

// Provider makes the spans of a server, and sends them.
type Provider struct{ sdk *sdktrace.TracerProvider }

// flushTimeout bounds how long a server that ends waits for the collector.
const flushTimeout = 5 * time.Second

// New makes a Provider. It does not connect.
func New(ctx context.Context, o Options) (*Provider, error) {
	exporter, err := newExporter(ctx, &o)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	own, err := newResource(&o)
	if err != nil {
		return nil, err
	}
	return &Provider{sdktrace.NewTracerProvider(
		sdktrace.WithResource(own), sdktrace.WithIDGenerator(o.IDs), sdktrace.WithSampler(o.Environment.sampler),
		sdktrace.WithSpanProcessor(newQueue(exporter, &o.Environment, o.Counter, o.Log)),
	)}, nil
}

// Tracers returns what makes the spans.
func (p *Provider) Tracers() trace.TracerProvider { return p.sdk }

// Close sends what waits, for a bounded time.
func (p *Provider) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	if err := p.sdk.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("traces: %w", err)
	}
	return nil
}

func newExporter(ctx context.Context, o *Options) (*otlptrace.Exporter, error) {
	to := o.Environment.Collector.String()
	if o.Environment.protocol == protocolGRPC {
		options := []otlptracegrpc.Option{otlptracegrpc.WithEndpointURL(to)}
		if o.TLS != nil {
			options = append(options, otlptracegrpc.WithTLSCredentials(credentials.NewTLS(o.TLS)))
		}
		return otlptracegrpc.New(ctx, options...)
	}
	options := []otlptracehttp.Option{otlptracehttp.WithEndpointURL(to)}
	if o.TLS != nil {
		options = append(options, otlptracehttp.WithTLSClientConfig(o.TLS))
	}
	return otlptracehttp.New(ctx, options...)
}

// newResource describes the server. The environment may add to it.
func newResource(o *Options) (*resource.Resource, error) {
	own := resource.NewSchemaless(
		attribute.String("service.name", "graphd"), attribute.String("service.version", o.Version),
		attribute.String("service.instance.id", rand.Text()), attribute.String("host.name", o.Host))
	merged, err := resource.Merge(own, resource.Environment())
	if err != nil && !errors.Is(err, resource.ErrSchemaURLConflict) {
		return nil, fmt.Errorf("traces: the attributes of the resource: %w", err)
	}
	return merged, nil
}
