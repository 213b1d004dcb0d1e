package traces_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/graphd-dev/graphd/client"
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/testkit/built"
	"github.com/graphd-dev/graphd/tests/harness"
)

// nodeService serves a node, and says which trace contexts its calls have.
type nodeService struct {
	graphdv1.UnimplementedNodeServiceServer

	traces chan [2]string // in the metadata, and in the task
}

func (s *nodeService) ExecuteTask(r *graphdv1.ExecuteTaskRequest, stream graphdv1.NodeService_ExecuteTaskServer) error {
	s.traces <- [2]string{strings.Join(metadata.ValueFromIncomingContext(stream.Context(), "traceparent"), ","), r.GetTask().GetTrace()["traceparent"]}
	return stream.Send(&graphdv1.TaskUpdate{Kind: &graphdv1.TaskUpdate_Result{Result: &graphdv1.TaskResult{
		Outcome: &graphdv1.TaskResult_Completed{Completed: &graphdv1.TaskCompleted{Update: harness.NewPayload(`{"price": 5}`)}},
	}}})
}

const ordersText = `graph: orders
channels: { price: {}, decision: {} }
nodes:
  pricing: { remote: { endpoint: "%s" } }
  review:
    ask: { message: "'Order?'", update: { decision: answer } }
edges: [START -> pricing -> review -> END]
`

func TestNodeServicesAndWebhooksGetTheTrace(t *testing.T) {
	to := startReceiver(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", to.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
	service := &nodeService{traces: make(chan [2]string, 1)}
	nodes := grpc.NewServer()
	graphdv1.RegisterNodeServiceServer(nodes, service)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = nodes.Serve(listener) }()
	t.Cleanup(nodes.Stop)
	told := make(chan string, 10)
	hooks := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { told <- r.Header.Get("Traceparent") }))
	t.Cleanup(hooks.Close)

	folder := t.TempDir()
	graphs, endpoints := filepath.Join(folder, "graphs"), filepath.Join(folder, "webhooks.yaml")
	require.NoError(t, os.Mkdir(graphs, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(graphs, "orders.yaml"), fmt.Appendf(nil, ordersText, listener.Addr()), 0o600))
	require.NoError(t, os.WriteFile(endpoints, []byte("endpoints:\n- name: hooks\n  url: "+hooks.URL+"\n  secrets: [{ value: whsec_"+strings.Repeat("A", 32)+" }]\n"), 0o600))
	server := harness.StartServer(t, []string{built.Graphd(t)}, "memory", "--graphs", graphs, "--webhooks", endpoints, "--webhook-allow", "127.0.0.1")
	c := dialTraced(t, server.Address, program(t, "shop", to))
	asked, err := c.Invoke(t.Context(), client.Run{Graph: "orders", Thread: "t1", Input: map[string]any{}})
	require.NoError(t, err)
	require.True(t, asked.Waits(), asked.Run)
	_, err = c.Resume(t.Context(), "t1", client.Answer{Value: "yes"})
	require.NoError(t, err)

	given := <-service.traces
	node := to.await(t, "node pricing", 1)[0]
	require.Equal(t, "00-"+node.trace()+"-"+node.id()+"-01", given[0])
	require.Equal(t, given[0], given[1])
	question := to.await(t, "question review", 1)[0]
	require.Equal(t, "00-"+question.trace()+"-"+question.id()+"-01", <-told, "an event has the trace of its question")
	run := to.await(t, "run orders", 1)[0]
	require.Equal(t, run.trace(), question.trace())
}

func TestSpansGoOverGRPC(t *testing.T) {
	to := &grpcReceiver{names: make(chan string, 100)}
	collectors := grpc.NewServer()
	collector.RegisterTraceServiceServer(collectors, to)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = collectors.Serve(listener) }()
	t.Cleanup(collectors.Stop)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+listener.Addr().String())
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
	server := harness.StartServer(t, []string{built.Graphd(t)}, "memory")
	_, err = server.ListGraphs(t.Context(), &graphdv1.ListGraphsRequest{})
	require.NoError(t, err)
	require.Equal(t, "graphd.v1.RegistryService/ListGraphs", <-to.names)
}
