package graph_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

func compileSpec(t *testing.T, spec *graph.Spec) *graph.Graph {
	t.Helper()
	env := newEnv(t)
	env.HasFunction = nil
	g, err := graph.Compile(spec, env)
	require.NoError(t, err)
	return g
}

func channelNames(g *graph.Graph, positions []int) []string {
	var names []string
	for _, i := range positions {
		names = append(names, g.Channels[i].Name)
	}
	return names
}

func TestChannels(t *testing.T) {
	spec := validSpec()
	spec.Channels = nil
	for _, r := range graph.Reducers() {
		c := graph.ChannelSpec{Name: r.Name + "_key", Reducer: r.Name}
		if r.Kind == graph.ByWorker {
			c.Function = "fold"
		}
		spec.Channels = append(spec.Channels, c)
	}
	spec.Channels = append(spec.Channels, graph.ChannelSpec{Name: "x", Default: " 1.0 "}, graph.ChannelSpec{Name: "log"})
	g := compileSpec(t, spec)
	defaults := map[string]payload.JSON{
		"append_key": "[]", "merge_key": "{}", "deep_merge_key": "{}", "union_key": "[]", "messages_key": "[]", "x": "1.0",
	}
	for i, c := range g.Channels[:len(spec.Channels)] {
		require.Equal(t, spec.Channels[i].Name, c.Name)
		require.True(t, c.IsStateKey)
		require.Equal(t, defaults[c.Name], c.Default, c.Name)
		at, ok := g.ChannelIndex(c.Name)
		require.True(t, ok)
		require.Equal(t, i, at)
	}
	kinds := []graph.ChannelKind{
		graph.Last, graph.Any, graph.Append, graph.Add, graph.Merge, graph.DeepMerge, graph.Union, graph.Min,
		graph.Max, graph.Messages, graph.Ephemeral, graph.Untracked, graph.Topic, graph.TopicOnce, graph.ByWorker, graph.Last, graph.Last,
		graph.Guard, graph.TopicOnce, graph.Trigger, graph.Trigger, graph.Trigger, graph.Trigger, graph.Barrier,
	}
	for i, c := range g.Channels {
		require.Equal(t, kinds[i], c.Kind, c.Name)
	}
	require.Equal(t, "__start__", g.Channels[g.StartChannel].Name)
	require.Equal(t, "__pregel_tasks", g.Channels[g.SendsChannel].Name)
	require.Equal(t, g.StateKeys, g.InputKeys)
	require.Equal(t, g.StateKeys, g.OutputKeys)
	require.Len(t, g.StateKeys, len(spec.Channels))
}

func TestEdges(t *testing.T) {
	spec := validSpec()
	spec.Nodes[2].Defer = true
	spec.Input, spec.Output = []string{"x"}, []string{"log"}
	spec.Edges = append(spec.Edges, newEdge("a", "c"), newEdge("a", "c"), newEdge("a", graph.End),
		graph.EdgeSpec{From: []string{"b", "a"}, To: "c"}, graph.EdgeSpec{From: []string{"a", "b"}, To: "c"},
		graph.EdgeSpec{From: []string{"a", "b"}, To: graph.End})
	g := compileSpec(t, spec)
	start, a, b, c := g.Nodes[0], g.Nodes[1], g.Nodes[2], g.Nodes[3]
	require.Equal(t, graph.KindStart, start.Kind)
	require.Nil(t, start.Spec)
	require.Equal(t, []string{"x"}, channelNames(g, start.Reads))
	require.Equal(t, []string{"__start__"}, channelNames(g, start.Triggers))
	require.Equal(t, []string{"branch:to:a", "branch:to:b"}, channelNames(g, start.Edges))
	require.Equal(t, []string{"branch:to:c"}, channelNames(g, a.Edges))
	require.Equal(t, []string{"join:a+b:c", "join:b+a:c"}, channelNames(g, a.Joins))
	require.Equal(t, a.Joins, b.Joins)
	require.Equal(t, []string{"branch:to:c", "join:a+b:c", "join:b+a:c"}, channelNames(g, c.Triggers))
	require.Equal(t, c.TriggerChannel, c.Triggers[0])
	require.Equal(t, graph.LastFinish, g.Channels[c.TriggerChannel].Kind)
	require.Equal(t, graph.BarrierFinish, g.Channels[a.Joins[0]].Kind)
	require.Equal(t, []string{"a", "b"}, g.Channels[a.Joins[0]].Members)
	require.Equal(t, []string{"log"}, channelNames(g, g.OutputKeys))
	require.Equal(t, g.StateKeys, c.Reads)
	for i, n := range g.Nodes {
		require.Equal(t, i, n.Index)
		found, ok := g.Node(n.Name)
		require.True(t, ok)
		require.Same(t, n, found)
	}
}

