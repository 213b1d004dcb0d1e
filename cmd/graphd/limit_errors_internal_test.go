package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/server"
)

// limitCase exceeds one limit of a server, and returns the error or the failure of
// the run.
type limitCase struct {
	value        string   // of the option
	otherOptions []string // other options
	exceedLimit  func(s *limitedServer) (reason string, meta map[string]string)
	// limitIsValue means that limit is the value: the reason is older than the
	// rule, and keeps its keys.
	limitIsValue bool
}

// waitingLimits are the limits that refuse nothing. Beyond them a call waits, a
// part is left out or counted as another, or a connection ends.
var waitingLimits = []string{
	"max-connections", "max-connection-calls", "max-unread", "max-stream-unread", "max-recent-events", "max-recent-threads", "unread-patience",
	"connection-age", "connection-grace", "connection-idle", "heartbeat", "stall", "reflection", "max-endpoints", "metric-names",
	"statistics-groups",
	"parallel-tasks", "request-patience", "store-timeout", "endpoint-idle", "graph-cache-bytes", "schema-cache-bytes", "change-wait",
	"disk-reserve", "graph-tombstones", "max-waiting-events", "max-waiting-results", "max-kept-bytes",
}

const (
	doublingUpdate = `{"x":"state.x + state.x"}`
	summingUpdate  = `{"x":"lists.range(1000).map(i, lists.range(1000).map(j, i * j)).size()"}`
)

