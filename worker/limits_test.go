package worker_test

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/graphd-dev/graphd/client"
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/testkit/built"
	"github.com/graphd-dev/graphd/internal/testkit/process"
	"github.com/graphd-dev/graphd/worker"
)

func (s *server) cancelRun(t *testing.T, thread string) {
	t.Helper()
	_, err := s.client.Graphs().CancelRun(t.Context(), &graphdv1.CancelRunRequest{ThreadId: thread})
	require.NoError(t, err)
}

func TestSlotsBoundTheTasks(t *testing.T) {
	s := startServer(t)
	var now, most atomic.Int32
	g := oneNode("slots", func(context.Context, graph.State) (any, error) {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		defer now.Add(-1)
		return map[string]any{"a": n}, nil
	})
	serveWith(t, s.Address, worker.Options{Graphs: []*graph.Builder{g}, Slots: 2})
	for i := range 40 {
		s.start(t, "slots", strconv.Itoa(i))
	}
	for i := range 40 {
		require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, s.wait(t, strconv.Itoa(i)).Run.GetState())
	}
	require.LessOrEqual(t, most.Load(), int32(2))
}

func TestAFunctionThatIgnoresItsEndTakesASlot(t *testing.T) {
	begun, open := make(chan struct{}, 1), make(chan struct{})
	s, _ := newScriptedServer(t, nil, worker.Options{Slots: 2, Graphs: []*graph.Builder{oneNode("g", func(context.Context, graph.State) (any, error) {
		begun <- struct{}{}
		<-open
		return nil, nil
	})}})
	s.say <- assign(newTask("one"))
	receive(t, begun, "the node")
	s.loseLease("one")
	credit := func(r *graphdv1.ConnectRequest) (uint32, bool) {
		return r.GetCredit().GetTotalSlots(), r.GetCredit() != nil
	}
	require.Equal(t, uint32(1), hear(t, s, credit))
	close(open)
	require.Equal(t, uint32(2), hear(t, s, credit))
}