func TestPolicies(t *testing.T) {
	spec := validSpec()
	spec.Nodes = append(spec.Nodes, exprNode("h"), exprNode("h2"))
	own := []graph.RetrySpec{{MaxAttempts: 9}}
	spec.Nodes[0].Policy = graph.PolicySpec{Retry: own, Timeout: time.Hour, IdleTimeout: time.Second, ErrorHandler: "h2"}
	common := []graph.RetrySpec{{}}
	spec.Defaults = graph.PolicySpec{Retry: common, Timeout: time.Minute, ErrorHandler: "h"}
	g := compileSpec(t, spec)
	a, b, h, h2 := g.Nodes[1], g.Nodes[2], g.Nodes[5], g.Nodes[6]
	require.Equal(t, own, a.Retry)
	require.Equal(t, time.Hour, a.Timeout)
	require.Equal(t, time.Second, a.IdleTimeout)
	require.Same(t, h2, a.Handler)
	require.Equal(t, common, b.Retry)
	require.Equal(t, time.Minute, b.Timeout)
	require.Same(t, h, b.Handler)
	require.Nil(t, h.Handler, "the default handler is not for handlers")
	require.Nil(t, h2.Handler)
	require.Equal(t, time.Minute, h.Timeout)
	require.True(t, h.HandlerOnly)
	require.True(t, h2.HandlerOnly)
	require.False(t, a.HandlerOnly)
}

func TestHandlerWithEdgeIsAnOrdinaryNodeToo(t *testing.T) {
	spec := validSpec()
	spec.Nodes[0].Policy.ErrorHandler = "q"
	require.False(t, compileSpec(t, spec).Nodes[4].HandlerOnly)
}

func TestReachability(t *testing.T) {
	lost := func(s *graph.Spec) { s.Nodes = append(s.Nodes, exprNode("lost")) }
	tests := map[string]func(s *graph.Spec){
		"a function may go anywhere": func(s *graph.Spec) { s.Nodes[0] = functionNode("a") },
		"a worker may go anywhere":   func(s *graph.Spec) { s.Nodes[0] = graph.NodeSpec{Name: "a", Remote: &graph.RemoteSpec{}} },
		"a goto may lead anywhere":   func(s *graph.Spec) { s.Nodes[0].Expr.Goto = "'lost'" },
		"so may that of a question":  func(s *graph.Spec) { s.Nodes[3].Ask.Goto = "'lost'" },
		"a declared goto":            func(s *graph.Spec) { s.Nodes[0].Destinations = []string{"lost"} },
		"an open router":             withBranches(graph.BranchSpec{From: "a", Router: "r"}),
		"a path":                     withBranches(graph.BranchSpec{From: "a", Router: "r", Paths: map[string]string{"k": "lost"}}),
		"a then":                     withBranches(graph.BranchSpec{From: "a", Expr: "'lost'", Then: []string{"lost"}}),
		"a case":                     withBranches(graph.BranchSpec{From: graph.Start, Cases: []graph.CaseSpec{{To: []string{"lost", graph.End}}}}),
		"a handler":                  func(s *graph.Spec) { s.Nodes[0].Policy.ErrorHandler = "lost" },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			spec := validSpec()
			lost(spec)
			change(spec)
			compileSpec(t, spec)
		})
	}
}

