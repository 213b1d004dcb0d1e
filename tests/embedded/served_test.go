package embedded_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd"
	"github.com/graphd-dev/graphd/client"
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/testkit/network"
	"github.com/graphd-dev/graphd/worker"
)

// serve opens the engine to others, and returns its address.
func (p program) serve() string {
	p.t.Helper()
	l, err := new(net.ListenConfig).Listen(p.t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(p.t, err)
	go func() { _ = p.Serve(l) }()
	return l.Addr().String()
}

// work serves a graph from a worker at an address, until the test ends.
func work(t *testing.T, address string, g *graph.Builder) {
	t.Helper()
	w, err := worker.Dial(address, worker.Options{Graphs: []*graph.Builder{g}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	<-w.Ready()
}

// openWithShortLeases opens an engine that gives the tasks of silent workers to others soon.
func openWithShortLeases(t *testing.T) program {
	t.Helper()
	return openWith(t, graphd.Memory(), graphd.Options{Args: []string{"--worker-beat=300ms", "--worker-lease=900ms"}})
}

// A worker that is cut off while it works loses its task to another one. What it returns later counts
// for nothing, and it works on.
func TestASlowWorkerLosesItsTask(t *testing.T) {
	p := openWithShortLeases(t)
	address := p.serve()
	cut := network.NewProxy(t, address)
	var runs atomic.Int32
	begun, lost := make(chan struct{}), make(chan error, 1)
	g := graph.New("slow").Channel("by").Node("work", func(ctx context.Context, _ graph.State) (any, error) {
		if runs.Add(1) > 1 {
			return map[string]any{"by": "the second"}, nil
		}
		close(begun)
		<-ctx.Done()
		lost <- context.Cause(ctx)
		return map[string]any{"by": "the first"}, nil
	}).Chain(graph.Start, "work", graph.End)
	work(t, cut.Address(), g)
	run, err := p.Start(t.Context(), client.Run{Graph: "slow", Thread: "t", Input: map[string]any{}})
	require.NoError(t, err)
	<-begun
	cut.Hold(true, true)
	work(t, address, g)
	o, err := p.Wait(t.Context(), "t", run.GetRunId())
	require.NoError(t, err)
	requireOutput(t, o, `{"by":"the second"}`)
	cut.Hold(false, false)
	require.ErrorIs(t, <-lost, worker.ErrLost)
	state, err := p.Threads().GetState(t.Context(), &graphdv1.GetStateRequest{ThreadId: "t"})
	require.NoError(t, err)
	require.JSONEq(t, `{"by":"the second"}`, state.GetValues().GetJson())
	requireOutput(t, p.run("slow", "t2", `{}`), `{"by":"the second"}`)
}

// A question is answered while its worker and those who watch have lost their connections: both come
// back, and nothing is missing.
func TestAnAnswerWhileConnectionsAreBroken(t *testing.T) {
	p := openWithShortLeases(t)
	cut := network.NewProxy(t, p.serve())
	work(t, cut.Address(), graph.New("asks").Channel("said").Node("ask", askInto("said", "on?")).Chain(graph.Start, "ask", graph.End))
	o := p.run("asks", "t", `{}`)
	watching, err := client.Dial(cut.Address())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, watching.Close()) })
	seen, succeeded := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		for e, err := range watching.Watch(t.Context(), "t", nil) {
			switch {
			case err != nil:
				succeeded <- err
				return
			case e.GetInterrupt() != nil:
				seen <- struct{}{}
			case e.GetRunState().GetState() == graphdv1.RunState_RUN_STATE_SUCCEEDED:
				succeeded <- nil
				return
			}
		}
	}()
	<-seen
	cut.Refuse(true)
	cut.Cut()
	resumed := make(chan error, 1)
	go func() {
		answered, err := p.Resume(t.Context(), "t", client.AnswerTo(o.Questions[0], "yes"))
		if err == nil {
			_, err = client.Output[struct{}](answered)
		}
		resumed <- err
	}()
	cut.Refuse(false)
	require.NoError(t, <-resumed)
	require.NoError(t, <-succeeded)
}
