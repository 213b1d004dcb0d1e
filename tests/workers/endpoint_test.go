package workers_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/worker"
	"github.com/graphd-dev/graphd/tests/harness"
)

// nodeService is a node service in another process, as its owner would write it.
type nodeService struct {
	graphdv1.UnimplementedNodeServiceServer

	address  string
	manifest *graphdv1.WorkerManifest
	execute  func(ctx context.Context, a *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error
	calls    atomic.Int32
	accepted atomic.Int32
	server   *grpc.Server
	health   *health.Server
}

func (s *nodeService) Describe(context.Context, *graphdv1.DescribeRequest) (*graphdv1.WorkerManifest, error) {
	if s.manifest == nil {
		return nil, status.Error(codes.Unimplemented, "no manifest")
	}
	return s.manifest, nil
}

func (s *nodeService) ExecuteTask(req *graphdv1.ExecuteTaskRequest, stream graphdv1.NodeService_ExecuteTaskServer) error {
	s.calls.Add(1)
	return s.execute(stream.Context(), req.GetTask(), func(u *graphdv1.TaskUpdate) { _ = stream.Send(u) })
}

// listenAndServe serves on an address of its own choice, or on the one it had.
func (s *nodeService) listenAndServe(t *testing.T) {
	t.Helper()
	s.serveAs(t, s)
}

// serveAs is listen for something that embeds a service.
func (s *nodeService) serveAs(t *testing.T, by graphdv1.NodeServiceServer) {
	t.Helper()
	if s.address == "" {
		s.address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", s.address)
	require.NoError(t, err)
	s.address = l.Addr().String()
	s.server, s.health = grpc.NewServer(), health.NewServer()
	graphdv1.RegisterNodeServiceServer(s.server, by)
	healthpb.RegisterHealthServer(s.server, s.health)
	s.health.SetServingStatus("graphd.v1.NodeService", healthpb.HealthCheckResponse_SERVING)
	go func() { _ = s.server.Serve(&countingListener{Listener: l, accepted: &s.accepted}) }()
	t.Cleanup(s.server.Stop)
}

// countingListener counts the connections of a listener.
type countingListener struct {
	net.Listener

	accepted *atomic.Int32
}

func (c *countingListener) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.accepted.Add(1)
	}
	return conn, err
}

// withEndpoint makes every node of a graph run on an address.
func withEndpoint(g *graphdv1.GraphSpec, address string, policy *graphdv1.PolicySpec) *graphdv1.GraphSpec {
	for _, n := range g.Nodes {
		n.GetRemote().Endpoint, n.Policy = address, policy
	}
	return g
}

func (s *server) putGraph(g *graphdv1.GraphSpec) {
	s.t.Helper()
	_, err := s.PutGraph(s.t.Context(), &graphdv1.PutGraphRequest{Definition: &graphdv1.PutGraphRequest_Spec{Spec: g}})
	require.NoError(s.t, err)
}

func newResultUpdate(r *graphdv1.TaskResult) *graphdv1.TaskUpdate {
	return &graphdv1.TaskUpdate{Kind: &graphdv1.TaskUpdate_Result{Result: r}}
}

