package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/identity/apikey"
	"github.com/graphd-dev/graphd/internal/server"
)

// tenantClient is a client in one tenant, with all services.
type tenantClient struct {
	graphdv1.GraphServiceClient
	graphdv1.ThreadServiceClient
	graphdv1.InterruptServiceClient
	graphdv1.RegistryServiceClient
	graphdv1.AssistantServiceClient
	graphdv1.ItemServiceClient
	graphdv1.CronServiceClient
	graphdv1.WorkerServiceClient

	t     *testing.T
	ctx   context.Context //nolint:containedctx // of all its calls
	conn  *grpc.ClientConn
	name  string // of the tenant; a part of all values that it writes
	heard *overheard
}

// tokenOfTenant sends the token of a tenant's caller.
type tokenOfTenant string

func (c tokenOfTenant) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(c)}, nil
}

func (tokenOfTenant) RequireTransportSecurity() bool { return false }

// startTenants starts a server with a caller in each tenant who may do everything there.
func startTenants(t *testing.T, store string, names ...string) map[string]*tenantClient {
	t.Helper()
	dir := t.TempDir()
	keys, policy := filepath.Join(dir, "keys.yaml"), filepath.Join(dir, "access.yaml")
	require.NoError(t, os.WriteFile(policy, []byte(
		"bindings: [{roles: [admin, worker], principals: [boss], rights: [approve-changes], tenants: [\"*\"]}]"), 0o600))
	started := map[string]string{}
	for _, name := range names {
		_, token, err := apikey.Create(t.Context(), keys, apikey.Key{Name: "boss", Tenants: []string{name}}, time.Now())
		require.NoError(t, err)
		started[name] = token
	}
	s := startServerWith(t, server.Options{
		Store: store, CallerOptions: server.CallerOptions{APIKeys: keys}, AccessOptions: server.AccessOptions{Access: policy},
		LimitOptions: server.LimitOptions{MaxTaskMemoBytes: 1 << 10},
	})
	clients := map[string]*tenantClient{}
	for name, token := range started {
		heard := newOverheard()
		conn, err := grpc.NewClient(s.server, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithPerRPCCredentials(tokenOfTenant(token)), grpc.WithStatsHandler(heard))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, conn.Close()) })
		clients[name] = &tenantClient{
			graphdv1.NewGraphServiceClient(conn), graphdv1.NewThreadServiceClient(conn), graphdv1.NewInterruptServiceClient(conn),
			graphdv1.NewRegistryServiceClient(conn), graphdv1.NewAssistantServiceClient(conn), graphdv1.NewItemServiceClient(conn),
			graphdv1.NewCronServiceClient(conn),
			graphdv1.NewWorkerServiceClient(conn), t, t.Context(), conn, name, heard,
		}
	}
	return clients
}

func (c *tenantClient) putDocument(document string) (*graphdv1.Graph, error) {
	return c.PutGraph(c.ctx, &graphdv1.PutGraphRequest{
		Definition: &graphdv1.PutGraphRequest_Document{Document: document}, DocumentName: "g.yaml",
	})
}

// value returns a JSON text that names the tenant, so that it shows where it should not be.
func (c *tenantClient) value(key string) *graphdv1.Payload {
	return jsonPayload(fmt.Sprintf(`{%q: "value of %s"}`, key, c.name))
}

func jsonPayload(text string) *graphdv1.Payload {
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: text}}
}

func (c *tenantClient) newRun(thread, graph string) *graphdv1.RunSpec {
	return &graphdv1.RunSpec{ThreadId: thread, Graph: graph, CreateThread: true, Start: &graphdv1.RunSpec_Input{Input: c.value("x")}}
}

// readAll reads a stream to its end.
func readAll[T any](stream grpc.ServerStreamingClient[T], err error) ([]*T, error) {
	if err != nil {
		return nil, err
	}
	var all []*T
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, m)
	}
}

// errOf returns the error of a call.
func errOf[T any](_ T, err error) error { return err }

// The graphs of each tenant; %s is the endpoint of "far".
const tenantGraphs = `graph: flow
channels: {x: {}, y: {}}
input_schema: {type: object, properties: {x: {type: string}}}
nodes:
  n: {expr: {update: {y: "state.x"}}}
edges: [START -> n -> END]
---
graph: asking
channels: {x: {}, y: {}}
nodes:
  a: {ask: {message: "'ask about ' + state.x", value: "state.x", update: {y: answer}}}
  b: {ask: {message: "'and about ' + state.x", value: "state.x", update: {y: answer}}}
edges: [START -> a, START -> b, a -> END, b -> END]
---
graph: parent
channels: {x: {}, y: {}}
nodes:
  n: {graph: flow}
edges: [START -> n -> END]
---
graph: remote
channels: {x: {}, y: {}}
nodes:
  n: {remote: {}}
edges: [START -> n -> END]
---
graph: failing
channels: {x: {}, y: {}}
nodes:
  n: {expr: {update: {y: "state.x.missing"}}}
edges: [START -> n -> END]
---
graph: far
channels: {x: {}, y: {}}
nodes:
  n: {remote: {endpoint: %q}}
edges: [START -> n -> END]
`

// setUp makes the graphs and threads of a tenant, which are the same in all.
func (c *tenantClient) setUp(endpoint string) {
	for document := range strings.SplitSeq(fmt.Sprintf(tenantGraphs, endpoint), "---\n") {
		_, err := c.putDocument(document + "description: of " + c.name + "\n")
		require.NoError(c.t, err)
	}
	for thread, graph := range map[string]string{"t-flow": "flow", "t-asking": "asking", "t-parent": "parent"} {
		_, err := c.StartRun(c.ctx, &graphdv1.StartRunRequest{Run: c.newRun(thread, graph), RequestId: "start-" + thread})
		require.NoError(c.t, err)
		_, err = c.WaitRun(c.ctx, &graphdv1.WaitRunRequest{ThreadId: thread})
		require.NoError(c.t, err)
	}
}
