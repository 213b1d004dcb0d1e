package telemetry_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/graphd-dev/graphd/internal/telemetry"
)

func TestNewLoggerLevels(t *testing.T) {
	for _, format := range []string{telemetry.FormatJSON, telemetry.FormatConsole} {
		for level, lowest := range map[string]zapcore.Level{
			"debug": zapcore.DebugLevel, "info": zapcore.InfoLevel,
			"warn": zapcore.WarnLevel, "error": zapcore.ErrorLevel,
		} {
			t.Run(format+"/"+level, func(t *testing.T) {
				log, err := telemetry.NewLogger(format, level)
				require.NoError(t, err)
				require.Equal(t, lowest, log.Level())
			})
		}
	}
}

func TestNewLoggerRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, c := range []struct{ format, level, option, value string }{
		{"xml", "info", "log format", "xml"},
		{"", "info", "log format", ""},
		{"json", "verbose", "log level", "verbose"},
		{"json", "INFO", "log level", "INFO"},
	} {
		t.Run(c.option+"="+c.value, func(t *testing.T) {
			log, err := telemetry.NewLogger(c.format, c.level)
			require.Nil(t, log)
			var bad *telemetry.OptionError
			require.ErrorAs(t, err, &bad)
			require.Equal(t, c.option, bad.Option)
			require.Equal(t, c.value, bad.Value)
			for _, allowed := range bad.Allowed {
				require.Contains(t, err.Error(), allowed)
			}
		})
	}
}
