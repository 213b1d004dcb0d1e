package server

import (
	"context"
	"crypto/tls"
	"errors"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/loopback"
	"github.com/graphd-dev/graphd/internal/notify"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/tracing"
	"github.com/graphd-dev/graphd/internal/tracing/export"
	"github.com/graphd-dev/graphd/internal/transport"
)

// openTraces makes what sends spans to the collector that the environment names; nil = it names
// none. The error is an *exit.UsageError.
func (o *Options) openTraces(ctx context.Context, version string, counter export.SpanCounter, log *zap.Logger) (*export.Provider, error) {
	if o.Getenv == nil {
		return nil, nil
	}
	environment, err := export.ReadEnvironment(o.Getenv)
	if refused, ok := errors.AsType[*export.EnvironmentError](err); ok {
		return nil, exit.Usagef("traces: %s %s", refused.Name, refused.Problem).WithHint("want %s; or switch traces off by OTEL_TRACES_EXPORTER=none", refused.Want)
	}
	to := environment.Collector
	if to == nil {
		return nil, nil
	}
	if to.Scheme == "http" && environment.HasHeader && !loopback.IsHost(to.Hostname()) {
		return nil, exit.Usagef("traces: %s would get the headers of OTEL_EXPORTER_OTLP_HEADERS in plain text", to.Host).WithHint("want https://")
	}
	secure, err := openCollectorFiles(func(name string) string { return export.Variable(o.Getenv, name) }, log)
	if err != nil {
		return nil, err
	}
	var config *tls.Config
	if secure != nil {
		config = secure()
	}
	provider, err := export.New(ctx, export.Options{
		Environment: environment, TLS: config, Host: hostName(), Version: version, IDs: tracing.IDs{}, Counter: counter, Log: log,
	})
	if err != nil {
		return nil, exit.Usagef("%v", err).WithHint("correct the variables OTEL_…")
	}
	log.Info("spans go to a collector", zap.String("collector", to.Host))
	return provider, nil
}

// traceEngine makes the engine trace what it does, if there is a collector.
func (s *Server) traceEngine(o *engine.Options) {
	if s.spans != nil {
		s.tracer = tracing.New(s.spans.Tracers())
		o.Tracer = s.tracer
	}
}

// traceOfEvent returns what gives events of webhooks the trace of their question, nil = nothing is
// traced.
func (s *Server) traceOfEvent() func(context.Context, *notify.Event) map[string]string {
	if s.tracer == nil {
		return nil
	}
	return func(ctx context.Context, e *notify.Event) map[string]string {
		return s.tracer.QuestionCarrier(ctx, e.Question.Thread, e.Question.Run, e.Question.ID)
	}
}

// traceCalls makes the transport trace calls, if there is a collector.
func (s *Server) traceCalls(o *transport.Options) {
	if s.spans != nil {
		o.CallTracer = tracing.NewCallHandler(s.spans.Tracers())
	}
}
