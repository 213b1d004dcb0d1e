package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/graphd-dev/graphd"
	"github.com/graphd-dev/graphd/client"
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/graph"
)

// newChain is a graph of nodes that write their names.
func newChain(name string, nodes ...string) *graph.Builder {
	g := graph.New(name).Channel("log", graph.Reducer("append"))
	for _, n := range nodes {
		g.Node(n, say("log", []string{n}))
	}
	return g.Chain(append(append([]string{graph.Start}, nodes...), graph.End)...)
}

// A node before which a run waits runs once after it, and one after which it waits is not run
// again. After a node and before the next one is one stop.
func TestBreakpoints(t *testing.T) {
	p := open(t, graphd.Memory(), newChain("g", "a", "b", "c").InterruptAfter("a").InterruptBefore("b", "c"))
	o := p.run("g", "t", `{}`)
	stops := 0
	for o.Waits() {
		stops++
		require.Less(t, stops, 9)
		o = p.answer("t")
	}
	require.Equal(t, 2, stops)
	requireOutput(t, o, `{"log":["a","b","c"]}`)
}

// The state that is edited while a run waits is that with which it goes on.
func TestAnEditWhileARunWaits(t *testing.T) {
	g := graph.New("g").Channel("n").
		Node("ask", func(context.Context, graph.State) (any, error) { return map[string]any{"n": 1}, nil }).
		Node("double", func(_ context.Context, s graph.State) (any, error) {
			var n int
			err := s.Decode("n", &n)
			return map[string]any{"n": 2 * n}, err
		}).
		Chain(graph.Start, "ask", "double", graph.End).InterruptBefore("double")
	p := open(t, graphd.Memory(), g)
	p.run("g", "t", `{}`)
	_, err := p.Threads().UpdateState(t.Context(), &graphdv1.UpdateStateRequest{
		ThreadId: "t", Values: &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: `{"n":21}`}},
	})
	require.NoError(t, err)
	requireOutput(t, p.answer("t"), `{"n":42}`)
}

// A run that is drained ends its superstep; its nodes are not run again when the thread goes on.
func TestARunIsDrained(t *testing.T) {
	var calls counter
	begun, mayEnd := make(chan struct{}), make(chan struct{})
	g := graph.New("g").Channel("log", graph.Reducer("append")).
		Node("slow", func(ctx context.Context, _ graph.State) (any, error) {
			calls.add("slow")
			close(begun)
			select {
			case <-mayEnd:
			case <-ctx.Done():
			}
			return map[string]any{"log": []string{"slow"}}, ctx.Err()
		}).
		Node("next", say("log", []string{"next"})).
		Chain(graph.Start, "slow", "next", graph.End)
	p := open(t, graphd.Memory(), g)
	run, err := p.Start(t.Context(), client.Run{Graph: "g", Thread: "t", Input: map[string]any{}})
	require.NoError(t, err)
	<-begun
	_, err = p.Graphs().CancelRun(t.Context(), &graphdv1.CancelRunRequest{ThreadId: "t", RunId: run.GetRunId(), Action: graphdv1.CancelRunRequest_ACTION_DRAIN})
	require.NoError(t, err)
	close(mayEnd)
	o, err := p.Wait(t.Context(), "t", run.GetRunId())
	require.NoError(t, err)
	require.Equal(t, graphdv1.RunState_RUN_STATE_CANCELLED, o.Run.GetState())
	requireOutput(t, p.goOn("t"), `{"log":["slow","next"]}`)
	require.Equal(t, 1, calls.of("slow"))
}

