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
)

// service is a node service in another process, as its owner would write it.
type service struct {
	graphdv1.UnimplementedNodeServiceServer

	address  string
	manifest *graphdv1.WorkerManifest
	execute  func(ctx context.Context, a *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error
	calls    atomic.Int32
	accepted atomic.Int32
	server   *grpc.Server
	health   *health.Server
}

func (s *service) Describe(context.Context, *graphdv1.DescribeRequest) (*graphdv1.WorkerManifest, error) {
	if s.manifest == nil {
		return nil, status.Error(codes.Unimplemented, "no manifest")
	}
	return s.manifest, nil
}

func (s *service) ExecuteTask(req *graphdv1.ExecuteTaskRequest, stream graphdv1.NodeService_ExecuteTaskServer) error {
	s.calls.Add(1)
	return s.execute(stream.Context(), req.GetTask(), func(u *graphdv1.TaskUpdate) { _ = stream.Send(u) })
}

// listen serves on an address of its own choice, or on the one it had.
func (s *service) listen(t *testing.T) {
	t.Helper()
	s.serve(t, s)
}

// serve is listen for something that embeds a service.
func (s *service) serve(t *testing.T, by graphdv1.NodeServiceServer) {
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
	go func() { _ = s.server.Serve(&counting{Listener: l, accepted: &s.accepted}) }()
	t.Cleanup(s.server.Stop)
}

// counting counts the connections of a listener.
type counting struct {
	net.Listener

	accepted *atomic.Int32
}

func (c *counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.accepted.Add(1)
	}
	return conn, err
}

// at makes every node of a graph run on an address.
func at(g *graphdv1.GraphSpec, address string, policy *graphdv1.PolicySpec) *graphdv1.GraphSpec {
	for _, n := range g.Nodes {
		n.GetRemote().Endpoint, n.Policy = address, policy
	}
	return g
}

func (s *server) put(g *graphdv1.GraphSpec) {
	s.t.Helper()
	_, err := s.PutGraph(s.t.Context(), &graphdv1.PutGraphRequest{Definition: &graphdv1.PutGraphRequest_Spec{Spec: g}})
	require.NoError(s.t, err)
}

func result(r *graphdv1.TaskResult) *graphdv1.TaskUpdate {
	return &graphdv1.TaskUpdate{Kind: &graphdv1.TaskUpdate_Result{Result: r}}
}

func TestANodeOnAnEndpoint(t *testing.T) {
	s := start(t, config{})
	n := &service{manifest: &graphdv1.WorkerManifest{
		Features: []string{"drift"}, Nodes: []*graphdv1.ServedNode{{Graph: "g", Node: "a"}},
	}}
	var made atomic.Int32
	n.execute = func(ctx context.Context, a *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
		k := &task{TaskAssignment: a, c: s.client, asked: make(map[string]uint32)}
		send(result(k.play(ctx, func(ctx context.Context, k *task) *graphdv1.TaskResult {
			receipt := k.memo(ctx, "charge", func() string { made.Add(1); return `"r"` })
			answer := k.ask(`"sure?"`)
			send(&graphdv1.TaskUpdate{Kind: &graphdv1.TaskUpdate_Emit{Emit: &graphdv1.Emit{Items: []*graphdv1.EmitItem{{
				Channel: graphdv1.Channel_CHANNEL_CUSTOM, Name: "done", Value: text(`1`), Durable: true,
			}}}}})
			return completed(`{"x":[` + receipt + `,` + answer + `]}`)
		})))
		return nil
	}
	n.listen(t)
	s.put(at(chain("g", "a"), n.address, nil))
	run := s.run("g", `{"x":0}`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, run.GetState(), run.GetFailure())
	run = s.answer(run, `true`)
	require.JSONEq(t, `{"x":["r",true],"log":[]}`, run.GetOutput().GetJson())
	require.EqualValues(t, 1, made.Load())
	require.EqualValues(t, 2, n.calls.Load())
	var custom []string
	for _, e := range s.events(run) {
		if c := e.GetCustom(); c != nil {
			custom = append(custom, c.GetName())
		}
	}
	require.Equal(t, []string{"done"}, custom)
}

