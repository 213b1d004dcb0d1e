package workers_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/tests/harness"
)

// Five answered threads wait for a worker of the old version, on a server that
// drives two runs at a time. Runs of the new version go on all the while.
func TestThreadsOfAnOldVersionLeaveSlotsFree(t *testing.T) {
	s := startServer(t, config{maxLiveRuns: 2})
	asks := map[string]taskFunc{"a": func(_ context.Context, k *runningTask) *graphdv1.TaskResult {
		return completedResult(`{"x":` + k.answerOrUnwind(`"sure?"`) + `}`)
	}}
	old := s.startWorker("old", 4, listSpecs(newChainGraph("g", "a")), asks)
	var waiting []*graphdv1.Run
	for range 5 {
		waiting = append(waiting, s.startAdmitted("g", `{"x":1}`))
		require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, s.waitStopped(waiting[len(waiting)-1]).GetState())
	}
	old.cancel()
	s.waitWorkerGone("old") // else it may be offered a task, which is kept for it until its lease ends
	s.startWorker("new", 4, listSpecs(newChainGraph("g", "n", "m")), map[string]taskFunc{"n": returnsUpdate(`{"x":2}`), "m": returnsUpdate(`{"x":3}`)})

	ended := make(chan *graphdv1.Run, len(waiting))
	for i, run := range waiting {
		next, err := s.ResumeRun(t.Context(), &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{
			ThreadId: run.GetThreadId(),
			Single:   &graphdv1.InterruptResponse{Outcome: &graphdv1.InterruptResponse_Value{Value: harness.NewPayload(`"yes"`)}},
		}})
		require.NoError(t, err)
		waiting[i] = next
		go func() { ended <- s.waitStopped(next) }()
	}
	for range 20 {
		require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, s.waitStopped(s.startAdmitted("g", `{"x":1}`)).GetState())
	}
	require.Empty(t, ended, "who waits for an old version is told nothing yet")

	s.startWorker("old-again", 4, listSpecs(newChainGraph("g", "a")), asks)
	for range waiting {
		run := receiveOrFail(t, ended, "a run of the old version")
		require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, run.GetState())
		require.JSONEq(t, `{"x":"yes","log":[]}`, run.GetOutput().GetJson())
	}
}

// startAdmitted starts a run, again while the server is full.
func (s *server) startAdmitted(name, input string) *graphdv1.Run {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		run, err := s.StartRun(ctx, &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
			CreateThread: true, Graph: name, Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload(input)},
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