func limitCases() map[string]limitCase {
	long := strings.Repeat("x", 5000)
	put := func(document string) func(s *limitedServer) (string, map[string]string) {
		return func(s *limitedServer) (string, map[string]string) { return s.reasonOf(s.putGraph(document)) }
	}
	start := func(input string) func(s *limitedServer) (string, map[string]string) {
		return func(s *limitedServer) (string, map[string]string) {
			s.mustPutGraph(newGraphJSON("g", `{"x":"state.x"}`))
			return s.reasonOf(s.startRun("t", "g", input))
		}
	}
	run := func(update, input string) func(s *limitedServer) (string, map[string]string) {
		return func(s *limitedServer) (string, map[string]string) {
			s.mustPutGraph(newGraphJSON("g", update))
			return s.failureOfRun("t", input)
		}
	}
	watch := func(s *limitedServer) (string, map[string]string) {
		s.mustPutGraph(newGraphJSON("g", `{"x":"state.x"}`))
		s.failureOfRun("t", `{"x":1}`)
		s.mustWatchThread("t")
		return s.reasonOf(s.watchThread("t"))
	}
	inTwo := func(s *limitedServer) (string, map[string]string) {
		s.mustPutGraph(newGraphJSON("inner", `{"x":"state.x"}`))
		return s.reasonOf(s.putGraph(`{"graph":"outer","version":"v1","channels":{"x":{}},"nodes":{"n":{"graph":{"name":"inner"}}},"edges":["START -> n"]}`))
	}
	tree := `{"graph":"g","version":"v1","channels":{"x":{}},"input_schema":{"anyOf":[{"type":"string"},{"type":"null"},{"items":{"anyOf":[{},{}]}}]},` +
		`"nodes":{"n":{"remote":{}}},"edges":["START -> n"]}`
	return map[string]limitCase{
		"max-graph-nodes":            {value: "1", exceedLimit: put(`{"graph":"g","version":"v1","channels":{"x":{}},"nodes":{"n":{"remote":{}},"m":{"remote":{}}},"edges":["START -> n","n -> m"]}`)},
		"max-graph-bytes":            {value: "10", exceedLimit: put(newGraphJSON("g", doublingUpdate))},
		"max-graph-expression-bytes": {value: "10", exceedLimit: put(newGraphJSON("g", doublingUpdate))},
		"max-graph-depth":            {value: "1", exceedLimit: inTwo},
		"max-graph-expanded-nodes":   {value: "1", exceedLimit: inTwo},
		"max-graphs": {value: "1", exceedLimit: func(s *limitedServer) (string, map[string]string) {
			s.mustPutGraph(newGraphJSON("a", doublingUpdate))
			return s.reasonOf(s.putGraph(newGraphJSON("b", doublingUpdate)))
		}},
		"assistants": {value: "1", exceedLimit: func(s *limitedServer) (string, map[string]string) {
			s.mustPutGraph(newGraphJSON("g", doublingUpdate))
			wanted := &graphdv1.CreateAssistantRequest{Assistant: &graphdv1.Assistant{Graph: "g"}}
			_, err := s.client.CreateAssistant(s.t.Context(), wanted)
			require.NoError(s.t, err)
			_, err = s.client.CreateAssistant(s.t.Context(), wanted)
			return s.reasonOf(err)
		}},
		"max-assistant-bytes": {value: "100", exceedLimit: func(s *limitedServer) (string, map[string]string) {
			s.mustPutGraph(newGraphJSON("g", doublingUpdate))
			wanted := &graphdv1.CreateAssistantRequest{Assistant: &graphdv1.Assistant{Graph: "g", Name: "n", Config: jsonPayload(`{"x":"` + long + `"}`)}}
			_, err := s.client.CreateAssistant(s.t.Context(), wanted)
			return s.reasonOf(err)
		}},
		"max-crons": {value: "1", exceedLimit: func(s *limitedServer) (string, map[string]string) {
			s.mustPutGraph(newGraphJSON("g", doublingUpdate))
			_, err := s.client.CreateCron(s.t.Context(), newDailyCron("g"))
			require.NoError(s.t, err)
			_, err = s.client.CreateCron(s.t.Context(), newDailyCron("g"))
			return s.reasonOf(err)
		}},
		"max-cron-bytes": {value: "100", exceedLimit: func(s *limitedServer) (string, map[string]string) {
			s.mustPutGraph(newGraphJSON("g", doublingUpdate))
			wanted := newDailyCron("g")
			wanted.Cron.Source = jsonPayload(`"` + long + `"`)
			_, err := s.client.CreateCron(s.t.Context(), wanted)
			return s.reasonOf(err)
		}},
		"items": {value: "1", exceedLimit: func(s *limitedServer) (string, map[string]string) {
			_, err := s.client.PutItem(s.t.Context(), newItemPut("a"))
			require.NoError(s.t, err)
			_, err = s.client.PutItem(s.t.Context(), newItemPut("b"))
			return s.reasonOf(err)
		}},
		"items-searched": {value: "1", exceedLimit: func(s *limitedServer) (string, map[string]string) {
			for _, key := range []string{"a", "b"} {
				_, err := s.client.PutItem(s.t.Context(), newItemPut(key))
				require.NoError(s.t, err)
			}
			_, err := s.client.SearchItems(s.t.Context(), &graphdv1.SearchItemsRequest{})
			return s.reasonOf(err)
		}},
		"max-graph-versions": {value: "1", exceedLimit: func(s *limitedServer) (string, map[string]string) {
			s.mustPutGraph(newGraphJSON("a", doublingUpdate))
			return s.reasonOf(s.putGraph(strings.Replace(newGraphJSON("a", summingUpdate), "v1", "v2", 1)))
		}},
		"max-schema-bytes":     {value: "10", exceedLimit: put(tree)},
		"max-schema-objects":   {value: "2", exceedLimit: put(tree)},
		"max-schema-steps":     {value: "10", exceedLimit: put(tree)},
		"max-payload":          {value: "500", exceedLimit: start(`{"x":"` + long + `"}`)},
		"max-depth":            {value: "5", exceedLimit: start(strings.Repeat("[", 9) + strings.Repeat("]", 9))},
		"max-value-bytes":      {value: "100", exceedLimit: run(doublingUpdate, `{"x":"`+long+`"}`)},
		"max-state-bytes":      {value: "100", exceedLimit: run(doublingUpdate, `{"x":"`+long+`"}`)},
		"max-write-bytes":      {value: "100", exceedLimit: start(`{"x":"` + long + `"}`)},
		"max-expression-steps": {value: "1000", exceedLimit: run(summingUpdate, `{"x":1}`)},
		"max-expression-bytes": {value: "1000", exceedLimit: run(summingUpdate, `{"x":1}`)},
		"max-sends": {value: "1", exceedLimit: func(s *limitedServer) (string, map[string]string) {
			s.mustPutGraph(`{"graph":"g","version":"v1","channels":{"x":{}},"nodes":{"n":{"expr":{"goto":"[send('m', 1), send('m', 2)]"},` +
				`"destinations":["m"]},"m":{"remote":{}}},"edges":["START -> n"]}`)
			return s.failureOfRun("t", `{"x":1}`)
		}},
		"max-message": {value: "20000", otherOptions: []string{"--max-payload=20000"}, exceedLimit: func(s *limitedServer) (string, map[string]string) {
			s.mustPutGraph(`{"graph":"g","version":"v1","channels":{"x":{"reducer":"append"}},"nodes":{"n":{"expr":{"update":{"x":"lists.range(9000)"}}}},"edges":["START -> n"]}`)
			s.failureOfRun("t", `{"x":[]}`)
			_, err := s.client.GetState(s.t.Context(), &graphdv1.GetStateRequest{ThreadId: "t"})
			return s.reasonOf(err)
		}},
		"max-live-runs": {value: "1", exceedLimit: func(s *limitedServer) (string, map[string]string) {
			// Without a timeout the worker would give up its slot.
			s.mustPutGraph(strings.Replace(remoteGraph, `{"remote":{}}`, `{"remote":{},"timeout":"1h"}`, 1))
			require.NoError(s.t, s.startRun("a", "r", `{"x":1}`))
			return s.reasonOf(s.startRun("b", "r", `{"x":1}`))
		}},
		"max-live-bytes": {value: "10000", exceedLimit: func(s *limitedServer) (string, map[string]string) {
			s.mustPutGraph(remoteGraph)
			require.NoError(s.t, s.startRun("a", "r", `{"x":"`+long+`"}`))
			return s.reasonOf(s.startRun("b", "r", `{"x":"`+long+`"}`))
		}},
		"queued-runs": {value: "1", limitIsValue: true, exceedLimit: func(s *limitedServer) (string, map[string]string) {
			s.mustPutGraph(remoteGraph)
			require.NoError(s.t, s.startRun("a", "r", `{"x":1}`))
			require.NoError(s.t, s.enqueueRun("a", "r", `{"x":2}`))
			return s.reasonOf(s.enqueueRun("a", "r", `{"x":3}`))
		}},
		"step-limit": {value: "3", limitIsValue: true, exceedLimit: func(s *limitedServer) (string, map[string]string) {
			s.mustPutGraph(strings.Replace(newGraphJSON("g", `{"x":"1"}`), `"START -> n"`, `"START -> n","n -> n"`, 1))
			return s.failureOfRun("t", `{"x":1}`)
		}},
		"max-streams":        {value: "1", limitIsValue: true, exceedLimit: watch},
		"max-thread-streams": {value: "1", limitIsValue: true, exceedLimit: watch},
		"max-inbox-streams": {value: "1", limitIsValue: true, exceedLimit: func(s *limitedServer) (string, map[string]string) {
			follow := func() error {
				stream, err := s.client.WatchInterrupts(s.t.Context(), &graphdv1.WatchInterruptsRequest{})
				require.NoError(s.t, err)
				_, err = stream.Recv()
				return err
			}
			require.NoError(s.t, follow())
			return s.reasonOf(follow())
		}},
		"max-open-calls": {value: "1", exceedLimit: func(s *limitedServer) (string, map[string]string) {
			stream, err := s.client.WatchInterrupts(s.t.Context(), &graphdv1.WatchInterruptsRequest{})
			require.NoError(s.t, err)
			_, err = stream.Recv()
			require.NoError(s.t, err)
			return s.reasonOf(s.putGraph(newGraphJSON("g", doublingUpdate)))
		}},
		"max-incoming": {value: "50000", exceedLimit: func(s *limitedServer) (string, map[string]string) {
			responses := make([]*graphdv1.InterruptResponse, 1000) // little on the wire, much in memory
			for i := range responses {
				responses[i] = &graphdv1.InterruptResponse{}
			}
			_, err := s.client.ResumeRun(s.t.Context(), &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{ThreadId: "t", Responses: responses}})
			return s.reasonOf(err)
		}},
		"max-copy-bytes": {value: "1000", exceedLimit: func(s *limitedServer) (string, map[string]string) {
			s.mustPutGraph(newGraphJSON("g", `{"x":"state.x"}`))
			s.failureOfRun("t", `{"x":1}`)
			_, err := s.client.CopyThread(s.t.Context(), &graphdv1.CopyThreadRequest{SourceThreadId: "t", ThreadId: "u"})
			return s.reasonOf(err)
		}},
		"run-webhooks": {value: "1", otherOptions: []string{"--langgraph=127.0.0.1:0"}, exceedLimit: func(s *limitedServer) (string, map[string]string) {
			s.mustPutGraph(remoteGraph)
			run, err := s.client.StartRun(s.t.Context(), &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{ThreadId: "t", Graph: "r", CreateThread: true, Start: &graphdv1.RunSpec_Input{Input: jsonPayload("{}")}}})
			require.NoError(s.t, err)
			add := func(id string) error {
				_, err := s.client.AddRunWebhook(s.t.Context(), &graphdv1.AddRunWebhookRequest{ThreadId: "t", RunId: run.GetRunId(), WebhookId: id, Url: "https://example.com/"})
				return err
			}
			require.NoError(s.t, add("a"))
			return s.reasonOf(add("b"))
		}},
		"max-task-memo-bytes": {value: "1000", exceedLimit: func(s *limitedServer) (string, map[string]string) {
			return s.reasonOf(s.recordMemo(long))
		}},
		"max-workers": {value: "1", exceedLimit: func(s *limitedServer) (string, map[string]string) {
			require.NoError(s.t, s.registerWorker("a"))
			return s.reasonOf(s.registerWorker("b"))
		}},
		"max-worker-bytes": {value: "1500", exceedLimit: func(s *limitedServer) (string, map[string]string) {
			require.NoError(s.t, s.registerWorker("a"))
			return s.reasonOf(s.registerWorker("b"))
		}},
		"max-change-bytes": {value: "600", exceedLimit: start(`{"x":"` + long + `"}`)},
		"max-change-rows":  {value: "1", exceedLimit: start(`{"x":1}`)},
	}
}