// A run that is cancelled keeps what has ended. The task that was stopped is run again with the input
// that it had.
func TestACancelKeepsWhatHasEnded(t *testing.T) {
	var calls counter
	begun := make(chan struct{})
	g := graph.New("g").Channel("log", graph.Reducer("append")).
		Node("split", func(context.Context, graph.State) (any, error) {
			return graph.Command{Goto: []graph.Target{graph.Send("quick", 1), graph.Send("slow", 2)}}, nil
		}, graph.Destinations("quick", "slow")).
		Node("quick", func(_ context.Context, s graph.State) (any, error) {
			calls.add("quick")
			return map[string]any{"log": []string{"quick " + s.Raw()}}, nil
		}).
		Node("slow", func(ctx context.Context, s graph.State) (any, error) {
			if calls.add("slow") == 1 {
				close(begun)
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return map[string]any{"log": []string{"slow " + s.Raw()}}, nil
		}).
		Edge(graph.Start, "split")
	p := open(t, file(t), g)
	next, stop := iter.Pull2(p.Stream(t.Context(), client.Run{Graph: "g", Thread: "t", Input: map[string]any{}}))
	defer stop()
	for {
		e, err, ok := next()
		require.True(t, ok)
		require.NoError(t, err)
		if e.GetUpdate() != nil && e.GetNode() == "quick" {
			break // it is stored
		}
	}
	<-begun
	_, err := p.Graphs().CancelRun(t.Context(), &graphdv1.CancelRunRequest{ThreadId: "t", Wait: true})
	require.NoError(t, err)
	requireOutput(t, p.goOn("t"), `{"log":["quick 1","slow 2"]}`)
	require.Equal(t, 1, calls.of("quick"))
	require.Equal(t, 2, calls.of("slow"))
}

// A node that fails is repeated where the run was: nodes before it are not.
func TestARunIsRepeatedFromItsFailure(t *testing.T) {
	var calls counter
	var isBroken atomic.Bool
	isBroken.Store(true)
	g := graph.New("g").Channel("log", graph.Reducer("append")).
		Node("a", func(context.Context, graph.State) (any, error) {
			calls.add("a")
			return map[string]any{"log": []string{"a"}}, nil
		}).
		Node("b", func(context.Context, graph.State) (any, error) {
			calls.add("b")
			if isBroken.Load() {
				return nil, graph.Permanent(errors.New("the bank is closed"))
			}
			return map[string]any{"log": []string{"b"}}, nil
		}).
		Chain(graph.Start, "a", "b", graph.End)
	store := file(t)
	p := open(t, store, g)
	o := p.run("g", "t", `{}`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_FAILED, o.Run.GetState())
	require.Equal(t, "b", o.Run.GetFailure().GetNode())
	require.Contains(t, o.Run.GetFailure().GetMessage(), "the bank is closed")
	p.close()
	p = open(t, store, g)
	isBroken.Store(false)
	requireOutput(t, p.goOn("t"), `{"log":["a","b"]}`)
	require.Equal(t, 1, calls.of("a"))
	require.Equal(t, 2, calls.of("b"))
}

// A failure is repeated by the policy of its node, and a panic ends one run.
func TestRetriesAndPanics(t *testing.T) {
	var calls counter
	g := graph.New("g").Channel("n").
		Node("flaky", func(ctx context.Context, _ graph.State) (any, error) {
			if n := calls.add("flaky"); n < 3 {
				return nil, fmt.Errorf("attempt %d", graph.TaskInfo(ctx).Attempt)
			}
			return map[string]any{"n": graph.TaskInfo(ctx).Attempt}, nil
		}, graph.Retries(graph.Retry{MaxAttempts: 3, InitialInterval: time.Millisecond, NoJitter: true})).
		Chain(graph.Start, "flaky", graph.End)
	panics := func(context.Context, graph.State) (any, error) { panic("no") }
	mended := graph.New("mended").Channel("n").
		Node("panics", panics, graph.OnError("mends")).
		Node("mends", func(ctx context.Context, _ graph.State) (any, error) {
			return map[string]any{"n": graph.Failed(ctx).Node}, nil
		}).
		Edge(graph.Start, "panics")
	alone := graph.New("alone").Channel("n").Node("panics", panics).Edge(graph.Start, "panics")
	p := open(t, graphd.Memory(), g, alone, mended)
	requireOutput(t, p.run("g", "t", `{}`), `{"n":3}`)
	requireOutput(t, p.run("mended", "m", `{}`), `{"n":"panics"}`)
	o := p.run("alone", "p", `{}`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_FAILED, o.Run.GetState())
	requireOutput(t, p.run("g", "t2", `{}`), `{"n":1}`)
}

// A run that turns in a circle is stopped by its limit, with a failure that says so; one that is
// cancelled stops in its node.
func TestARunEnds(t *testing.T) {
	circle := graph.New("circle").Channel("n").Node("a", say("n", 1)).Edge(graph.Start, "a").Edge("a", "a").StepLimit(7)
	begun := make(chan struct{})
	wait := graph.New("wait").Channel("n").Node("a", func(ctx context.Context, _ graph.State) (any, error) {
		close(begun)
		<-ctx.Done()
		return nil, ctx.Err()
	}).Chain(graph.Start, "a", graph.End)
	p := open(t, graphd.Memory(), circle, wait)
	o := p.run("circle", "t", `{}`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_FAILED, o.Run.GetState())
	require.Equal(t, "STEP_LIMIT_EXCEEDED", o.Run.GetFailure().GetReason())
	run, err := p.Start(t.Context(), client.Run{Graph: "wait", Thread: "w", Input: map[string]any{}})
	require.NoError(t, err)
	<-begun
	_, err = p.Graphs().CancelRun(t.Context(), &graphdv1.CancelRunRequest{ThreadId: "w", RunId: run.GetRunId(), Wait: true})
	require.NoError(t, err)
	o, err = p.Wait(t.Context(), "w", run.GetRunId())
	require.NoError(t, err)
	require.Equal(t, graphdv1.RunState_RUN_STATE_CANCELLED, o.Run.GetState())
}

// Many threads of one graph at once keep their own states, checkpoints and streams.
func TestManyThreadsAtOnce(t *testing.T) {
	g := graph.New("g").Channel("name").Channel("log", graph.Reducer("append"))
	for _, n := range []string{"a", "b"} {
		g.Node(n, func(_ context.Context, s graph.State) (any, error) {
			var name string
			err := s.Decode("name", &name)
			return map[string]any{"log": []string{n + name}}, err
		})
	}
	g.Node("ask", func(ctx context.Context, s graph.State) (any, error) {
		answer, err := graph.Ask[string](ctx, s.Get("name"))
		return map[string]any{"log": []string{answer}}, err
	}).Chain(graph.Start, "a", "ask", "b", graph.End)
	p := open(t, file(t), g)
	var all errgroup.Group
	for i := range 100 {
		thread := fmt.Sprintf("t%d", i)
		all.Go(func() error {
			for e, err := range p.Stream(t.Context(), client.Run{Graph: "g", Thread: thread, Input: map[string]any{"name": thread}}) {
				if err != nil {
					return err
				}
				if e.GetThreadId() != thread && e.GetEnd() == nil {
					return fmt.Errorf("%s has an event of %q", thread, e.GetThreadId())
				}
			}
			o, err := p.Resume(t.Context(), thread, client.Answer{Value: "yes " + thread})
			if err != nil {
				return err
			}
			want := fmt.Sprintf(`{"name":%q,"log":["a%s","yes %s","b%s"]}`, thread, thread, thread, thread)
			if !jsonEqual(o.Run.GetOutput().GetJson(), want) {
				return fmt.Errorf("%s has %s", thread, o.Run.GetOutput().GetJson())
			}
			return nil
		})
	}
	require.NoError(t, all.Wait())
}

func jsonEqual(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && fmt.Sprint(x) == fmt.Sprint(y)
}

// What parallel nodes write has one order, however long they take.
func TestTheOrderOfWritesIsAlwaysTheSame(t *testing.T) {
	g := graph.New("g").Channel("log", graph.ReduceBy(func(a, b []string) ([]string, error) { return append(a, b...), nil }))
	for _, n := range []string{"d", "b", "a", "c"} {
		g.Node(n, func(ctx context.Context, _ graph.State) (any, error) {
			timer := time.NewTimer(time.Duration(rand.IntN(3000)) * time.Microsecond)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
			return map[string]any{"log": []string{n}}, nil
		}).Edge(graph.Start, n)
	}
	p := open(t, graphd.Memory(), g)
	for i := range 100 {
		requireOutput(t, p.run("g", fmt.Sprintf("t%d", i), `{}`), `{"log":["a","b","c","d"]}`)
	}
}

// A thread whose run has ended begins a new turn on its old state.
func TestANewTurnBeginsOnTheOldState(t *testing.T) {
	p := open(t, file(t), newChain("g", "a", "b"))
	p.run("g", "t", `{"log":["first"]}`)
	_, err := p.Resume(t.Context(), "t", client.Answer{Value: "late"})
	require.ErrorIs(t, err, client.ThreadNotInterrupted)
	requireOutput(t, p.run("g", "t", `{"log":["second"]}`), `{"log":["first","a","b","second","a","b"]}`)
}

// An edit at an earlier checkpoint of a copy leaves the thread as it was.
func TestAForkLeavesItsSource(t *testing.T) {
	ctx := t.Context()
	p := open(t, file(t), newChain("g", "a", "b"))
	p.run("g", "t", `{}`)
	list, err := p.Threads().ListCheckpoints(ctx, &graphdv1.ListCheckpointsRequest{ThreadId: "t", IncludeValues: true})
	require.NoError(t, err)
	require.Len(t, list.GetCheckpoints(), 4)
	middle := list.GetCheckpoints()[1]
	require.JSONEq(t, `{"log":["a"]}`, middle.GetValues().GetJson())
	_, err = p.Threads().ForkThread(ctx, &graphdv1.ForkThreadRequest{SourceThreadId: "t", At: middle.GetCheckpoint(), ThreadId: "fork"})
	require.NoError(t, err)
	_, err = p.Threads().UpdateState(ctx, &graphdv1.UpdateStateRequest{
		ThreadId: "fork", Values: &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: `{"log":["edited"]}`}}, AsNode: "a",
	})
	require.NoError(t, err)
	requireOutput(t, p.goOn("fork"), `{"log":["a","edited","b"]}`)
	state, err := p.Threads().GetState(ctx, &graphdv1.GetStateRequest{ThreadId: "t"})
	require.NoError(t, err)
	require.JSONEq(t, `{"log":["a","b"]}`, state.GetValues().GetJson())
}

