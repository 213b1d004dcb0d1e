package workers_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

func newBatch(requests ...*graphdv1.ConnectRequest) *graphdv1.ConnectRequest {
	return &graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Batch{Batch: &graphdv1.ConnectRequestBatch{Requests: requests}}}
}

// Many tasks begin and end by two messages. Whether the server answers in batches depends
// on what waits, but a worker that does not know them gets none.
func TestManyTasksInOneMessage(t *testing.T) {
	const tasks = 20
	for name, features := range map[string][]string{"a worker that knows batches": {"drift", "batch"}, "one that does not": {"drift"}} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, config{})
			hello := newHello("w1", tasks)
			hello.Manifest.Features = features
			w := s.connectWorker(hello)
			runs := make(map[string]*graphdv1.Run)
			for range tasks {
				run := s.startRun("g", `{"x":0}`)
				runs[run.GetRunId()] = run
			}
			var begun, ended []*graphdv1.ConnectRequest
			for i := range tasks {
				a := w.nextTask()
				token := a.GetLease().GetToken()
				begun = append(begun, &graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Update{Update: &graphdv1.TaskUpdate{
					LeaseToken: token, Kind: &graphdv1.TaskUpdate_Alive{},
				}}})
				ended = append(ended, &graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Complete{Complete: &graphdv1.CompleteTaskRequest{
					LeaseToken: token, Result: completedResult(fmt.Sprintf(`{"x":%d}`, i)),
				}}})
			}
			w.sendMessage(newBatch(begun...))
			w.sendMessage(newBatch(ended...))
			for _, sent := range ended {
				answer := receiveOrFail(t, w.answers, "an answer")
				require.Empty(t, answer.GetReason())
				require.Equal(t, sent.GetComplete().GetLeaseToken(), answer.GetLeaseToken(), "in order")
			}
			for _, run := range runs {
				require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, s.waitStopped(run).GetState())
			}
			if !slices.Contains(features, "batch") {
				require.Zero(t, w.batches.Load())
			}
		})
	}
}