func TestTheDeadlineOfANodeIsThatOfItsCall(t *testing.T) {
	s := start(t, config{})
	n := &service{}
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
	n.listen(t)
	s.put(at(chain("g", "a"), n.address, &graphdv1.PolicySpec{Timeout: durationpb.New(2 * time.Second)}))
	run := s.run("g", `{"x":0}`)
	require.Equal(t, "NODE_TIMEOUT", run.GetFailure().GetReason(), run.GetFailure().GetMessage())
	require.Error(t, await(t, ended, "the end of the call"))
}

func TestACancelEndsTheCall(t *testing.T) {
	s := start(t, config{})
	n := &service{}
	began, ended := make(chan struct{}), make(chan struct{})
	n.execute = func(ctx context.Context, _ *graphdv1.TaskAssignment, _ func(*graphdv1.TaskUpdate)) error {
		close(began)
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	}
	n.listen(t)
	s.put(at(chain("g", "a"), n.address, nil))
	run := s.begin("g", `{"x":0}`)
	await(t, began, "the call")
	_, err := s.CancelRun(t.Context(), &graphdv1.CancelRunRequest{ThreadId: run.GetThreadId(), RunId: run.GetRunId()})
	require.NoError(t, err)
	await(t, ended, "the cancel")
	require.Equal(t, graphdv1.RunState_RUN_STATE_CANCELLED, s.wait(run).GetState())
}

// A service that dies while it works has its task run again when it is back;
// one that is away makes the run wait.
func TestALostEndpointIsCalledAgain(t *testing.T) {
	s := start(t, config{})
	n := &service{}
	began := make(chan struct{}, 2)
	n.execute = func(ctx context.Context, a *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
		began <- struct{}{}
		if a.GetDelivery() == 1 {
			<-ctx.Done()
			return ctx.Err()
		}
		send(result(completed(`{"x":2}`)))
		return nil
	}
	n.listen(t)
	s.put(at(chain("g", "a"), n.address, nil))
	run := s.begin("g", `{"x":0}`)
	await(t, began, "the call")
	n.server.Stop()
	n.listen(t)
	run = s.wait(run)
	require.JSONEq(t, `{"x":2,"log":[]}`, run.GetOutput().GetJson(), run.GetFailure().GetMessage())
	require.EqualValues(t, 2, n.calls.Load())
}

// A call that may have begun when its connection broke is a lost delivery, of which
// the endpoint, the readers and the metric hear. One that has not left counts for
// nothing.
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
			cfg.remote.Losses, cfg.remote.Retry = 2, time.Millisecond
			s := start(t, cfg)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			broken := &breaking{Listener: l}
			broken.refuse.Store(c.refuse)
			deliveries := make(chan uint32, 10)
			n := &service{execute: func(_ context.Context, a *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
				deliveries <- a.GetDelivery()
				send(result(completed(`{"x":2}`)))
				return nil
			}}
			var once sync.Once
			server := grpc.NewServer(grpc.InTapHandle(func(ctx context.Context, info *tap.Info) (context.Context, error) {
				if info.FullMethodName == c.method {
					once.Do(broken.hangUp)
				}
				return ctx, nil
			}))
			graphdv1.RegisterNodeServiceServer(server, n)
			go func() { _ = server.Serve(broken) }()
			t.Cleanup(server.Stop)
			s.put(at(chain("g", "a"), l.Addr().String(), nil))
			run := s.run("g", `{"x":0}`)
			require.JSONEq(t, `{"x":2,"log":[]}`, run.GetOutput().GetJson(), run.GetFailure().GetMessage())
			var last uint32
			for len(deliveries) > 0 {
				last = <-deliveries
			}
			require.EqualValues(t, c.lost+1, last, "the endpoint is told that it may be a repetition")
			require.EqualValues(t, c.lost, s.hub.Lost())
			marks := 0
			for _, e := range s.events(run) {
				if e.GetTask().GetPhase() == graphdv1.TaskChange_PHASE_RESTARTED {
					marks++
					require.Equal(t, "WorkerLost", e.GetTask().GetFailure().GetType())
				}
			}
			require.Equal(t, c.lost, marks)
		})
	}
}

// breaking is a listener whose connections break.
type breaking struct {
	net.Listener

	refuse atomic.Int32
	mu     sync.Mutex
	conns  []net.Conn
}

