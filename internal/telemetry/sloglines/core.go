// Package sloglines hands the log lines of graphd to a logger of the standard library.
package sloglines

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// NewLogger returns a logger whose lines another one takes; nil = nothing is logged.
func NewLogger(to *slog.Logger) *zap.Logger {
	if to == nil {
		return zap.NewNop()
	}
	return zap.New(core{to.Handler()})
}

// core is what a logger of zap writes to.
type core struct{ handler slog.Handler }

// Enabled reports whether lines of a level are wanted.
func (c core) Enabled(l zapcore.Level) bool {
	return c.handler.Enabled(context.Background(), levelOf(l)) //nolint:forbidigo // zap has no context
}

// With returns a core whose lines have further attributes.
func (c core) With(fields []zapcore.Field) zapcore.Core {
	return core{c.handler.WithAttrs(attributesOf(fields))}
}

// Check adds the core to a line that is wanted.
func (c core) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

// Write hands a line over.
func (c core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	r := slog.NewRecord(e.Time, levelOf(e.Level), e.Message, 0)
	if e.LoggerName != "" {
		r.AddAttrs(slog.String("logger", e.LoggerName))
	}
	r.AddAttrs(attributesOf(fields)...)
	return c.handler.Handle(context.Background(), r) //nolint:forbidigo // zap has no context
}

// Sync does nothing: handlers keep no lines back.
func (core) Sync() error { return nil }

// levelOf returns the level of the standard library: that of zap goes in steps of 1.
func levelOf(l zapcore.Level) slog.Level {
	const step = slog.LevelWarn - slog.LevelInfo
	return min(slog.Level(l)*step, slog.LevelError)
}

// attributesOf returns fields as attributes, in their order.
func attributesOf(fields []zapcore.Field) []slog.Attr {
	all := make([]slog.Attr, 0, len(fields))
	for i := range fields {
		e := zapcore.NewMapObjectEncoder()
		fields[i].AddTo(e)
		for _, key := range slices.Sorted(maps.Keys(e.Fields)) {
			all = append(all, slog.Any(key, e.Fields[key]))
		}
	}
	return all
}