const remoteGraph = `{"graph":"r","version":"v1","channels":{"x":{}},"nodes":{"n":{"remote":{}}},"edges":["START -> n"]}`

func newGraphJSON(name, update string) string {
	return fmt.Sprintf(`{"graph":%q,"version":"v1","channels":{"x":{}},"nodes":{"n":{"expr":{"update":%s}}},"edges":["START -> n"]}`, name, update)
}

// TestEveryLimitIsToldByItsOption exceeds each limit that has an option. The
// refusal names the option, its value and, where it is known, the need.
func TestEveryLimitIsToldByItsOption(t *testing.T) {
	all := limitCases()
	require.ElementsMatch(t, limitNames(), append(slices.Collect(maps.Keys(all)), waitingLimits...), "a limit without a case")
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			s := serveLimited(t, append(c.otherOptions, "--"+name+"="+c.value))
			reason, meta := c.exceedLimit(s)
			if c.limitIsValue {
				require.Equal(t, c.value, meta["limit"], reason)
				if reason != "STEP_LIMIT_EXCEEDED" { // of a run that may have a limit of its own
					require.Equal(t, name, meta["option"], reason)
				}
				return
			}
			require.Equal(t, name, meta["limit"], "%s %v", reason, meta)
			require.Equal(t, c.value, meta["most"], reason)
			if need, known := meta["need"]; known {
				most, err := strconv.Atoi(c.value)
				require.NoError(t, err)
				asked, err := strconv.Atoi(need)
				require.NoError(t, err)
				require.Greater(t, asked, most)
			}
		})
	}
}

