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
	grpcmetadata "google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/access"
	"github.com/graphd-dev/graphd/internal/identity/apikey"
	"github.com/graphd-dev/graphd/internal/server"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// accessServer is a server with a caller for each role, by the name of the role, which
// has it for the graphs "open" and "asking" and not for "hidden". The caller "root" may do
// everything. Each graph has a thread of its name. All that is so in two tenants, the
// callers' own and otherTenant, which they choose with the header.
type accessServer struct {
	conn   *grpc.ClientConn
	http   string            // URL of the API for browsers
	tokens map[string]string // by caller
	policy string            // path
	audit  string            // path of the records of calls
}

// otherTenant is the tenant that the callers of an accessServer may choose.
const otherTenant = "zenith"

const rolePolicyHead = `bindings:
- {roles: [admin], principals: [root], rights: [approve-changes], tenants: ["*"]}
- {roles: [author], principals: [approver], graphs: [open, asking], rights: [approve-changes]}
`

func startAccessServer(t *testing.T) *accessServer {
	t.Helper()
	dir := t.TempDir()
	s := &accessServer{tokens: map[string]string{}, policy: filepath.Join(dir, "access.yaml"), audit: filepath.Join(dir, "audit.jsonl")}
	keys := filepath.Join(dir, "keys.yaml")
	text := rolePolicyHead
	names := []string{"root", "unbound", "approver"}
	for _, row := range access.Roles() {
		names = append(names, string(row.Role))
		text += fmt.Sprintf("- {roles: [%s], principals: [%s], graphs: [open, asking, elsewhere, nowhere], tenants: [\"*\"]}\n", row.Role, row.Role)
	}
	require.NoError(t, os.WriteFile(s.policy, []byte(text), 0o600))
	for _, name := range names {
		_, token, err := apikey.Create(t.Context(), keys, apikey.Key{Name: name, Tenants: []string{tenant.Default, otherTenant}}, time.Now())
		require.NoError(t, err)
		s.tokens[name] = token
	}
	started := startServerWith(t, server.Options{
		Store: "memory", CallerOptions: server.CallerOptions{APIKeys: keys}, AccessOptions: server.AccessOptions{Access: s.policy},
		HTTPOptions:  server.HTTPOptions{HTTP: "127.0.0.1:0", MaxHTTPConnections: 100},
		LimitOptions: server.LimitOptions{Reflection: true, MaxMessage: 8 << 20, MaxIncoming: 64 << 20, Stall: 30 * time.Second}, AuditOptions: server.AuditOptions{Audit: []string{"file:" + s.audit}},
	})
	s.http = started.http
	var err error
	s.conn, err = grpc.NewClient(started.server, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.conn.Close()) })
	for _, root := range []context.Context{s.as(t.Context(), "root"), choose(s.as(t.Context(), "root"), otherTenant)} {
		for _, name := range []string{"open", "hidden", "asking"} {
			s.addGraph(t, root, name)
		}
	}
	return s
}

// addGraph puts a graph and makes a thread of its name.
func (s *accessServer) addGraph(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	s.putGraph(t, ctx, name, name == "asking")
	_, err := graphdv1.NewThreadServiceClient(s.conn).CreateThread(ctx, &graphdv1.CreateThreadRequest{ThreadId: name, Thread: &graphdv1.Thread{Graph: name}})
	require.NoError(t, err)
}

// choose returns the context of calls in a tenant.
func choose(ctx context.Context, name string) context.Context {
	return grpcmetadata.AppendToOutgoingContext(ctx, "graphd-tenant", name)
}

// as returns the context of the calls of a caller.
func (s *accessServer) as(ctx context.Context, caller string) context.Context {
	return grpcmetadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+s.tokens[caller])
}

const openGraph = `graph: %s
channels: {x: {}}
nodes:
  n: {expr: {update: {x: "1"}}}
edges: [{from: __start__, to: n}]
`

const askingGraph = openGraph + `interrupt_before: [n]
`

func (s *accessServer) putGraph(t *testing.T, ctx context.Context, name string, asks bool) {
	t.Helper()
	text := openGraph
	if asks {
		text = askingGraph
	}
	_, err := graphdv1.NewRegistryServiceClient(s.conn).PutGraph(ctx, &graphdv1.PutGraphRequest{
		Definition: &graphdv1.PutGraphRequest_Document{Document: fmt.Sprintf(text, name)}, DocumentName: "g.yaml",
	})
	require.NoError(t, err)
}

