// Package workers_test plays workers and endpoints against a whole graphd in
// memory, over the wire.
package workers_test

import (
	"context"
	"crypto/rand"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	api "github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/expr"
	"github.com/graphd-dev/graphd/internal/node"
	"github.com/graphd-dev/graphd/internal/registry"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/schema"
	"github.com/graphd-dev/graphd/internal/transport"
	"github.com/graphd-dev/graphd/internal/transport/endpoint"
	"github.com/graphd-dev/graphd/internal/transport/stream"
	"github.com/graphd-dev/graphd/internal/worker"
	"github.com/graphd-dev/graphd/tests/harness"
)

// server is a whole graphd.
type server struct {
	t           testing.TB
	store       *memory.Store
	storeAccess *cuttableStore
	hub         *worker.Hub
	engine      *engine.Engine
	remote      *endpoint.Executor
	grpc        *transport.Server
	listen      *bufconn.Listener
	client
}

// client is everything that tests call.
type client struct {
	graphdv1.GraphServiceClient
	graphdv1.ThreadServiceClient
	graphdv1.RegistryServiceClient
	graphdv1.WorkerServiceClient

	conn *grpc.ClientConn
}

// config is what tests change.
type config struct {
	store       *memory.Store
	hub         worker.Options
	remote      endpoint.Options
	lease       time.Duration
	limits      pregel.Limits
	maxLiveRuns int // runs at a time, 0 = the default
}

// startServer runs a server until the test ends or it is killed.
func startServer(tb testing.TB, c config) *server {
	tb.Helper()
	if c.store == nil {
		c.store = memory.New(memory.Options{})
	}
	if c.hub.HeartbeatInterval == 0 {
		c.hub.HeartbeatInterval, c.hub.LeaseTTL = time.Minute, time.Hour // nothing happens by itself
	}
	if c.lease == 0 {
		c.lease = 15 * time.Second
	}
	if len(c.hub.Key) == 0 {
		key, err := c.store.Secret(tb.Context(), "worker-key", rand.Text())
		require.NoError(tb, err)
		c.hub.Key = []byte(key)
	}
	s := &server{t: tb, store: c.store, hub: worker.New(c.hub), listen: bufconn.Listen(1 << 20)}
	s.remote = endpoint.NewExecutor(s.hub, c.remote)
	mux := node.New(api.Functions{}, node.Options{Remote: s.remote})
	expressions, err := expr.New(expr.Options{})
	require.NoError(tb, err)
	graphs, err := registry.New(tb.Context(), registry.Options{
		Store: c.store, Env: graph.Env{Expressions: expressions, HasFunction: mux.HasFunction},
	})
	require.NoError(tb, err)
	s.storeAccess = &cuttableStore{Store: c.store}
	s.engine = engine.New(tb.Context(), s.storeAccess, graphs, mux, schema.New(schema.Limits{}), engine.Options{
		KeepsSecrets: true,
		LeaseTTL:     c.lease, ScanInterval: 50 * time.Millisecond, Limits: c.limits, MaxLiveRuns: c.maxLiveRuns, Workers: s.hub,
	})
	s.grpc, err = transport.NewServer(transport.Options{
		Engine: s.engine, Registry: graphs, Assistants: s.engine.Assistants(), Items: s.engine.Items(), RunWebhooks: s.engine.Webhooks(), Crons: s.engine.Crons(), Hub: s.hub,
		Follow: func(r runtime.FollowRequest) stream.Follower { return s.engine.Follow(r) },
		FollowInterrupts: func(memory *runtime.CallMemory, q checkpoint.InterruptQuery, after uint64) transport.InterruptFollower {
			return s.engine.FollowInterrupts(memory, q, after)
		},
	})
	require.NoError(tb, err)
	served := make(chan error, 1)
	go func() { served <- s.grpc.Serve(s.listen) }()
	s.client = s.newClient()
	tb.Cleanup(func() {
		s.killServer()
		require.NoError(tb, <-served)
	})
	return s
}

// newClient connects one more client.
func (s *server) newClient() client {
	s.t.Helper()
	conn, err := grpc.NewClient("passthrough:///bufconn",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(1<<30)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return s.listen.DialContext(ctx) }))
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = conn.Close() })
	return client{
		graphdv1.NewGraphServiceClient(conn), graphdv1.NewThreadServiceClient(conn),
		graphdv1.NewRegistryServiceClient(conn), graphdv1.NewWorkerServiceClient(conn), conn,
	}
}

// cuttableStore is how a server gets at the store, until it dies.
type cuttableStore struct {
	*memory.Store

	isCut atomic.Bool
}

func (r *cuttableStore) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	if r.isCut.Load() {
		return checkpoint.Receipt{}, checkpoint.ErrUnavailable
	}
	return r.Store.Apply(ctx, c)
}

// crashServer ends the server without a word to the store.
func (s *server) crashServer() {
	s.storeAccess.isCut.Store(true)
	s.killServer()
}

// killServer cuts everything at once.
func (s *server) killServer() {
	s.grpc.Stop()
	s.engine.Close()
	s.remote.Close()
}

// runGraph starts a graph and returns when the run has stopped.
func (s *server) runGraph(name, input string) *graphdv1.Run {
	s.t.Helper()
	return s.waitStopped(s.startRun(name, input))
}

// startRun starts a graph.
func (s *server) startRun(name, input string) *graphdv1.Run {
	s.t.Helper()
	run, err := s.StartRun(s.t.Context(), &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
		CreateThread: true, Graph: name, Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload(input)},
	}})
	require.NoError(s.t, err)
	return run
}

// waitStopped returns the run when it has stopped.
func (s *server) waitStopped(run *graphdv1.Run) *graphdv1.Run {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	run, err := s.WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: run.GetThreadId(), RunId: run.GetRunId()})
	require.NoError(s.t, err)
	return run
}

// answerRun resumes a run with the answer to its only interrupt.
func (s *server) answerRun(run *graphdv1.Run, value string) *graphdv1.Run {
	s.t.Helper()
	next, err := s.ResumeRun(s.t.Context(), &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{
		ThreadId: run.GetThreadId(),
		Single:   &graphdv1.InterruptResponse{Outcome: &graphdv1.InterruptResponse_Value{Value: harness.NewPayload(value)}},
	}})
	require.NoError(s.t, err)
	return s.waitStopped(next)
}

// listEvents returns the whole log of a thread.
func (s *server) listEvents(run *graphdv1.Run) []*graphdv1.Event {
	s.t.Helper()
	ss, err := s.Watch(s.t.Context(), &graphdv1.WatchRequest{
		ThreadId: run.GetThreadId(), Start: &graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}},
		Filter: &graphdv1.EventFilter{Channels: []graphdv1.Channel{
			graphdv1.Channel_CHANNEL_UPDATES, graphdv1.Channel_CHANNEL_CUSTOM, graphdv1.Channel_CHANNEL_TASKS,
		}},
	})
	require.NoError(s.t, err)
	var all []*graphdv1.Event
	for {
		e, err := ss.Recv()
		require.NoError(s.t, err)
		if e.GetEnd() != nil {
			return all
		}
		all = append(all, e)
	}
}

// reasonOf returns the reason of a refused call; where it has none, its code.
func reasonOf(t *testing.T, err error) string {
	t.Helper()
	require.Error(t, err)
	return harness.ReasonOf(err)
}