func TestANodeOnAnEndpoint(t *testing.T) {
	s := startServer(t, config{})
	n := &nodeService{manifest: &graphdv1.WorkerManifest{
		Features: []string{"drift"}, Nodes: []*graphdv1.ServedNode{{Graph: "g", Node: "a"}},
	}}
	var made atomic.Int32
	n.execute = func(ctx context.Context, a *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
		k := &runningTask{TaskAssignment: a, client: s.client, asked: make(map[string]uint32)}
		send(newResultUpdate(k.runCode(ctx, func(ctx context.Context, k *runningTask) *graphdv1.TaskResult {
			receipt := k.recordOnce(ctx, "charge", func() string { made.Add(1); return `"r"` })
			answer := k.answerOrUnwind(`"sure?"`)
			send(&graphdv1.TaskUpdate{Kind: &graphdv1.TaskUpdate_Emit{Emit: &graphdv1.Emit{Items: []*graphdv1.EmitItem{{
				Channel: graphdv1.Channel_CHANNEL_CUSTOM, Name: "done", Value: harness.NewPayload(`1`), Durable: true,
			}}}}})
			return completedResult(`{"x":[` + receipt + `,` + answer + `]}`)
		})))
		return nil
	}
	n.listenAndServe(t)
	s.putGraph(withEndpoint(newChainGraph("g", "a"), n.address, nil))
	run := s.runGraph("g", `{"x":0}`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, run.GetState(), run.GetFailure())
	run = s.answerRun(run, `true`)
	require.JSONEq(t, `{"x":["r",true],"log":[]}`, run.GetOutput().GetJson())
	require.EqualValues(t, 1, made.Load())
	require.EqualValues(t, 2, n.calls.Load())
	var custom []string
	for _, e := range s.listEvents(run) {
		if c := e.GetCustom(); c != nil {
			custom = append(custom, c.GetName())
		}
	}
	require.Equal(t, []string{"done"}, custom)
}

func TestTheDeadlineOfANodeIsThatOfItsCall(t *testing.T) {
	s := startServer(t, config{})
	n := &nodeService{}
	ended := make(chan error, 1)
	n.execute = func(ctx context.Context, a *graphdv1.TaskAssignment, _ func(*graphdv1.TaskUpdate)) error {
		_, limited := ctx.Deadline()
		if !limited || a.GetTimeout().AsDuration() <= 0 || a.GetTimeout().AsDuration() > 2*time.Second {
			return status.Error(codes.Internal, "no deadline")
		}
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	}
	n.listenAndServe(t)
	s.putGraph(withEndpoint(newChainGraph("g", "a"), n.address, &graphdv1.PolicySpec{Timeout: durationpb.New(2 * time.Second)}))
	run := s.runGraph("g", `{"x":0}`)
	require.Equal(t, "NODE_TIMEOUT", run.GetFailure().GetReason(), run.GetFailure().GetMessage())
	require.Error(t, receiveOrFail(t, ended, "the end of the call"))
}

func TestACancelEndsTheCall(t *testing.T) {
	s := startServer(t, config{})
	n := &nodeService{}
	began, ended := make(chan struct{}), make(chan struct{})
	n.execute = func(ctx context.Context, _ *graphdv1.TaskAssignment, _ func(*graphdv1.TaskUpdate)) error {
		close(began)
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	}
	n.listenAndServe(t)
	s.putGraph(withEndpoint(newChainGraph("g", "a"), n.address, nil))
	run := s.startRun("g", `{"x":0}`)
	receiveOrFail(t, began, "the call")
	_, err := s.CancelRun(t.Context(), &graphdv1.CancelRunRequest{ThreadId: run.GetThreadId(), RunId: run.GetRunId()})
	require.NoError(t, err)
	receiveOrFail(t, ended, "the cancel")
	require.Equal(t, graphdv1.RunState_RUN_STATE_CANCELLED, s.waitStopped(run).GetState())
}

// A service that dies while it works has its task run again when it is back;
// one that is away makes the run wait.
func TestALostEndpointIsCalledAgain(t *testing.T) {
	s := startServer(t, config{})
	n := &nodeService{}
	began := make(chan struct{}, 2)
	n.execute = func(ctx context.Context, a *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
		began <- struct{}{}
		if a.GetDelivery() == 1 {
			<-ctx.Done()
			return ctx.Err()
		}
		send(newResultUpdate(completedResult(`{"x":2}`)))
		return nil
	}
	n.listenAndServe(t)
	s.putGraph(withEndpoint(newChainGraph("g", "a"), n.address, nil))
	run := s.startRun("g", `{"x":0}`)
	receiveOrFail(t, began, "the call")
	n.server.Stop()
	n.listenAndServe(t)
	run = s.waitStopped(run)
	require.JSONEq(t, `{"x":2,"log":[]}`, run.GetOutput().GetJson(), run.GetFailure().GetMessage())
	require.EqualValues(t, 2, n.calls.Load())
}

