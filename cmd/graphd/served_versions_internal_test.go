package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/server"
)

// versionClient has the clients of a server whose workers bring versions of graph r.
type versionClient struct {
	graphdv1.GraphServiceClient
	graphdv1.ThreadServiceClient
	graphdv1.RegistryServiceClient
	graphdv1.WorkerServiceClient

	t *testing.T
}

func startVersionServer(t *testing.T, store string) versionClient {
	t.Helper()
	started := startServerWith(t, server.Options{Store: store})
	conn, err := grpc.NewClient(started.server, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return versionClient{
		graphdv1.NewGraphServiceClient(conn), graphdv1.NewThreadServiceClient(conn), graphdv1.NewRegistryServiceClient(conn),
		graphdv1.NewWorkerServiceClient(conn), t,
	}
}

// connectWorker connects a worker that brings a version of graph r and runs its node. leave
// ends its stream, and returns when the server has noticed.
func (c versionClient) connectWorker(version string) (leave func()) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	stream, err := c.Connect(ctx)
	require.NoError(c.t, err)
	require.NoError(c.t, stream.Send(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Hello{Hello: &graphdv1.Hello{
		WorkerId: "worker-" + version, Credit: &graphdv1.Credit{TotalSlots: 4}, Manifest: &graphdv1.WorkerManifest{Graphs: []*graphdv1.GraphSpec{{
			Name: "r", Version: version, Description: "Version " + version + ".", Channels: []*graphdv1.ChannelSpec{{Name: "x"}},
			Nodes: []*graphdv1.NodeSpec{{Name: "n", Kind: &graphdv1.NodeSpec_Remote{Remote: &graphdv1.RemoteSpec{}}}},
			Edges: []*graphdv1.EdgeSpec{{Sources: []string{"__start__"}, Target: "n"}},
		}}},
	}}}))
	m, err := stream.Recv()
	require.NoError(c.t, err)
	require.NotNil(c.t, m.GetWelcome())
	ended := make(chan error, 1)
	go func() { ended <- c.serveTasks(ctx, stream, version) }()
	leave = func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, io.EOF) && status.Code(err) != codes.Canceled {
			c.t.Error(err)
		}
		require.Eventually(c.t, func() bool {
			workers, err := c.ListWorkers(c.t.Context(), &graphdv1.ListWorkersRequest{})
			require.NoError(c.t, err)
			for _, w := range workers.GetWorkers() {
				if w.GetWorkerId() == "worker-"+version {
					return false
				}
			}
			return true
		}, time.Minute, 10*time.Millisecond)
	}
	return leave
}

// serveTasks completes the tasks of a worker until its stream ends.
func (c versionClient) serveTasks(ctx context.Context, stream graphdv1.WorkerService_ConnectClient, by string) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if m.GetTask() == nil {
			continue
		}
		if _, err := c.CompleteTask(ctx, completion(m.GetTask().GetLease().GetToken(), by)); err != nil {
			return err
		}
	}
}

// requireVersion runs a thread that may be new to its end, on the version that is wanted.
func (c versionClient) requireVersion(want string, spec *graphdv1.RunSpec) {
	c.t.Helper()
	spec.Graph, spec.CreateThread = "r", true
	spec.Start = &graphdv1.RunSpec_Input{Input: &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: "{}"}}}
	started, err := c.StartRun(c.t.Context(), &graphdv1.StartRunRequest{Run: spec})
	require.NoError(c.t, err)
	require.Equal(c.t, want, started.GetGraphVersion())
	run, err := c.WaitRun(c.t.Context(), &graphdv1.WaitRunRequest{ThreadId: started.GetThreadId()})
	require.NoError(c.t, err)
	require.Equal(c.t, graphdv1.RunState_RUN_STATE_SUCCEEDED, run.GetState())
	require.JSONEq(c.t, `{"x":"`+want+`"}`, run.GetOutput().GetJson())
}

// Two deployments serve a version of a graph each. When the workers of the newer one are
// gone, threads begin on the older one; its workers come back, and threads begin on it.
func TestThreadsBeginOnAVersionThatWorkersServe(t *testing.T) {
	c := startVersionServer(t, "memory")
	c.connectWorker("1")
	c.requireVersion("1", &graphdv1.RunSpec{ThreadId: "first"})
	leave := c.connectWorker("2")
	c.requireVersion("2", &graphdv1.RunSpec{ThreadId: "second"})
	c.requireVersion("1", &graphdv1.RunSpec{ThreadId: "first"})

	leave()
	c.requireVersion("1", &graphdv1.RunSpec{ThreadId: "third"})
	c.requireVersion("1", &graphdv1.RunSpec{})
	made, err := c.CreateThread(t.Context(), &graphdv1.CreateThreadRequest{ThreadId: "made", Thread: &graphdv1.Thread{Graph: "r"}})
	require.NoError(t, err)
	require.Equal(t, "1", made.GetGraphVersion())

	c.connectWorker("2")
	c.requireVersion("2", &graphdv1.RunSpec{ThreadId: "fourth"})
	c.requireVersion("1", &graphdv1.RunSpec{ThreadId: "third"})
	c.requireVersion("1", &graphdv1.RunSpec{ThreadId: "made"})
	c.requireVersion("2", &graphdv1.RunSpec{ThreadId: "second"})
}

// The workers are at one server, and threads begin at another one.
func TestThreadsBeginOnAVersionThatWorkersOfAnotherServerServe(t *testing.T) {
	store := redistest.Start(t).URL("")
	here, there := startVersionServer(t, store), startVersionServer(t, store)
	there.connectWorker("1")
	leave := there.connectWorker("2")
	probes := 0
	requireSoon := func(version string) {
		require.Eventually(t, func() bool {
			probes++
			made, err := here.CreateThread(t.Context(), &graphdv1.CreateThreadRequest{
				ThreadId: fmt.Sprint("probe-", probes), Thread: &graphdv1.Thread{Graph: "r"},
			})
			return err == nil && made.GetGraphVersion() == version // an error while it does not know the graph yet
		}, time.Minute, 20*time.Millisecond)
		here.requireVersion(version, &graphdv1.RunSpec{})
	}
	requireSoon("2")
	leave()
	requireSoon("1")
	there.connectWorker("2")
	requireSoon("2")
}