// filesWithOlderForm are the files whose reasons have had the value in limit since
// before the rule.
var filesWithOlderForm = []string{"admission/queue.go", "transport/reason/table.go", "transport/stream/registry.go"}

// TestNoLimitHasAnotherName finds names of limits that no option has, and errors
// that report a limit without Error.Beyond.
func TestNoLimitHasAnotherName(t *testing.T) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&server.Options{}).RegisterFlags(f)
	like := regexp.MustCompile(`^max-[a-z-]+$`)
	found := 0
	require.NoError(t, filepath.WalkDir("../../internal", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/testkit/") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		old := slices.ContainsFunc(filesWithOlderForm, func(name string) bool { return strings.HasSuffix(path, name) })
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 2 && !old {
				key, _ := call.Args[0].(*ast.BasicLit)
				with, _ := call.Fun.(*ast.SelectorExpr)
				require.False(t, key != nil && key.Value == `"limit"` && with != nil && with.Sel.Name == "With", "%s: use Beyond", path)
			}
			text, ok := n.(*ast.BasicLit)
			if !ok || text.Kind != token.STRING {
				return true
			}
			if name := strings.Trim(text.Value, "\"`"); like.MatchString(name) {
				require.NotNil(t, f.Lookup(name), "%s: no option has the name %s", path, name)
				found++
			}
			return true
		})
		return nil
	}))
	require.Greater(t, found, 15)
}