func (b *breaking) Accept() (net.Conn, error) {
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

// hangUp closes all connections there are.
func (b *breaking) hangUp() {
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
	cfg.remote.Losses, cfg.remote.Retry = 3, time.Millisecond
	s := start(t, cfg)
	n := &service{execute: func(context.Context, *graphdv1.TaskAssignment, func(*graphdv1.TaskUpdate)) error {
		return status.Error(codes.Unavailable, "busy")
	}}
	n.listen(t)
	s.put(at(chain("g", "a"), n.address, nil))
	f := s.run("g", `{"x":0}`).GetFailure()
	require.Equal(t, "WorkerLost", f.GetType(), f.GetMessage())
	require.EqualValues(t, 3, n.calls.Load())
	require.EqualValues(t, 3, s.hub.Lost())

	silent := &undescribed{}
	silent.listen(t)
	s.put(at(chain("h", "a"), silent.address, nil))
	f = s.run("h", `{"x":0}`).GetFailure()
	require.Equal(t, "NotReached", f.GetType(), f.GetMessage())
	require.Zero(t, silent.calls.Load())
	require.EqualValues(t, 3, s.hub.Lost())
}

// undescribed does not say what it serves.
type undescribed struct{ service }

func (u *undescribed) Describe(context.Context, *graphdv1.DescribeRequest) (*graphdv1.WorkerManifest, error) {
	return nil, status.Error(codes.Unavailable, "starting")
}

func (u *undescribed) listen(t *testing.T) {
	t.Helper()
	u.serve(t, u)
}

// What a reducer does is shown to no reader: one that is lost has nothing to tell.
func TestAReducerWhoseEndpointIsLostIsCalledAgain(t *testing.T) {
	core, logs := observer.New(zap.ErrorLevel)
	cfg := config{hub: worker.Options{Beat: time.Minute, LeaseTTL: time.Hour, Logger: zap.New(core)}}
	cfg.remote.Retry = time.Millisecond
	s := start(t, cfg)
	n := &service{execute: func(ctx context.Context, a *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
		switch {
		case a.GetKind() != graphdv1.TaskKind_TASK_KIND_REDUCER:
			send(result(completed(`{"sum":"2"}`)))
		case a.GetDelivery() == 1:
			return status.Error(codes.Unavailable, "away")
		default:
			send(&graphdv1.TaskUpdate{Kind: &graphdv1.TaskUpdate_Emit{Emit: &graphdv1.Emit{Items: []*graphdv1.EmitItem{{
				Channel: graphdv1.Channel_CHANNEL_CUSTOM, Name: "added", Value: text(`1`), Durable: true,
			}}}}})
			send(result(plus(ctx, &task{TaskAssignment: a})))
		}
		return nil
	}}
	n.listen(t)
	s.put(at(summing("a"), n.address, nil))
	run := s.run("g", `{"sum":"1"}`)
	require.JSONEq(t, `{"sum":"1+2","log":[]}`, run.GetOutput().GetJson(), run.GetFailure().GetMessage())
	require.Empty(t, logs.All())
}

// A server that stops, or dies, while an endpoint is at work has the next one tell
// the endpoint that it may be a repetition.
func TestTheNextServerTellsAnEndpointOfACallThatMayHaveBegun(t *testing.T) {
	for name, end := range map[string]func(*server){"killed": (*server).crash, "drained": func(s *server) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // at once
		_ = s.grpc.Drain(ctx)
		s.engine.Drain(ctx)
		s.kill()
	}} {
		t.Run(name, func(t *testing.T) {
			s := start(t, config{lease: time.Second})
			began := make(chan *graphdv1.TaskAssignment, 10)
			n := &service{execute: func(ctx context.Context, a *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
				began <- a
				if a.GetDelivery() == 1 {
					<-ctx.Done()
					return ctx.Err()
				}
				send(result(completed(`{"x":2}`)))
				return nil
			}}
			n.listen(t)
			s.put(at(chain("g", "a"), n.address, nil))
			run := s.begin("g", `{"x":0}`)
			first := await(t, began, "the call")
			end(s)
			next := start(t, config{store: s.store, lease: time.Second})
			second := await(t, began, "the call of the next server")
			require.EqualValues(t, 2, second.GetDelivery())
			require.Equal(t, first.GetTaskId(), second.GetTaskId())
			require.JSONEq(t, `{"x":2,"log":[]}`, next.wait(run).GetOutput().GetJson())
		})
	}
}

