package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/feed"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// signalTimeout bounds how long a server may take to do what another one has left
// to it. That is a few milliseconds on a quiet machine; polls, scans and leases of
// these tests take an hour, so that nothing but a signal can be the cause.
const signalTimeout = time.Minute

func median(took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[len(took)/2]
}

// TestCancelReachesTheDriverAtOnce cancels runs by a server that does not drive
// them, while their node does nothing but wait.
func TestCancelReachesTheDriverAtOnce(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	entered, cut := make(chan struct{}, 1), make(chan time.Time, 1)
	_, driver, other := newServerPair(t, server.URL(""), map[string]nodeFunc{"a": func(ctx context.Context, _ *nodeCall) pregel.Result {
		entered <- struct{}{}
		<-ctx.Done()
		cut <- time.Now()
		return failedResult("cut off")
	}})
	var took []time.Duration
	for i := range 9 {
		thread := fmt.Sprint("t", i)
		s, err := driver.Start(t.Context(), runtime.StartRequest{Thread: thread, CreateThread: true, Graph: "g", Request: newInput("x")})
		require.NoError(t, err)
		<-entered // a run that is cancelled before never runs its node
		began := time.Now()
		_, err = other.Cancel(t.Context(), runtime.CancelRequest{Thread: thread, Run: s.Run.ID})
		require.NoError(t, err)
		took = append(took, (<-cut).Sub(began))
		r, err := other.WaitRun(contextWithTimeout(t, signalTimeout), thread, s.Run.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunCancelled, r.State)
	}
	t.Logf("from the call to the end of the node: %v", median(took))
}

// TestADrainHandsOffAtOnce drains a server with runs on it: another one goes
// on with each as soon as its superstep has ended.
func TestADrainHandsOffAtOnce(t *testing.T) {
	const threads = 20
	server := redistest.Start(t, "--appendfsync", "no")
	end, entered := make(chan struct{}), make(chan string, 2*threads)
	var ended time.Time
	took := make(chan time.Duration, threads)
	c, driver, other := newServerPair(t, server.URL(""), map[string]nodeFunc{
		"a": func(_ context.Context, c *nodeCall) pregel.Result {
			entered <- c.Thread
			<-end
			return logUpdate(`"a"`)
		},
		"b": func(_ context.Context, _ *nodeCall) pregel.Result {
			took <- time.Since(ended)
			return logUpdate(`"b"`)
		},
	})
	c.compileGraphs(chainSpec("two", channelsLog, "a", "b"))
	for i := range threads {
		_, err := driver.Start(t.Context(), runtime.StartRequest{
			Thread: fmt.Sprint("t", i), CreateThread: true, Graph: "two", Request: newInput("x"),
		})
		require.NoError(t, err)
	}
	for range threads {
		<-entered
	}
	drained := make(chan struct{})
	go func() {
		driver.Drain(contextWithTimeout(t, time.Minute))
		close(drained)
	}()
	<-driver.Draining()
	ended = time.Now()
	close(end)
	for i := range threads {
		r, err := other.WaitRun(contextWithTimeout(t, signalTimeout), fmt.Sprint("t", i), "")
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
		require.JSONEq(t, `{"log":["x","a","b"],"n":2}`, string(r.Output))
	}
	<-drained
	close(took)
	var all []time.Duration
	for d := range took {
		all = append(all, d)
	}
	require.Len(t, all, threads)
	require.Empty(t, entered, "a node whose result is stored ran again")
	t.Logf("from the end of the superstep to the next one elsewhere: %v, the last %v", median(all), slices.Max(all))
}