// limitNames returns the options that set limits.
func limitNames() []string {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	o := &server.Options{}
	o.LimitOptions.RegisterFlags(f)
	o.GraphOptions.RegisterFlags(f)
	o.ValueOptions.RegisterFlags(f)
	o.StoreOptions.RegisterFlags(f)
	var names []string
	f.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// limitedServer is a server with limits of a test's choice, and a client of it.
type limitedServer struct {
	t      *testing.T
	client struct {
		graphdv1.GraphServiceClient
		graphdv1.RegistryServiceClient
		graphdv1.ThreadServiceClient
		graphdv1.InterruptServiceClient
		graphdv1.WorkerServiceClient
		graphdv1.AssistantServiceClient
		graphdv1.ItemServiceClient
		graphdv1.CronServiceClient
	}
}

// newDailyCron asks for a cron that starts a run of a graph once a day.
func newDailyCron(graph string) *graphdv1.CreateCronRequest {
	return &graphdv1.CreateCronRequest{Cron: &graphdv1.Cron{Schedule: "0 9 * * *", Run: &graphdv1.RunSpec{Graph: graph}}}
}

func serveLimited(t *testing.T, args []string) *limitedServer {
	t.Helper()
	var o server.Options
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.RegisterFlags(f)
	require.NoError(t, f.Parse(append([]string{
		"--listen=127.0.0.1:0", "--store=sqlite:" + filepath.Join(t.TempDir(), "graphd.db"), "--drain-timeout=1ms",
	}, args...)))
	served, err := server.NewServer(t.Context(), o, zap.NewNop(), "test")
	require.NoError(t, err)
	served.StartServing()
	conn, err := grpc.NewClient(served.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, conn.Close())
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
		defer cancel()
		_ = served.DrainServer(ctx) // cuts a run that has no worker
	})
	s := &limitedServer{t: t}
	s.client.GraphServiceClient = graphdv1.NewGraphServiceClient(conn)
	s.client.RegistryServiceClient = graphdv1.NewRegistryServiceClient(conn)
	s.client.ThreadServiceClient = graphdv1.NewThreadServiceClient(conn)
	s.client.InterruptServiceClient = graphdv1.NewInterruptServiceClient(conn)
	s.client.WorkerServiceClient = graphdv1.NewWorkerServiceClient(conn)
	s.client.AssistantServiceClient = graphdv1.NewAssistantServiceClient(conn)
	s.client.ItemServiceClient = graphdv1.NewItemServiceClient(conn)
	s.client.CronServiceClient = graphdv1.NewCronServiceClient(conn)
	return s
}

