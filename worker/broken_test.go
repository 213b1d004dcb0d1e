package worker_test

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/graphd-dev/graphd/client"
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/testkit/network"
	"github.com/graphd-dev/graphd/internal/testkit/process"
	"github.com/graphd-dev/graphd/tests/harness"
	"github.com/graphd-dev/graphd/worker"
)

// gate is a node that tells of its start and waits until a test lets it go on. Then it records a
// memo.
type gate struct {
	begun  chan context.Context
	open   chan struct{}
	starts atomic.Int32
	ends   atomic.Int32
	memos  atomic.Int32
	name   string
}

func newGate(name string) *gate {
	return &gate{begun: make(chan context.Context, 100), open: make(chan struct{}, 100), name: name}
}

func (g *gate) run(ctx context.Context, _ graph.State) (any, error) {
	g.starts.Add(1)
	defer g.ends.Add(1)
	g.begun <- ctx
	select {
	case <-g.open:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	by, err := graph.Memo(ctx, "effect", func(context.Context) (string, error) {
		g.memos.Add(1)
		return g.name, nil
	})
	return map[string]any{"a": by}, err
}

// start starts a run, and returns when its node has begun.
func (s *server) start(t *testing.T, graphName, thread string) {
	t.Helper()
	_, err := s.client.Start(t.Context(), client.Run{Graph: graphName, Thread: thread, Input: map[string]any{}})
	require.NoError(t, err)
}

func (s *server) wait(t *testing.T, thread string) *client.Outcome {
	t.Helper()
	o, err := s.client.Wait(t.Context(), thread, "")
	require.NoError(t, err)
	return o
}

// shortBeats are flags of a server that notices soon what is lost. A worker that lives is silent for
// three seconds on no machine.
func shortBeats() []string { return []string{"--worker-beat", "1s", "--worker-lease", "4s"} }

func TestATaskGoesOnWhenItsServerIsReplaced(t *testing.T) {
	t.Parallel()
	s := startServerOn(t, "sqlite:"+filepath.Join(t.TempDir(), "app.db"), "--listen", process.FreeAddress(t),
		"--worker-beat", "300ms", "--worker-lease", "1m", "--lease", "1s")
	g := newGate("worker")
	serve(t, s.Address, oneNode("gate", g.run))
	s.start(t, "gate", "t1")
	receive(t, g.begun, "the node")
	s.Kill()
	require.NoError(t, s.Start())
	_, _, err := harness.RepeatCall(t.Context(), []codes.Code{codes.Unavailable}, 20*time.Millisecond, func(ctx context.Context) (*graphdv1.Thread, error) {
		return s.client.Threads().GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: "t1"})
	})
	require.NoError(t, err)
	g.open <- struct{}{}
	requireOutput(t, `{"a":"worker"}`, s.wait(t, "t1"))
	require.Equal(t, int32(1), g.starts.Load(), "the lease has outlived the server")
	require.Equal(t, int32(1), g.memos.Load())
}

func TestATaskGoesOnWhenItsStreamBreaks(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--worker-beat", "300ms", "--worker-lease", "1m")
	for name, breakIt := range map[string]func(*network.Proxy){
		"cut":    func(p *network.Proxy) { p.Cut() },
		"silent": func(p *network.Proxy) { p.Mute(network.ToServer, network.ToClient) },
		"deaf":   func(p *network.Proxy) { p.Mute(network.ToClient) },
	} {
		t.Run(name, func(t *testing.T) {
			p := network.NewProxy(t, s.Address)
			g := newGate(name)
			serve(t, p.Address(), oneNode(name, g.run))
			s.start(t, name, name)
			receive(t, g.begun, "the node")
			breakIt(p)
			g.open <- struct{}{}
			requireOutput(t, `{"a":"`+name+`"}`, s.wait(t, name))
			require.Equal(t, int32(1), g.starts.Load())
			require.Equal(t, int32(1), g.memos.Load())
		})
	}
}

func TestALostTaskHasNoEffect(t *testing.T) {
	t.Parallel()
	s := startServer(t, shortBeats()...)
	p := network.NewProxy(t, s.Address)
	slow, fast := newGate("slow"), newGate("fast")
	serve(t, p.Address(), oneNode("lost", slow.run))
	s.start(t, "lost", "t1")
	ctx := receive(t, slow.begun, "the node")
	p.Refuse(true)
	serve(t, s.Address, oneNode("lost", fast.run))
	receive(t, fast.begun, "the node of the other worker")
	slow.open <- struct{}{} // it waits for the answer of the server before its effect
	p.Refuse(false)
	<-ctx.Done()
	require.ErrorIs(t, context.Cause(ctx), worker.ErrLost)
	fast.open <- struct{}{}
	requireOutput(t, `{"a":"fast"}`, s.wait(t, "t1"))
	require.Zero(t, slow.memos.Load())
}

