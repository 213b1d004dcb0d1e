package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/access"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/identity/apikey"
	"github.com/graphd-dev/graphd/internal/server"
)

// overheard keeps all that a client gets from a server, or a server from its caller: the
// messages, headers and trailers, and statuses with their details.
type overheard struct {
	mu      sync.Mutex
	texts   map[string][]string // by method
	reasons map[string]bool
}

type overheardMethod struct{}

func newOverheard() *overheard {
	return &overheard{texts: map[string][]string{}, reasons: map[string]bool{}}
}

// TagRPC notes the method of a call.
func (*overheard) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, overheardMethod{}, info.FullMethodName)
}

// HandleRPC keeps what arrives.
func (o *overheard) HandleRPC(ctx context.Context, event stats.RPCStats) {
	switch e := event.(type) {
	case *stats.InHeader:
		o.add(ctx, "header", fmt.Sprint(map[string][]string(e.Header))) // metadata.MD hides values
	case *stats.InTrailer:
		o.add(ctx, "trailer", fmt.Sprint(map[string][]string(e.Trailer)))
	case *stats.InPayload:
		if m, ok := e.Payload.(proto.Message); ok {
			o.add(ctx, "message", prototext.Format(m))
		}
	case *stats.End:
		if e.Error != nil {
			o.add(ctx, "status", prototext.Format(status.Convert(e.Error).Proto()))
			o.mu.Lock()
			o.reasons[reasonOfRefusal(e.Error)] = true
			o.mu.Unlock()
		}
	}
}

func (o *overheard) add(ctx context.Context, what, text string) {
	method, _ := ctx.Value(overheardMethod{}).(string)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.texts[method] = append(o.texts[method], what+" "+text)
}

// TagConn does nothing.
func (*overheard) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn does nothing.
func (*overheard) HandleConn(context.Context, stats.ConnStats) {}

// requireNothingOf checks that no text has any of some words.
func (o *overheard) requireNothingOf(t *testing.T, words ...string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for method, texts := range o.texts {
		for _, text := range texts {
			for _, word := range words {
				require.NotContains(t, strings.ToLower(text), word, method)
				require.NotContains(t, text, base64.RawURLEncoding.EncodeToString([]byte(word)), method)
			}
		}
	}
}