func TestManyEvents(t *testing.T) {
	s := startServer(t)
	const kept = 2500
	serve(t, s.Address, oneNode("events", func(ctx context.Context, _ graph.State) (any, error) {
		for i := range kept {
			if err := graph.Emit(ctx, "kept", i, graph.Durable()); err != nil {
				return nil, err
			}
			if err := graph.EmitMessage(ctx, map[string]any{"role": "assistant", "content": i}); err != nil {
				return nil, err
			}
		}
		return map[string]any{"a": 1}, nil
	}))
	requireOutput(t, `{"a":1}`, s.invoke(t, "events", "t1", map[string]any{}))
	list := s.customEvents(t, "t1")
	require.Len(t, list, kept)
	for i, e := range list {
		require.Equal(t, "kept "+strconv.Itoa(i), e)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	g := oneNode("g", update(`{}`))
	for text, o := range map[string]worker.Options{
		"worker: Slots is -1: want 1 to 100000, or 0 for 64":                                             {Graphs: []*graph.Builder{g}, Slots: -1},
		"worker: DrainTimeout is -1ns: want a positive time, or 0 for 30s":                               {Graphs: []*graph.Builder{g}, DrainTimeout: -1},
		"worker: Graphs is empty, and Nodes too: want a graph to serve":                                  {},
		"worker: Graphs has a nil graph: want graphs of graph.New":                                       {Graphs: []*graph.Builder{nil}},
		"worker: Nodes[0].Graph is empty: want the name of a graph of the server":                        {Nodes: []worker.Nodes{{}}},
		`worker: Nodes[0].Graph is "g", which is served already: want each graph once`:                   {Graphs: []*graph.Builder{g}, Nodes: []worker.Nodes{{Graph: "g"}}},
		"worker: Nodes[0].Functions is empty, and Routers and Reducers too: want functions of the graph": {Nodes: []worker.Nodes{{Graph: "g"}}},
		`worker: Nodes[0].Functions has no function under "n": want a function`:                          {Nodes: []worker.Nodes{{Graph: "g", Functions: graph.Functions{"n": nil}}}},
		`worker: Nodes[0].Reducers has no function under "r": want a function`:                           {Nodes: []worker.Nodes{{Graph: "g", Reducers: map[string]graph.Reduce{"r": nil}}}},
		"the graph \"g\" is described wrongly:\n  nodes.n: is there twice: want each node once":          {Graphs: []*graph.Builder{oneNode("g", update(`{}`)).Node("n", update(`{}`))}},
		`worker: Graphs has two graphs "g": want each name once, also among subgraphs`:                   {Graphs: []*graph.Builder{g, oneNode("g", update(`{}`)).Channel("c")}},
	} {
		_, err := worker.Dial("127.0.0.1:1", o)
		require.EqualError(t, err, text)
	}
}

func TestAServerRefusesAGraph(t *testing.T) {
	s := startServer(t)
	err := worker.Run(t.Context(), s.Address, oneNode("wrong", update(`{}`)).Edge("n", "nowhere"))
	require.Error(t, err)
	refused, ok := err.(*worker.GraphError) //nolint:errorlint // it is this very error
	require.True(t, ok, err)
	require.Equal(t, "wrong", refused.Graph)
	require.Contains(t, err.Error(), "nowhere")
}

func TestAServerRefusesAWorker(t *testing.T) {
	s := startServer(t)
	conn, err := grpc.NewClient(s.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	w, err := worker.New(conn, worker.Options{Nodes: []worker.Nodes{{Graph: strings.Repeat("g", 10_000), Functions: graph.Functions{"n": update(`{}`)}}}})
	require.NoError(t, err)
	require.ErrorIs(t, w.Run(t.Context()), client.InvalidField)
}

func TestAWorkerWithoutAServerEndsWithItsContext(t *testing.T) {
	w, err := worker.Dial(process.FreeAddress(t), worker.Options{Graphs: []*graph.Builder{oneNode("g", update(`{}`))}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	end := make(chan error, 1)
	go func() { end <- w.Run(ctx) }()
	cancel()
	require.NoError(t, receive(t, end, "the end of the worker"))
}

func TestAConnectionOfTheCaller(t *testing.T) {
	s := startServer(t)
	conn, err := grpc.NewClient(s.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	ctx, cancel := context.WithCancel(t.Context())
	w, err := worker.New(conn, worker.Options{
		Graphs: []*graph.Builder{oneNode("g", update(`{"a":1}`))}, Deployment: "billing", BuildID: "b7", Labels: map[string]string{"zone": "a"},
	})
	require.NoError(t, err)
	end := make(chan error, 1)
	go func() { end <- w.Run(ctx) }()
	receive(t, w.Ready(), "the welcome")
	requireOutput(t, `{"a":1}`, s.invoke(t, "g", "t1", map[string]any{}))
	list, err := graphdv1.NewRegistryServiceClient(conn).ListWorkers(t.Context(), &graphdv1.ListWorkersRequest{})
	require.NoError(t, err)
	require.Len(t, list.GetWorkers(), 1)
	require.Equal(t, "b7", list.GetWorkers()[0].GetBuildId())
	require.Equal(t, map[string]string{"zone": "a"}, list.GetWorkers()[0].GetLabels())
	require.Equal(t, uint32(64), list.GetWorkers()[0].GetTotalSlots())
	cancel()
	require.NoError(t, receive(t, end, "the end of the worker"))
	require.ErrorIs(t, w.Run(t.Context()), worker.ErrHasRun)
}

// bearer sends a token with each call, also in plain text.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (bearer) RequireTransportSecurity() bool { return false }

func TestAWorkerNeedsCredentials(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys")
	tokens := make(map[string]string)
	for _, role := range []string{"worker", "admin"} {
		out, err := exec.CommandContext(t.Context(), built.Graphd(t), "keys", "create", "--file", keys, "--name", role, "--role", role).Output()
		require.NoError(t, err)
		tokens[role] = strings.TrimSpace(string(out))
	}
	s := startServer(t, "--api-keys", keys)
	g := oneNode("g", update(`{"a":1}`))
	refused, ok := errors.AsType[*client.Error](worker.Run(t.Context(), s.Address, g))
	require.True(t, ok)
	require.Equal(t, codes.Unauthenticated, refused.Code)

	dial := func(role string, o worker.Options) *worker.Worker {
		w, err := worker.Dial(s.Address, o, grpc.WithPerRPCCredentials(bearer(tokens[role])))
		require.NoError(t, err)
		return w
	}
	err := dial("worker", worker.Options{Graphs: []*graph.Builder{g}}).Run(t.Context())
	lacks, ok := errors.AsType[*worker.GraphError](err)
	require.True(t, ok, err)
	require.Contains(t, lacks.Error(), "bring-graphs")

	ctx, cancel := context.WithCancel(t.Context())
	end := make(chan error, 1)
	w := dial("admin", worker.Options{Graphs: []*graph.Builder{g}})
	go func() { end <- w.Run(ctx) }()
	receive(t, w.Ready(), "the welcome")
	cancel()
	require.NoError(t, receive(t, end, "the end of the worker"))
}

// gRPC would dial port 443 of a host without a port, and the worker would wait for ever.
func TestAWorkerRefusesAddressesWithoutAPort(t *testing.T) {
	err := worker.Run(t.Context(), "localhost", oneNode("g", update(`{}`)))
	_, ok := errors.AsType[*client.AddressError](err)
	require.True(t, ok, err)
	require.EqualError(t, err, `the address "localhost" of the server names no port: want HOST:PORT, like localhost:7700`)
}