// A call that may have begun when its connection broke is a lost delivery, of which
// the endpoint, the followers and the metric learn. One that has not left counts
// for nothing.
func TestOnlyACallThatMayHaveBegunIsALostDelivery(t *testing.T) {
	for name, c := range map[string]struct {
		method string // the headers of its first call end the connection
		refuse int32  // connections that are closed at once
		lost   int
	}{
		"closed after the headers":          {method: graphdv1.NodeService_ExecuteTask_FullMethodName, lost: 1},
		"closed before the task":            {method: graphdv1.NodeService_Describe_FullMethodName},
		"refused":                           {refuse: 3},
		"refused, closed after the headers": {method: graphdv1.NodeService_ExecuteTask_FullMethodName, refuse: 2, lost: 1},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config{}
			cfg.remote.MaxLosses, cfg.remote.RetryDelay = 2, time.Millisecond
			s := startServer(t, cfg)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			broken := &breakingListener{Listener: l}
			broken.refuse.Store(c.refuse)
			deliveries := make(chan uint32, 10)
			n := &nodeService{execute: func(_ context.Context, a *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
				deliveries <- a.GetDelivery()
				send(newResultUpdate(completedResult(`{"x":2}`)))
				return nil
			}}
			var once sync.Once
			server := grpc.NewServer(grpc.InTapHandle(func(ctx context.Context, info *tap.Info) (context.Context, error) {
				if info.FullMethodName == c.method {
					once.Do(broken.closeConnections)
				}
				return ctx, nil
			}))
			graphdv1.RegisterNodeServiceServer(server, n)
			go func() { _ = server.Serve(broken) }()
			t.Cleanup(server.Stop)
			s.putGraph(withEndpoint(newChainGraph("g", "a"), l.Addr().String(), nil))
			run := s.runGraph("g", `{"x":0}`)
			require.JSONEq(t, `{"x":2,"log":[]}`, run.GetOutput().GetJson(), run.GetFailure().GetMessage())
			var last uint32
			for len(deliveries) > 0 {
				last = <-deliveries
			}
			require.EqualValues(t, c.lost+1, last, "the endpoint is told that it may be a repetition")
			require.EqualValues(t, c.lost, s.hub.WorkerLosses())
			marks := 0
			for _, e := range s.listEvents(run) {
				if e.GetTask().GetPhase() == graphdv1.TaskChange_PHASE_RESTARTED {
					marks++
					require.Equal(t, "WorkerLost", e.GetTask().GetFailure().GetType())
				}
			}
			require.Equal(t, c.lost, marks)
		})
	}
}

// breakingListener is a listener whose connections break.
type breakingListener struct {
	net.Listener

	refuse atomic.Int32
	mu     sync.Mutex
	conns  []net.Conn
}

func (b *breakingListener) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if b.refuse.Add(-1) >= 0 {
			_ = conn.Close()
			continue
		}
		b.mu.Lock()
		b.conns = append(b.conns, conn)
		b.mu.Unlock()
		return conn, nil
	}
}

// closeConnections closes all connections there are.
func (b *breakingListener) closeConnections() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, conn := range b.conns {
		_ = conn.Close()
	}
}

// An endpoint that loses every call fails the task after as many deliveries as
// workers may lose it. One that can't even be asked what it serves was never lost.
func TestAnEndpointMayLoseATaskAsOftenAsWorkers(t *testing.T) {
	cfg := config{}
	cfg.remote.MaxLosses, cfg.remote.RetryDelay = 3, time.Millisecond
	s := startServer(t, cfg)
	n := &nodeService{execute: func(context.Context, *graphdv1.TaskAssignment, func(*graphdv1.TaskUpdate)) error {
		return status.Error(codes.Unavailable, "busy")
	}}
	n.listenAndServe(t)
	s.putGraph(withEndpoint(newChainGraph("g", "a"), n.address, nil))
	f := s.runGraph("g", `{"x":0}`).GetFailure()
	require.Equal(t, "WorkerLost", f.GetType(), f.GetMessage())
	require.EqualValues(t, 3, n.calls.Load())
	require.EqualValues(t, 3, s.hub.WorkerLosses())

	silent := &undescribedService{}
	silent.listenAndServe(t)
	s.putGraph(withEndpoint(newChainGraph("h", "a"), silent.address, nil))
	f = s.runGraph("h", `{"x":0}`).GetFailure()
	require.Equal(t, "NotReached", f.GetType(), f.GetMessage())
	require.Zero(t, silent.calls.Load())
	require.EqualValues(t, 3, s.hub.WorkerLosses())
}