func TestSubgraph(t *testing.T) {
	child := compileSpec(t, validSpec())
	spec := validSpec()
	spec.Name = "parent"
	spec.Nodes[0] = graph.NodeSpec{Name: "a", Graph: &graph.SubgraphSpec{Name: "g", Version: "1", Persistence: "persist"}}
	env := newEnv(t)
	env.Lookup = func(name, version string) (*graph.Graph, bool) { return child, name == "g" && version == "1" }
	g, err := graph.Compile(spec, env)
	require.NoError(t, err)
	require.Same(t, child, g.Nodes[1].Sub)
	require.Equal(t, graph.KindGraph, g.Nodes[1].Kind)
}

func TestRootStateIsOneValue(t *testing.T) {
	spec := validSpec()
	spec.Channels = []graph.ChannelSpec{{Name: graph.Root, Reducer: "append"}}
	for i := range spec.Nodes[:3] {
		spec.Nodes[i].Expr.Update[0] = graph.Assignment{Channel: graph.Root, Expr: "state"}
	}
	spec.Nodes[3].Ask.Value = "state"
	g := compileSpec(t, spec)
	require.Equal(t, []string{graph.Root}, channelNames(g, g.OutputKeys))
}

func TestBranches(t *testing.T) {
	spec := validSpec()
	spec.Branches = []graph.BranchSpec{
		{From: "a", Cases: []graph.CaseSpec{{When: "state.x > 1", To: []string{"b"}}, {To: []string{graph.End}}}},
		{From: "a", Expr: "'k'", Paths: map[string]string{"k": "b"}},
		{From: "a", Name: "by hand", Router: "r"},
	}
	branches := compileSpec(t, spec).Nodes[1].Branches
	require.Equal(t, []string{"0", "1", "by hand"}, []string{branches[0].Name, branches[1].Name, branches[2].Name})
	require.NotNil(t, branches[0].Cases[0].When)
	require.Nil(t, branches[0].Cases[1].When)
	require.NotNil(t, branches[1].Expr)
	require.Equal(t, "r", branches[2].Router)
}

func TestQuestionKeyIsText(t *testing.T) {
	spec := validSpec()
	spec.Nodes[3].Ask.Key = "the key"
	key, err := compileSpec(t, spec).Nodes[4].Key.Eval(graph.Vars{})
	require.NoError(t, err)
	require.Equal(t, payload.JSON(`"the key"`), key)
}

func TestVersionIsDerivedFromContent(t *testing.T) {
	first, second := compileSpec(t, validSpec()), compileSpec(t, validSpec())
	require.Equal(t, first.Version, second.Version)
	changed := validSpec()
	changed.StepLimit = 7
	require.NotEqual(t, first.Version, compileSpec(t, changed).Version)
	named := validSpec()
	named.Version = "2026-01"
	require.Equal(t, "2026-01", compileSpec(t, named).Version)
	require.Equal(t, first.Version, graph.Digest(named))
}

func TestMermaid(t *testing.T) {
	spec := validSpec()
	spec.Branches = []graph.BranchSpec{{From: "q", Cases: []graph.CaseSpec{{When: `state.x < "1"`, To: []string{"a"}}, {To: []string{graph.End}}}}}
	spec.Nodes = append(spec.Nodes, exprNode("h"))
	spec.Nodes[0].Policy.ErrorHandler = "h"
	require.Equal(t, `flowchart TD
  START([START])
  n1["a"]
  n2["b"]
  n3["c"]
  n4[/"q"/]
  n5["h"]
  END([END])
  START --> n1
  START --> n2
  j3(["all of"])
  n1 --- j3
  n2 --- j3
  j3 --> n3
  n3 --> n4
  n4 --> END
  n4 -.->|"state.x #lt; #quot;1#quot;"| n1
  n4 -.->|"else"| END
  n1 -.->|"on error"| n5
  n5 --> END
`, compileSpec(t, spec).Mermaid())
}

func functionNode(name string) graph.NodeSpec {
	return graph.NodeSpec{Name: name, Function: &graph.FunctionSpec{}}
}
