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
)

// excess goes beyond one limit of a server, and returns the error or the failure
// of the run that says so.
type excess struct {
	value string   // of the option
	with  []string // other options
	call  func(s *limited) (reason string, meta map[string]string)
	// number says that limit is the value: the reason is older than the rule, and
	// keeps its keys.
	number bool
}

// waits are the limits that refuse nothing: what is beyond them waits, is left
// out, is counted as another, or ends a connection.
var waits = []string{
	"max-connections", "max-connection-calls", "max-unread", "max-stream-unread", "max-recent-events", "unread-patience",
	"connection-age", "connection-grace", "connection-idle", "heartbeat", "stall", "reflection", "max-endpoints", "metric-names",
	"parallel-tasks", "request-patience", "store-timeout", "endpoint-idle", "graph-cache-bytes", "schema-cache-bytes", "change-wait",
	"disk-reserve", "graph-tombstones", "max-waiting-events", "max-waiting-results",
}

const (
	doubling = `{"x":"state.x + state.x"}`
	sums     = `{"x":"lists.range(1000).map(i, lists.range(1000).map(j, i * j)).size()"}`
)

func beyond() map[string]excess {
	long := strings.Repeat("x", 5000)
	put := func(document string) func(s *limited) (string, map[string]string) {
		return func(s *limited) (string, map[string]string) { return s.reason(s.put(document)) }
	}
	start := func(input string) func(s *limited) (string, map[string]string) {
		return func(s *limited) (string, map[string]string) {
			s.needPut(plain("g", `{"x":"state.x"}`))
			return s.reason(s.start("t", "g", input))
		}
	}
	run := func(update, input string) func(s *limited) (string, map[string]string) {
		return func(s *limited) (string, map[string]string) {
			s.needPut(plain("g", update))
			return s.run("t", input)
		}
	}
	watch := func(s *limited) (string, map[string]string) {
		s.needPut(plain("g", `{"x":"state.x"}`))
		s.run("t", `{"x":1}`)
		s.needWatch("t")
		return s.reason(s.watch("t"))
	}
	inTwo := func(s *limited) (string, map[string]string) {
		s.needPut(plain("inner", `{"x":"state.x"}`))
		return s.reason(s.put(`{"graph":"outer","version":"v1","channels":{"x":{}},"nodes":{"n":{"graph":{"name":"inner"}}},"edges":["START -> n"]}`))
	}
	tree := `{"graph":"g","version":"v1","channels":{"x":{}},"input_schema":{"anyOf":[{"type":"string"},{"type":"null"},{"items":{"anyOf":[{},{}]}}]},` +
		`"nodes":{"n":{"remote":{}}},"edges":["START -> n"]}`
	return map[string]excess{
		"max-graph-nodes":            {value: "1", call: put(`{"graph":"g","version":"v1","channels":{"x":{}},"nodes":{"n":{"remote":{}},"m":{"remote":{}}},"edges":["START -> n","n -> m"]}`)},
		"max-graph-bytes":            {value: "10", call: put(plain("g", doubling))},
		"max-graph-expression-bytes": {value: "10", call: put(plain("g", doubling))},
		"max-graph-depth":            {value: "1", call: inTwo},
		"max-graph-expanded-nodes":   {value: "1", call: inTwo},
		"max-graphs": {value: "1", call: func(s *limited) (string, map[string]string) {
			s.needPut(plain("a", doubling))
			return s.reason(s.put(plain("b", doubling)))
		}},
		"max-graph-versions": {value: "1", call: func(s *limited) (string, map[string]string) {
			s.needPut(plain("a", doubling))
			return s.reason(s.put(strings.Replace(plain("a", sums), "v1", "v2", 1)))
		}},
		"max-schema-bytes":     {value: "10", call: put(tree)},
		"max-schema-objects":   {value: "2", call: put(tree)},
		"max-schema-steps":     {value: "10", call: put(tree)},
		"max-payload":          {value: "500", call: start(`{"x":"` + long + `"}`)},
		"max-depth":            {value: "5", call: start(strings.Repeat("[", 9) + strings.Repeat("]", 9))},
		"max-value-bytes":      {value: "100", call: run(doubling, `{"x":"`+long+`"}`)},
		"max-state-bytes":      {value: "100", call: run(doubling, `{"x":"`+long+`"}`)},
		"max-write-bytes":      {value: "100", call: start(`{"x":"` + long + `"}`)},
		"max-expression-steps": {value: "1000", call: run(sums, `{"x":1}`)},
		"max-expression-bytes": {value: "1000", call: run(sums, `{"x":1}`)},
		"max-sends": {value: "1", call: func(s *limited) (string, map[string]string) {
			s.needPut(`{"graph":"g","version":"v1","channels":{"x":{}},"nodes":{"n":{"expr":{"goto":"[send('m', 1), send('m', 2)]"},` +
				`"destinations":["m"]},"m":{"remote":{}}},"edges":["START -> n"]}`)
			return s.run("t", `{"x":1}`)
		}},
		"max-message": {value: "20000", with: []string{"--max-payload=20000"}, call: func(s *limited) (string, map[string]string) {
			s.needPut(`{"graph":"g","version":"v1","channels":{"x":{"reducer":"append"}},"nodes":{"n":{"expr":{"update":{"x":"lists.range(9000)"}}}},"edges":["START -> n"]}`)
			s.run("t", `{"x":[]}`)
			_, err := s.client.GetState(s.t.Context(), &graphdv1.GetStateRequest{ThreadId: "t"})
			return s.reason(err)
		}},
		"max-live-runs": {value: "1", call: func(s *limited) (string, map[string]string) {
			// Without a timeout it would give its place up.
			s.needPut(strings.Replace(remote, `{"remote":{}}`, `{"remote":{},"timeout":"1h"}`, 1))
			require.NoError(s.t, s.start("a", "r", `{"x":1}`))
			return s.reason(s.start("b", "r", `{"x":1}`))
		}},
		"max-live-bytes": {value: "10000", call: func(s *limited) (string, map[string]string) {
			s.needPut(remote)
			require.NoError(s.t, s.start("a", "r", `{"x":"`+long+`"}`))
			return s.reason(s.start("b", "r", `{"x":"`+long+`"}`))
		}},
		"queued-runs": {value: "1", number: true, call: func(s *limited) (string, map[string]string) {
			s.needPut(remote)
			require.NoError(s.t, s.start("a", "r", `{"x":1}`))
			require.NoError(s.t, s.enqueue("a", "r", `{"x":2}`))
			return s.reason(s.enqueue("a", "r", `{"x":3}`))
		}},
		"step-limit": {value: "3", number: true, call: func(s *limited) (string, map[string]string) {
			s.needPut(strings.Replace(plain("g", `{"x":"1"}`), `"START -> n"`, `"START -> n","n -> n"`, 1))
			return s.run("t", `{"x":1}`)
		}},
		"max-streams":        {value: "1", number: true, call: watch},
		"max-thread-streams": {value: "1", number: true, call: watch},
		"max-inbox-streams": {value: "1", number: true, call: func(s *limited) (string, map[string]string) {
			follow := func() error {
				stream, err := s.client.WatchInterrupts(s.t.Context(), &graphdv1.WatchInterruptsRequest{})
				require.NoError(s.t, err)
				_, err = stream.Recv()
				return err
			}
			require.NoError(s.t, follow())
			return s.reason(follow())
		}},
		"max-open-calls": {value: "1", call: func(s *limited) (string, map[string]string) {
			stream, err := s.client.WatchInterrupts(s.t.Context(), &graphdv1.WatchInterruptsRequest{})
			require.NoError(s.t, err)
			_, err = stream.Recv()
			require.NoError(s.t, err)
			return s.reason(s.put(plain("g", doubling)))
		}},
		"max-incoming": {value: "50000", call: func(s *limited) (string, map[string]string) {
			responses := make([]*graphdv1.InterruptResponse, 1000) // little on the wire, much in memory
			for i := range responses {
				responses[i] = &graphdv1.InterruptResponse{}
			}
			_, err := s.client.ResumeRun(s.t.Context(), &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{ThreadId: "t", Responses: responses}})
			return s.reason(err)
		}},
		"max-copy-bytes": {value: "1000", call: func(s *limited) (string, map[string]string) {
			s.needPut(plain("g", `{"x":"state.x"}`))
			s.run("t", `{"x":1}`)
			_, err := s.client.CopyThread(s.t.Context(), &graphdv1.CopyThreadRequest{SourceThreadId: "t", ThreadId: "u"})
			return s.reason(err)
		}},
		"max-task-memo-bytes": {value: "1000", call: func(s *limited) (string, map[string]string) {
			return s.reason(s.record(long))
		}},
		"max-workers": {value: "1", call: func(s *limited) (string, map[string]string) {
			require.NoError(s.t, s.register("a"))
			return s.reason(s.register("b"))
		}},
		"max-worker-bytes": {value: "1500", call: func(s *limited) (string, map[string]string) {
			require.NoError(s.t, s.register("a"))
			return s.reason(s.register("b"))
		}},
		"max-change-bytes": {value: "600", call: start(`{"x":"` + long + `"}`)},
		"max-change-rows":  {value: "1", call: start(`{"x":1}`)},
	}
}

