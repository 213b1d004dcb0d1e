// Package telemetry makes structured logs and metrics.
//
// It has no global state. The process makes a logger and a Metrics and hands them
// on.
package telemetry

import (
	"fmt"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/buffer"
	"go.uber.org/zap/zapcore"

	"github.com/graphd-dev/graphd/internal/visible"
)

// Formats of a log line.
const (
	FormatJSON    = "json"    // one object per line, for machines
	FormatConsole = "console" // tab separated, for people
)

// Field names that every package uses for the same thing, so that one search finds
// a thread in the lines of all of them.
const (
	FieldThread  = "thread_id"
	FieldRun     = "run_id"
	FieldNode    = "node"
	FieldRequest = "request_id"
)

// OptionError is the error of an option with an unknown value.
type OptionError struct {
	Option  string
	Value   string
	Allowed []string
}

// Error names the option, the value and the possible values.
func (e *OptionError) Error() string {
	return fmt.Sprintf("%s: %q is not one of %s", e.Option, e.Value, strings.Join(e.Allowed, ", "))
}

// NewLogger makes a logger that writes to standard error. format is "json" or
// "console", level is "debug", "info", "warn" or "error". The error for any other
// value is an *OptionError.
func NewLogger(format, level string) (*zap.Logger, error) {
	lvl, err := parseLevel(level)
	if err != nil {
		return nil, err
	}
	enc, err := newEncoder(format)
	if err != nil {
		return nil, err
	}
	sink, _, err := zap.Open("stderr")
	if err != nil {
		return nil, fmt.Errorf("open standard error for logs: %w", err)
	}
	return newLogger(enc, sink, lvl), nil
}

func newLogger(enc zapcore.Encoder, sink zapcore.WriteSyncer, lvl zapcore.Level) *zap.Logger {
	return zap.New(
		zapcore.NewCore(enc, sink, lvl),
		zap.ErrorOutput(sink),
		// A stack per error line hides the line; node panics carry their own.
		zap.AddStacktrace(zapcore.PanicLevel),
	)
}

func parseLevel(level string) (zapcore.Level, error) {
	switch level {
	case "debug":
		return zapcore.DebugLevel, nil
	case "info":
		return zapcore.InfoLevel, nil
	case "warn":
		return zapcore.WarnLevel, nil
	case "error":
		return zapcore.ErrorLevel, nil
	}
	return 0, &OptionError{
		Option: "log level", Value: level,
		Allowed: []string{"debug", "info", "warn", "error"},
	}
}

func newEncoder(format string) (zapcore.Encoder, error) {
	cfg := zap.NewProductionEncoderConfig()
	cfg.TimeKey = "time"
	cfg.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	cfg.EncodeDuration = zapcore.StringDurationEncoder
	switch format {
	case FormatJSON:
		return &visibleEncoder{Encoder: zapcore.NewJSONEncoder(cfg), escape: visible.JSON}, nil
	case FormatConsole:
		cfg.EncodeLevel = zapcore.CapitalLevelEncoder
		return &visibleEncoder{Encoder: zapcore.NewConsoleEncoder(cfg), escape: visible.Output}, nil
	}
	return nil, &OptionError{
		Option: "log format", Value: format,
		Allowed: []string{FormatJSON, FormatConsole},
	}
}

// visibleEncoder escapes control characters in the texts of clients and graphs, so
// that they can't act on a terminal or begin another line.
type visibleEncoder struct {
	zapcore.Encoder

	escape func(line string) string
}

// Clone copies the encoder for a logger with fields of its own.
func (e *visibleEncoder) Clone() zapcore.Encoder {
	return &visibleEncoder{Encoder: e.Encoder.Clone(), escape: e.escape}
}

// EncodeEntry writes a line.
func (e *visibleEncoder) EncodeEntry(entry zapcore.Entry, fields []zapcore.Field) (*buffer.Buffer, error) {
	entry.Message, entry.LoggerName = visible.Line(entry.Message), visible.Line(entry.LoggerName)
	line, err := e.Encoder.EncodeEntry(entry, fields)
	if err != nil {
		return line, err
	}
	text := line.String()
	if shown := e.escape(text); shown != text {
		line.Reset()
		line.AppendString(shown)
	}
	return line, nil
}
