package workers_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// completeOnStream hands a result over on the stream and returns the answer.
func (w *workerSession) completeOnStream(a *graphdv1.TaskAssignment, r *graphdv1.TaskResult) *graphdv1.Completed {
	w.sendMessage(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Complete{Complete: &graphdv1.CompleteTaskRequest{
		LeaseToken: a.GetLease().GetToken(), Result: r, TakeNext: true,
	}}})
	return receiveOrFail(w.t, w.answers, "an answer")
}

// TestAResultOnTheStreamIsAnsweredWithTheNextTask completes tasks until an answer has the next one:
// the server waits a moment for it, which a busy machine may miss. The task then comes on the
// stream.
func TestAResultOnTheStreamIsAnsweredWithTheNextTask(t *testing.T) {
	const attempts = 100
	s := startServer(t, config{})
	w := s.connectWorker(&graphdv1.Hello{
		WorkerId: "w1", Credit: &graphdv1.Credit{TotalSlots: 1},
		Manifest: &graphdv1.WorkerManifest{Graphs: listSpecs(newChainGraph("two", "a", "b"))},
	})
	require.Equal(t, []string{"complete", "next", "drift", "batch"}, w.welcome.GetFeatures())
	for range attempts {
		run := s.startRun("two", `{"x":0}`)
		first := w.nextTask()
		answer := w.completeOnStream(first, completedResult(`{"x":1}`))
		require.Equal(t, first.GetLease().GetToken(), answer.GetLeaseToken())
		next := answer.GetResponse().GetNext()
		isAnswered := next != nil
		if isAnswered {
			require.Empty(t, w.tasks, "it does not come on the stream as well")
		} else {
			next = w.nextTask()
		}
		require.Equal(t, "b", next.GetNode())

		again, err := w.completeTask(first, completedResult(`{"x":7}`))
		require.NoError(t, err)
		require.True(t, again.GetDuplicate(), "a result counts once, whichever way it comes")

		last := w.completeOnStream(next, completedResult(`{"x":2}`))
		require.NotNil(t, last.GetResponse())
		require.Nil(t, last.GetResponse().GetNext())
		require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, s.waitStopped(run).GetState())
		if isAnswered {
			return
		}
	}
	require.Fail(t, "no answer had the next task")
}

func TestAResultThatIsNotTakenOnTheStreamSaysWhy(t *testing.T) {
	s := startServer(t, config{})
	w := s.connectWorker(newHello("w1", 1))
	run := s.startRun("g", `{"x":0}`)
	forged := &graphdv1.TaskAssignment{Lease: &graphdv1.TaskLease{Token: []byte("forged")}}
	answer := w.completeOnStream(forged, completedResult(`{"x":1}`))
	require.Equal(t, "TASK_LEASE_LOST", answer.GetReason())
	require.Contains(t, answer.GetMessage(), "another worker")
	require.Nil(t, answer.GetResponse())

	require.Empty(t, w.completeOnStream(w.nextTask(), completedResult(`{"x":`)).GetReason(), "what can't be used is taken, and fails the task")
	require.Equal(t, "INVALID_NODE_UPDATE", s.waitStopped(run).GetFailure().GetReason())
}

func TestAResultOnTheStreamNeedsALease(t *testing.T) {
	s := startServer(t, config{})
	w := s.connectWorker(newHello("w1", 1))
	w.sendMessage(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Complete{Complete: &graphdv1.CompleteTaskRequest{}}})
	err := receiveOrFail(t, w.end, "the end")
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.Contains(t, err.Error(), "complete.lease_token")
}