func TestAnEndpointThatIsAwayOrUnhealthyIsWaitedFor(t *testing.T) {
	s := start(t, config{})
	n := &service{execute: func(_ context.Context, _ *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
		send(result(completed(`{"x":2}`)))
		return nil
	}}
	n.listen(t)
	n.health.SetServingStatus("graphd.v1.NodeService", healthpb.HealthCheckResponse_NOT_SERVING)
	s.put(at(chain("g", "a"), n.address, nil))
	stream, err := s.Stream(t.Context(), &graphdv1.StreamRequest{
		Run:    &graphdv1.RunSpec{CreateThread: true, Graph: "g", Start: &graphdv1.RunSpec_Input{Input: text(`{"x":1}`)}},
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
				send(result(completed(`{"x":"` + strings.Repeat("x", 20<<20) + `"}`)))
				return nil
			},
			reason: "OUTPUT_TOO_LARGE", kind: "InvalidResult", message: "too large",
		},
		"invalid JSON": {
			execute: func(_ *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
				send(result(completed(`{`)))
				return nil
			},
			reason: "INVALID_NODE_UPDATE", kind: "InvalidResult", message: "JSON",
		},
		"empty parts": {
			execute: func(_ *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
				target := &graphdv1.Goto{}
				send(result(&graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Completed{Completed: &graphdv1.TaskCompleted{
					GotoTargets: slices.Repeat([]*graphdv1.Goto{target}, 2_000_000),
				}}}))
				return nil
			},
			reason: "OUTPUT_TOO_LARGE", kind: "InvalidResult", message: "so many parts",
		},
		"result of another task": {
			execute: func(_ *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
				u := result(completed(`{"x":1}`))
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
			cfg.remote.Losses, cfg.remote.Retry = 2, time.Millisecond
			s := start(t, cfg)
			n := &service{manifest: c.manifest}
			n.execute = func(_ context.Context, a *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
				return c.execute(a, send)
			}
			n.listen(t)
			s.put(at(chain("g", "a"), n.address, nil))
			f := s.run("g", `{"x":0}`).GetFailure()
			require.Equal(t, []string{c.reason, c.kind}, []string{f.GetReason(), f.GetType()}, f.GetMessage())
			require.Contains(t, f.GetMessage(), c.message)
		})
	}
}

// A task that fits into no message is not sent.
func TestAStateThatFitsNoMessageOfAnEndpointFailsTheTask(t *testing.T) {
	s := start(t, config{limits: pregel.Limits{Value: 16 << 20, State: 16 << 20}})
	n := &service{}
	n.execute = func(_ context.Context, _ *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
		send(result(completed(`{"log":["` + strings.Repeat("x", 3<<20) + `"]}`)))
		return nil
	}
	n.listen(t)
	g := at(chain("g", "a", "b", "c", "d"), n.address, nil)
	for _, node := range g.Nodes[:3] {
		node.Reads = []string{"x"}
	}
	s.put(g)
	f := s.run("g", `{"x":0}`).GetFailure()
	require.Equal(t, "OUTPUT_TOO_LARGE", f.GetReason(), f.GetMessage())
	require.Contains(t, f.GetMessage(), "reads")
	require.EqualValues(t, 3, n.calls.Load())
}

// Many tasks share one connection.
func TestOneConnectionPerEndpoint(t *testing.T) {
	s := start(t, config{})
	n := &service{execute: func(_ context.Context, _ *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
		send(result(completed(`{"log":[1]}`)))
		return nil
	}}
	n.listen(t)
	s.put(at(chain("g", "a", "b", "c"), n.address, nil))
	run := s.run("g", `{"x":0}`)
	require.JSONEq(t, `{"x":0,"log":[1,1,1]}`, run.GetOutput().GetJson())
	require.EqualValues(t, 3, n.calls.Load())
	require.EqualValues(t, 1, n.accepted.Load())
}
