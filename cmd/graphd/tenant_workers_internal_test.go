package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// connectAs opens the stream of a worker of "remote". It returns after the welcome.
func (c *tenantClient) connectAs(ctx context.Context, id string, slots uint32) graphdv1.WorkerService_ConnectClient {
	stream, err := c.Connect(ctx)
	require.NoError(c.t, err)
	require.NoError(c.t, stream.Send(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Hello{Hello: &graphdv1.Hello{
		WorkerId: id, Labels: map[string]string{"of": c.name},
		Credit: &graphdv1.Credit{TotalSlots: slots, PerNode: map[string]uint32{"remote/n": slots}},
		Manifest: &graphdv1.WorkerManifest{Nodes: []*graphdv1.ServedNode{{Graph: "remote"}, {Graph: "brought"}}, Graphs: []*graphdv1.GraphSpec{{
			Name: "brought", Description: "of " + c.name, Channels: []*graphdv1.ChannelSpec{{Name: "x"}},
			Nodes: []*graphdv1.NodeSpec{{Name: "n", Kind: &graphdv1.NodeSpec_Remote{Remote: &graphdv1.RemoteSpec{}}}},
			Edges: []*graphdv1.EdgeSpec{{Sources: []string{"__start__"}, Target: "n"}},
		}, {Name: "broken"}}},
	}}}))
	m, err := stream.Recv()
	require.NoError(c.t, err)
	require.Equal(c.t, "brought", m.GetWelcome().GetGraphs()[0].GetGraph())
	require.Empty(c.t, m.GetWelcome().GetGraphs()[0].GetProblems())
	return stream
}

// nextTask reads the stream of a worker up to a task.
func nextTask(t *testing.T, stream graphdv1.WorkerService_ConnectClient) *graphdv1.TaskAssignment {
	t.Helper()
	for {
		m, err := stream.Recv()
		require.NoError(t, err)
		if task := m.GetTask(); task != nil {
			return task
		}
	}
}

func (c *tenantClient) completed() *graphdv1.TaskResult {
	return &graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Completed{Completed: &graphdv1.TaskCompleted{Update: c.value("y")}}}
}

// runAtWorkers runs nodes at workers that have the ids of those of another tenant.
func (c *tenantClient) runAtWorkers(ctx context.Context, other *tenantClient) {
	t := c.t
	stream, err := c.Stream(ctx, &graphdv1.StreamRequest{Run: c.newRun("t-remote", "remote"), Filter: allEvents()})
	require.NoError(t, err)
	for { // the worker of the other tenant has the graph, by its name
		e, err := stream.Recv()
		require.NoError(t, err)
		if e.GetTask().GetPhase() == graphdv1.TaskChange_PHASE_UNASSIGNED {
			require.Contains(t, e.GetTask().GetFailure().GetMessage(), "no worker of graph remote is connected")
			break
		}
	}
	first := c.connectAs(ctx, "w1", 1)
	task := nextTask(t, first)
	require.Equal(t, "t-remote remote", task.GetThreadId()+" "+task.GetGraph())
	token := task.GetLease().GetToken()
	listed, err := c.ListWorkers(ctx, &graphdv1.ListWorkersRequest{})
	require.NoError(t, err)
	require.Len(t, listed.GetWorkers(), 1)
	require.Equal(t, []string{"brought/*", "remote/*"}, listed.GetWorkers()[0].GetNodes())
	require.Equal(t, "w1", listed.GetWorkers()[0].GetWorkerId())
	byGraph, err := c.ListWorkers(ctx, &graphdv1.ListWorkersRequest{Graph: "remote"})
	require.NoError(t, err)
	require.Len(t, byGraph.GetWorkers(), 1)

	c.requireLeaseIsOfTenant(token, other)
	c.callWithLease(token)
	_, err = readAll(stream, nil)
	require.NoError(t, err)

	c.replaceWorker(ctx, first)
}

