package traces_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/client"
	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/testkit/built"
	"github.com/graphd-dev/graphd/tests/harness"
	"github.com/graphd-dev/graphd/worker"
)

const treeText = `graph: tree
channels: { n: {}, left: {}, right: {}, decision: {} }
nodes:
  begin: { expr: { update: { n: "1" } } }
  left: { expr: { update: { left: "state.n" } } }
  right: { remote: {}, retry: { max_attempts: 2, initial_interval: 1ms } }
  inner: { graph: inner }
  review: { ask: { message: "'?'", update: { decision: answer } } }
edges:
  - START -> begin
  - begin -> [left, right]
  - [left, right] -> inner
  - inner -> review -> END
`

const innerText = `graph: inner
channels: { n: {} }
nodes:
  add: { expr: { update: { n: "state.n + 1" } } }
  more: { expr: { update: { n: "state.n + 1" } } }
edges: [START -> add -> more -> END]
`

// Supersteps that share a commit, that run side by side, that are repeated and that are inside of
// others have spans, each with its parent.
func TestEverySpanHasItsParent(t *testing.T) {
	to := startReceiver(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", to.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
	graphs := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(graphs, "tree.yaml"), []byte(treeText), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(graphs, "inner.yaml"), []byte(innerText), 0o600))
	server := harness.StartServer(t, []string{built.Graphd(t)}, "memory", "--graphs", graphs)
	clients := program(t, "shop", to)
	var tries atomic.Int32
	startWorker(t, server.Address, worker.Options{Tracers: program(t, "worker", to), Nodes: []worker.Nodes{{
		Graph: "tree", Functions: graph.Functions{"right": func(context.Context, graph.State) (any, error) {
			if tries.Add(1) == 1 {
				return nil, errors.New("secret failure")
			}
			return map[string]any{"right": 2}, nil
		}},
	}}})
	c := dialTraced(t, server.Address, clients)
	asked, err := c.Invoke(t.Context(), client.Run{Graph: "tree", Thread: "t1", Input: map[string]any{"n": 0}})
	require.NoError(t, err)
	require.True(t, asked.Waits(), asked.Run)
	_, err = c.Resume(t.Context(), "t1", client.Answer{Value: "yes"})
	require.NoError(t, err)
	server.Stop(syscall.SIGTERM)

	all := to.spans()
	ids := make(map[string]bool)
	for _, s := range all {
		ids[s.id()] = true
	}
	for _, s := range all {
		require.True(t, s.parent() == "" || ids[s.parent()], "%q has no parent", s.GetName())
		require.LessOrEqual(t, s.GetStartTimeUnixNano(), s.GetEndTimeUnixNano(), s.GetName())
	}
	for _, name := range []string{"node begin", "node left", "node inner", "node add", "node more", "run tree", "question review"} {
		one(t, all, name)
	}
	require.Len(t, named(all, "node right"), 2, "each attempt has a span")
	require.Len(t, named(all, "run right"), 2)
	require.Len(t, named(all, "node review"), 2, "a node that asks runs again with the answer")
	require.Equal(t, "NODE_FAILED", named(all, "node right")[0].attribute("graphd.reason")+named(all, "node right")[1].attribute("graphd.reason"))
	require.NotContains(t, string(to.raw), "secret failure")
	add := one(t, all, "node add")
	requireInside(t, all, add, one(t, all, "node inner"))
	require.NotEmpty(t, add.attribute("graphd.thread"))
}

func TestARunThatIsTakenOverStaysInItsTrace(t *testing.T) {
	to := startReceiver(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", to.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
	store := "sqlite:" + filepath.Join(t.TempDir(), "graphd.db")
	flags := []string{"--lease", "1s", "--worker-lease", "1s", "--worker-beat", "300ms"}
	first := harness.StartServer(t, []string{built.Graphd(t)}, store, flags...)
	begun, goOn := make(chan struct{}, 2), make(chan struct{})
	slow := graph.New("slow").Channel("a").Node("work", func(ctx context.Context, _ graph.State) (any, error) {
		begun <- struct{}{}
		select {
		case <-goOn:
			return map[string]any{"a": 1}, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}).Chain(graph.Start, "work", graph.End)
	startWorker(t, first.Address, worker.Options{Graphs: []*graph.Builder{slow}})
	started, err := dialTraced(t, first.Address, program(t, "shop", to)).Start(t.Context(), client.Run{Graph: "slow", Thread: "t1", Input: map[string]any{}})
	require.NoError(t, err)
	<-begun
	first.Kill()
	second := harness.StartServer(t, []string{built.Graphd(t)}, store, flags...)
	startWorker(t, second.Address, worker.Options{Graphs: []*graph.Builder{slow}})
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	select {
	case <-begun:
	case <-limit.C:
		require.Fail(t, "the task has not come again")
	}
	close(goOn)
	run := to.await(t, "run slow", 1)[0]
	require.Equal(t, started.GetRunId(), run.attribute("graphd.run"))
	turns := to.await(t, "turn slow", 2)
	mark, turn := turns[0], turns[1]
	if turn.trace() == run.trace() {
		mark, turn = turn, mark
	}
	require.Equal(t, run.trace(), mark.trace())
	require.Equal(t, run.id(), mark.parent())
	require.True(t, mark.linksTo(turn))
	require.Empty(t, turn.parent(), "no call has begun it")
	require.True(t, turn.linksTo(run))
	requireInside(t, to.spans(), to.await(t, "node work", 1)[0], turn)
}
