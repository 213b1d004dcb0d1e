package engine_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
)

// TestADefectWhileARunBeginsFreesItsThread panics between the decision and the
// change that begins a run, or goes on with one.
func TestADefectWhileARunBeginsFreesItsThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code := map[string]nodeFunc{"ask": crashNodes(&effectLedger{})["ask"]}
		w := newFixtureOn(t, memory.New(memory.Options{}), engine.Options{}, code, withExpressions(chainSpec("g", channelsLog, "ask"), "ask"))
		defect := func(string, uint64) { panic("a defect") }
		begin := runtime.StartRequest{Thread: "t", CreateThread: true, Graph: "g", Request: newInput("x"), OnStart: defect}
		_, err := w.engine.Start(t.Context(), begin)
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonInternal})
		begin.OnStart = nil
		st, err := w.engine.Start(t.Context(), begin)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunInterrupted, w.waitRun(st).State)

		answer := runtime.ResumeRequest{Thread: "t", Single: &runtime.Response{Value: `"yes"`}, OnStart: defect}
		_, err = w.engine.Resume(t.Context(), answer)
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonInternal})
		answer.OnStart = nil
		st, err = w.engine.Resume(t.Context(), answer)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, w.waitRun(st).State)
		w.engine.Close()
	})
}
