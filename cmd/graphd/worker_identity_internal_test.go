package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	grpcmetadata "google.golang.org/grpc/metadata"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/identity/apikey"
	"github.com/graphd-dev/graphd/internal/server"
)

// replica is one of the servers on a store, which know the same callers.
type replica struct {
	graphdv1.GraphServiceClient
	graphdv1.RegistryServiceClient
	graphdv1.WorkerServiceClient
}

// startReplicas starts two servers on one Redis, with the callers root, ana and ben. ana and
// ben may both serve graph r. as returns the context of the calls of a caller.
func startReplicas(t *testing.T) (a, b replica, as func(caller string) context.Context) {
	t.Helper()
	dir := t.TempDir()
	keys, policy := filepath.Join(dir, "keys.yaml"), filepath.Join(dir, "access.yaml")
	require.NoError(t, os.WriteFile(policy, []byte("bindings:\n- {roles: [admin], principals: [root], rights: [approve-changes]}\n"+
		"- {roles: [worker], principals: [ana, ben], graphs: [r]}\n"), 0o600))
	tokens := map[string]string{}
	for _, name := range []string{"root", "ana", "ben"} {
		_, token, err := apikey.Create(t.Context(), keys, apikey.Key{Name: name}, time.Now())
		require.NoError(t, err)
		tokens[name] = token
	}
	store := redistest.Start(t).URL("")
	start := func() replica {
		s := startServerWith(t, server.Options{
			Store: store, CallerOptions: server.CallerOptions{APIKeys: keys}, AccessOptions: server.AccessOptions{Access: policy},
		})
		conn, err := grpc.NewClient(s.server, grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, conn.Close()) })
		return replica{graphdv1.NewGraphServiceClient(conn), graphdv1.NewRegistryServiceClient(conn), graphdv1.NewWorkerServiceClient(conn)}
	}
	return start(), start(), func(caller string) context.Context {
		return grpcmetadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+tokens[caller])
	}
}

// workerStream is the stream of a worker.
type workerStream struct {
	graphdv1.WorkerService_ConnectClient

	t *testing.T
}

// connectAs opens the stream of a worker of graph r. slots is how many tasks it takes.
func (r replica) connectAs(t *testing.T, ctx context.Context, id string, slots uint32, held ...[]byte) (workerStream, *graphdv1.Welcome, error) {
	t.Helper()
	stream, err := r.Connect(ctx)
	require.NoError(t, err)
	require.NoError(t, stream.Send(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Hello{Hello: &graphdv1.Hello{
		WorkerId: id, HeldLeases: held, Credit: &graphdv1.Credit{TotalSlots: slots},
		Manifest: &graphdv1.WorkerManifest{Nodes: []*graphdv1.ServedNode{{Graph: "r"}}},
	}}}))
	m, err := stream.Recv()
	return workerStream{stream, t}, m.GetWelcome(), err
}

// waitForTask returns the lease of the next task.
func (w workerStream) waitForTask() []byte {
	for {
		m, err := w.Recv()
		require.NoError(w.t, err)
		if m.GetTask() != nil {
			return m.GetTask().GetLease().GetToken()
		}
	}
}

// beat sends a beat with a lease and returns the leases that its answer calls lost. No task
// comes before the answer.
func (w workerStream) beat(token []byte) (lost [][]byte) {
	require.NoError(w.t, w.Send(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Beat{Beat: &graphdv1.Beat{Number: 1, Running: [][]byte{token}}}}))
	for {
		m, err := w.Recv()
		require.NoError(w.t, err)
		require.Nil(w.t, m.GetTask(), "a task of another principal's worker")
		if m.GetBeatAck() != nil {
			return m.GetBeatAck().GetLost()
		}
	}
}

func completion(token []byte, by string) *graphdv1.CompleteTaskRequest {
	return &graphdv1.CompleteTaskRequest{LeaseToken: token, Result: &graphdv1.TaskResult{
		Outcome: &graphdv1.TaskResult_Completed{Completed: &graphdv1.TaskCompleted{Update: &graphdv1.Payload{
			Body: &graphdv1.Payload_Json{Json: fmt.Sprintf(`{"x":%q}`, by)},
		}}},
	}}
}

