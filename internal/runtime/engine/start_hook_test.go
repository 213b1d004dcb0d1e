package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/feed"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// A caller that starts or resumes a run, and follows it from there, sees also what
// its first node emits at once and is not stored.
func TestNothingIsMissedFromTheBeginning(t *testing.T) {
	w := newFixture(t, map[string]nodeFunc{
		"a": func(_ context.Context, c *nodeCall) pregel.Result {
			c.Effects.EmitEvent(runtime.Emission{Kind: checkpoint.EventCustom, Value: `"at once"`})
			return pregel.Result{Update: payload.JSON(`{"log":[` + c.askNext(`"?"`) + `]}`)}
		},
	}, chainSpec("g", channelsLog, "a"))
	var f *feed.Follower
	watch := func(thread string, after uint64) {
		f = w.engine.Follow(runtime.FollowRequest{Thread: thread, After: after})
	}
	said := func(want uint64) (count int) {
		defer f.Close()
		first := uint64(0)
		for {
			events, err := f.ReadAvailable(t.Context())
			require.NoError(t, err)
			if len(events) == 0 {
				require.Equal(t, want+1, first, "it begins after the event that was named")
				return count
			}
			for _, e := range events {
				if first == 0 {
					first = e.Seq
				}
				if e.Kind == checkpoint.EventCustom {
					count++
				}
			}
		}
	}

	started, err := w.engine.Start(t.Context(), runtime.StartRequest{
		Thread: "t", CreateThread: true, Graph: "g", Request: checkpoint.RunRequest{Input: `{"log":[]}`}, OnStart: watch,
	})
	require.NoError(t, err)
	require.Equal(t, checkpoint.RunInterrupted, w.waitRun(started).State)
	require.Equal(t, 1, said(started.After))

	started, err = w.engine.Resume(t.Context(), runtime.ResumeRequest{
		Thread: "t", Single: &runtime.Response{Value: `"yes"`}, OnStart: watch,
	})
	require.NoError(t, err)
	require.Equal(t, checkpoint.RunSucceeded, w.waitRun(started).State)
	require.Equal(t, 1, said(started.After))
}

// A call that was allowed for one graph does not reach a thread of another graph, which
// took the place of the first one meanwhile.
func TestCallsForOneGraphReachNoOther(t *testing.T) {
	w := newFixture(t, map[string]nodeFunc{
		"a": func(_ context.Context, c *nodeCall) pregel.Result {
			return pregel.Result{Update: payload.JSON(`{"log":[` + c.askNext(`"?"`) + `]}`)}
		},
	}, chainSpec("g", channelsLog, "a"), chainSpec("other", channelsLog, "a"))
	only := func(name string) *string { return &name }
	start := runtime.StartRequest{
		Thread: "t", CreateThread: true, Graph: "g", Run: "r", RequestID: "request", Digest: "digest",
		Request: checkpoint.RunRequest{Input: `{"log":[]}`}, OnlyGraph: only("g"),
	}
	hidden := runtime.ThreadNotFoundError("t")
	started, err := w.engine.Start(t.Context(), start)
	require.NoError(t, err)
	require.Equal(t, checkpoint.RunInterrupted, w.waitRun(started).State)
	_, err = w.engine.Start(t.Context(), start)
	require.NoError(t, err, "a repeated call finds its run")
	start.Graph, start.OnlyGraph = "other", only("other")
	_, err = w.engine.Start(t.Context(), start)
	require.Equal(t, hidden, err)

	resume := runtime.ResumeRequest{Thread: "t", Single: &runtime.Response{Value: `"yes"`}, OnlyGraph: only("other")}
	_, err = w.engine.Resume(t.Context(), resume)
	require.Equal(t, hidden, err)
	resume.OnlyGraph = only("g")
	started, err = w.engine.Resume(t.Context(), resume)
	require.NoError(t, err)
	require.Equal(t, checkpoint.RunSucceeded, w.waitRun(started).State)
}