// undescribedService does not say what it serves.
type undescribedService struct{ nodeService }

func (u *undescribedService) Describe(context.Context, *graphdv1.DescribeRequest) (*graphdv1.WorkerManifest, error) {
	return nil, status.Error(codes.Unavailable, "starting")
}

func (u *undescribedService) listenAndServe(t *testing.T) {
	t.Helper()
	u.serveAs(t, u)
}

// What a reducer does is shown to no reader: one that is lost has nothing to tell.
func TestAReducerWhoseEndpointIsLostIsCalledAgain(t *testing.T) {
	core, logs := observer.New(zap.ErrorLevel)
	cfg := config{hub: worker.Options{HeartbeatInterval: time.Minute, LeaseTTL: time.Hour, Logger: zap.New(core)}}
	cfg.remote.RetryDelay = time.Millisecond
	s := startServer(t, cfg)
	n := &nodeService{execute: func(ctx context.Context, a *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
		switch {
		case a.GetKind() != graphdv1.TaskKind_TASK_KIND_REDUCER:
			send(newResultUpdate(completedResult(`{"sum":"2"}`)))
		case a.GetDelivery() == 1:
			return status.Error(codes.Unavailable, "away")
		default:
			send(&graphdv1.TaskUpdate{Kind: &graphdv1.TaskUpdate_Emit{Emit: &graphdv1.Emit{Items: []*graphdv1.EmitItem{{
				Channel: graphdv1.Channel_CHANNEL_CUSTOM, Name: "added", Value: harness.NewPayload(`1`), Durable: true,
			}}}}})
			send(newResultUpdate(joinTexts(ctx, &runningTask{TaskAssignment: a})))
		}
		return nil
	}}
	n.listenAndServe(t)
	s.putGraph(withEndpoint(newSumGraph("a"), n.address, nil))
	run := s.runGraph("g", `{"sum":"1"}`)
	require.JSONEq(t, `{"sum":"1+2","log":[]}`, run.GetOutput().GetJson(), run.GetFailure().GetMessage())
	require.Empty(t, logs.All())
}

// A server that stops, or dies, while an endpoint is at work has the next one tell
// the endpoint that it may be a repetition.
func TestTheNextServerTellsAnEndpointOfACallThatMayHaveBegun(t *testing.T) {
	for name, end := range map[string]func(*server){"killed": (*server).crashServer, "drained": func(s *server) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // at once
		_ = s.grpc.Drain(ctx)
		s.engine.Drain(ctx)
		s.killServer()
	}} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, config{lease: time.Second})
			began := make(chan *graphdv1.TaskAssignment, 10)
			n := &nodeService{execute: func(ctx context.Context, a *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
				began <- a
				if a.GetDelivery() == 1 {
					<-ctx.Done()
					return ctx.Err()
				}
				send(newResultUpdate(completedResult(`{"x":2}`)))
				return nil
			}}
			n.listenAndServe(t)
			s.putGraph(withEndpoint(newChainGraph("g", "a"), n.address, nil))
			run := s.startRun("g", `{"x":0}`)
			first := receiveOrFail(t, began, "the call")
			end(s)
			next := startServer(t, config{store: s.store, lease: time.Second})
			second := receiveOrFail(t, began, "the call of the next server")
			require.EqualValues(t, 2, second.GetDelivery())
			require.Equal(t, first.GetTaskId(), second.GetTaskId())
			require.JSONEq(t, `{"x":2,"log":[]}`, next.waitStopped(run).GetOutput().GetJson())
		})
	}
}

