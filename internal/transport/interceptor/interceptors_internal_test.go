package interceptor

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc/codes"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/reason"
)

// logEndedCall ends a call with an error, and returns the log lines and the error
// for the client.
func logEndedCall(t *testing.T, err error) (lines []observer.LoggedEntry, told error) {
	t.Helper()
	core, logged := observer.New(zapcore.InfoLevel)
	d := &Interceptors{log: zap.New(core), errorMapper: reason.NewMapper(nil)}
	end, told := d.errorMapper.ToStatus(err, nil)
	m := newCallMetrics().newMethodMetrics(kindUnary, "graphd.v1.GraphService", "GetRun")
	d.finishCall(t.Context(), m, "/graphd.v1.GraphService/GetRun", kindUnary, time.Now(), told, end)
	return logged.All(), told
}

// Callers learn that the store is unavailable; the cause is in the log, for the
// operator.
func TestLogSaysWhyTheStoreIsAway(t *testing.T) {
	cause := fmt.Errorf("%w: redis: %w", checkpoint.ErrUnavailable, errors.New("OOM command not allowed"))
	lines, told := logEndedCall(t, runtime.Errorf(runtime.ReasonStoreUnavailable, "the store did not answer").WithCause(cause))
	require.NotContains(t, told.Error(), "OOM")
	require.Len(t, lines, 1)
	require.Contains(t, lines[0].ContextMap()["cause"], "OOM command not allowed")
	require.Equal(t, "STORE_UNAVAILABLE", lines[0].ContextMap()["reason"])
}

// TestACallThatIsRefusedHasOneLine ends calls for every reason. Each has one line
// in the log, which asks an operator to act only where that helps.
func TestACallThatIsRefusedHasOneLine(t *testing.T) {
	warned := map[string]bool{
		"STORE_UNAVAILABLE": true, "STORE_BUSY": true, "STORE_FULL": true, "STORE_REPLACED": true, "OUTCOME_UNKNOWN": true,
		"CHANGE_TOO_LARGE": true, "TOO_MANY_RUNS": true, "TOO_MANY_SUBSCRIBERS": true, "TOO_MANY_REQUESTS": true,
		"TOO_MANY_GRAPHS": true, "NO_WORKER_AVAILABLE": true, "WORKER_SILENT": true, "PROTOCOL_MISMATCH": true,
		"KEYS_UNAVAILABLE": true,
	}
	broken := map[string]bool{"INTERNAL": true, "CHECKPOINT_CORRUPT": true}
	for _, row := range reason.Table() {
		lines, _ := logEndedCall(t, runtime.Errorf(row.Reason, "no"))
		require.Len(t, lines, 1, row.Reason)
		want := zapcore.InfoLevel
		switch {
		case broken[row.Reason]:
			want = zapcore.ErrorLevel
		case warned[row.Reason]:
			want = zapcore.WarnLevel
		}
		require.Equal(t, want, lines[0].Level, row.Reason)
		require.Equal(t, row.Reason, lines[0].ContextMap()["reason"])
	}
	for _, err := range []error{context.Canceled, context.DeadlineExceeded, checkpoint.ErrThreadNotFound} {
		lines, _ := logEndedCall(t, err)
		require.Len(t, lines, 1)
		require.Equal(t, zapcore.InfoLevel, lines[0].Level, err)
	}
	lines, told := logEndedCall(t, errors.New("a cause"))
	require.Equal(t, codes.Internal.String(), lines[0].ContextMap()["grpc.code"])
	require.Len(t, lines, 1)
	require.Contains(t, told.Error(), lines[0].ContextMap()["error_id"])
}

// TestALogLineThatIsNotWrittenCostsNothing ends successful calls with a log for
// errors only.
func TestALogLineThatIsNotWrittenCostsNothing(t *testing.T) {
	core, logs := observer.New(zapcore.ErrorLevel)
	d := &Interceptors{log: zap.New(core)}
	m := newCallMetrics().newMethodMetrics(kindUnary, "graphd.v1.GraphService", "GetRun")
	ctx, _ := newCallContext(t.Context(), nil)
	began := time.Now()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		m.countStarted()
		m.countReceived()
		m.countSent()
		d.finishCall(ctx, m, "/graphd.v1.GraphService/GetRun", kindUnary, began, nil, reason.CallEnd{})
	}))
	require.Zero(t, logs.Len())
	d.finishCall(ctx, m, "/graphd.v1.GraphService/GetRun", kindUnary, began, errors.New("stalled"), reason.CallEnd{Level: zapcore.ErrorLevel})
	require.Equal(t, 1, logs.Len())
}
