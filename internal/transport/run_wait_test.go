package transport_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// waitingCalls are the calls that begin or continue a run and may wait for its stop.
func waitingCalls(c testClient) map[string]func(ctx context.Context, wait time.Duration) (*graphdv1.Run, error) {
	return map[string]func(ctx context.Context, wait time.Duration) (*graphdv1.Run, error){
		"StartRun": func(ctx context.Context, wait time.Duration) (*graphdv1.Run, error) {
			return c.StartRun(ctx, &graphdv1.StartRunRequest{
				Run: &graphdv1.RunSpec{ThreadId: "t1", Graph: "g"}, Wait: durationpb.New(wait),
			})
		},
		"ResumeRun": func(ctx context.Context, wait time.Duration) (*graphdv1.Run, error) {
			return c.ResumeRun(ctx, &graphdv1.ResumeRunRequest{
				Resume: &graphdv1.ResumeSpec{ThreadId: "t1"}, Wait: durationpb.New(wait),
			})
		},
	}
}

// TestWaitForTheStopOfAStartedRun says with which events the wait of a call ends.
func TestWaitForTheStopOfAStartedRun(t *testing.T) {
	for name, c := range map[string]struct {
		wait   time.Duration
		events []checkpoint.Event
		state  graphdv1.RunState
	}{
		"no wait":            {state: graphdv1.RunState_RUN_STATE_RUNNING},
		"the time is over":   {wait: time.Millisecond, state: graphdv1.RunState_RUN_STATE_RUNNING},
		"the run ends":       {time.Hour, []checkpoint.Event{{Kind: checkpoint.EventRunState, State: checkpoint.RunSucceeded}}, graphdv1.RunState_RUN_STATE_SUCCEEDED},
		"the run asks":       {time.Hour, []checkpoint.Event{{Kind: checkpoint.EventRunState, State: checkpoint.RunInterrupted}}, graphdv1.RunState_RUN_STATE_INTERRUPTED},
		"no worker is there": {time.Hour, []checkpoint.Event{{Kind: checkpoint.EventTask, Phase: checkpoint.PhaseUnassigned}}, graphdv1.RunState_RUN_STATE_RUNNING},
		"others stop": {time.Millisecond, []checkpoint.Event{
			{Kind: checkpoint.EventRunState, Run: "run-2", State: checkpoint.RunSucceeded},
			{Kind: checkpoint.EventTask, Run: "run-2", Phase: checkpoint.PhaseUnassigned},
		}, graphdv1.RunState_RUN_STATE_RUNNING},
	} {
		t.Run(name, func(t *testing.T) {
			e := newFakeEngine()
			client := startServer(t, e)
			for method, call := range waitingCalls(client) {
				e.run.State, e.log = checkpoint.RunRunning, nil
				e.appendEvents(c.events...)
				run, err := call(t.Context(), c.wait)
				require.NoError(t, err, method)
				require.Equal(t, c.state, run.GetState(), method)
				require.Equal(t, "run-1", run.GetRunId(), method)
			}
		})
	}
}

// TestStartedRunOfAServerThatDrains: the run has begun, so that the call does not fail.
func TestStartedRunOfAServerThatDrains(t *testing.T) {
	e := newFakeEngine()
	c := startServer(t, e)
	type answer struct {
		run *graphdv1.Run
		err error
	}
	answers := make(chan answer, 2)
	calls := waitingCalls(c)
	for _, call := range calls {
		go func() {
			run, err := call(t.Context(), time.Hour)
			answers <- answer{run, err}
		}()
	}
	require.Eventually(t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.requests) == len(calls)
	}, time.Minute, time.Millisecond)
	require.NoError(t, c.server.Drain(t.Context()))
	for range calls {
		got := <-answers
		require.NoError(t, got.err)
		require.Equal(t, graphdv1.RunState_RUN_STATE_RUNNING, got.run.GetState())
	}
}

func TestWaitThatIsNoTime(t *testing.T) {
	e := newFakeEngine()
	for method, call := range waitingCalls(startServer(t, e)) {
		_, err := call(t.Context(), -time.Second)
		require.Equal(t, codes.InvalidArgument, status.Code(err), method)
		require.ErrorContains(t, err, "wait", method)
		require.Empty(t, e.requests, method)
	}
}

// TestWaitOfACallerThatLeaves: the run goes on.
func TestWaitOfACallerThatLeaves(t *testing.T) {
	e := newFakeEngine()
	for method, call := range waitingCalls(startServer(t, e)) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, err := call(ctx, time.Hour)
		cancel()
		require.Equal(t, codes.DeadlineExceeded, status.Code(err), method)
	}
}