// tenantClient is a client in one tenant, with all services.
type tenantClient struct {
	graphdv1.GraphServiceClient
	graphdv1.ThreadServiceClient
	graphdv1.InterruptServiceClient
	graphdv1.RegistryServiceClient
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
			graphdv1.NewRegistryServiceClient(conn), graphdv1.NewWorkerServiceClient(conn), t, t.Context(), conn, name, heard,
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

// TestNothingOfATenantLeaves makes every call in one tenant beside another with the same ids,
// and looks at all that comes back: nothing names the tenant itself, nor anything of the
// other one.
func TestNothingOfATenantLeaves(t *testing.T) {
	for name, store := range map[string]string{
		"memory": "memory",
		"sqlite": "sqlite:" + filepath.Join(t.TempDir(), "graphd.db"),
		"redis":  redistest.Start(t).URL(""),
	} {
		t.Run(name, func(t *testing.T) { testNothingLeaves(t, store) })
	}
}

func testNothingLeaves(t *testing.T, store string) {
	t.Helper()
	clients := startTenants(t, store, "acme", "zenith")
	toEndpoint := newOverheard()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	far := grpc.NewServer(grpc.StatsHandler(toEndpoint))
	graphdv1.RegisterNodeServiceServer(far, &farService{clients: clients})
	go func() { _ = far.Serve(l) }()
	t.Cleanup(far.Stop)
	for _, c := range clients {
		c.setUp(l.Addr().String())
	}
	acme, zenith := clients["acme"], clients["zenith"]
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	idle := zenith.connectAs(ctx, "w1", 4)

	acme.readEverything()
	acme.changeEverything()
	acme.runAtEndpoint()
	acme.runAtWorkers(ctx, zenith)
	acme.provokeErrors()
	acme.removeEverything()

	// The other tenant has what it had, and its worker got nothing but its own task.
	thread, err := zenith.GetThread(zenith.ctx, &graphdv1.GetThreadRequest{ThreadId: "t-flow", View: graphdv1.ThreadView_THREAD_VIEW_FULL})
	require.NoError(t, err)
	require.JSONEq(t, `{"x": "value of zenith", "y": "value of zenith"}`, thread.GetValues().GetJson())
	_, err = zenith.StartRun(zenith.ctx, &graphdv1.StartRunRequest{Run: zenith.newRun("t-remote", "remote")})
	require.NoError(t, err)
	task := nextTask(t, idle)
	require.Equal(t, "t-remote remote", task.GetThreadId()+" "+task.GetGraph())
	require.JSONEq(t, `"value of zenith"`, task.GetChannels()["x"].GetJson())
	_, err = zenith.CompleteTask(zenith.ctx, &graphdv1.CompleteTaskRequest{LeaseToken: task.GetLease().GetToken(), Result: zenith.completed()})
	require.NoError(t, err)
	_, err = zenith.WaitRun(zenith.ctx, &graphdv1.WaitRunRequest{ThreadId: "t-remote"})
	require.NoError(t, err)

	for _, row := range access.Methods() {
		if row.Scope != access.ScopeEndpoint && !strings.HasPrefix(row.Method, "/grpc.") {
			require.NotEmpty(t, acme.heard.texts[row.Method], "nothing was called: %s", row.Method)
		}
	}
	acme.heard.requireNothingOf(t, "acme@", "zenith")
	zenith.heard.requireNothingOf(t, "zenith@", "acme")
	toEndpoint.requireNothingOf(t, "acme@", "zenith")
	require.Contains(t, strings.Join(acme.heard.texts[graphdv1.GraphService_Watch_FullMethodName], " "), "graphd-thread-id:[t-asking]")
	t.Logf("reasons: %s", slices.Sorted(maps.Keys(acme.heard.reasons)))
	for _, reason := range []string{
		"ACCESS_DENIED", "CHECKPOINT_CONFLICT", "CHECKPOINT_NOT_FOUND", "ETAG_MISMATCH", "GRAPH_EXISTS", "GRAPH_IN_USE", "GRAPH_NOT_FOUND",
		"GRAPH_VERSION_UNAVAILABLE", "INPUT_SCHEMA_MISMATCH", "INTERRUPT_ALREADY_RESOLVED", "INTERRUPT_NOT_FOUND", "INVALID_CURSOR", "INVALID_FIELD",
		"INVALID_GRAPH", "INVALID_PAGE_TOKEN", "NODE_NOT_FOUND", "REQUEST_ID_CONFLICT", "RESPONSE_AMBIGUOUS", "RUN_EXISTS", "RUN_NOT_FOUND",
		"TASK_LEASE_LOST", "THREAD_BUSY", "THREAD_EXISTS", "THREAD_INTERRUPTED", "THREAD_NOT_FOUND", "THREAD_NOT_INTERRUPTED", "WORKER_REPLACED",
	} {
		require.True(t, acme.heard.reasons[reason], "%s was not provoked", reason)
	}
}

// readEverything reads and follows what setUp has made.
func (c *tenantClient) readEverything() {
	t, ctx := c.t, c.ctx
	_, err := c.GetServerInfo(ctx, &graphdv1.GetServerInfoRequest{})
	require.NoError(t, err)
	graphs, err := c.ListGraphs(ctx, &graphdv1.ListGraphsRequest{View: graphdv1.GraphView_GRAPH_VIEW_FULL})
	require.NoError(t, err)
	require.Len(t, graphs.GetGraphs(), 6)
	for _, g := range graphs.GetGraphs() {
		require.Equal(t, "of "+c.name, g.GetDescription())
		_, err := c.GetGraph(ctx, &graphdv1.GetGraphRequest{Graph: g.GetGraph(), View: graphdv1.GraphView_GRAPH_VIEW_FULL})
		require.NoError(t, err)
	}
	threads, err := c.ListThreads(ctx, &graphdv1.ListThreadsRequest{View: graphdv1.ThreadView_THREAD_VIEW_FULL, PageSize: 2})
	require.NoError(t, err)
	require.Len(t, threads.GetThreads(), 2)
	rest, err := c.ListThreads(ctx, &graphdv1.ListThreadsRequest{View: graphdv1.ThreadView_THREAD_VIEW_FULL, PageSize: 2, PageToken: threads.GetNextPageToken()})
	require.NoError(t, err)
	require.Len(t, rest.GetThreads(), 1)
	one, err := c.ListThreads(ctx, &graphdv1.ListThreadsRequest{Filter: `graph = "flow"`})
	require.NoError(t, err)
	require.Len(t, one.GetThreads(), 1)
	for _, thread := range append(threads.GetThreads(), rest.GetThreads()...) {
		id := thread.GetThreadId()
		_, err = c.GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: id})
		require.NoError(t, err)
		_, err = c.GetState(ctx, &graphdv1.GetStateRequest{ThreadId: id, Subgraphs: true})
		require.NoError(t, err)
		_, err = c.ListCheckpoints(ctx, &graphdv1.ListCheckpointsRequest{ThreadId: id, IncludeValues: true})
		require.NoError(t, err)
		runs, err := c.ListRuns(ctx, &graphdv1.ListRunsRequest{ThreadId: id, Filter: fmt.Sprintf("graph = %q", thread.GetGraph())})
		require.NoError(t, err)
		require.Len(t, runs.GetRuns(), 1)
		_, err = c.GetRun(ctx, &graphdv1.GetRunRequest{ThreadId: id, RunId: runs.GetRuns()[0].GetRunId()})
		require.NoError(t, err)
		events, err := readAll(c.Watch(ctx, &graphdv1.WatchRequest{
			ThreadId: id, Start: &graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}}, Filter: allEvents(),
		}))
		require.NoError(t, err)
		require.Greater(t, len(events), 3)
		_, err = readAll(c.Watch(ctx, &graphdv1.WatchRequest{ThreadId: id, SnapshotFirst: true}))
		require.NoError(t, err)
	}
	questions, err := c.ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{Filter: `thread_id = "t-asking" AND graph = "asking"`})
	require.NoError(t, err)
	require.Len(t, questions.GetInterrupts(), 2)
	for _, q := range questions.GetInterrupts() {
		_, err = c.GetInterrupt(ctx, &graphdv1.GetInterruptRequest{ThreadId: q.GetThreadId(), InterruptId: q.GetInterruptId()})
		require.NoError(t, err)
	}
	_, err = healthpb.NewHealthClient(c.conn).Check(ctx, &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
}