// TestAnAnswerToADrainingServerIsUsedAtOnce gives an answer to a server that
// takes up nothing any more.
func TestAnAnswerToADrainingServerIsUsedAtOnce(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	c, driver, other := newServerPair(t, server.URL(""), map[string]nodeFunc{
		"a": func(_ context.Context, c *nodeCall) pregel.Result { return logUpdate(c.askNext(`"?"`)) },
		"b": func(ctx context.Context, _ *nodeCall) pregel.Result {
			<-ctx.Done()
			return failedResult("cut off")
		},
	})
	c.compileGraphs(chainSpec("wait", channelsLog, "b"))
	start := func(thread, graph string) {
		_, err := driver.Start(t.Context(), runtime.StartRequest{Thread: thread, CreateThread: true, Graph: graph, Request: newInput("x")})
		require.NoError(t, err)
	}
	start("t", "g")
	_, err := driver.WaitRun(contextWithTimeout(t, signalTimeout), "t", "")
	require.NoError(t, err)
	start("busy", "wait") // keeps the server from ending
	ctx, cut := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		driver.Drain(ctx)
		close(done)
	}()
	<-driver.Draining()
	began := time.Now()
	_, err = driver.Resume(t.Context(), runtime.ResumeRequest{Thread: "t", Single: &runtime.Response{Value: `"yes"`}})
	require.NoError(t, err)
	r, err := other.WaitRun(contextWithTimeout(t, signalTimeout), "t", "")
	require.NoError(t, err)
	require.Equal(t, checkpoint.RunSucceeded, r.State)
	t.Logf("from the answer to the end of the run elsewhere: %v", time.Since(began))
	cut()
	<-done
}

// TestARunBehindAnotherServersRunBeginsAtOnce enqueues a run by a server that
// does not drive the thread.
func TestARunBehindAnotherServersRunBeginsAtOnce(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	next := make(chan time.Time)
	_, driver, other := newServerPair(t, server.URL(""), map[string]nodeFunc{"a": func(_ context.Context, _ *nodeCall) pregel.Result {
		next <- time.Now()
		return logUpdate(`"a"`)
	}})
	start := func(e *engine.Engine) {
		_, err := e.Start(t.Context(), runtime.StartRequest{
			Thread: "t", CreateThread: true, Graph: "g", Concurrency: runtime.EnqueueBusy, Request: newInput("x"),
		})
		require.NoError(t, err)
	}
	start(driver)
	var took []time.Duration
	for range 9 {
		start(other)
		began := <-next
		took = append(took, (<-next).Sub(began))
		start(other)
	}
	<-next
	_, err := other.WaitRun(contextWithTimeout(t, signalTimeout), "t", "")
	require.NoError(t, err)
	t.Logf("from the end of a run to the next one: %v", median(took))
}

// TestQuestionsReachWatchersOnOtherServersAtOnce watches the inbox on a server
// while another one asks and is answered.
func TestQuestionsReachWatchersOnOtherServersAtOnce(t *testing.T) {
	const threads = 15
	server := redistest.Start(t, "--appendfsync", "no")
	_, driver, other := newServerPair(t, server.URL(""), map[string]nodeFunc{
		"a": func(_ context.Context, c *nodeCall) pregel.Result { return logUpdate(c.askNext(`"?"`)) },
	})
	ctx := contextWithTimeout(t, signalTimeout)
	here, there := driver.FollowInterrupts(nil, checkpoint.InterruptQuery{}, 0), other.FollowInterrupts(nil, checkpoint.InterruptQuery{}, 0)
	defer here.Close()
	defer there.Close()
	var took [2][]time.Duration
	began := time.Now()
	until := func(thread string, state checkpoint.InterruptState) {
		for i, f := range []*feed.InterruptFollower{here, there} {
			for found := false; !found; {
				changed, err := f.Next(ctx)
				require.NoError(t, err)
				found = slices.ContainsFunc(changed, func(q *checkpoint.Interrupt) bool { return q.Thread == thread && q.State == state })
			}
			took[i] = append(took[i], time.Since(began))
		}
	}
	for i := range threads {
		thread := fmt.Sprint("t", i)
		began = time.Now()
		_, err := driver.Start(ctx, runtime.StartRequest{Thread: thread, CreateThread: true, Graph: "g", Request: newInput("x")})
		require.NoError(t, err)
		until(thread, checkpoint.InterruptOpen)
		began = time.Now()
		_, err = driver.Resume(ctx, runtime.ResumeRequest{Thread: thread, Single: &runtime.Response{Value: `"yes"`}})
		require.NoError(t, err)
		until(thread, checkpoint.InterruptConsumed)
	}
	t.Logf("from the call to a watcher: here %v, elsewhere %v", median(took[0]), median(took[1]))
}
