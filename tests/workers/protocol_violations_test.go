package workers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/worker"
	"github.com/graphd-dev/graphd/tests/harness"
)

// A worker without heartbeats is told so, and what it was given goes to another
// when the lease ends.
func TestAWorkerThatNeverBeatsIsSentAway(t *testing.T) {
	s := startServer(t, config{hub: worker.Options{HeartbeatInterval: time.Second, LeaseTTL: 5 * time.Second}})
	mute := s.connectWorker(newHello("w1", 1))
	run := s.startRun("g", `{"x":1}`)
	given := mute.nextTask()
	err := receiveOrFail(t, mute.end, "the end of the stream")
	require.Equal(t, "WORKER_SILENT", reasonOf(t, err))
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.ErrorContains(t, err, "nothing was heard for 3 beats of 1s; connect again")

	second := s.connectWorker(newHello("w2", 1))
	second.keepSendingHeartbeats(func() [][]byte { return nil })
	moved := second.nextTask()
	_, err = mute.completeTask(given, completedResult(`{"x":"late"}`))
	require.Equal(t, "TASK_LEASE_LOST", reasonOf(t, err))
	_, err = second.completeTask(moved, completedResult(`{"x":"right"}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"x":"right","log":[]}`, s.waitStopped(run).GetOutput().GetJson())
}

// A worker of version 2 gets nothing of a thread of version 1. Who watches the
// thread reads which version is missing and which are there.
func TestAWorkerOfAnotherVersionGetsNothing(t *testing.T) {
	s := startServer(t, config{})
	one, two := newChainGraph("g", "a"), newChainGraph("g", "a")
	one.Version, two.Version = "1", "2"
	h := newHello("old", 0)
	h.Manifest.Graphs = listSpecs(one)
	s.connectWorker(h).cancel()
	h = newHello("new", 5)
	h.Manifest.Graphs = listSpecs(two)
	fresh := s.connectWorker(h)
	require.Eventually(t, func() bool {
		list, err := s.ListWorkers(t.Context(), &graphdv1.ListWorkersRequest{})
		return err == nil && len(list.GetWorkers()) == 1
	}, time.Minute, 5*time.Millisecond)
	stream, err := s.Stream(t.Context(), &graphdv1.StreamRequest{
		Run: &graphdv1.RunSpec{
			CreateThread: true, Graph: "g", GraphVersion: "1", Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload(`{"x":1}`)},
		},
		Filter: &graphdv1.EventFilter{Channels: []graphdv1.Channel{graphdv1.Channel_CHANNEL_TASKS}},
	})
	require.NoError(t, err)
	for {
		e, err := stream.Recv()
		require.NoError(t, err)
		if c := e.GetTask(); c.GetPhase() == graphdv1.TaskChange_PHASE_UNASSIGNED {
			require.Equal(t, "NO_WORKER_AVAILABLE", c.GetFailure().GetReason())
			require.Contains(t, c.GetFailure().GetMessage(),
				"no connected worker serves version 1 of graph g; those that are connected serve 2")
			break
		}
	}
	require.Empty(t, fresh.tasks)
}

// What a worker says about a task that it does not have is of no effect.
func TestWordsAboutTheTasksOfOthersAreIgnored(t *testing.T) {
	s := startServer(t, config{})
	first := s.connectWorker(newHello("w1", 1))
	run := s.startRun("g", `{"x":1}`)
	a := first.nextTask()
	token := a.GetLease().GetToken()
	other := s.connectWorker(newHello("w2", 0))
	other.sendUpdate(&graphdv1.TaskUpdate{LeaseToken: token, Kind: &graphdv1.TaskUpdate_Emit{Emit: &graphdv1.Emit{
		Items: []*graphdv1.EmitItem{{Channel: graphdv1.Channel_CHANNEL_CUSTOM, Value: harness.NewPayload(`"forged"`), Durable: true}},
	}}})
	other.sendMessage(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Nack{Nack: &graphdv1.Nack{LeaseToken: token}}})
	other.sendMessage(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Goodbye{Goodbye: &graphdv1.Goodbye{
		Released: [][]byte{token},
	}}})
	other.sendHeartbeat(1)
	receiveOrFail(t, other.acks, "the ack behind it all")
	_, err := first.completeTask(a, completedResult(`{"x":2}`))
	require.NoError(t, err, "the task was not taken away")
	require.JSONEq(t, `{"x":2,"log":[]}`, s.waitStopped(run).GetOutput().GetJson())
	for _, e := range s.listEvents(run) {
		require.Nil(t, e.GetCustom())
	}
}