// recordMemo makes a worker take a task and record a memo.
func (s *limitedServer) recordMemo(text string) error {
	s.mustPutGraph(remoteGraph)
	stream, err := s.client.Connect(s.t.Context())
	require.NoError(s.t, err)
	require.NoError(s.t, stream.Send(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Hello{Hello: &graphdv1.Hello{
		WorkerId: "w", Credit: &graphdv1.Credit{TotalSlots: 1}, Manifest: &graphdv1.WorkerManifest{Nodes: []*graphdv1.ServedNode{{Graph: "r"}}},
	}}}))
	require.NoError(s.t, s.startRun("t", "r", `{"x":1}`))
	for {
		m, err := stream.Recv()
		require.NoError(s.t, err)
		if m.GetTask() == nil {
			continue
		}
		_, err = s.client.RecordMemo(s.t.Context(), &graphdv1.RecordMemoRequest{
			LeaseToken: m.GetTask().GetLease().GetToken(), Key: "k",
			Value: &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: strconv.Quote(text)}},
		})
		return err
	}
}

// registerWorker connects a worker.
func (s *limitedServer) registerWorker(id string) error {
	stream, err := s.client.Connect(s.t.Context())
	require.NoError(s.t, err)
	require.NoError(s.t, stream.Send(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Hello{Hello: &graphdv1.Hello{WorkerId: id}}}))
	_, err = stream.Recv()
	return err
}

func (s *limitedServer) putGraph(document string) error {
	_, err := s.client.PutGraph(s.t.Context(), &graphdv1.PutGraphRequest{
		Definition: &graphdv1.PutGraphRequest_Document{Document: document},
	})
	return err
}

func (s *limitedServer) mustPutGraph(document string) { require.NoError(s.t, s.putGraph(document)) }

func (s *limitedServer) startRun(thread, graph, input string) error {
	return s.startRunWith(thread, graph, input, graphdv1.ConcurrencyPolicy_CONCURRENCY_POLICY_UNSPECIFIED)
}

func (s *limitedServer) enqueueRun(thread, graph, input string) error {
	return s.startRunWith(thread, graph, input, graphdv1.ConcurrencyPolicy_CONCURRENCY_POLICY_ENQUEUE)
}

func (s *limitedServer) startRunWith(thread, graph, input string, policy graphdv1.ConcurrencyPolicy) error {
	_, err := s.client.StartRun(s.t.Context(), &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
		ThreadId: thread, CreateThread: true, Graph: graph,
		Start:       &graphdv1.RunSpec_Input{Input: &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: input}}},
		Concurrency: policy,
	}})
	return err
}

// failureOfRun returns why a run has failed.
func (s *limitedServer) failureOfRun(thread, input string) (reason string, details map[string]string) {
	require.NoError(s.t, s.startRun(thread, "g", input))
	r, err := s.client.WaitRun(s.t.Context(), &graphdv1.WaitRunRequest{ThreadId: thread})
	require.NoError(s.t, err)
	return r.GetFailure().GetReason(), r.GetFailure().GetDetails()
}

func (s *limitedServer) watchThread(thread string) error {
	stream, err := s.client.Watch(s.t.Context(), &graphdv1.WatchRequest{ThreadId: thread, Follow: true})
	require.NoError(s.t, err)
	_, err = stream.Recv()
	return err
}

func (s *limitedServer) mustWatchThread(thread string) { require.NoError(s.t, s.watchThread(thread)) }

func (s *limitedServer) reasonOf(err error) (reason string, meta map[string]string) {
	require.Error(s.t, err)
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info.GetReason(), info.GetMetadata()
		}
	}
	require.Fail(s.t, "no ErrorInfo", "%v", err)
	return "", nil
}

// newItemPut returns a request to put an item.
func newItemPut(key string) *graphdv1.PutItemRequest {
	return &graphdv1.PutItemRequest{
		Namespace: []string{"notes"}, Key: key, Value: &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: `{"of":"them"}`}},
	}
}
