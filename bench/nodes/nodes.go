// Package nodes is a Go process with nodes: each adds 1 when graphd calls it.
// It also answers bare calls, for comparison.
package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Bare is the method that returns its request.
const Bare = "/bench.Node/Call"

// Graph is the name of the chain whose nodes are here.
const Graph = "chain-go"

type server struct {
	graphdv1.UnimplementedNodeServiceServer
}

// Serve serves on a free port, writes HOST:PORT to out and ends when in does.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	g := grpc.NewServer()
	graphdv1.RegisterNodeServiceServer(g, &server{})
	state := health.NewServer()
	state.SetServingStatus(graphdv1.NodeService_ServiceDesc.ServiceName, grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(g, state)
	g.RegisterService(&grpc.ServiceDesc{
		ServiceName: "bench.Node", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Call", Handler: call}},
	}, nil)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		g.Stop()
	}()
	if _, err := fmt.Fprintln(out, l.Addr()); err != nil {
		return err
	}
	return g.Serve(l)
}

func call(_ any, _ context.Context, read func(any) error, _ grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // the signature is grpc's
	var text wrapperspb.StringValue
	return &text, read(&text)
}

// Describe names the nodes.
func (*server) Describe(context.Context, *graphdv1.DescribeRequest) (*graphdv1.WorkerManifest, error) {
	m := &graphdv1.WorkerManifest{Deployment: "bench"}
	for i := range 10 {
		m.Nodes = append(m.Nodes, &graphdv1.ServedNode{Graph: Graph, Node: fmt.Sprintf("n%d", i)})
	}
	return m, nil
}

// ExecuteTask adds 1.
func (*server) ExecuteTask(r *graphdv1.ExecuteTaskRequest, s graphdv1.NodeService_ExecuteTaskServer) error {
	var x int
	if err := json.Unmarshal([]byte(r.GetTask().GetChannels()["x"].GetJson()), &x); err != nil {
		return err
	}
	update := &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: fmt.Sprintf(`{"x":%d}`, x+1)}}
	return s.Send(&graphdv1.TaskUpdate{Kind: &graphdv1.TaskUpdate_Result{Result: &graphdv1.TaskResult{
		Outcome: &graphdv1.TaskResult_Completed{Completed: &graphdv1.TaskCompleted{Update: update}},
	}}})
}

// File is the graph file of the chain for nodes at an address.
func File(address string) string {
	text, ways := "graph: "+Graph+"\nchannels: { x: {} }\nnodes:\n", "START"
	for i := range 10 {
		text += fmt.Sprintf("  n%d: { remote: { endpoint: %q } }\n", i, address)
		ways += fmt.Sprintf(" -> n%d", i)
	}
	return text + "edges: [" + ways + " -> END]\n"
}