const remote = `{"graph":"r","version":"v1","channels":{"x":{}},"nodes":{"n":{"remote":{}}},"edges":["START -> n"]}`

func plain(name, update string) string {
	return fmt.Sprintf(`{"graph":%q,"version":"v1","channels":{"x":{}},"nodes":{"n":{"expr":{"update":%s}}},"edges":["START -> n"]}`, name, update)
}

// TestEveryLimitIsToldByItsOption goes beyond each limit there is an option for: what
// refuses names the option, its value and, where it is known, what was asked for.
func TestEveryLimitIsToldByItsOption(t *testing.T) {
	all := beyond()
	require.ElementsMatch(t, limitNames(), append(slices.Collect(maps.Keys(all)), waits...), "a limit without a case")
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			s := serveLimited(t, append(c.with, "--"+name+"="+c.value))
			reason, meta := c.call(s)
			if c.number {
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

// older are the places whose reasons told the value as limit before there was the rule.
var older = []string{"runtime/queue.go", "transport/turn.go"}

// TestNoLimitHasAnotherName looks for names of limits that no option has, and for
// errors that tell a limit by hand: Error.Beyond does.
func TestNoLimitHasAnotherName(t *testing.T) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&serverOptions{}).register(f)
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
		old := slices.ContainsFunc(older, func(name string) bool { return strings.HasSuffix(path, name) })
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

// limitNames are the options that set limits.
func limitNames() []string {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	o := &serverOptions{}
	o.limitOptions.register(f)
	o.graphOptions.register(f)
	o.valueOptions.register(f)
	o.storeOptions.register(f)
	var names []string
	f.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// limited is a server with limits of a test's choice, and a client of it.
type limited struct {
	t      *testing.T
	client struct {
		graphdv1.GraphServiceClient
		graphdv1.RegistryServiceClient
		graphdv1.ThreadServiceClient
		graphdv1.InterruptServiceClient
		graphdv1.WorkerServiceClient
	}
}

func serveLimited(t *testing.T, args []string) *limited {
	t.Helper()
	var o serverOptions
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.register(f)
	require.NoError(t, f.Parse(append([]string{
		"--listen=127.0.0.1:0", "--store=sqlite:" + filepath.Join(t.TempDir(), "graphd.db"), "--drain-timeout=1ms",
	}, args...)))
	server, err := newServer(t.Context(), o, zap.NewNop(), "test")
	require.NoError(t, err)
	server.start()
	conn, err := grpc.NewClient(server.address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, conn.Close())
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
		defer cancel()
		_ = server.drain(ctx) // cuts a run that has no worker
	})
	s := &limited{t: t}
	s.client.GraphServiceClient = graphdv1.NewGraphServiceClient(conn)
	s.client.RegistryServiceClient = graphdv1.NewRegistryServiceClient(conn)
	s.client.ThreadServiceClient = graphdv1.NewThreadServiceClient(conn)
	s.client.InterruptServiceClient = graphdv1.NewInterruptServiceClient(conn)
	s.client.WorkerServiceClient = graphdv1.NewWorkerServiceClient(conn)
	return s
}