func allEvents() *graphdv1.EventFilter {
	return &graphdv1.EventFilter{Channels: []graphdv1.Channel{
		graphdv1.Channel_CHANNEL_UPDATES, graphdv1.Channel_CHANNEL_VALUES, graphdv1.Channel_CHANNEL_MESSAGES, graphdv1.Channel_CHANNEL_CUSTOM,
		graphdv1.Channel_CHANNEL_DEBUG,
	}}
}

// changeEverything runs, answers and changes threads while it follows the inbox.
func (c *tenantClient) changeEverything() {
	t, ctx := c.t, c.ctx
	following, leave := context.WithCancel(ctx)
	defer leave()
	inbox, err := c.WatchInterrupts(following, &graphdv1.WatchInterruptsRequest{})
	require.NoError(t, err)
	nextQuestion := func() *graphdv1.Interrupt {
		for {
			change, err := inbox.Recv()
			require.NoError(t, err)
			if q := change.GetInterrupt(); q != nil {
				return q
			}
		}
	}
	require.Equal(t, "t-asking", nextQuestion().GetThreadId())
	require.Equal(t, "t-asking", nextQuestion().GetThreadId())

	made, err := c.CreateThread(ctx, &graphdv1.CreateThreadRequest{RequestId: "make", Thread: &graphdv1.Thread{Graph: "flow"}})
	require.NoError(t, err)
	again, err := c.CreateThread(ctx, &graphdv1.CreateThreadRequest{RequestId: "make", Thread: &graphdv1.Thread{Graph: "flow"}})
	require.NoError(t, err)
	require.Equal(t, made.GetThreadId(), again.GetThreadId())
	for _, graph := range []string{"flow", "parent", "failing"} {
		spec := c.newRun("", graph) // the server makes the thread
		events, err := readAll(c.Stream(ctx, &graphdv1.StreamRequest{Run: spec, Filter: allEvents()}))
		require.NoError(t, err)
		_, err = c.GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: events[0].GetThreadId()})
		require.NoError(t, err)
	}
	events, err := readAll(c.Stream(ctx, &graphdv1.StreamRequest{Run: c.newRun("t-new", "asking"), Filter: allEvents(), RequestId: "new"}))
	require.NoError(t, err)
	require.NotEmpty(t, events)
	first, second := nextQuestion(), nextQuestion()
	_, err = c.UpdateInterrupt(ctx, &graphdv1.UpdateInterruptRequest{
		Interrupt:  &graphdv1.Interrupt{ThreadId: "t-new", InterruptId: first.GetInterruptId(), Assignees: []string{"ana"}},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"assignees"}},
	})
	require.NoError(t, err)
	require.Equal(t, []string{"ana"}, nextQuestion().GetAssignees())
	answer := func(q *graphdv1.Interrupt) *graphdv1.ResumeSpec {
		return &graphdv1.ResumeSpec{ThreadId: "t-new", Responses: []*graphdv1.InterruptResponse{{
			InterruptId: q.GetInterruptId(), Outcome: &graphdv1.InterruptResponse_Value{Value: jsonPayload(`"yes"`)},
		}}}
	}
	_, err = readAll(c.Resume(ctx, &graphdv1.ResumeRequest{Resume: answer(first), Filter: allEvents()}))
	require.NoError(t, err)
	_, err = c.ResumeRun(ctx, &graphdv1.ResumeRunRequest{Resume: answer(second)})
	require.NoError(t, err)
	_, err = c.WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: "t-new"})
	require.NoError(t, err)

	_, err = c.UpdateThread(ctx, &graphdv1.UpdateThreadRequest{Thread: &graphdv1.Thread{ThreadId: "t-flow", Metadata: map[string]string{"a": "b"}}})
	require.NoError(t, err)
	_, err = c.UpdateState(ctx, &graphdv1.UpdateStateRequest{ThreadId: "t-flow", Values: jsonPayload(`{"x": "changed"}`)})
	require.NoError(t, err)
	_, err = c.BulkUpdateState(ctx, &graphdv1.BulkUpdateStateRequest{ThreadId: "t-flow", Supersteps: []*graphdv1.StateSuperstep{
		{Updates: []*graphdv1.StateUpdate{{Values: jsonPayload(`{"x": "again"}`)}}},
	}})
	require.NoError(t, err)
	forked, err := c.ForkThread(ctx, &graphdv1.ForkThreadRequest{SourceThreadId: "t-flow"})
	require.NoError(t, err)
	copied, err := c.CopyThread(ctx, &graphdv1.CopyThreadRequest{SourceThreadId: "t-asking", RequestId: "copy"})
	require.NoError(t, err)
	for _, id := range []string{forked.GetThreadId(), copied.GetThreadId()} {
		_, err = c.GetState(ctx, &graphdv1.GetStateRequest{ThreadId: id})
		require.NoError(t, err)
	}
	_, err = c.PruneThread(ctx, &graphdv1.PruneThreadRequest{ThreadId: "t-flow", KeepCheckpoints: 1})
	require.NoError(t, err)
}

