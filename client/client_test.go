package client_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/graphd-dev/graphd"
	"github.com/graphd-dev/graphd/client"
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/testkit/network"
	"github.com/graphd-dev/graphd/internal/testkit/process"
)

// fixture is an engine that serves, and a client that reaches it through a network that breaks.
type fixture struct {
	t      *testing.T
	engine *graphd.Engine
	client *client.Client
	proxy  *network.Proxy
}

func start(t *testing.T, graphs ...*graph.Builder) *fixture {
	t.Helper()
	e, err := graphd.Open(t.Context(), graphd.Memory(), graphs...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close(context.WithoutCancel(t.Context()))) })
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = e.Serve(l) }()
	f := &fixture{t: t, engine: e, proxy: network.NewProxy(t, l.Addr().String())}
	f.client, err = client.Dial(f.proxy.Address())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.client.Close()) })
	return f
}

type answered struct {
	Said string `json:"said"`
}

// newAsking is a graph that asks, and then waits for a channel.
func newAsking(goOn <-chan struct{}) *graph.Builder {
	return graph.New("asks").State(answered{}).
		Node("ask", func(ctx context.Context, _ graph.State) (any, error) {
			said, err := graph.Ask[string](ctx, "on?")
			return answered{said}, err
		}).
		Node("wait", func(ctx context.Context, _ graph.State) (any, error) {
			select {
			case <-goOn:
			case <-ctx.Done():
			}
			return nil, ctx.Err()
		}).
		Chain(graph.Start, "ask", "wait", graph.End)
}

func (f *fixture) invoke(thread string) *client.Outcome {
	f.t.Helper()
	o, err := f.client.Invoke(f.t.Context(), client.Run{Graph: "asks", Thread: thread, Input: map[string]any{}})
	require.NoError(f.t, err)
	return o
}

// A wait for a run goes on over broken connections, and so does a stream.
func TestWaitsAndStreamsGoOnOverBrokenConnections(t *testing.T) {
	goOn := make(chan struct{})
	f := start(t, newAsking(goOn))
	asked := f.invoke("t1")
	require.True(t, asked.Waits())
	_, err := client.Output[answered](asked)
	waiting, ok := errors.AsType[*client.WaitingError](err)
	require.True(t, ok)
	require.Len(t, waiting.Questions, 1)

	watched := make(chan error, 1)
	reached := make(chan struct{})
	go func() {
		defer close(watched)
		for e, err := range f.client.StreamResume(t.Context(), "t1", client.AnswerTo(asked.Questions[0], "yes")) {
			switch {
			case err != nil:
				watched <- err
			case e.GetUpdate() != nil && e.GetNode() == "ask":
				close(reached)
			}
		}
	}()
	<-reached
	waited := make(chan *client.Outcome, 1)
	go func() {
		o, err := f.client.Wait(t.Context(), "t1", "")
		if err != nil {
			watched <- err
		}
		waited <- o
	}()
	for range 3 {
		f.proxy.Cut()
	}
	close(goOn)
	o := <-waited
	require.NoError(t, <-watched)
	got, err := client.Output[answered](o)
	require.NoError(t, err)
	require.Equal(t, answered{"yes"}, got)
}