// record has a worker take a task, and record a memo.
func (s *limited) record(text string) error {
	s.needPut(remote)
	stream, err := s.client.Connect(s.t.Context())
	require.NoError(s.t, err)
	require.NoError(s.t, stream.Send(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Hello{Hello: &graphdv1.Hello{
		WorkerId: "w", Credit: &graphdv1.Credit{TotalSlots: 1}, Manifest: &graphdv1.WorkerManifest{Nodes: []*graphdv1.ServedNode{{Graph: "r"}}},
	}}}))
	require.NoError(s.t, s.start("t", "r", `{"x":1}`))
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

// register connects a worker.
func (s *limited) register(id string) error {
	stream, err := s.client.Connect(s.t.Context())
	require.NoError(s.t, err)
	require.NoError(s.t, stream.Send(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Hello{Hello: &graphdv1.Hello{WorkerId: id}}}))
	_, err = stream.Recv()
	return err
}

func (s *limited) put(document string) error {
	_, err := s.client.PutGraph(s.t.Context(), &graphdv1.PutGraphRequest{
		Definition: &graphdv1.PutGraphRequest_Document{Document: document},
	})
	return err
}

func (s *limited) needPut(document string) { require.NoError(s.t, s.put(document)) }

func (s *limited) start(thread, graph, input string) error {
	return s.startWith(thread, graph, input, graphdv1.ConcurrencyPolicy_CONCURRENCY_POLICY_UNSPECIFIED)
}