func TestALateResultIsRefused(t *testing.T) {
	t.Parallel()
	s := startServer(t, shortBeats()...)
	p := network.NewProxy(t, s.Address)
	begun, open := make(chan struct{}, 1), make(chan struct{})
	serve(t, p.Address(), oneNode("late", func(context.Context, graph.State) (any, error) {
		begun <- struct{}{}
		<-open // it ignores the end of its context
		return map[string]any{"a": "late"}, nil
	}))
	s.start(t, "late", "t1")
	receive(t, begun, "the node")
	p.Refuse(true)
	other := serve(t, s.Address, oneNode("late", update(`{"a":"first"}`)))
	requireOutput(t, `{"a":"first"}`, s.wait(t, "t1"))
	close(open)
	p.Refuse(false)
	require.NoError(t, other.stop())
	requireOutput(t, `{"a":"late"}`, s.invoke(t, "late", "t2", map[string]any{}))
	requireOutput(t, `{"a":"first"}`, s.wait(t, "t1"))
}

func TestAWorkerLetsItsTasksEnd(t *testing.T) {
	s := startServer(t)
	g := newGate("first")
	w := serve(t, s.Address, oneNode("drain", g.run))
	s.start(t, "drain", "t1")
	receive(t, g.begun, "the node")
	w.cancel()
	second := newGate("second")
	serve(t, s.Address, oneNode("drain", second.run))
	s.start(t, "drain", "t2")
	receive(t, second.begun, "the node of the other worker")
	second.open <- struct{}{}
	requireOutput(t, `{"a":"second"}`, s.wait(t, "t2"))
	g.open <- struct{}{}
	require.NoError(t, receive(t, w.end, "the end of the worker"))
	requireOutput(t, `{"a":"first"}`, s.wait(t, "t1"))
}

func TestAWorkerGivesBackWhatTakesTooLong(t *testing.T) {
	s := startServer(t, "--worker-lease", "1h", "--worker-beat", "1m") // longer than the test
	g := newGate("first")
	w := serveWith(t, s.Address, worker.Options{Graphs: []*graph.Builder{oneNode("slow", g.run)}, DrainTimeout: 1})
	s.start(t, "slow", "t1")
	ctx := receive(t, g.begun, "the node")
	err := w.stop()
	unfinished, ok := errors.AsType[*worker.UnfinishedError](err)
	require.True(t, ok, err)
	require.Equal(t, 1, unfinished.Tasks)
	require.ErrorIs(t, context.Cause(ctx), worker.ErrLeaving)
	serve(t, s.Address, oneNode("slow", update(`{"a":"second"}`)))
	requireOutput(t, `{"a":"second"}`, s.wait(t, "t1"))
}

func TestAStoppedTask(t *testing.T) {
	s := startServer(t)
	g := newGate("worker")
	serve(t, s.Address, oneNode("stopped", g.run))
	s.start(t, "stopped", "t1")
	ctx := receive(t, g.begun, "the node")
	s.cancelRun(t, "t1")
	<-ctx.Done()
	stopped, ok := errors.AsType[*worker.StoppedError](context.Cause(ctx))
	require.True(t, ok, context.Cause(ctx))
	require.NotEmpty(t, stopped.Reason)
}

// Each node cuts the connections of its worker at one of the moments that matter.
func TestManyTasksOverBreakingConnections(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--worker-beat", "300ms", "--worker-lease", "1m")
	p := network.NewProxy(t, s.Address)
	const runs = 40
	var effects [runs]atomic.Int32
	g := graph.New("many").Channel("n").Channel("log", graph.Reducer("append")).
		Node("work", func(ctx context.Context, st graph.State) (any, error) {
			var n int
			if err := st.Decode("n", &n); err != nil {
				return nil, err
			}
			if n%4 == 0 {
				p.Cut()
			}
			price, err := graph.Memo(ctx, "price", func(context.Context) (int32, error) {
				if n%4 == 1 {
					p.Cut()
				}
				return effects[n].Add(1), nil
			})
			if err != nil {
				return nil, err
			}
			if n%4 == 2 {
				p.Cut()
			}
			answer, err := graph.Ask[string](ctx, map[string]any{"price": price})
			if n%4 == 3 {
				p.Cut()
			}
			return map[string]any{"log": []any{answer, price}}, err
		}).Chain(graph.Start, "work", graph.End)
	serve(t, p.Address(), g)
	for n := range runs {
		_, err := s.client.Start(t.Context(), client.Run{Graph: "many", Thread: strconv.Itoa(n), Input: map[string]any{"n": n}})
		require.NoError(t, err)
	}
	for n := range runs {
		o := s.wait(t, strconv.Itoa(n))
		require.True(t, o.Waits(), o.Run)
	}
	for n := range runs {
		thread := strconv.Itoa(n)
		o, err := s.client.Resume(t.Context(), thread, client.Answer{Value: "yes"})
		require.NoError(t, err)
		requireOutput(t, `{"n":`+thread+`,"log":["yes",1]}`, o)
		require.Equal(t, int32(1), effects[n].Load())
	}
}