// requireNoRightTo checks that a caller can do nothing with a lease at a server.
func (r replica) requireNoRightTo(t *testing.T, ctx context.Context, token []byte) {
	t.Helper()
	_, err := r.CompleteTask(ctx, completion(token, "ben"))
	require.Equal(t, "TASK_LEASE_LOST", reasonOfRefusal(err))
	_, err = r.RecordMemo(ctx, &graphdv1.RecordMemoRequest{
		LeaseToken: token, Scope: "s", Key: "k", Value: &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: "1"}},
	})
	require.Equal(t, "TASK_LEASE_LOST", reasonOfRefusal(err))
	_, err = r.CallGraph(ctx, &graphdv1.CallGraphRequest{
		LeaseToken: token, Graph: "r", Input: &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: "{}"}},
	})
	require.Equal(t, "TASK_LEASE_LOST", reasonOfRefusal(err))
}

// startTask has ana's worker take a task at a server, and waits until the other server knows
// the graph as well.
func startTask(t *testing.T, at, other replica, as func(string) context.Context, id, thread string) (workerStream, []byte) {
	t.Helper()
	_, err := at.PutGraph(as("root"), &graphdv1.PutGraphRequest{Definition: &graphdv1.PutGraphRequest_Document{Document: remoteGraph}})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := other.GetGraph(as("root"), &graphdv1.GetGraphRequest{Graph: "r"})
		return err == nil
	}, time.Minute, 20*time.Millisecond)
	stream, _, err := at.connectAs(t, as("ana"), id, 1)
	require.NoError(t, err)
	_, err = at.StartRun(as("root"), &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
		ThreadId: thread, CreateThread: true, Graph: "r", Start: &graphdv1.RunSpec_Input{Input: &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: "{}"}}},
	}})
	require.NoError(t, err)
	return stream, stream.waitForTask()
}

func (r replica) requireResult(t *testing.T, ctx context.Context, thread, by string) {
	t.Helper()
	run, err := r.WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: thread})
	require.NoError(t, err)
	require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, run.GetState(), "%v", run.GetFailure())
	require.JSONEq(t, fmt.Sprintf(`{"x":%q}`, by), run.GetOutput().GetJson())
}

// The id of a worker says nothing at another server: a worker of another principal with the
// same id, and even with the lease, gets no task, ends no session and completes nothing
// there, nor at the server of the task.
func TestAWorkerIDGivesNoRightsAtAnotherServer(t *testing.T) {
	a, b, as := startReplicas(t)
	_, token := startTask(t, a, b, as, "w1", "t1")
	stream, welcome, err := b.connectAs(t, as("ben"), "w1", 1, token)
	require.NoError(t, err, "no server tells another the ids of its workers")
	require.Equal(t, [][]byte{token}, welcome.GetLost())
	require.Equal(t, [][]byte{token}, stream.beat(token))
	for _, at := range []replica{a, b} {
		at.requireNoRightTo(t, as("ben"), token)
	}
	_, _, err = a.connectAs(t, as("ben"), "w1", 1)
	require.Equal(t, "WORKER_ID_TAKEN", reasonOfRefusal(err), "at its own server the id is taken")
	_, err = a.CompleteTask(as("ana"), completion(token, "ana"))
	require.NoError(t, err, "the task was its worker's all the time")
	a.requireResult(t, as("root"), "t1", "ana")
}

// While a worker is away its task waits for its principal, at any server. The worker of
// another principal may have taken its id meanwhile: the task follows the lease.
func TestATaskFollowsTheLeaseAndNotTheWorkerID(t *testing.T) {
	a, b, as := startReplicas(t)
	ctx, leave := context.WithCancel(as("ana"))
	_, token := startTask(t, a, b, func(caller string) context.Context {
		if caller == "ana" {
			return ctx
		}
		return as(caller)
	}, "w1", "t1")
	leave()
	stranger, welcome, err := b.connectAs(t, as("ben"), "w1", 1, token)
	require.NoError(t, err)
	require.Equal(t, [][]byte{token}, welcome.GetLost())
	require.Equal(t, [][]byte{token}, stranger.beat(token), "and no task comes")
	b.requireNoRightTo(t, as("ben"), token)

	_, _, err = b.connectAs(t, as("ana"), "w1", 1, token)
	require.Equal(t, "WORKER_ID_TAKEN", reasonOfRefusal(err))
	_, welcome, err = b.connectAs(t, as("ana"), "w1-again", 1, token)
	require.NoError(t, err)
	require.Empty(t, welcome.GetLost())
	require.Eventually(t, func() bool { // the run comes to the server of its worker
		_, err := b.CompleteTask(as("ana"), completion(token, "ana"))
		return err == nil
	}, time.Minute, 50*time.Millisecond)
	a.requireResult(t, as("root"), "t1", "ana")
}
