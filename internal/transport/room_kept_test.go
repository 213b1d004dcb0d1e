package transport_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/expr"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/transport"
)

// largeText is a value so large that the engine of these tests can show only one at
// a time.
var largeText = payload.Quote(strings.Repeat("x", 300<<10))

// graphs is a catalog of one graph.
type graphs struct{ graph *graph.Graph }

func (g graphs) Graph(string, string) (*graph.Graph, error) { return g.graph, nil }

func (g graphs) Versions(string, int) []string { return []string{g.graph.Version} }

// nodeFuncs is an executor that has a function for each node.
type nodeFuncs map[string]func(t *runtime.Task) pregel.Result

func (f nodeFuncs) Execute(_ context.Context, t *runtime.Task) pregel.Result {
	return f[t.Node.Name](t)
}

// askOnce returns a node that asks a question once.
func askOnce(question payload.JSON) func(t *runtime.Task) pregel.Result {
	return func(t *runtime.Task) pregel.Result {
		if len(t.Journal.Answers) > 0 {
			return pregel.Result{Update: `{}`}
		}
		q := pregel.Ask{Value: question}
		q.SetDriftDefaults(t.Graph.Spec)
		return pregel.Result{Asks: []pregel.Ask{q}}
	}
}

// newCrowdedEngine returns an engine with room for one large read: that of the question of the thread
// "asks", or of the state of the thread "large". "asks" has two questions.
func newCrowdedEngine(t *testing.T) *engine.Engine {
	t.Helper()
	e := newEngineOf(t, nodeFuncs{"first": askOnce(largeText), "second": askOnce(largeText)}, engine.Options{MaxLiveBytes: 4 << 20})
	for thread, input := range map[string]payload.JSON{"asks": `{}`, "large": `{"text":` + largeText + `}`} {
		started, err := e.Start(t.Context(), runtime.StartRequest{
			Thread: thread, CreateThread: true, Graph: "g", Request: checkpoint.RunRequest{Input: input},
		})
		require.NoError(t, err)
		run, err := e.WaitRun(t.Context(), thread, started.Run.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunInterrupted, run.State)
	}
	return e
}

// newEngineOf returns an engine with a graph "g" whose nodes run at once, with the channel text
// and more.
func newEngineOf(t *testing.T, nodes nodeFuncs, options engine.Options, more ...graph.ChannelSpec) *engine.Engine {
	t.Helper()
	expressions, err := expr.New(expr.Options{})
	require.NoError(t, err)
	s := &graph.Spec{Name: "g", Channels: append([]graph.ChannelSpec{{Name: "text"}}, more...)}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		s.Nodes = append(s.Nodes, graph.NodeSpec{Name: name, Function: &graph.FunctionSpec{}})
		s.Edges = append(s.Edges,
			graph.EdgeSpec{From: []string{graph.Start}, To: name}, graph.EdgeSpec{From: []string{name}, To: graph.End})
	}
	g, err := graph.Compile(s, graph.Env{Expressions: expressions})
	require.NoError(t, err)
	e := engine.New(context.WithoutCancel(t.Context()), memory.New(memory.Options{}), graphs{g}, nodes, nil, options)
	t.Cleanup(e.Close)
	return e
}

// quietFollower stops the follower of a watch that has sent a heartbeat.
type quietFollower struct {
	transport.InterruptFollower

	turns atomic.Int64
	quiet chan struct{} // closed when it has stopped
	goOn  chan struct{}
}

func (f *quietFollower) Next(ctx context.Context) ([]*checkpoint.Interrupt, error) {
	if f.turns.Add(1) == 2 {
		close(f.quiet)
		<-f.goOn
	}
	return f.InterruptFollower.Next(ctx)
}

// A watch of the questions of all threads reads one of them for its heartbeat,
// however large it is, and releases its memory before the next.
func TestRoomOfAHeartbeatIsGivenBack(t *testing.T) {
	e := newCrowdedEngine(t)
	f := &quietFollower{quiet: make(chan struct{}), goOn: make(chan struct{})}
	c := startServer(t, newFakeEngine(), func(o *transport.Options) {
		o.Engine, o.Heartbeat = e, 20*time.Millisecond
		o.FollowInterrupts = func(memory *runtime.CallMemory, q checkpoint.InterruptQuery, after uint64) transport.InterruptFollower {
			f.InterruptFollower = e.FollowInterrupts(memory, q, after)
			return f
		}
	})
	goOn := sync.OnceFunc(func() { close(f.goOn) })
	t.Cleanup(goOn)
	w, err := c.WatchInterrupts(t.Context(), &graphdv1.WatchInterruptsRequest{})
	require.NoError(t, err)
	bookmark := func() (questions int) {
		for {
			m, err := w.Recv()
			require.NoError(t, err)
			if m.GetBookmark() {
				return questions
			}
			questions++
		}
	}
	require.Equal(t, 4, bookmark(), "all questions come first")
	require.Zero(t, bookmark(), "then a heartbeat")
	<-f.quiet
	_, err = c.GetState(t.Context(), &graphdv1.GetStateRequest{ThreadId: "large"})
	require.NoError(t, err, "the watch has kept room for what it does not show")
	goOn()
	require.Zero(t, bookmark(), "it goes on")
}

// A caller that has answered gets the result, with the large open questions, while
// others hold all memory for large reads, because the answer is stored.
func TestRoomIsNotNeededToTellWhatAnAnswerDid(t *testing.T) {
	e := newCrowdedEngine(t)
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.Engine = e })
	asked, err := e.OpenInterruptIDs(t.Context(), "asks", 10)
	require.NoError(t, err)
	require.Len(t, asked, 2)
	var other runtime.CallMemory
	_, err = e.State(t.Context(), runtime.StateRequest{Thread: "large", Memory: &other})
	require.NoError(t, err)
	require.True(t, other.IsHeld())
	defer other.Release()
	for range 2 { // the second call repeats the first
		run, err := c.ResumeRun(t.Context(), &graphdv1.ResumeRunRequest{
			RequestId: "r1",
			Resume: &graphdv1.ResumeSpec{
				ThreadId: "asks", Coverage: graphdv1.ResumeCoverage_RESUME_COVERAGE_COLLECT,
				Responses: []*graphdv1.InterruptResponse{{
					InterruptId: asked[0], Outcome: &graphdv1.InterruptResponse_Value{Value: newJSONPayload(`"yes"`)},
				}},
			},
		})
		require.NoError(t, err)
		require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, run.GetState())
		require.Equal(t, asked[1:], run.GetOpenInterruptIds())
	}
}