// Checkpoints that are taken away leave the state and the open questions.
func TestOldCheckpointsGo(t *testing.T) {
	g := newChain("g", "a", "b", "c").Channel("said").Node("ask", askInto("said", "on?")).Edge("c", "ask")
	p := open(t, file(t), g)
	p.run("g", "t", `{}`)
	_, err := p.Threads().PruneThread(t.Context(), &graphdv1.PruneThreadRequest{ThreadId: "t", KeepCheckpoints: 2})
	require.NoError(t, err)
	list, err := p.Threads().ListCheckpoints(t.Context(), &graphdv1.ListCheckpointsRequest{ThreadId: "t"})
	require.NoError(t, err)
	require.Len(t, list.GetCheckpoints(), 2)
	requireOutput(t, p.answer("t", client.Answer{Value: "yes"}), `{"log":["a","b","c"],"said":"yes"}`)
}

// A graph that can't be is refused when the engine is opened, with all its mistakes.
func TestWrongGraphsAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		graph *graph.Builder
		want  []string
	}{
		"no function": {graph.New("g").Node("a", nil), []string{"nodes.a: has no function"}},
		"twice":       {newChain("g", "a").Node("a", say("log", 1)).Channel("log"), []string{"nodes.a: is there twice", "channels.log: is there twice"}},
		"nowhere":     {newChain("g", "a").Edge("a", "b"), []string{`"b"`}},
		"value":       {graph.New("g").Channel("f", graph.Initial(func() {})).Node("a", say("f", 1)).Edge(graph.Start, "a"), []string{"channels.f.default:", "unsupported type"}},
		"reducers": {
			graph.New("g").Channel("n", graph.Reducer("append"), graph.ReduceBy(func(a, _ int) (int, error) { return a, nil })).
				Node("a", say("n", 1)).Edge(graph.Start, "a"),
			[]string{"channels.n:", "want one of them"},
		},
		"a list that may be null": {
			graph.New("g").State(struct {
				Log []string `json:"log" graph:"append"`
			}{}).Node("a", say("log", 1)).Edge(graph.Start, "a"),
			[]string{"the field Log", `json:"log,omitempty"`},
		},
		"no state": {graph.New("g").State(3), []string{"want a struct"}},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := graphd.Open(t.Context(), graphd.Memory(), test.graph)
			require.Nil(t, e)
			require.Error(t, err)
			for _, want := range test.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

// What JSON can't hold fails the node that returns it, and nothing is half stored.
func TestAResultThatIsNoJSON(t *testing.T) {
	g := graph.New("g").Channel("a").Channel("b").
		Node("a", say("a", 1)).Node("bad", say("b", make(chan int))).Chain(graph.Start, "a", "bad", graph.End)
	p := open(t, graphd.Memory(), g)
	o := p.run("g", "t", `{}`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_FAILED, o.Run.GetState())
	require.Equal(t, "bad", o.Run.GetFailure().GetNode())
	state, err := p.Threads().GetState(t.Context(), &graphdv1.GetStateRequest{ThreadId: "t"})
	require.NoError(t, err)
	require.JSONEq(t, `{"a":1}`, state.GetValues().GetJson())
}
