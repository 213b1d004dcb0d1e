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
)

// TestAStreamNeedsNoGoroutineBesideItsCall opens many streams that fit into what
// gRPC takes at once, and counts.
func TestAStreamNeedsNoGoroutineBesideItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const streams = 50
		th := newThread()
		before := runtime.NumGoroutine()
		for range streams {
			open(t, th, func(gs *graphService, stream eventStream) error {
				gs.room = atHand
				return watch(&graphdv1.WatchRequest{Follow: true})(gs, stream)
			})
		}
		synctest.Wait()
		th.happen(update("a"), update("b"))
		synctest.Wait()
		require.LessOrEqual(t, runtime.NumGoroutine()-before, streams+streams/5, "some belong to others")
	})
}

// TestALineThatIsNotWrittenCostsNothing ends calls that go well where only errors
// are logged.
func TestALineThatIsNotWrittenCostsNothing(t *testing.T) {
	core, logs := observer.New(zapcore.ErrorLevel)
	d := &desk{log: zap.New(core)}
	m := newCounts().prepare(kindUnary, "graphd.v1.GraphService", "GetRun")
	ctx, _ := newCall(t.Context(), nil)
	began := time.Now()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		m.begin()
		m.receive()
		m.send()
		d.finish(ctx, m, "/graphd.v1.GraphService/GetRun", kindUnary, began, nil, ending{})
	}))
	require.Zero(t, logs.Len())
	d.finish(ctx, m, "/graphd.v1.GraphService/GetRun", kindUnary, began, errStalled, ending{level: zapcore.ErrorLevel})
	require.Equal(t, 1, logs.Len())
}
