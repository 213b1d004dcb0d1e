package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// The lease of a task lets its worker call the graphs that the worker may serve, and not
// every graph of the tenant.
func TestWorkersCallGraphsThatTheyMayServe(t *testing.T) {
	s := startAccessServer(t)
	workers, runs := graphdv1.NewWorkerServiceClient(s.conn), graphdv1.NewGraphServiceClient(s.conn)
	root, worker := s.as(t.Context(), "root"), s.as(t.Context(), "worker")
	_, err := graphdv1.NewRegistryServiceClient(s.conn).PutGraph(root, &graphdv1.PutGraphRequest{Definition: &graphdv1.PutGraphRequest_Document{
		Document: "graph: elsewhere\nchannels: {x: {}}\nnodes: {n: {remote: {}}}\nedges: [{from: __start__, to: n}]\n",
	}})
	require.NoError(t, err)
	stream, err := workers.Connect(worker)
	require.NoError(t, err)
	hello := &graphdv1.ConnectRequest{}
	require.NoError(t, prototext.Unmarshal([]byte(`hello {worker_id: "w" credit {total_slots: 1} manifest {nodes {graph: "elsewhere"}}}`), hello))
	require.NoError(t, stream.Send(hello))
	_, err = runs.StartRun(root, &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
		ThreadId: "calls", CreateThread: true, Graph: "elsewhere", Start: &graphdv1.RunSpec_Input{Input: jsonPayload("{}")},
	}})
	require.NoError(t, err)
	token := nextTask(t, stream).GetLease().GetToken()

	call := func(index uint32, graph string) error {
		_, err := workers.CallGraph(worker, &graphdv1.CallGraphRequest{LeaseToken: token, CallIndex: index, Graph: graph, Input: jsonPayload("{}")})
		return err
	}
	err = call(0, "hidden")
	require.Equal(t, outcomeDenied, describeOutcome(err))
	require.Equal(t, "hidden", metadataOf(err)["graph"])
	require.Equal(t, outcomeDenied, describeOutcome(call(0, "that-is-not-there")), "whether there is such a graph does not show")
	require.NoError(t, call(1, "open"))

	// The server waits for the task when it ends.
	_, err = workers.CompleteTask(worker, &graphdv1.CompleteTaskRequest{
		LeaseToken: token, Result: &graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Completed{Completed: &graphdv1.TaskCompleted{}}},
	})
	require.NoError(t, err)
}
