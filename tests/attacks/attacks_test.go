package attacks_test

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/tests/harness"
)

// A caller that is no answerer can't answer the question of the security officer, and an
// answer has the name of its caller.
func TestOthersDoNotAnswerForTheOfficer(t *testing.T) {
	s := startServer(t)
	require.NoError(t, s.putGraph(t, admin, readGraph(t, "payment.yaml")))
	run := s.waitForRun(t, s.startRun(t, "t", "payment", `{"amount": 9000}`))
	require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, run.GetState(), "%v", run)
	question := &graphdv1.GetInterruptRequest{ThreadId: "t", InterruptId: run.GetOpenInterruptIds()[0]}
	answer := func(caller string) error {
		_, err := s.ResumeRun(s.as(t, caller), &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{
			ThreadId: "t", Responses: []*graphdv1.InterruptResponse{{
				InterruptId: question.GetInterruptId(), Outcome: &graphdv1.InterruptResponse_Value{Value: harness.NewPayload(`"approved"`)},
			}},
		}})
		return err
	}
	assert.Equal(t, codes.PermissionDenied, status.Code(answer(customer)), "the answer of a customer")
	asked, err := s.GetInterrupt(s.as(t, customer), question)
	require.NoError(t, err)
	assert.Equal(t, graphdv1.InterruptState_INTERRUPT_STATE_OPEN, asked.GetState(), "the answer of a customer counts")
	if asked.GetState() == graphdv1.InterruptState_INTERRUPT_STATE_OPEN {
		require.NoError(t, answer(officer))
	}
	answered, err := s.GetInterrupt(s.as(t, customer), question)
	require.NoError(t, err)
	assert.Equal(t, officer, answered.GetResponder())
}

// A worker can't take the id of another caller's worker, and with it the task and its
// state.
func TestAWorkerDoesNotReplaceThatOfAnotherCaller(t *testing.T) {
	s := startServer(t)
	require.NoError(t, s.putGraph(t, admin, readGraph(t, "ledger.yaml")))
	worker, welcome := s.connectWorker(t, owner, "w1")
	require.NoError(t, welcome)
	run := s.startRun(t, "t", "ledger", `{"secret": "a secret"}`)
	task, err := readTask(worker)
	require.NoError(t, err)

	thief, refusal := s.connectWorker(t, stranger, "w1")
	if assert.Error(t, refusal, "a stranger connects as the worker w1") {
		require.Equal(t, "WORKER_ID_TAKEN", harness.ReasonOf(refusal))
	} else {
		stolen, err := readTask(thief)
		require.NoError(t, err)
		assert.Fail(t, "a stranger has the task of the worker", "with the state %v", stolen.GetChannels())
	}
	_, err = s.CompleteTask(s.as(t, owner), &graphdv1.CompleteTaskRequest{
		LeaseToken: task.GetLease().GetToken(), Result: &graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Completed{
			Completed: &graphdv1.TaskCompleted{Update: harness.NewPayload(`{"done": true}`)},
		}},
	})
	if assert.NoError(t, err, "the worker has lost its task") {
		require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, s.waitForRun(t, run).GetState())
	}
}

// connectWorker opens the stream of a worker of graph ledger with one slot. The error is
// that of the first answer.
func (s *server) connectWorker(t *testing.T, caller, id string) (graphdv1.WorkerService_ConnectClient, error) {
	t.Helper()
	stream, err := s.Connect(s.as(t, caller))
	require.NoError(t, err)
	require.NoError(t, stream.Send(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Hello{Hello: &graphdv1.Hello{
		WorkerId: id, Credit: &graphdv1.Credit{TotalSlots: 1},
		Manifest: &graphdv1.WorkerManifest{Nodes: []*graphdv1.ServedNode{{Graph: "ledger", Node: "book"}}},
	}}}))
	_, err = stream.Recv()
	return stream, err
}

// readTask returns the next task of a worker.
func readTask(stream grpc.BidiStreamingClient[graphdv1.ConnectRequest, graphdv1.ConnectResponse]) (*graphdv1.TaskAssignment, error) {
	for {
		m, err := stream.Recv()
		if err != nil || m.GetTask() != nil {
			return m.GetTask(), err
		}
	}
}

// A caller that puts graphs can't remove the question of the security officer.
func TestAGraphKeepsItsQuestion(t *testing.T) {
	s := startServer(t)
	require.NoError(t, s.putGraph(t, admin, readGraph(t, "payment.yaml")))
	for _, caller := range []string{coder, customer} {
		assert.Equal(t, codes.PermissionDenied, status.Code(s.putGraph(t, caller, readGraph(t, "payment-unasked.yaml"))),
			"%s puts the graph without its question", caller)
	}
	run := s.waitForRun(t, s.startRun(t, "t", "payment", `{"amount": 9000}`))
	assert.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, run.GetState(), "the run asks nobody: %v", run.GetOutput())
}

// A caller that puts graphs can't have the server dial what it likes.
func TestAGraphDoesNotChooseWhatTheServerDials(t *testing.T) {
	s := startServer(t)
	socket := filepath.Join(t.TempDir(), "s")
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": socket} {
		t.Run(network, func(t *testing.T) {
			listener, err := net.Listen(network, address)
			require.NoError(t, err)
			defer func() { _ = listener.Close() }()
			endpoint := listener.Addr().String()
			if network == "unix" {
				endpoint = "unix:" + endpoint
			}
			if s.requireEndpointRefused(t, network, endpoint) {
				return
			}
			s.startRun(t, network, network, `{}`)
			conn, err := listener.Accept()
			require.NoError(t, err)
			_ = conn.Close()
			t.Errorf("the server has dialled %s", endpoint)
		})
	}
	t.Run("metadata", func(t *testing.T) { s.requireEndpointRefused(t, "metadata", "169.254.169.254:80") })
}

// requireEndpointRefused checks that a graph with an endpoint is refused, and reports
// whether it is.
func (s *server) requireEndpointRefused(t *testing.T, graph, endpoint string) bool {
	t.Helper()
	err := s.putGraph(t, coder, "graph: "+graph+"\nchannels: { x: {} }\nnodes:\n  n: { remote: { endpoint: '"+endpoint+
		"' } }\nedges: [START -> n -> END]\n")
	return assert.Equal(t, codes.InvalidArgument, status.Code(err), "a graph may name the endpoint %s", endpoint) &&
		assert.Contains(t, status.Convert(err).String()+harness.ReasonOf(err), "INVALID_GRAPH")
}
