package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func TestJSONLineCarriesIDsAndReadableTimes(t *testing.T) {
	enc, err := newEncoder(FormatJSON)
	require.NoError(t, err)
	var out bytes.Buffer
	log := newLogger(enc, zapcore.AddSync(&out), zapcore.InfoLevel)

	log.Debug("not shown")
	log.Error("node failed", zap.String(FieldThread, "t1"), zap.Duration("took", 1500*time.Millisecond))

	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line), "exactly one line: %s", out.String())
	require.Equal(t, "node failed", line["msg"])
	require.Equal(t, "t1", line["thread_id"])
	require.Equal(t, "1.5s", line["took"])
	require.NotContains(t, line, "stacktrace")
	stamp, ok := line["time"].(string)
	require.True(t, ok)
	_, err = time.Parse(time.RFC3339Nano, stamp)
	require.NoError(t, err)
}

// Texts of clients and graphs are made visible in a log, and begin no line of their
// own.
func TestLogLinesAreVisible(t *testing.T) {
	const forger = "a\n2026-01-01\tERROR\tforged\r\x1b[2K\u009b\u202e\U000e0041\u200b\x7f\u2028\xff"
	for _, format := range []string{FormatJSON, FormatConsole} {
		enc, err := newEncoder(format)
		require.NoError(t, err)
		var out bytes.Buffer
		log := newLogger(enc, zapcore.AddSync(&out), zapcore.InfoLevel).Named(forger).With(zap.String("held", forger))
		log.Info(forger, zap.String(forger, forger), zap.Error(errors.New(forger)), zap.Strings("list", []string{forger}),
			zap.Any("any", map[string]any{forger: forger}))
		require.Equal(t, 1, strings.Count(out.String(), "\n"), out.String())
		for _, r := range strings.NewReplacer("\n", "", "\t", "").Replace(out.String()) {
			require.False(t, unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl), "%U in %q", r, out.String())
		}
		if format == FormatJSON {
			var line map[string]any
			require.NoError(t, json.Unmarshal(out.Bytes(), &line))
			require.Equal(t, strings.ToValidUTF8(forger, "\ufffd"), line["held"])
		}
	}
}
