package sloglines_test

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/telemetry/sloglines"
)

func TestLinesKeepTheirLevelsAndFields(t *testing.T) {
	var written bytes.Buffer
	withoutTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	to := slog.New(slog.NewTextHandler(&written, &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: withoutTime}))
	log := sloglines.NewLogger(to).Named("engine").With(zap.String("store", "memory"))
	log.Debug("not wanted")
	log.Info("serving", zap.Int("runs", 3), zap.Duration("lease", time.Second))
	log.Warn("slow")
	log.Error("broken", zap.Error(errors.New("no space")), zap.Strings("ids", []string{"a", "b"}))
	require.Equal(t, `level=INFO msg=serving store=memory logger=engine runs=3 lease=1s
level=WARN msg=slow store=memory logger=engine
level=ERROR msg=broken store=memory logger=engine error="no space" ids="[a b]"
`, written.String())
}

func TestNoLoggerLogsNothing(t *testing.T) {
	require.False(t, sloglines.NewLogger(nil).Core().Enabled(zap.ErrorLevel))
}