// call makes a call by the name of its method and returns its first error.
func (s *accessServer) call(t *testing.T, ctx context.Context, method string, request proto.Message) error {
	t.Helper()
	_, err := s.callForAnswer(t, ctx, method, request)
	return err
}

// callForAnswer is call with the first answer.
func (s *accessServer) callForAnswer(t *testing.T, ctx context.Context, method string, request proto.Message) (*dynamicpb.Message, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := findMethod(t, method)
	answer := dynamicpb.NewMessage(m.Output())
	if !m.IsStreamingServer() {
		return answer, s.conn.Invoke(ctx, method, request, answer)
	}
	stream, err := s.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: m.IsStreamingClient()}, method)
	require.NoError(t, err)
	if err := stream.SendMsg(request); err != nil && !errors.Is(err, io.EOF) {
		return answer, err
	}
	if err := stream.RecvMsg(answer); !errors.Is(err, io.EOF) {
		return answer, err
	}
	return answer, nil
}

func findMethod(t *testing.T, method string) protoreflect.MethodDescriptor {
	t.Helper()
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", ".")))
	require.NoError(t, err)
	m, ok := found.(protoreflect.MethodDescriptor)
	require.True(t, ok)
	return m
}

// requestTexts has a request for each method, with GRAPH for a graph and its thread. A
// call that is permitted changes nothing: it asks for what there is not.
func requestTexts() map[string]string {
	const graph, thread, interrupts, registry, assistants, items, crons, worker = "GraphService/", "ThreadService/", "InterruptService/", "RegistryService/", "AssistantService/", "ItemService/", "CronService/", "WorkerService/"
	return map[string]string{
		graph + "Stream":        `run {thread_id: "GRAPH" expected_checkpoint_id: "none" input {json: "{}"}}`,
		graph + "StartRun":      `run {thread_id: "GRAPH" expected_checkpoint_id: "none" input {json: "{}"}}`,
		graph + "Resume":        `resume {thread_id: "GRAPH" responses {interrupt_id: "none" value {json: "1"}}}`,
		graph + "ResumeRun":     `resume {thread_id: "GRAPH" responses {interrupt_id: "none" value {json: "1"}}}`,
		graph + "Watch":         `thread_id: "GRAPH" run_id: "none"`,
		graph + "WaitRun":       `thread_id: "GRAPH" run_id: "none"`,
		graph + "GetRun":        `thread_id: "GRAPH" run_id: "none"`,
		graph + "ListRuns":      `thread_id: "GRAPH"`,
		graph + "CancelRun":     `thread_id: "GRAPH" run_id: "none"`,
		graph + "AddRunWebhook": `thread_id: "GRAPH" run_id: "none" webhook_id: "w" url: "https://example.com/"`,

		thread + "CreateThread":    `thread_id: "root-thread" thread {graph: "GRAPH"}`,
		thread + "GetThread":       `thread_id: "GRAPH"`,
		thread + "ListThreads":     ``,
		thread + "UpdateThread":    `thread {thread_id: "GRAPH" etag: "999"  metadata {key: "a" value: "b"}}`,
		thread + "DeleteThreads":   `thread_ids: "GRAPH-none"`,
		thread + "DeleteThread":    `thread_id: "GRAPH" etag: "999"`,
		thread + "ForkThread":      `source_thread_id: "GRAPH" at {checkpoint_id: "none"}`,
		thread + "CopyThread":      `source_thread_id: "GRAPH" thread_id: "GRAPH"`,
		thread + "PruneThread":     `thread_id: "GRAPH" keep_checkpoints: 1 etag: "999"`,
		thread + "GetState":        `thread_id: "GRAPH"`,
		thread + "UpdateState":     `thread_id: "GRAPH" expected_checkpoint_id: "none" values {json: "{}"}`,
		thread + "BulkUpdateState": `thread_id: "GRAPH" expected_checkpoint_id: "none" supersteps {updates {values {json: "{}"}}}`,
		thread + "ListCheckpoints": `thread_id: "GRAPH"`,

		interrupts + "ListInterrupts":         ``,
		interrupts + "CountInterrupts":        `filters: ""`,
		interrupts + "GetInterruptStatistics": ``,
		interrupts + "GetAnswerStatistics":    `graph: "GRAPH" node: "n"`,
		interrupts + "GetInterrupt":           `thread_id: "GRAPH" interrupt_id: "none"`,
		interrupts + "ClaimInterrupt":         `thread_id: "GRAPH" interrupt_id: "none"`,
		interrupts + "ReleaseInterrupt":       `thread_id: "GRAPH" interrupt_id: "none"`,
		interrupts + "DelegateInterrupt":      `thread_id: "GRAPH" interrupt_id: "none" to: "x"`,
		interrupts + "RevealInterrupt":        `thread_id: "GRAPH" interrupt_id: "none"`,
		interrupts + "MakeLink":               `thread_id: "GRAPH" interrupt_id: "none"`,
		interrupts + "RetractResponse":        `thread_id: "GRAPH" interrupt_id: "none"`,
		interrupts + "CheckResponses":         `thread_id: "GRAPH" responses {interrupt_id: "none" value {json: "1"}}`,
		interrupts + "CommentInterrupt":       `thread_id: "GRAPH" interrupt_id: "none" text: "x"`,
		interrupts + "AnswerInterrupts":       `filter: "graph = \"GRAPH\"" expected_count: 9999 value {json: "1"}`,
		interrupts + "ListTrail":              `thread_id: "GRAPH" interrupt_id: "none"`,
		interrupts + "UpdateInterrupt":        `interrupt {thread_id: "GRAPH" interrupt_id: "none" assignees: "x"} update_mask {paths: "assignees"}`,
		interrupts + "WatchInterrupts":        ``,

		registry + "GetServerInfo":      ``,
		registry + "ListGraphs":         ``,
		registry + "GetGraph":           `graph: "GRAPH"`,
		registry + "PutGraph":           `validate_only: true spec {name: "GRAPH" nodes {name: "n" expr {}} edges {sources: "__start__" target: "n"}}`,
		registry + "DeleteGraph":        `graph: "GRAPH"`,
		registry + "DeleteGraphVersion": `graph: "GRAPH" version: "none"`,
		registry + "ListWorkers":        ``,

		assistants + "CreateAssistant":          `assistant {graph: "GRAPH"}`,
		assistants + "GetAssistant":             `assistant_id: "none"`,
		assistants + "ListAssistants":           ``,
		assistants + "UpdateAssistant":          `assistant {assistant_id: "none" name: "x"}`,
		assistants + "ListAssistantVersions":    `assistant_id: "none"`,
		assistants + "ActivateAssistantVersion": `assistant_id: "none" version: 1`,
		assistants + "DeleteAssistant":          `assistant_id: "none"`,

		items + "PutItem":            `namespace: "a" key: "k"`,
		items + "GetItem":            `namespace: "a" key: "none"`,
		items + "DeleteItem":         `namespace: "a" key: "none"`,
		items + "SearchItems":        ``,
		items + "ListItemNamespaces": ``,

		crons + "CreateCron": `cron {schedule: "none" run {graph: "GRAPH"}}`,
		crons + "GetCron":    `cron_id: "none"`,
		crons + "ListCrons":  ``,
		crons + "UpdateCron": `cron {cron_id: "none" paused: true}`,
		crons + "DeleteCron": `cron_id: "none"`,

		worker + "Connect":      ``,
		worker + "CompleteTask": `lease_token: "none" result {}`,
		worker + "RecordMemo":   `lease_token: "none" key: "k" value {json: "1"}`,
		worker + "CallGraph":    `lease_token: "none" graph: "GRAPH" input {json: "1"}`,

		"grpc.health.v1.Health/Check":                                   ``,
		"grpc.health.v1.Health/List":                                    ``,
		"grpc.health.v1.Health/Watch":                                   ``,
		"grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      ``,
		"grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": ``,
	}
}

func newRequest(t *testing.T, method, graph string) *dynamicpb.Message {
	t.Helper()
	text, ok := requestTexts()[strings.TrimPrefix(strings.TrimPrefix(method, "/"), "graphd.v1.")]
	require.True(t, ok, "no request for %s", method)
	request := dynamicpb.NewMessage(findMethod(t, method).Input())
	require.NoError(t, prototext.Unmarshal([]byte(strings.ReplaceAll(text, "GRAPH", graph)), request), method)
	return request
}
