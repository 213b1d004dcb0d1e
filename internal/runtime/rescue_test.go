package runtime_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// TestADefectWhileARunBeginsFreesItsThread panics between the decision and the
// change that begins a run, or goes on with one.
func TestADefectWhileARunBeginsFreesItsThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code := map[string]node{"ask": script(&ledger{})["ask"]}
		w := newWorldOn(t, memory.New(memory.Options{}), runtime.Options{}, code, computed(chain("g", channelsLog, "ask"), "ask"))
		defect := func(string, uint64) { panic("a defect") }
		begin := runtime.StartRequest{Thread: "t", CreateThread: true, Graph: "g", Request: input("x"), Watch: defect}
		_, err := w.engine.Start(t.Context(), begin)
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonInternal})
		begin.Watch = nil
		st, err := w.engine.Start(t.Context(), begin)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunInterrupted, w.wait(st).State)

		answer := runtime.ResumeRequest{Thread: "t", Single: &runtime.Response{Value: `"yes"`}, Watch: defect}
		_, err = w.engine.Resume(t.Context(), answer)
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonInternal})
		answer.Watch = nil
		st, err = w.engine.Resume(t.Context(), answer)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, w.wait(st).State)
		w.engine.Close()
	})
}
