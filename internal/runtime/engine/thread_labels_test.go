package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// A thread gets labels with the run that it takes: one that begins, one that waits, and none that is
// refused or known.
func TestAThreadGetsLabelsWithItsRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		var times nodeTimeline
		c.nodes.funcs = map[string]nodeFunc{"work": times.newNode(time.Second)}
		c.compileGraphs(chainSpec("g", channelsLog, "work"))
		c.startEngine(c.store)
		start := func(id string, policy runtime.Concurrency, labels map[string]string) error {
			_, err := c.engine.Start(t.Context(), runtime.StartRequest{
				Thread: "t", CreateThread: true, Graph: "g", Run: id, Request: newInput(id), Concurrency: policy, ThreadMetadata: labels,
			})
			return err
		}
		labels := func() map[string]string { return c.readHead("t").Metadata }
		require.NoError(t, start("first", runtime.RejectBusy, map[string]string{"a": "1", "b": "1"}))
		require.Equal(t, map[string]string{"a": "1", "b": "1"}, labels())
		require.ErrorIs(t, start("refused", runtime.RejectBusy, map[string]string{"a": "refused"}), &runtime.Error{Reason: runtime.ReasonThreadBusy})
		require.NoError(t, start("first", runtime.RejectBusy, map[string]string{"a": "again"}), "it is known")
		require.Equal(t, map[string]string{"a": "1", "b": "1"}, labels())
		require.NoError(t, start("second", runtime.EnqueueBusy, map[string]string{"a": "2"}))
		require.Equal(t, map[string]string{"a": "2", "b": "1"}, labels())
		sleepVirtual(3 * time.Second)
		c.requireState("second", "succeeded")
		require.Equal(t, map[string]string{"a": "2", "b": "1"}, labels(), "the runs keep them")
		require.NoError(t, start("third", runtime.RejectBusy, nil))
		require.Equal(t, map[string]string{"a": "2", "b": "1"}, labels())
		sleepVirtual(3 * time.Second)
	})
}
