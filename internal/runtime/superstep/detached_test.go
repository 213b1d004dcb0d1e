package superstep_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/runtime/query"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// catalog has one graph under any name.
type catalog struct{ graph *graph.Graph }

func (c catalog) Graph(string, string) (*graph.Graph, error) { return c.graph, nil }

func (c catalog) Versions(string, int) []string { return []string{c.graph.Version} }

// silentFollowers are followers of a thread that has none.
type silentFollowers struct{ ephemeral []checkpoint.Event }

func (f *silentFollowers) PublishEphemeral(e checkpoint.Event) { f.ephemeral = append(f.ephemeral, e) }
func (*silentFollowers) WantsValues() bool                     { return false }
func (*silentFollowers) WantsOutput() bool                     { return false }
func (*silentFollowers) WantsInputs() bool                     { return false }

// routerExecutor runs the routing code of a worker.
type routerExecutor struct {
	route func(ctx context.Context, t *runtime.Task) pregel.Result
	tasks []*runtime.Task
}

func (r *routerExecutor) Execute(ctx context.Context, t *runtime.Task) pregel.Result {
	r.tasks = append(r.tasks, t)
	return r.route(ctx, t)
}

func compileRoutedGraph(t *testing.T) *graph.Graph {
	t.Helper()
	g, err := graph.Compile(&graph.Spec{
		Name: "g", Channels: []graph.ChannelSpec{{Name: "n"}},
		Nodes:    []graph.NodeSpec{{Name: "a", Remote: &graph.RemoteSpec{}}, {Name: "b", Remote: &graph.RemoteSpec{}}},
		Edges:    []graph.EdgeSpec{{From: []string{graph.Start}, To: "a"}},
		Branches: []graph.BranchSpec{{From: "a", Name: "route", Router: "route", InWorker: true}},
	}, graph.Env{})
	require.NoError(t, err)
	return g
}

// TestRouterOfADetachedThread edits a thread as if a node had written whose routing
// code runs in a worker. No run is driven, so all that the code and its worker ask for
// besides the route is refused or does nothing.
func TestRouterOfADetachedThread(t *testing.T) {
	g := compileRoutedGraph(t)
	node, ok := g.Node("a")
	require.True(t, ok)
	store, followers := memory.New(memory.Options{}), &silentFollowers{}
	x := &routerExecutor{route: func(ctx context.Context, task *runtime.Task) pregel.Result {
		task.Host.ResetIdleTimeout()
		task.Host.ReportUnassigned("no worker is connected")
		task.Host.NotifyStranded()
		task.Host.HandOff()
		task.Effects.EmitEvent(runtime.Emission{Kind: checkpoint.EventCustom, Value: `"lost"`, Durable: true})
		task.Effects.EmitEvent(runtime.Emission{Kind: runtime.EventWorkerLost})
		_, _, err := task.Effects.RecordMemo(ctx, checkpoint.Memo{Key: "k", Value: "1"})
		require.ErrorIs(t, err, superstep.ErrLeaseLost)
		_, err = task.Host.CallGraph(ctx, runtime.GraphCall{Graph: "g", Input: `{"n":1}`})
		require.Error(t, err)
		require.False(t, task.Stranded.Load())
		return pregel.Result{Goto: []checkpoint.Send{{Node: "b"}}}
	}}
	env := &superstep.Env{
		Store: store, Reader: query.New(query.Options{Graphs: catalog{g}}), Executor: x, Observer: runtime.NopObserver{}, Log: zap.NewNop(), Now: time.Now,
		StepLimit: 25, ParallelTasks: 1, StepsPerCommit: 1, CommitTime: time.Minute, MaxTaskMemoBytes: 1 << 20,
		TracksTasks: true, IsDraining: func() bool { return false }, IsMemoryExceeded: func() bool { return false },
	}
	thread := superstep.NewDetachedThread(t.Context(), "t", zap.NewNop(), make(chan struct{}), followers)
	state := pregel.NewState(g, "", pregel.Limits{})
	edit := superstep.NewEdit(env, thread, &checkpoint.Run{ID: "r", Graph: "g"}, state, true)
	task, result := &pregel.Task{Node: node, IsPush: true}, pregel.Result{Update: `{"n":1}`}

	writes, failure := edit.InterpretResult(t.Context(), task, result)
	require.Nil(t, failure)
	require.Len(t, x.tasks, 1)
	require.Equal(t, "route", x.tasks[0].Router)
	expected, err := state.CompleteTask(task, result, map[string][]checkpoint.Send{"route": {{Node: "b"}}})
	require.NoError(t, err)
	require.Equal(t, expected, writes)
	require.Empty(t, followers.ephemeral)
	_, err = store.Head(t.Context(), "t")
	require.ErrorIs(t, err, checkpoint.ErrThreadNotFound)
}