func (s *limited) enqueue(thread, graph, input string) error {
	return s.startWith(thread, graph, input, graphdv1.ConcurrencyPolicy_CONCURRENCY_POLICY_ENQUEUE)
}

func (s *limited) startWith(thread, graph, input string, policy graphdv1.ConcurrencyPolicy) error {
	_, err := s.client.StartRun(s.t.Context(), &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
		ThreadId: thread, CreateThread: true, Graph: graph,
		Start:       &graphdv1.RunSpec_Input{Input: &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: input}}},
		Concurrency: policy,
	}})
	return err
}

// run returns why a run has failed.
func (s *limited) run(thread, input string) (reason string, details map[string]string) {
	require.NoError(s.t, s.start(thread, "g", input))
	r, err := s.client.WaitRun(s.t.Context(), &graphdv1.WaitRunRequest{ThreadId: thread})
	require.NoError(s.t, err)
	return r.GetFailure().GetReason(), r.GetFailure().GetDetails()
}

func (s *limited) watch(thread string) error {
	stream, err := s.client.Watch(s.t.Context(), &graphdv1.WatchRequest{ThreadId: thread, Follow: true})
	require.NoError(s.t, err)
	_, err = stream.Recv()
	return err
}

func (s *limited) needWatch(thread string) { require.NoError(s.t, s.watch(thread)) }

func (s *limited) reason(err error) (reason string, meta map[string]string) {
	require.Error(s.t, err)
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info.GetReason(), info.GetMetadata()
		}
	}
	require.Fail(s.t, "no ErrorInfo", "%v", err)
	return "", nil
}