// runAtEndpoint runs a node that an endpoint has.
func (c *tenantClient) runAtEndpoint() {
	events, err := readAll(c.Stream(c.ctx, &graphdv1.StreamRequest{Run: c.newRun("t-far", "far"), Filter: allEvents()}))
	require.NoError(c.t, err)
	end := events[len(events)-1].GetEnd()
	require.Equal(c.t, graphdv1.RunState_RUN_STATE_SUCCEEDED, end.GetRun().GetState(), "%v", end.GetRun().GetFailure())
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
	_, err = c.RecordMemo(ctx, &graphdv1.RecordMemoRequest{LeaseToken: token, Key: "k", Value: jsonPayload("1")})
	require.NoError(t, err)
	_, err = c.CallGraph(ctx, &graphdv1.CallGraphRequest{LeaseToken: token, Graph: "flow", Input: c.value("x")})
	require.NoError(t, err)
	_, err = c.CallGraph(ctx, &graphdv1.CallGraphRequest{LeaseToken: token, Graph: "parent", Input: c.value("x")})
	require.Equal(t, "INVALID_FIELD", reasonOfRefusal(err))
	_, err = c.CallGraph(ctx, &graphdv1.CallGraphRequest{LeaseToken: token, CallIndex: 1, Graph: "nowhere", Input: c.value("x")})
	require.Equal(t, "GRAPH_NOT_FOUND", reasonOfRefusal(err))
	_, err = c.CompleteTask(ctx, &graphdv1.CompleteTaskRequest{LeaseToken: token, Result: c.completed()})
	require.NoError(t, err)
	_, err = readAll(stream, nil)
	require.NoError(t, err)

	second := c.connectAs(ctx, "w1", 1) // takes the place of the first, and of no other tenant's
	for err = nil; err == nil; {
		_, err = first.Recv()
	}
	require.Equal(t, "WORKER_REPLACED", reasonOfRefusal(err))
	_, err = c.StartRun(ctx, &graphdv1.StartRunRequest{Run: c.newRun("t-brought", "brought")})
	require.NoError(t, err)
	task = nextTask(t, second)
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

// errOf returns the error of a call.
func errOf[T any](_ T, err error) error { return err }

// provokeErrors makes calls that are refused, each for another reason.
func (c *tenantClient) provokeErrors() {
	ctx := c.ctx
	start := func(spec *graphdv1.RunSpec, request string) error {
		_, err := c.StartRun(ctx, &graphdv1.StartRunRequest{Run: spec, RequestId: request})
		return err
	}
	resume := func(spec *graphdv1.ResumeSpec) error {
		_, err := c.ResumeRun(ctx, &graphdv1.ResumeRunRequest{Resume: spec})
		return err
	}
	var others []string
	yes := &graphdv1.InterruptResponse_Value{Value: jsonPayload(`"yes"`)}
	for reason, calls := range map[string][]func() error{
		"THREAD_NOT_FOUND": {
			func() error { return start(&graphdv1.RunSpec{ThreadId: "none", Graph: "flow"}, "") },
			func() error { return resume(&graphdv1.ResumeSpec{ThreadId: "none"}) },
			func() error { _, err := c.GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: "none"}); return err },
			func() error { _, err := c.GetState(ctx, &graphdv1.GetStateRequest{ThreadId: "none"}); return err },
			func() error { _, err := c.ListRuns(ctx, &graphdv1.ListRunsRequest{ThreadId: "none"}); return err },
			func() error { _, err := c.WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: "none"}); return err },
			func() error { _, err := c.CancelRun(ctx, &graphdv1.CancelRunRequest{ThreadId: "none"}); return err },
			func() error { return errOf(c.ForkThread(ctx, &graphdv1.ForkThreadRequest{SourceThreadId: "none"})) },
			func() error { return errOf(c.CopyThread(ctx, &graphdv1.CopyThreadRequest{SourceThreadId: "none"})) },
			func() error { _, err := readAll(c.Watch(ctx, &graphdv1.WatchRequest{ThreadId: "none"})); return err },
		},
		"RUN_NOT_FOUND": {
			func() error { return errOf(c.GetRun(ctx, &graphdv1.GetRunRequest{ThreadId: "t-flow", RunId: "none"})) },
		},
		"GRAPH_NOT_FOUND": {
			func() error { return start(c.newRun("", "none"), "") },
			func() error { _, err := c.GetGraph(ctx, &graphdv1.GetGraphRequest{Graph: "none"}); return err },
		},
		"GRAPH_VERSION_UNAVAILABLE": {
			func() error { return errOf(c.GetGraph(ctx, &graphdv1.GetGraphRequest{Graph: "flow", Version: "none"})) },
			func() error {
				return errOf(c.DeleteGraphVersion(ctx, &graphdv1.DeleteGraphVersionRequest{Graph: "flow", Version: "none"}))
			},
		},
		"GRAPH_EXISTS": {
			func() error {
				_, first := c.putDocument("graph: pinned\nversion: v1\nchannels: {x: {}}\nnodes: {n: {expr: {}}}\nedges: [START -> n -> END]\n")
				_, err := c.putDocument("graph: pinned\nversion: v1\nchannels: {x: {}}\nnodes: {m: {expr: {}}}\nedges: [START -> m -> END]\n")
				return errors.Join(first, err)
			},
		},
		"GRAPH_IN_USE": {
			func() error { _, err := c.DeleteGraph(ctx, &graphdv1.DeleteGraphRequest{Graph: "flow"}); return err },
			func() error { _, err := c.DeleteGraph(ctx, &graphdv1.DeleteGraphRequest{Graph: "asking"}); return err },
		},
		"INVALID_GRAPH": {
			func() error {
				return errOf(c.putDocument("graph: bad\nchannels: {x: {}}\nnodes: {n: {graph: none}}\nedges: [START -> n -> END]\n"))
			},
			func() error {
				return errOf(c.putDocument("graph: 'a@flow'\nchannels: {x: {}}\nnodes: {n: {expr: {}}}\nedges: [START -> n -> END]\n"))
			},
		},
		"NODE_NOT_FOUND": {
			func() error {
				spec := c.newRun("t-flow", "flow")
				spec.InterruptBefore = []string{"none"}
				return start(spec, "")
			},
			func() error {
				return errOf(c.UpdateState(ctx, &graphdv1.UpdateStateRequest{ThreadId: "t-flow", AsNode: "none", Values: jsonPayload(`{}`)}))
			},
		},
		"CHECKPOINT_NOT_FOUND": {
			func() error {
				return errOf(c.GetState(ctx, &graphdv1.GetStateRequest{ThreadId: "t-flow", At: &graphdv1.CheckpointRef{CheckpointId: "none"}}))
			},
		},
		"CHECKPOINT_CONFLICT": {
			func() error {
				spec := c.newRun("t-flow", "flow")
				spec.ExpectedCheckpointId = "none"
				return start(spec, "")
			},
		},
		"INTERRUPT_NOT_FOUND": {
			func() error {
				return errOf(c.GetInterrupt(ctx, &graphdv1.GetInterruptRequest{ThreadId: "t-asking", InterruptId: "none"}))
			},
			func() error {
				return resume(&graphdv1.ResumeSpec{ThreadId: "t-asking", Responses: []*graphdv1.InterruptResponse{{InterruptId: "none", Outcome: yes}}})
			},
		},
		"INTERRUPT_ALREADY_RESOLVED": {
			func() error {
				all, err := c.ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{Filter: `thread_id = "t-new" AND state = "*"`})
				if err != nil {
					return err
				}
				_, err = c.UpdateInterrupt(ctx, &graphdv1.UpdateInterruptRequest{
					Interrupt: &graphdv1.Interrupt{ThreadId: "t-new", InterruptId: all.GetInterrupts()[0].GetInterruptId(), Assignees: []string{"x"}},
				})
				return err
			},
		},
		"RESPONSE_AMBIGUOUS": {
			func() error {
				return resume(&graphdv1.ResumeSpec{ThreadId: "t-asking", Single: &graphdv1.InterruptResponse{Outcome: yes}})
			},
		},
		"THREAD_EXISTS": {
			func() error {
				return errOf(c.CreateThread(ctx, &graphdv1.CreateThreadRequest{ThreadId: "t-flow", Thread: &graphdv1.Thread{Graph: "flow"}}))
			},
			func() error {
				return errOf(c.CopyThread(ctx, &graphdv1.CopyThreadRequest{SourceThreadId: "t-flow", ThreadId: "t-asking"}))
			},
		},
		"RUN_EXISTS": {
			func() error {
				runs, err := c.ListRuns(ctx, &graphdv1.ListRunsRequest{ThreadId: "t-parent"})
				if err != nil {
					return err
				}
				spec := c.newRun("t-parent", "parent")
				spec.RunId, spec.Start = runs.GetRuns()[0].GetRunId(), &graphdv1.RunSpec_Input{Input: jsonPayload(`{"x": "other"}`)}
				return start(spec, "")
			},
		},
		"REQUEST_ID_CONFLICT": {
			func() error {
				spec := c.newRun("t-flow", "flow")
				spec.Metadata = map[string]string{"other": "content"}
				return start(spec, "start-t-flow")
			},
		},
		"THREAD_INTERRUPTED": {func() error { return start(c.newRun("t-asking", "asking"), "") }},
		"THREAD_NOT_INTERRUPTED": {
			func() error {
				return resume(&graphdv1.ResumeSpec{ThreadId: "t-flow", Single: &graphdv1.InterruptResponse{Outcome: yes}})
			},
		},
		"THREAD_BUSY": {
			func() error {
				// The worker of "remote" has gone, and no other takes the task.
				err := start(c.newRun("t-busy", "remote"), "")
				return errors.Join(err, start(c.newRun("t-busy", "remote"), ""))
			},
			func() error { return errOf(c.CopyThread(ctx, &graphdv1.CopyThreadRequest{SourceThreadId: "t-busy"})) },
			func() error { return errOf(c.DeleteThread(ctx, &graphdv1.DeleteThreadRequest{ThreadId: "t-busy"})) },
		},
		"ETAG_MISMATCH": {
			func() error {
				return errOf(c.DeleteThread(ctx, &graphdv1.DeleteThreadRequest{ThreadId: "t-flow", Etag: "99999"}))
			},
		},
		"INPUT_SCHEMA_MISMATCH": {
			func() error {
				return start(&graphdv1.RunSpec{ThreadId: "t-flow", Start: &graphdv1.RunSpec_Input{Input: jsonPayload(`{"x": 1}`)}}, "")
			},
		},
		"INVALID_CURSOR": {
			func() error {
				return errOf(readAll(c.Watch(ctx, &graphdv1.WatchRequest{
					ThreadId: "t-flow", Start: &graphdv1.WatchRequest_After{After: &graphdv1.Cursor{LogId: "none", Sequence: 1}},
				})))
			},
			func() error {
				return errOf(readAll(c.WatchInterrupts(ctx, &graphdv1.WatchInterruptsRequest{ResumeToken: "none"})))
			},
		},
		"INVALID_PAGE_TOKEN": {
			func() error { return errOf(c.ListThreads(ctx, &graphdv1.ListThreadsRequest{PageToken: "none"})) },
		},
		"INVALID_FIELD": {
			func() error { return start(c.newRun("t-flow", "asking"), "") },
			func() error { return start(&graphdv1.RunSpec{Graph: "parent"}, "") },
			func() error { return start(c.newRun("other@t-flow", "flow"), "") },
			func() error { return start(c.newRun("t-flow", "other@flow"), "") },
			func() error {
				return errOf(c.ListThreads(ctx, &graphdv1.ListThreadsRequest{Filter: `graph = "other@flow"`}))
			},
		},
		"ACCESS_DENIED": {
			func() error {
				return errOf(c.GetThread(choose(ctx, "other"), &graphdv1.GetThreadRequest{ThreadId: "t-flow"}))
			},
		},
		"TASK_LEASE_LOST": {
			func() error {
				return errOf(c.CompleteTask(ctx, &graphdv1.CompleteTaskRequest{LeaseToken: []byte("none"), Result: c.completed()}))
			},
		},
	} {
		for i, call := range calls {
			err := call()
			if joined, ok := err.(interface{ Unwrap() []error }); ok {
				err = joined.Unwrap()[len(joined.Unwrap())-1]
			}
			if reasonOfRefusal(err) != reason {
				others = append(others, fmt.Sprintf("%s, call %d: %v", reason, i, err))
			}
		}
	}
	require.Empty(c.t, others, "calls with another error")
}

