package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// moveNodes returns the nodes of the threads that are moved to another version of their
// graph.
func moveNodes() map[string]nodeFunc {
	return map[string]nodeFunc{
		"ask":    func(_ context.Context, c *nodeCall) pregel.Result { return logUpdate(c.askNext(`"?"`)) },
		"fails":  func(context.Context, *nodeCall) pregel.Result { return failedResult("no") },
		"fast":   updateNode(`{"log":["fast"]}`),
		"join":   updateNode(`{"log":["join"]}`),
		"other":  updateNode(`{"log":["other"]}`),
		"blocks": func(ctx context.Context, _ *nodeCall) pregel.Result { <-ctx.Done(); return failedResult("cut off") },
	}
}

// TestAVersionMustRunWhatIsDue moves a thread to a version of its graph that does not
// run a node at which the thread stands.
func TestAVersionMustRunWhatIsDue(t *testing.T) {
	for name, c := range map[string]struct {
		before, after *graph.Spec
		said          string
	}{
		"a thread that waits": {chainSpec("g", channelsLog, "ask"), chainSpec("g", channelsLog, "other"), `has no node "ask"`},
		"a failed thread":     {chainSpec("g", channelsLog, "fails"), chainSpec("g", channelsLog, "other"), `has no node "fails"`},
		"one of two":          {parallelSpec("g", "ask", "fast"), parallelSpec("g", "ask", "other"), `has no node "fast"`},
		"another way to it": {
			joinSpec("g"), chainSpec("g", channelsLog, "fast", "ask"), `does not run node "ask"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, moveNodes(), c.before)
			stopped := w.runToStop("t", "g", `{}`)
			head, err := w.store.Head(t.Context(), "t")
			require.NoError(t, err)
			w.compileGraph(c.after)
			begin := func(r checkpoint.RunRequest) (*runtime.Started, error) {
				return w.engine.Start(t.Context(), runtime.StartRequest{Thread: "t", Open: runtime.DiscardOpen, Request: r})
			}
			for _, r := range []checkpoint.RunRequest{{}, {Update: `{"log":["update"]}`}, {From: head.Checkpoint}} {
				_, err = begin(r)
				require.Equal(t, runtime.ReasonNodeNotFound, errorReason(err))
				require.ErrorContains(t, err, c.said)
				require.ErrorContains(t, err, "give an input, which begins at START, or a version that runs the node")
			}
			now, err := w.store.Head(t.Context(), "t")
			require.NoError(t, err)
			require.Equal(t, head.Revision, now.Revision, "nothing has changed")
			run, err := w.engine.Run(t.Context(), nil, "t", "")
			require.NoError(t, err)
			require.Equal(t, stopped, run)

			st, err := begin(newInput("again"))
			require.NoError(t, err, "an input begins at START")
			require.Contains(t, []checkpoint.RunState{checkpoint.RunSucceeded, checkpoint.RunInterrupted}, w.waitRun(st).State)
		})
	}
}

// joinSpec returns a graph whose node ask waits for two others.
func joinSpec(name string) *graph.Spec {
	s := chainSpec(name, channelsLog, "fast", "other")
	s.Nodes = append(s.Nodes, functionNode("ask"))
	s.Edges = []graph.EdgeSpec{
		newEdge(graph.Start, "fast"), newEdge(graph.Start, "other"), {From: []string{"fast", "other"}, To: "ask"}, newEdge("ask", graph.End),
	}
	return s
}

// A run that says where it goes on needs no node of before.
func TestAGotoLeadsOnInAnotherVersion(t *testing.T) {
	w := newFixture(t, moveNodes(), chainSpec("g", channelsLog, "ask"))
	require.Equal(t, checkpoint.RunInterrupted, w.runToStop("t", "g", `{}`).State)
	w.compileGraph(chainSpec("g", channelsLog, "other"))
	run := w.beginAndWait(runtime.StartRequest{
		Thread: "t", Open: runtime.DiscardOpen, Request: checkpoint.RunRequest{Goto: []checkpoint.Send{{Node: "other"}}},
	})
	require.Equal(t, checkpoint.RunSucceeded, run.State)
	require.JSONEq(t, `{"log":["other"]}`, w.stateValues("t"))
}

// A run that has waited in the queue fails where it would be refused.
func TestAQueuedRunMustRunWhatIsDue(t *testing.T) {
	w := newFixture(t, moveNodes(), chainSpec("g", channelsLog, "blocks"))
	_, err := w.engine.Start(t.Context(), runtime.StartRequest{Thread: "t", CreateThread: true, Graph: "g", Request: newInput("x")})
	require.NoError(t, err)
	w.compileGraph(chainSpec("g", channelsLog, "other"))
	run := w.beginAndWait(runtime.StartRequest{Thread: "t", Concurrency: runtime.CancelActive})
	require.Equal(t, checkpoint.RunFailed, run.State)
	require.Equal(t, runtime.ReasonNodeNotFound, run.Failure.Reason)
}

// A graph within a graph fails where the new version does not run what is due in it. No
// policy of the node around it hides that, and the version from before goes on.
func TestAVersionMustRunWhatIsDueInASubgraph(t *testing.T) {
	subgraph := func(s *graph.Spec) { s.Nodes[0].Function, s.Nodes[0].Graph = nil, &graph.SubgraphSpec{Name: "inner"} }
	handled := func(s *graph.Spec) {
		s.Nodes = append(s.Nodes, functionNode("other"))
		s.Edges = append(s.Edges, newEdge("other", graph.End))
	}
	for name, change := range map[string]func(outer *graph.Spec){
		"without a policy": subgraph,
		"with retries": func(s *graph.Spec) {
			subgraph(s)
			s.Nodes[0].Policy.Retry = []graph.RetrySpec{{MaxAttempts: 3}}
		},
		"with a handler": func(s *graph.Spec) {
			subgraph(s)
			handled(s)
			s.Nodes[0].Policy.ErrorHandler = "other"
		},
		"with a handler of all nodes": func(s *graph.Spec) {
			subgraph(s)
			handled(s)
			s.Defaults.ErrorHandler = "other"
		},
		"called by code that goes on": func(s *graph.Spec) {
			s.Nodes[0].Name, s.Edges[0].To, s.Edges[1].From = "calls", "calls", []string{"calls"}
		},
		"called by code in a subgraph": func(s *graph.Spec) { subgraph(s); s.Nodes[0].Graph.Name = "caller" },
	} {
		t.Run(name, func(t *testing.T) {
			nodes, attempts := moveNodes(), 0
			nodes["calls"] = func(ctx context.Context, c *nodeCall) pregel.Result {
				attempts++
				called, err := c.Host.CallGraph(ctx, runtime.GraphCall{Graph: "inner", Input: "{}"})
				if err != nil {
					return logUpdate("went on without it")
				}
				return pregel.Result{WaitingInterrupts: called.Waiting}
			}
			outer := chainSpec("g", channelsLog, "sub")
			change(outer)
			caller, inner := chainSpec("caller", channelsLog, "calls"), chainSpec("inner", channelsLog, "ask")
			w := newFixture(t, nodes, inner, caller, outer)
			require.Equal(t, checkpoint.RunInterrupted, w.runToStop("t", "g", `{}`).State)
			w.compileGraph(chainSpec("inner", channelsLog, "other"))
			w.compileGraph(outer)
			attempts = 0
			run := w.beginAndWait(runtime.StartRequest{Thread: "t", Open: runtime.DiscardOpen})
			require.Equal(t, checkpoint.RunFailed, run.State)
			require.Equal(t, runtime.ReasonNodeNotFound, run.Failure.Reason)
			require.Contains(t, run.Failure.Message, `graph "inner" has no node "ask"`)
			require.LessOrEqual(t, attempts, 1, "no policy repeats it")

			w.compileGraph(inner)
			w.compileGraph(outer)
			run = w.beginAndWait(runtime.StartRequest{Thread: "t"})
			require.Equal(t, checkpoint.RunInterrupted, run.State, "a version that runs the node asks again")
		})
	}
}
