package transport

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Callers hear that the store is away; why is for the operator, in the log.
func TestLogSaysWhyTheStoreIsAway(t *testing.T) {
	core, logged := observer.New(zapcore.WarnLevel)
	cause := fmt.Errorf("%w: redis: %w", checkpoint.ErrUnavailable, errors.New("OOM command not allowed"))
	err := runtime.Errorf(runtime.ReasonStoreUnavailable, "the store did not answer").Because(cause)
	told := newMapper(zap.New(core), nil).status(t.Context(), err, nil)
	require.NotContains(t, told.Error(), "OOM")
	require.Equal(t, 1, logged.Len())
	require.Contains(t, logged.All()[0].ContextMap()["cause"], "OOM command not allowed")
}