// removeEverything stops and deletes what there is.
func (c *tenantClient) removeEverything() {
	t, ctx := c.t, c.ctx
	_, err := c.CancelRun(ctx, &graphdv1.CancelRunRequest{ThreadId: "t-busy", Wait: true})
	require.NoError(t, err)
	for {
		page, err := c.ListThreads(ctx, &graphdv1.ListThreadsRequest{PageSize: 3})
		require.NoError(t, err)
		if len(page.GetThreads()) == 0 {
			break
		}
		for _, thread := range page.GetThreads() {
			_, err = c.DeleteThread(ctx, &graphdv1.DeleteThreadRequest{ThreadId: thread.GetThreadId(), Force: true})
			require.NoError(t, err)
		}
	}
	flow, err := c.GetGraph(ctx, &graphdv1.GetGraphRequest{Graph: "flow"})
	require.NoError(t, err)
	_, err = c.DeleteGraph(ctx, &graphdv1.DeleteGraphRequest{Graph: "parent"})
	require.NoError(t, err)
	_, err = c.DeleteGraphVersion(ctx, &graphdv1.DeleteGraphVersionRequest{Graph: "flow", Version: flow.GetVersion()})
	require.NoError(t, err)
	_, err = c.GetGraph(ctx, &graphdv1.GetGraphRequest{Graph: "flow"})
	require.Equal(t, "GRAPH_NOT_FOUND", reasonOfRefusal(err))
}

