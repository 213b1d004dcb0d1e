package transport

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/transport/reason"
)

// TestAStreamNeedsNoGoroutineBesideItsCall opens many streams that fit into what
// gRPC takes at once, and counts.
func TestAStreamNeedsNoGoroutineBesideItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const streams = 50
		th := newFakeThread()
		before := runtime.NumGoroutine()
		for range streams {
			openStream(t, th, func(gs *graphService, stream eventStream) error {
				gs.directBytes = maxDirectBytes
				return newWatchCall(&graphdv1.WatchRequest{Follow: true})(gs, stream)
			})
		}
		synctest.Wait()
		th.appendEvents(newUpdateEvent("a"), newUpdateEvent("b"))
		synctest.Wait()
		require.LessOrEqual(t, runtime.NumGoroutine()-before, streams+streams/5, "some belong to others")
	})
}

// TestALogLineThatIsNotWrittenCostsNothing ends calls that go well where only errors
// are logged.
func TestALogLineThatIsNotWrittenCostsNothing(t *testing.T) {
	core, logs := observer.New(zapcore.ErrorLevel)
	d := &interceptors{log: zap.New(core)}
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
	d.finishCall(ctx, m, "/graphd.v1.GraphService/GetRun", kindUnary, began, errStalled, reason.CallEnd{Level: zapcore.ErrorLevel})
	require.Equal(t, 1, logs.Len())
}
