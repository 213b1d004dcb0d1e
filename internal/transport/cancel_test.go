package transport_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// beginCancel asks a run to stop, and returns what brings the answer.
func beginCancel(t *testing.T, c graphdv1.GraphServiceClient, req *graphdv1.CancelRunRequest) <-chan *graphdv1.Run {
	t.Helper()
	ended := make(chan *graphdv1.Run, 1)
	go func() {
		run, err := c.CancelRun(t.Context(), req)
		if err == nil {
			ended <- run
		}
		close(ended)
	}()
	return ended
}

func TestCancelRun(t *testing.T) {
	e := newFakeEngine()
	c := startServer(t, e)
	req := &graphdv1.CancelRunRequest{
		ThreadId: "t1", RunId: "run-1", Action: graphdv1.CancelRunRequest_ACTION_ROLLBACK,
		Grace: durationpb.New(time.Second), Reason: "enough",
	}
	_, err := c.CancelRun(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, runtime.CancelRequest{
		Thread: "t1", Run: "run-1", Rollback: true, Grace: time.Second, Reason: "enough",
	}, e.lastRequest(t))

	// A run that waits for people has stopped, but it is not final.
	e.appendEvents(checkpoint.Event{Kind: checkpoint.EventRunState, State: checkpoint.RunInterrupted})
	req.Wait = true
	ended := beginCancel(t, c, req)
	e.appendEvents(checkpoint.Event{Kind: checkpoint.EventRunState, State: checkpoint.RunCancelled})
	require.Equal(t, graphdv1.RunState_RUN_STATE_CANCELLED, (<-ended).GetState())
}

func TestDrainRun(t *testing.T) {
	e := newFakeEngine()
	c := startServer(t, e)
	req := &graphdv1.CancelRunRequest{ThreadId: "t1", RunId: "run-1", Action: graphdv1.CancelRunRequest_ACTION_DRAIN}
	_, err := c.CancelRun(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, runtime.CancelRequest{Thread: "t1", Run: "run-1", Grace: checkpoint.DrainGrace}, e.lastRequest(t))

	_, err = c.CancelRun(t.Context(), &graphdv1.CancelRunRequest{ThreadId: "t1", Grace: &durationpb.Duration{Seconds: 315_576_000_000}})
	require.NoError(t, err)
	require.Equal(t, runtime.CancelRequest{Thread: "t1", Grace: checkpoint.DrainGrace - 1}, e.lastRequest(t))

	req.Wait = true
	ended := beginCancel(t, c, req)
	e.appendEvents(checkpoint.Event{Kind: checkpoint.EventRunState, State: checkpoint.RunInterrupted})
	require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, (<-ended).GetState()) // its stop is what a drain waits for

	req.Grace = durationpb.New(time.Second)
	_, err = c.CancelRun(t.Context(), req)
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.ErrorContains(t, err, "ACTION_DRAIN")
}