// TestListsOfTenantsBesideEachOther reads lists of two tenants page by page, in turn, as one
// caller with both. A token or a position of one tenant is refused in the other.
func TestListsOfTenantsBesideEachOther(t *testing.T) {
	s := startAccessServer(t)
	root := s.as(t.Context(), "root")
	inTenant := map[string]context.Context{"default": root, otherTenant: choose(root, otherTenant)}
	threads, runs, inbox := graphdv1.NewThreadServiceClient(s.conn), graphdv1.NewGraphServiceClient(s.conn), graphdv1.NewInterruptServiceClient(s.conn)
	registry := graphdv1.NewRegistryServiceClient(s.conn)
	want := map[string][]string{"default": {"asking", "hidden", "open"}, otherTenant: {"asking", "hidden", "open"}}
	for i := range 8 {
		for owner, ctx := range inTenant {
			id := fmt.Sprintf("same-%d", i)
			if i%2 > 0 {
				id = owner + "-" + id
			}
			spec := &graphdv1.RunSpec{ThreadId: id, CreateThread: true, Graph: "asking", Start: &graphdv1.RunSpec_Input{Input: jsonPayload("{}")}}
			require.NoError(t, errOf(runs.StartRun(ctx, &graphdv1.StartRunRequest{Run: spec})))
			require.NoError(t, errOf(runs.WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: id})))
			want[owner] = append(want[owner], id)
		}
	}
	lists := map[string]func(ctx context.Context, token string) (names []string, next string, err error){
		"threads": func(ctx context.Context, token string) (names []string, next string, err error) {
			page, err := threads.ListThreads(ctx, &graphdv1.ListThreadsRequest{PageSize: 3, PageToken: token})
			for _, th := range page.GetThreads() {
				names = append(names, th.GetThreadId())
			}
			return names, page.GetNextPageToken(), err
		},
		"interrupts": func(ctx context.Context, token string) (names []string, next string, err error) {
			page, err := inbox.ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{PageSize: 3, PageToken: token})
			for _, q := range page.GetInterrupts() {
				names = append(names, q.GetThreadId())
			}
			return names, page.GetNextPageToken(), err
		},
		"graphs": func(ctx context.Context, token string) (names []string, next string, err error) {
			page, err := registry.ListGraphs(ctx, &graphdv1.ListGraphsRequest{PageSize: 2, PageToken: token})
			for _, g := range page.GetGraphs() {
				names = append(names, g.GetGraph())
			}
			return names, page.GetNextPageToken(), err
		},
	}
	for name, list := range lists {
		got, tokens := map[string][]string{}, map[string]string{"default": "", otherTenant: ""}
		for len(tokens) > 0 {
			for owner, token := range maps.Clone(tokens) {
				names, next, err := list(inTenant[owner], token)
				require.NoError(t, err, name)
				got[owner] = append(got[owner], names...)
				if tokens[owner] = next; next == "" {
					delete(tokens, owner)
					continue
				}
				for foreign, ctx := range inTenant {
					if foreign != owner {
						_, _, err := list(ctx, next)
						require.Equal(t, "INVALID_PAGE_TOKEN", reasonOfRefusal(err), name)
					}
				}
			}
		}
		for owner := range inTenant {
			expected := want[owner]
			switch name {
			case "graphs":
				expected = expected[:3]
			case "interrupts":
				expected = expected[3:]
			}
			require.ElementsMatch(t, expected, got[owner], "%s of %s", name, owner)
		}
	}
	requirePositionsOfOneTenant(t, s, inTenant)
}

