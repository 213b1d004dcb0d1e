package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net/url"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/audit/otlp"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/loopback"
	"github.com/graphd-dev/graphd/internal/tlsfiles"
)

// parseCollector reads the address of a collector. The error is an *exit.UsageError,
// without the credentials that an address may have.
func parseCollector(address string) (*url.URL, error) {
	const want = "want otlp:https://HOST:4318, and credentials in OTEL_EXPORTER_OTLP_HEADERS"
	to, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, exit.Usagef("--%s otlp: the address can't be read", flagAudit).WithHint(want)
	case to.User != nil || to.RawQuery != "" || to.Fragment != "":
		return nil, exit.Usagef("--%s otlp: the address has credentials or parameters, which other users of the host would see", flagAudit).WithHint(want)
	case to.Scheme != "https" && to.Scheme != "http" || to.Hostname() == "":
		return nil, exit.Usagef("--%s otlp:%s is no address of a collector", flagAudit, to.Redacted()).WithHint(want)
	}
	return to, nil
}

// openCollector makes a sink that sends records to a collector. The error is an
// *exit.UsageError.
func (o *AuditOptions) openCollector(ctx context.Context, address, version string, log *zap.Logger) (*otlp.Sink, error) {
	to, err := parseCollector(address)
	if err != nil {
		return nil, err
	}
	variable := func(name string) string {
		if o.Getenv == nil {
			return ""
		}
		return cmp.Or(o.Getenv("OTEL_EXPORTER_OTLP_LOGS_"+name), o.Getenv("OTEL_EXPORTER_OTLP_"+name))
	}
	if to.Scheme == "http" && variable("HEADERS") != "" && !loopback.IsHost(to.Hostname()) {
		return nil, exit.Usagef("--%s otlp:%s would send the headers of OTEL_EXPORTER_OTLP_HEADERS in plain text to another host", flagAudit, to).
			WithHint("want https://")
	}
	secure, err := openCollectorFiles(variable, log)
	if err != nil {
		return nil, err
	}
	sink, err := otlp.New(ctx, otlp.Options{URL: to, TLS: secure, Host: hostName(), Version: version})
	if err != nil {
		return nil, exit.Usagef("--%s otlp:%s: %v", flagAudit, to, err).WithHint("correct the variables OTEL_…")
	}
	return sink, nil
}

// openCollectorFiles reads the files of TLS that variables name, and returns what gives the
// configuration of a connection that begins; nil = none is named. The error is an
// *exit.UsageError.
func openCollectorFiles(variable func(name string) string, log *zap.Logger) (func() *tls.Config, error) {
	files := tlsfiles.ClientFiles{CA: variable("CERTIFICATE"), Cert: variable("CLIENT_CERTIFICATE"), Key: variable("CLIENT_KEY")}
	switch {
	case (files.Cert == "") != (files.Key == ""):
		return nil, exit.Usagef("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY belong together").WithHint("set both")
	case files == tlsfiles.ClientFiles{}:
		return nil, nil
	}
	c, err := tlsfiles.OpenClient(files, log, time.Now)
	if refused, ok := errors.AsType[*tlsfiles.FileError](err); ok {
		return nil, exit.Usagef("a variable OTEL_EXPORTER_OTLP_… names %s: %s", refused.Path, refused.Problem).WithHint("%s", refused.Want)
	}
	if err != nil {
		return nil, err
	}
	return c.CurrentConfig, nil
}