// A server that is not there is told at once.
func TestAServerThatIsNotThere(t *testing.T) {
	c, err := client.Dial(process.FreeAddress(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	_, err = c.Invoke(t.Context(), client.Run{Graph: "g", Thread: "t"})
	refused, ok := errors.AsType[*client.Error](err)
	require.True(t, ok)
	require.Equal(t, codes.Unavailable, refused.Code)
	require.Empty(t, refused.Reason)
	for _, err := range c.Stream(t.Context(), client.Run{Graph: "g", Thread: "t"}) {
		require.Error(t, err)
	}
}

// An answer is to what was shown, and an answer to a question that has changed is refused.
func TestAnAnswerIsToWhatWasShown(t *testing.T) {
	f := start(t, newAsking(nil))
	o := f.invoke("t1")
	other := client.AnswerTo(o.Questions[0], "yes")
	other.Seen = "0000000000000000000000000000000000000000000000000000000000000000"
	_, err := f.client.Resume(t.Context(), "t1", other)
	require.ErrorIs(t, err, client.QuestionChanged)
	require.NotErrorIs(t, err, client.InterruptNotFound)
	require.NotErrorIs(t, err, client.Reason(""))
}

// A run that fails says why, and so does one that is cancelled.
func TestRunsThatEndWithoutAResult(t *testing.T) {
	broken := graph.New("broken").Channel("n").Node("breaks", func(context.Context, graph.State) (any, error) {
		return nil, graph.Permanent(errors.New("no paper"))
	}).Chain(graph.Start, "breaks", graph.End)
	f := start(t, broken, newAsking(nil))
	o, err := f.client.Invoke(t.Context(), client.Run{Graph: "broken", Thread: "t1", Input: map[string]any{}})
	require.NoError(t, err)
	_, err = client.Output[map[string]any](o)
	require.ErrorIs(t, err, client.NodeFailed)
	require.EqualError(t, err, `the run has failed in node "breaks": NODE_FAILED: no paper`)

	asked := f.invoke("t2")
	_, err = f.client.Graphs().CancelRun(t.Context(), &graphdv1.CancelRunRequest{ThreadId: "t2", RunId: asked.Run.GetRunId(), Wait: true})
	require.NoError(t, err)
	o, err = f.client.Wait(t.Context(), "t2", asked.Run.GetRunId())
	require.NoError(t, err)
	stopped, ok := errors.AsType[*client.RunError](o.Err())
	require.True(t, ok)
	require.Equal(t, graphdv1.RunState_RUN_STATE_CANCELLED, stopped.State)
}

// The inbox has the questions of all threads, over many pages.
func TestTheInboxHasAllPages(t *testing.T) {
	f := start(t, newAsking(nil))
	want := map[string]bool{}
	for i := range 60 {
		thread := "t" + string(rune('A'+i%26)) + string(rune('a'+i/26))
		f.invoke(thread)
		want[thread] = true
	}
	got := map[string]bool{}
	for q, err := range f.client.Inbox(t.Context(), `graph = "asks"`) {
		require.NoError(t, err)
		got[q.GetThreadId()] = true
	}
	require.Equal(t, want, got)
	for _, err := range f.client.Inbox(t.Context(), "no filter") {
		require.ErrorIs(t, err, client.InvalidField)
	}
	open, err := f.client.Questions(t.Context(), "nowhere")
	require.NoError(t, err)
	require.Empty(t, open)
}

// A run that waits before or after a node asks nothing, and goes on without answers.
func TestABreakpointIsNoQuestion(t *testing.T) {
	goOn := make(chan struct{})
	close(goOn)
	f := start(t, newAsking(goOn).InterruptBefore("ask").InterruptAfter("ask"))
	o, err := f.client.Invoke(t.Context(), client.Run{Graph: "asks", Thread: "t", Input: answered{}})
	require.NoError(t, err)
	require.True(t, o.Waits())
	require.Empty(t, o.Questions)
	questions, err := f.client.Questions(t.Context(), "t")
	require.NoError(t, err)
	require.Empty(t, questions)
	_, err = client.Output[answered](o)
	require.EqualError(t, err, "the run has no output yet: it waits before or after a node, and goes on with a Resume without answers")
	for q, err := range f.client.Inbox(t.Context(), "") {
		require.NoError(t, err)
		require.Equal(t, "breakpoint", q.GetReason())
	}
	o, err = f.client.Resume(t.Context(), "t")
	require.NoError(t, err)
	require.Len(t, o.Questions, 1)
	o, err = f.client.Resume(t.Context(), "t", client.AnswerTo(o.Questions[0], "yes"))
	require.NoError(t, err)
	require.Empty(t, o.Questions)
	o, err = f.client.Resume(t.Context(), "t")
	require.NoError(t, err)
	said, err := client.Output[answered](o)
	require.NoError(t, err)
	require.Equal(t, answered{"yes"}, said)
}
