package workers_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// Five answered threads wait for a worker of the old version, on a server that
// drives two runs at a time. Runs of the new version go on all the while.
func TestThreadsOfAnOldVersionKeepNoOtherOut(t *testing.T) {
	s := start(t, config{live: 2})
	asks := map[string]code{"a": func(_ context.Context, k *task) *graphdv1.TaskResult {
		return completed(`{"x":` + k.ask(`"sure?"`) + `}`)
	}}
	old := s.work("old", 4, specs(chain("g", "a")), asks)
	var waiting []*graphdv1.Run
	for range 5 {
		waiting = append(waiting, s.admitted("g", `{"x":1}`))
		require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, s.wait(waiting[len(waiting)-1]).GetState())
	}
	old.cancel()
	s.work("new", 4, specs(chain("g", "n", "m")), map[string]code{"n": does(`{"x":2}`), "m": does(`{"x":3}`)})

	ended := make(chan *graphdv1.Run, len(waiting))
	for i, run := range waiting {
		next, err := s.ResumeRun(t.Context(), &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{
			ThreadId: run.GetThreadId(),
			Single:   &graphdv1.InterruptResponse{Outcome: &graphdv1.InterruptResponse_Value{Value: text(`"yes"`)}},
		}})
		require.NoError(t, err)
		waiting[i] = next
		go func() { ended <- s.wait(next) }()
	}
	for range 20 {
		require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, s.wait(s.admitted("g", `{"x":1}`)).GetState())
	}
	require.Empty(t, ended, "who waits for an old version is told nothing yet")

	s.work("old-again", 4, specs(chain("g", "a")), asks)
	for range waiting {
		run := await(t, ended, "a run of the old version")
		require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, run.GetState())
		require.JSONEq(t, `{"x":"yes","log":[]}`, run.GetOutput().GetJson())
	}
}

// admitted starts a run, again while the server is full.
func (s *server) admitted(name, input string) *graphdv1.Run {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		run, err := s.StartRun(ctx, &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
			CreateThread: true, Graph: name, Start: &graphdv1.RunSpec_Input{Input: text(input)},
		}})
		if err == nil {
			return run
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			require.NoError(s.t, err)
		}
	}
}
