package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
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

// Labels that come with many requests are bounded. A refused request changes nothing.
func TestLabelsAreBounded(t *testing.T) {
	f := newFixture(t, map[string]nodeFunc{"ask": askOnceNode}, chainSpec("g", channelsLog, "ask"))
	many := func(prefix string, n int) map[string]string {
		labels := make(map[string]string, n)
		for i := range n {
			labels[fmt.Sprint(prefix, i)] = "x"
		}
		return labels
	}
	start := func(thread, run string, labels map[string]string) error {
		_, err := f.engine.Start(t.Context(), runtime.StartRequest{
			Thread: thread, CreateThread: true, Graph: "g", Run: run, Request: newInput(run), Open: runtime.DiscardOpen, ThreadMetadata: labels,
		})
		return err
	}
	requireRefused := func(field string, err error) {
		t.Helper()
		var refused *runtime.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, field, refused.Meta["field"])
	}
	require.NoError(t, start("t", "r1", many("a", 64)))
	_, err := f.engine.WaitRun(t.Context(), "t", "r1")
	require.NoError(t, err)
	_, err = f.engine.UpdateThread(t.Context(), runtime.UpdateThreadRequest{Thread: "t", Metadata: many("b", 64)})
	require.NoError(t, err)
	_, err = f.engine.UpdateThread(t.Context(), runtime.UpdateThreadRequest{Thread: "t", Metadata: many("c", 1)})
	requireRefused("thread.metadata", err)
	requireRefused("run.thread_metadata", start("t", "r2", many("c", 1)))
	_, err = f.engine.Run(t.Context(), nil, "t", "r2")
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonRunNotFound})

	resume := func(labels map[string]string) error {
		_, err := f.engine.Resume(t.Context(), runtime.ResumeRequest{
			Thread: "t", Single: &runtime.Response{Value: `"yes"`}, Metadata: labels,
		})
		return err
	}
	requireRefused("resume.metadata", resume(many("d", runtime.MaxLabels+1)))
	waiting, err := f.engine.Thread(t.Context(), "t")
	require.NoError(t, err)
	require.Equal(t, checkpoint.ThreadInterrupted, waiting.State, "the question is open still")
	require.Equal(t, 1, waiting.Open)
	require.NoError(t, resume(many("d", 64)))
}
