// Package otlp sends the audit to a collector of OpenTelemetry: log records over
// OTLP/HTTP, whose bodies are the lines that package file would write.
package otlp

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/graphd-dev/graphd/internal/audit"
)

// Options make a Sink. Headers, the compression and the attributes of the resource are
// in the variables OTEL_… of the environment.
type Options struct {
	URL     *url.URL           // of the collector; without a path it is /v1/logs
	TLS     func() *tls.Config // of a connection that begins; nil = the CAs of the system
	Host    string             // where the server runs
	Version string             // of graphd
}

// Sink is a sink that sends records to a collector. The lines are a chain that begins
// with the process. One goroutine uses it.
type Sink struct {
	exporter *otlploghttp.Exporter
	sender   *sender
	logger   log.Logger
	batch    *batch
	chain    audit.Chain
	now      func() time.Time
}

// defaultPath is where collectors take logs.
const defaultPath = "/v1/logs"

// New makes a Sink. It does not connect. The error is that of variables of the
// environment that can't be used.
func New(ctx context.Context, o Options) (*Sink, error) {
	to := *o.URL
	if strings.Trim(to.Path, "/") == "" {
		to.Path = defaultPath
	}
	s := &Sink{batch: &batch{}, sender: &sender{tls: o.TLS}, now: time.Now}
	var err error
	s.exporter, err = otlploghttp.New(ctx,
		otlploghttp.WithEndpointURL(to.String()), otlploghttp.WithHTTPClient(s.sender.newClient()),
		// The queue of the audit repeats what fails.
		otlploghttp.WithRetry(otlploghttp.RetryConfig{Enabled: false}), otlploghttp.WithMaxResponseSize(maxAnswerBytes))
	if err != nil {
		return nil, fmt.Errorf("otlp: %w", err)
	}
	own, err := newResource(o)
	if err != nil {
		return nil, err
	}
	provider := sdklog.NewLoggerProvider(sdklog.WithResource(own), sdklog.WithProcessor(s.batch),
		sdklog.WithAttributeCountLimit(-1), sdklog.WithAttributeValueLengthLimit(-1))
	s.logger = provider.Logger("github.com/graphd-dev/graphd/internal/audit")
	return s, nil
}

// newResource describes the server. The environment may add to it.
func newResource(o Options) (*resource.Resource, error) {
	own := resource.NewSchemaless(
		attribute.String("service.name", "graphd"), attribute.String("service.version", o.Version),
		attribute.String("service.instance.id", rand.Text()), attribute.String("host.name", o.Host))
	merged, err := resource.Merge(own, resource.Environment())
	if err != nil && !errors.Is(err, resource.ErrSchemaURLConflict) {
		return nil, fmt.Errorf("otlp: the attributes of the resource: %w", err)
	}
	return merged, nil
}

// WriteRecords sends records in one request. A request whose answer is lost is sent again
// as it was: a collector may get the same lines twice. Errors wrap audit.ErrRejected when
// the collector will not take the records.
func (s *Sink) WriteRecords(ctx context.Context, list []audit.Record) (written int, err error) {
	next := s.chain
	s.batch.records = s.batch.records[:0]
	for i := range list {
		var line []byte
		if line, next, err = next.AppendRecord(nil, &list[i]); err != nil {
			return 0, errors.Join(audit.ErrRejected, err)
		}
		s.emitLine(ctx, line, next, &list[i])
	}
	s.sender.answer = answer{}
	err = s.exporter.Export(ctx, s.batch.records)
	switch a := s.sender.answer; {
	case a.isTaken() && a.rejected > 0:
		s.chain = next
		n := int(min(a.rejected, int64(len(list))))
		return len(list) - n, fmt.Errorf("%w: the collector has rejected %d of %d records", audit.ErrRejected, n, len(list))
	case a.isTaken():
		s.chain = next
		return len(list), nil
	case err != nil && a.isRejection():
		return 0, fmt.Errorf("%w: the collector answers %s", audit.ErrRejected, http.StatusText(a.status))
	case err != nil && a.status != 0:
		return 0, fmt.Errorf("the collector answers %d %s", a.status, http.StatusText(a.status))
	case err != nil:
		return 0, err
	}
	return 0, errors.New("the collector has not answered")
}

// emitLine adds a line to the batch.
func (s *Sink) emitLine(ctx context.Context, line []byte, place audit.Chain, r *audit.Record) {
	var e log.Record
	e.SetEventName("graphd.audit." + string(r.Kind))
	e.SetTimestamp(r.Time)
	e.SetObservedTimestamp(s.now())
	e.SetSeverity(log.SeverityInfo)
	if r.Outcome == audit.OutcomeRefused || r.Kind == audit.KindGap {
		e.SetSeverity(log.SeverityWarn)
	}
	e.SetBody(attribute.StringValue(strings.TrimSuffix(string(line), "\n")))
	sequence, _ := place.Last()
	e.AddAttributes(attribute.Int64("graphd.audit.seq", int64(sequence)))
	for _, text := range []struct{ name, value string }{
		{"graphd.principal", r.Principal},
		{"graphd.tenant", r.Tenant},
		{"graphd.method", r.Method},
		{"graphd.outcome", string(r.Outcome)},
		{"graphd.reason", r.Reason},
		{"graphd.thread", r.Thread},
		{"graphd.graph", r.Graph},
		{"graphd.worker", r.Worker},
		{"graphd.request_id", r.RequestID},
	} {
		if text.value != "" {
			e.AddAttributes(attribute.String(text.name, text.value))
		}
	}
	s.logger.Emit(ctx, e)
}

// Close ends the connections.
func (s *Sink) Close() error {
	s.sender.closeIdle()
	return nil
}

// batch collects the records that the SDK makes.
type batch struct{ records []sdklog.Record }

// OnEmit keeps a record.
func (b *batch) OnEmit(_ context.Context, r *sdklog.Record) error {
	b.records = append(b.records, r.Clone())
	return nil
}

// Enabled reports that all records are kept.
func (*batch) Enabled(context.Context, sdklog.EnabledParameters) bool { return true }

// Shutdown does nothing.
func (*batch) Shutdown(context.Context) error { return nil }

// ForceFlush does nothing.
func (*batch) ForceFlush(context.Context) error { return nil }
