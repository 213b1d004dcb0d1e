package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// startLater starts a run that begins later.
func (c *cluster) startLater(id string, delay time.Duration) checkpoint.Run {
	c.t.Helper()
	req := newInput(id)
	req.Delay = delay
	s, err := c.engine.Start(context.Background(), runtime.StartRequest{
		Thread: "t", CreateThread: true, Graph: "g", Run: id, RequestID: "start " + id, Request: req,
	})
	require.NoError(c.t, err)
	require.Equal(c.t, checkpoint.RunQueued, s.Run.State)
	require.Equal(c.t, s.Run.Created.Add(delay), s.Run.Begins)
	return s.Run
}

func (c *cluster) readHead(thread string) *checkpoint.Head {
	c.t.Helper()
	h, err := c.store.Head(context.Background(), thread)
	require.NoError(c.t, err)
	return &h
}

func (c *cluster) requireState(id string, want checkpoint.RunState) {
	c.t.Helper()
	require.Equal(c.t, want, c.readRun("t", id).State)
}

// A run that begins later makes its thread, survives its server, and begins at its time.
func TestARunBeginsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		var times nodeTimeline
		c.nodes.funcs = map[string]nodeFunc{"work": times.newNode(time.Second)}
		c.compileGraphs(chainSpec("g", channelsLog, "work"))
		c.startEngine(c.faulty)
		c.startLater("late", time.Hour)
		c.startLater("later", 2*time.Hour)
		c.startLater("soon", time.Minute)
		c.faulty.killProcess()
		c.startEngine(c.store)
		sleepVirtual(30 * time.Second)
		c.requireState("soon", checkpoint.RunQueued)
		sleepVirtual(time.Minute)
		c.requireState("soon", checkpoint.RunSucceeded)
		sleepVirtual(59 * time.Minute)
		c.requireState("late", checkpoint.RunSucceeded)
		c.requireState("later", checkpoint.RunQueued)
		sleepVirtual(time.Hour)
		c.requireState("later", checkpoint.RunSucceeded)
		require.Equal(t, `{"log":["soon","work","late","work","later","work"],"n":3}`, c.summarizeThread("t").Values) //nolint:testifylint // the text counts
		require.True(t, c.readHead("t").Due.IsZero())
	})
}

// Other runs go before a run whose time has not come, and it waits for those that are active then.
func TestOtherRunsGoBeforeALaterRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		var times nodeTimeline
		c.nodes.funcs = map[string]nodeFunc{"work": times.newNode(time.Minute)}
		c.compileGraphs(chainSpec("g", channelsLog, "work"))
		c.startEngine(c.store)
		c.startLater("later", 30*time.Second)
		first := c.startRun("first", runtime.StartRequest{Thread: "t", Graph: "g", Request: newInput("first")})
		require.Equal(t, checkpoint.RunRunning, first.State)
		c.startLater("last", 10*time.Hour)
		sleepVirtual(40 * time.Second)
		c.requireState("later", checkpoint.RunQueued)
		second := c.startRun("second", runtime.StartRequest{Thread: "t", Graph: "g", Concurrency: runtime.EnqueueBusy, Request: newInput("second")})
		for _, id := range []string{first.ID, second.ID, "later"} {
			r, err := c.engine.WaitRun(t.Context(), "t", id)
			require.NoError(t, err)
			require.Equal(t, checkpoint.RunSucceeded, r.State)
		}
		sleepVirtual(10 * time.Hour)
		c.requireState("last", checkpoint.RunSucceeded)
		require.Len(t, times.spans, 4)
	})
}

// A run that begins later can be cancelled, counts as one that waits, and is the same when its
// request comes again.
func TestALaterRunIsAQueuedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		var times nodeTimeline
		c.nodes.funcs = map[string]nodeFunc{"work": times.newNode(time.Second)}
		c.compileGraphs(chainSpec("g", channelsLog, "work"))
		c.startEngine(c.store)
		run := c.startLater("later", time.Hour)
		sleepVirtual(time.Minute)
		req := newInput("later")
		req.Delay = time.Hour
		again, err := c.engine.Start(t.Context(), runtime.StartRequest{
			Thread: "t", CreateThread: true, Graph: "g", Run: "later", RequestID: "start later", Request: req,
		})
		require.NoError(t, err)
		require.True(t, again.IsAttached)
		require.Equal(t, run.Begins, again.Run.Begins)
		require.Equal(t, 1, c.readHead("t").CountWaiting())
		_, err = c.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: "t"})
		require.Equal(t, runtime.ReasonRunNotFound, errorReason(err))
		require.ErrorContains(t, err, `no run of thread "t" has begun: name one of the 1 that are queued`)
		r, err := c.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: "t", Run: "later"})
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunCancelled, r.State)
		require.Zero(t, c.readHead("t").CountWaiting())
		_, err = c.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: "t"})
		require.ErrorContains(t, err, `thread "t" has no run that has begun`)
		sleepVirtual(2 * time.Hour)
		require.Empty(t, times.spans)
	})
}

// A run whose time comes while its thread waits for a person begins when that has answered.
func TestALaterRunWaitsForAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		c.nodes.funcs = crashNodes(c.nodes.ledger)
		c.compileGraphs(chainSpec("g", channelsLog, "ask"))
		c.startEngine(c.store)
		first := c.runToInterrupt("t")
		c.startLater("later", time.Minute)
		sleepVirtual(time.Hour)
		c.requireState("later", checkpoint.RunQueued)
		require.NoError(t, c.answerInterrupt("t", first.ID, `"yes"`, runtime.CoverPartial))
		sleepVirtual(time.Minute)
		require.NotEqual(t, checkpoint.RunQueued, c.readRun("t", "later").State)
	})
}

// A run does not outlive its thread, so it must begin before that is deleted.
func TestALaterRunNeedsAThreadThatLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		var times nodeTimeline
		c.nodes.funcs = map[string]nodeFunc{"work": times.newNode(time.Second)}
		c.compileGraphs(chainSpec("g", channelsLog, "work"))
		c.startEngine(c.store)
		_, err := c.engine.CreateThread(t.Context(), runtime.CreateThreadRequest{Thread: "t", Graph: "g", Expiration: runtime.Expiration{TTL: time.Hour}})
		require.NoError(t, err)
		req := newInput("late")
		req.Delay = time.Hour
		_, err = c.engine.Start(t.Context(), runtime.StartRequest{Thread: "t", Graph: "g", Request: req})
		require.Equal(t, runtime.ReasonInvalidField, errorReason(err))
		require.Zero(t, c.readHead("t").CountWaiting())
		c.startLater("in time", 59*time.Minute)
		sleepVirtual(time.Hour)
		c.requireState("in time", checkpoint.RunSucceeded)
	})
}
