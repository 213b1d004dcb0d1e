package server

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/audit"
	"github.com/graphd-dev/graphd/internal/audit/file"
	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// AuditOptions say where the records of calls go. Without a sink no call is recorded.
type AuditOptions struct {
	Audit           []string // sinks
	AuditReads      bool
	AuditQueueBytes int64
	AuditFileBytes  int64
	AuditFiles      int
	AuditSync       time.Duration

	// Getenv returns variables OTEL_… for collectors; nil = there are none.
	// CompleteOptions sets it.
	Getenv func(string) string
}

const flagAudit = "audit"

// Forms of --audit.
const (
	auditFilePrefix = "file:"
	auditOTLPPrefix = "otlp:"
	auditStdout     = "stdout"
)

// RegisterFlags registers the options.
func (o *AuditOptions) RegisterFlags(f *pflag.FlagSet) {
	f.StringArrayVar(&o.Audit, flagAudit, nil,
		"where the records of calls go: file:PATH, stdout, or otlp:https://HOST:4318 (repeatable; default: calls are not recorded)")
	f.BoolVar(&o.AuditReads, "audit-reads", true, "record calls that show values, too; those that are refused are always recorded")
	f.Int64Var(&o.AuditQueueBytes, "audit-queue-bytes", audit.DefaultQueueBytes,
		"how many bytes of records may wait for each --audit; more are lost, and a record of the gap tells how many")
	f.Int64Var(&o.AuditFileBytes, "audit-file-bytes", file.DefaultMaxBytes, "how long a file of --audit may be, before it is renamed to PATH.NUMBER")
	f.IntVar(&o.AuditFiles, "audit-files", file.DefaultKeep, "how many renamed files of each --audit stay; older ones are removed")
	f.DurationVar(&o.AuditSync, "audit-sync", file.DefaultSync,
		"how long records may be in the memory of the system before a file of --audit is synced (0: each write is synced)")
}

// validateOptions returns an *exit.UsageError.
func (o *AuditOptions) validateOptions() error {
	for i, text := range o.Audit {
		path, isFile := strings.CutPrefix(text, auditFilePrefix)
		address, isCollector := strings.CutPrefix(text, auditOTLPPrefix)
		switch {
		case isCollector:
			if _, err := parseCollector(address); err != nil {
				return err
			}
		case text != auditStdout && (!isFile || path == ""):
			return exit.Usagef("--%s %q is no place for records", flagAudit, text).
				WithHint("want file:PATH like file:audit.jsonl, stdout, or otlp:https://HOST:4318")
		}
		if slices.Contains(o.Audit[:i], text) {
			return exit.Usagef("--%s %s is given twice", flagAudit, text).WithHint("leave one of them out")
		}
	}
	for _, limit := range []struct {
		flag               string
		value, least, most int64
	}{
		{"audit-queue-bytes", o.AuditQueueBytes, 64 << 10, 1 << 40},
		{"audit-file-bytes", o.AuditFileBytes, 64 << 10, 1 << 50},
		{"audit-files", int64(o.AuditFiles), 1, 1 << 20},
		{"audit-sync", int64(o.AuditSync), 0, int64(time.Hour)},
	} {
		switch {
		case limit.value >= limit.least && limit.value <= limit.most:
		case limit.flag == "audit-sync":
			return exit.Usagef("--audit-sync is %s", o.AuditSync).WithHint("want 0s to 1h, like 1s")
		default:
			return exit.Usagef("--%s is %d", limit.flag, limit.value).WithHint("want a number from %d to %d", limit.least, limit.most)
		}
	}
	return nil
}

// auditFlushTimeout bounds the time for which a server that ends writes records.
const auditFlushTimeout = 5 * time.Second

// auditTrail has the sinks of a server.
type auditTrail struct {
	*audit.Log

	closers []io.Closer // files and collectors
}

// openAudit opens the sinks; nil = calls are not recorded. The error is an
// *exit.UsageError.
func (o *AuditOptions) openAudit(ctx context.Context, version string, opts audit.Options) (_ *auditTrail, err error) {
	if len(o.Audit) == 0 {
		return nil, nil
	}
	t := &auditTrail{}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.closeFiles())
		}
	}()
	var sinks []audit.NamedSink
	for _, text := range o.Audit {
		sink, err := o.openSink(ctx, text, version, opts.Logger)
		if err != nil {
			return nil, err
		}
		if closer, ok := sink.(io.Closer); ok {
			t.closers = append(t.closers, closer)
		}
		sinks = append(sinks, audit.NamedSink{Name: text, Sink: sink})
	}
	t.Log = audit.NewLog(ctx, sinks, opts)
	return t, nil
}

// openSink opens a sink. The error is an *exit.UsageError.
func (o *AuditOptions) openSink(ctx context.Context, text, version string, log *zap.Logger) (audit.Sink, error) {
	if text == auditStdout {
		return file.NewStream(os.Stdout), nil
	}
	if address, isCollector := strings.CutPrefix(text, auditOTLPPrefix); isCollector {
		return o.openCollector(ctx, address, version, log)
	}
	f, err := file.Open(file.Options{
		Path: strings.TrimPrefix(text, auditFilePrefix), MaxBytes: o.AuditFileBytes, Keep: o.AuditFiles, Sync: o.AuditSync, Logger: log,
	})
	if refused, ok := errors.AsType[*file.Error](err); ok {
		return nil, exit.Usagef("--%s: %s %s", flagAudit, refused.Path, refused.Is).WithHint("want %s", refused.Want)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// newAuditOptions returns the options of the records of a server.
func (o *AuditOptions) newAuditOptions(version string, now func() time.Time, metrics audit.Metrics, log *zap.Logger) audit.Options {
	return audit.Options{
		Server: hostName() + " graphd " + version, QueueBytes: o.AuditQueueBytes, Now: now, Metrics: metrics, Logger: log,
	}
}

func hostName() string {
	host, err := os.Hostname()
	if err != nil {
		return "unknown host"
	}
	return host
}

// closeSinks writes what waits, for a while, and closes the files.
func (t *auditTrail) closeSinks(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditFlushTimeout)
	defer cancel()
	t.Close(ctx)
	return t.closeFiles()
}

func (t *auditTrail) closeFiles() error {
	var all []error
	for _, f := range t.closers {
		all = append(all, f.Close())
	}
	return errors.Join(all...)
}