// requirePositionsOfOneTenant continues the watches of a tenant in another one, where the
// thread has the same id.
func requirePositionsOfOneTenant(t *testing.T, s *accessServer, inTenant map[string]context.Context) {
	t.Helper()
	for owner, ctx := range inTenant {
		following, leave := context.WithCancel(ctx)
		inbox, err := graphdv1.NewInterruptServiceClient(s.conn).WatchInterrupts(following, &graphdv1.WatchInterruptsRequest{})
		require.NoError(t, err)
		var token string
		for token == "" {
			change, err := inbox.Recv()
			require.NoError(t, err)
			token = change.GetResumeToken()
		}
		leave()
		thread, err := graphdv1.NewThreadServiceClient(s.conn).GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: "same-0"})
		require.NoError(t, err)
		for foreign, other := range inTenant {
			if foreign == owner {
				continue
			}
			_, err = readAll(graphdv1.NewInterruptServiceClient(s.conn).WatchInterrupts(other, &graphdv1.WatchInterruptsRequest{ResumeToken: token}))
			require.Equal(t, "INVALID_CURSOR", reasonOfRefusal(err))
			_, err = readAll(graphdv1.NewGraphServiceClient(s.conn).Watch(other, &graphdv1.WatchRequest{
				ThreadId: "same-0", Start: &graphdv1.WatchRequest_After{After: thread.GetHead()},
			}))
			require.Equal(t, "INVALID_CURSOR", reasonOfRefusal(err))
		}
	}
}