func TestAnEndpointThatIsAwayOrUnhealthyIsWaitedFor(t *testing.T) {
	s := startServer(t, config{})
	n := &nodeService{execute: func(_ context.Context, _ *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
		send(newResultUpdate(completedResult(`{"x":2}`)))
		return nil
	}}
	n.listenAndServe(t)
	n.health.SetServingStatus("graphd.v1.NodeService", healthpb.HealthCheckResponse_NOT_SERVING)
	s.putGraph(withEndpoint(newChainGraph("g", "a"), n.address, nil))
	stream, err := s.Stream(t.Context(), &graphdv1.StreamRequest{
		Run:    &graphdv1.RunSpec{CreateThread: true, Graph: "g", Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload(`{"x":1}`)}},
		Filter: &graphdv1.EventFilter{Channels: []graphdv1.Channel{graphdv1.Channel_CHANNEL_TASKS}},
	})
	require.NoError(t, err)
	told := 0
	for {
		e, err := stream.Recv()
		require.NoError(t, err)
		if e.GetTask().GetPhase() == graphdv1.TaskChange_PHASE_UNASSIGNED {
			told++
			require.Contains(t, e.GetTask().GetFailure().GetMessage(), "does not answer")
			require.Zero(t, n.calls.Load())
			n.health.SetServingStatus("graphd.v1.NodeService", healthpb.HealthCheckResponse_SERVING)
		}
		if e.GetEnd() != nil {
			require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, e.GetEnd().GetRun().GetState())
			break
		}
	}
	require.Equal(t, 1, told)
}

func TestEndpointsThatMisbehave(t *testing.T) {
	for name, c := range map[string]struct {
		manifest *graphdv1.WorkerManifest
		execute  func(a *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error
		reason   string
		kind     string
		message  string
	}{
		"no result": {
			execute: func(*graphdv1.TaskAssignment, func(*graphdv1.TaskUpdate)) error { return nil },
			reason:  "NODE_FAILED", kind: "NoResult", message: "without a result",
		},
		"internal": {
			execute: func(*graphdv1.TaskAssignment, func(*graphdv1.TaskUpdate)) error {
				return status.Error(codes.Internal, "broken")
			},
			reason: "NODE_FAILED", kind: "grpc.Internal", message: "broken",
		},
		"always away": {
			execute: func(*graphdv1.TaskAssignment, func(*graphdv1.TaskUpdate)) error {
				return status.Error(codes.Unavailable, "busy")
			},
			reason: "NODE_FAILED", kind: "WorkerLost", message: "busy",
		},
		"unimplemented": {
			execute: func(*graphdv1.TaskAssignment, func(*graphdv1.TaskUpdate)) error {
				return status.Error(codes.Unimplemented, "what?")
			},
			reason: "NODE_FAILED", kind: "NotServed", message: "does not serve",
		},
		"other nodes": {
			manifest: &graphdv1.WorkerManifest{Nodes: []*graphdv1.ServedNode{{Graph: "g", Node: "b"}}},
			reason:   "NODE_FAILED", kind: "NotServed", message: `does not serve node "a"`,
		},
		"other protocol": {
			manifest: &graphdv1.WorkerManifest{MinProtocol: 5, MaxProtocol: 6},
			reason:   "NODE_FAILED", kind: "NotServed", message: "PROTOCOL_MISMATCH",
		},
		"too large": {
			execute: func(_ *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
				send(newResultUpdate(completedResult(`{"x":"` + strings.Repeat("x", 20<<20) + `"}`)))
				return nil
			},
			reason: "OUTPUT_TOO_LARGE", kind: "InvalidResult", message: "too large",
		},
		"invalid JSON": {
			execute: func(_ *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
				send(newResultUpdate(completedResult(`{`)))
				return nil
			},
			reason: "INVALID_NODE_UPDATE", kind: "InvalidResult", message: "JSON",
		},
		"empty parts": {
			execute: func(_ *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
				target := &graphdv1.Goto{}
				send(newResultUpdate(&graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Completed{Completed: &graphdv1.TaskCompleted{
					GotoTargets: slices.Repeat([]*graphdv1.Goto{target}, 2_000_000),
				}}}))
				return nil
			},
			reason: "OUTPUT_TOO_LARGE", kind: "InvalidResult", message: "so many parts",
		},
		"result of another task": {
			execute: func(_ *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
				u := newResultUpdate(completedResult(`{"x":1}`))
				u.LeaseToken = []byte("another")
				send(u)
				return nil
			},
			reason: "INVALID_NODE_UPDATE", kind: "InvalidResult", message: "the lease of another task",
		},
		"large headers": {
			execute: func(*graphdv1.TaskAssignment, func(*graphdv1.TaskUpdate)) error {
				return status.Error(codes.Aborted, strings.Repeat("x", 100<<10))
			},
			reason: "NODE_FAILED", kind: "grpc.Internal", message: "INTERNAL_ERROR",
		},
		"a manifest of empty nodes": {
			manifest: &graphdv1.WorkerManifest{Nodes: slices.Repeat([]*graphdv1.ServedNode{{}}, 400_000)},
			reason:   "NODE_FAILED", kind: "InvalidManifest", message: "so many parts",
		},
		"a manifest of many nodes": {
			manifest: &graphdv1.WorkerManifest{Nodes: slices.Repeat([]*graphdv1.ServedNode{{Graph: "g"}}, 10_001)},
			reason:   "NODE_FAILED", kind: "InvalidManifest", message: "at most 10000",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config{}
			cfg.remote.MaxLosses, cfg.remote.RetryDelay = 2, time.Millisecond
			s := startServer(t, cfg)
			n := &nodeService{manifest: c.manifest}
			n.execute = func(_ context.Context, a *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
				return c.execute(a, send)
			}
			n.listenAndServe(t)
			s.putGraph(withEndpoint(newChainGraph("g", "a"), n.address, nil))
			f := s.runGraph("g", `{"x":0}`).GetFailure()
			require.Equal(t, []string{c.reason, c.kind}, []string{f.GetReason(), f.GetType()}, f.GetMessage())
			require.Contains(t, f.GetMessage(), c.message)
		})
	}
}

