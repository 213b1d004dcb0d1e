package telemetry

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

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
