package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// TestTheLogNamesTheCause lets a store refuse changes for a reason that clients
// are not told.
func TestTheLogNamesTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		a := func(context.Context, *nodeCall) pregel.Result { return logUpdate(`"a"`) }
		w, store := newCountingFixture(t, engine.Options{Logger: zap.New(core)}, map[string]nodeFunc{"a": a}, chainSpec("g", channelsLog, "a"))
		var full atomic.Bool
		full.Store(true)
		store.beforeApply = func(n int, _ *checkpoint.Change) error {
			if n == 1 && full.Load() {
				return fmt.Errorf("%w: %w", checkpoint.ErrUnavailable, errors.New("the disk is full"))
			}
			return nil
		}
		s, err := w.engine.Start(t.Context(), runtime.StartRequest{
			Thread: "t", CreateThread: true, Graph: "g", Request: checkpoint.RunRequest{Input: `{"log":["x"]}`},
		})
		require.NoError(t, err)
		sleepVirtual(time.Minute)
		full.Store(false)
		require.Equal(t, checkpoint.RunSucceeded, w.waitRun(s).State)
		given := logs.FilterMessageSnippet("run given up").All()
		require.NotEmpty(t, given)
		require.Contains(t, given[0].ContextMap()["cause"], "the disk is full")
		require.NotContains(t, given[0].ContextMap()["error"], "disk")
		w.engine.Close()
	})
}