// callWithLease makes the calls that a worker may make for a task, and completes it.
func (c *tenantClient) callWithLease(token []byte) {
	t, ctx := c.t, c.ctx
	_, err := c.RecordMemo(ctx, &graphdv1.RecordMemoRequest{LeaseToken: token, Key: "k", Value: jsonPayload("1")})
	require.NoError(t, err)
	_, err = c.CallGraph(ctx, &graphdv1.CallGraphRequest{LeaseToken: token, Graph: "flow", Input: c.value("x")})
	require.NoError(t, err)
	_, err = c.CallGraph(ctx, &graphdv1.CallGraphRequest{LeaseToken: token, Graph: "parent", Input: c.value("x")})
	require.Equal(t, "INVALID_FIELD", reasonOfRefusal(err))
	_, err = c.CallGraph(ctx, &graphdv1.CallGraphRequest{LeaseToken: token, CallIndex: 1, Graph: "nowhere", Input: c.value("x")})
	require.Equal(t, "GRAPH_NOT_FOUND", reasonOfRefusal(err))
	_, err = c.CompleteTask(ctx, &graphdv1.CompleteTaskRequest{LeaseToken: token, Result: c.completed()})
	require.NoError(t, err)
}

// replaceWorker connects a worker that takes the place of the first one, and of no other
// tenant's. It runs a task that fails.
func (c *tenantClient) replaceWorker(ctx context.Context, first graphdv1.WorkerService_ConnectClient) {
	t := c.t
	second := c.connectAs(ctx, "w1", 1)
	var err error
	for err == nil {
		_, err = first.Recv()
	}
	require.Equal(t, "WORKER_REPLACED", reasonOfRefusal(err))
	_, err = c.StartRun(ctx, &graphdv1.StartRunRequest{Run: c.newRun("t-brought", "brought")})
	require.NoError(t, err)
	task := nextTask(t, second)
	require.Equal(t, "t-brought brought", task.GetThreadId()+" "+task.GetGraph())
	require.NoError(t, second.Send(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Complete{
		Complete: &graphdv1.CompleteTaskRequest{LeaseToken: task.GetLease().GetToken(), Result: &graphdv1.TaskResult{
			Outcome: &graphdv1.TaskResult_Failed{Failed: &graphdv1.TaskFailed{Message: "broken"}},
		}},
	}}))
	run, err := c.WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: "t-brought"})
	require.NoError(t, err)
	require.Equal(t, graphdv1.RunState_RUN_STATE_FAILED, run.GetState())
}

// requireLeaseIsOfTenant tries a lease in another tenant: it is refused like one that no
// server has given.
func (c *tenantClient) requireLeaseIsOfTenant(token []byte, other *tenantClient) {
	t := c.t
	for name, try := range map[string]func(token []byte) error{
		"complete": func(token []byte) error {
			_, err := other.CompleteTask(other.ctx, &graphdv1.CompleteTaskRequest{LeaseToken: token, Result: other.completed()})
			return err
		},
		"memo": func(token []byte) error {
			_, err := other.RecordMemo(other.ctx, &graphdv1.RecordMemoRequest{LeaseToken: token, Key: "k", Value: jsonPayload("1")})
			return err
		},
		"call": func(token []byte) error {
			_, err := other.CallGraph(other.ctx, &graphdv1.CallGraphRequest{LeaseToken: token, Graph: "flow", Input: other.value("x")})
			return err
		},
	} {
		foreign, unknown := try(token), try([]byte("no lease"))
		require.Equal(t, "TASK_LEASE_LOST", reasonOfRefusal(foreign), name)
		require.Equal(t, prototext.Format(status.Convert(unknown).Proto()), prototext.Format(status.Convert(foreign).Proto()), name)
	}
	ctx, cancel := context.WithCancel(other.ctx)
	defer cancel()
	thief, err := other.Connect(ctx)
	require.NoError(t, err)
	require.NoError(t, thief.Send(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Hello{Hello: &graphdv1.Hello{
		WorkerId: "thief", HeldLeases: [][]byte{token}, Credit: &graphdv1.Credit{TotalSlots: 1},
		Manifest: &graphdv1.WorkerManifest{Nodes: []*graphdv1.ServedNode{{Graph: "remote"}}},
	}}}))
	m, err := thief.Recv()
	require.NoError(t, err)
	require.Equal(t, [][]byte{token}, m.GetWelcome().GetLost())
	require.NoError(t, thief.Send(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Complete{
		Complete: &graphdv1.CompleteTaskRequest{LeaseToken: token, Result: other.completed()},
	}}))
	m, err = thief.Recv()
	require.NoError(t, err)
	require.Equal(t, "TASK_LEASE_LOST", m.GetCompleted().GetReason())
}
