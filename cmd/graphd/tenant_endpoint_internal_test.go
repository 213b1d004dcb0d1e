package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// farService is the endpoint of "far". It calls graphd back as the client of the tenant
// whose value the task has.
type farService struct {
	graphdv1.UnimplementedNodeServiceServer

	clients map[string]*tenantClient
}

// Describe says that the endpoint serves "far".
func (*farService) Describe(context.Context, *graphdv1.DescribeRequest) (*graphdv1.WorkerManifest, error) {
	return &graphdv1.WorkerManifest{Nodes: []*graphdv1.ServedNode{{Graph: "far", Node: "n"}}}, nil
}

// ExecuteTask records a memo, calls a graph, and tries both in the other tenant.
func (f *farService) ExecuteTask(req *graphdv1.ExecuteTaskRequest, to grpc.ServerStreamingServer[graphdv1.TaskUpdate]) error {
	task := req.GetTask()
	var own, other *tenantClient
	for name, c := range f.clients {
		if strings.Contains(task.GetChannels()["x"].GetJson(), name) {
			own = c
		} else {
			other = c
		}
	}
	token := task.GetLease().GetToken()
	memo := func(c *tenantClient) error {
		_, err := c.RecordMemo(c.ctx, &graphdv1.RecordMemoRequest{LeaseToken: token, Key: "k", Value: jsonPayload("1")})
		return err
	}
	call := func(c *tenantClient) error {
		_, err := c.CallGraph(c.ctx, &graphdv1.CallGraphRequest{LeaseToken: token, Graph: "flow", Input: c.value("x")})
		return err
	}
	for _, err := range []error{memo(other), call(other)} {
		if reasonOfRefusal(err) != "TASK_LEASE_LOST" {
			return fmt.Errorf("in another tenant: %w", err)
		}
	}
	if err := errors.Join(memo(own), call(own)); err != nil {
		return err
	}
	return to.Send(&graphdv1.TaskUpdate{Kind: &graphdv1.TaskUpdate_Result{Result: own.completed()}})
}

// runAtEndpoint runs a node that an endpoint has.
func (c *tenantClient) runAtEndpoint() {
	events, err := readAll(c.Stream(c.ctx, &graphdv1.StreamRequest{Run: c.newRun("t-far", "far"), Filter: allEvents()}))
	require.NoError(c.t, err)
	end := events[len(events)-1].GetEnd()
	require.Equal(c.t, graphdv1.RunState_RUN_STATE_SUCCEEDED, end.GetRun().GetState(), "%v", end.GetRun().GetFailure())
}