// A task that fits into no message is not sent.
func TestAStateThatFitsNoMessageOfAnEndpointFailsTheTask(t *testing.T) {
	s := startServer(t, config{limits: pregel.Limits{MaxValueBytes: 16 << 20, MaxStateBytes: 16 << 20}})
	n := &nodeService{}
	n.execute = func(_ context.Context, _ *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
		send(newResultUpdate(completedResult(`{"log":["` + strings.Repeat("x", 3<<20) + `"]}`)))
		return nil
	}
	n.listenAndServe(t)
	g := withEndpoint(newChainGraph("g", "a", "b", "c", "d"), n.address, nil)
	for _, node := range g.Nodes[:3] {
		node.Reads = []string{"x"}
	}
	s.putGraph(g)
	f := s.runGraph("g", `{"x":0}`).GetFailure()
	require.Equal(t, "OUTPUT_TOO_LARGE", f.GetReason(), f.GetMessage())
	require.Contains(t, f.GetMessage(), "reads")
	require.EqualValues(t, 3, n.calls.Load())
}

// Many tasks share one connection.
func TestOneConnectionPerEndpoint(t *testing.T) {
	s := startServer(t, config{})
	n := &nodeService{execute: func(_ context.Context, _ *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
		send(newResultUpdate(completedResult(`{"log":[1]}`)))
		return nil
	}}
	n.listenAndServe(t)
	s.putGraph(withEndpoint(newChainGraph("g", "a", "b", "c"), n.address, nil))
	run := s.runGraph("g", `{"x":0}`)
	require.JSONEq(t, `{"x":0,"log":[1,1,1]}`, run.GetOutput().GetJson())
	require.EqualValues(t, 3, n.calls.Load())
	require.EqualValues(t, 1, n.accepted.Load())
}
