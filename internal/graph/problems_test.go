package graph_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/expr"
	"github.com/graphd-dev/graphd/internal/payload"
)

// validSpec returns a graph that each test breaks in one way.
func validSpec() *graph.Spec {
	return &graph.Spec{
		Name:     "g",
		Channels: []graph.ChannelSpec{{Name: "x"}, {Name: "log", Reducer: "append"}},
		Nodes: []graph.NodeSpec{
			exprNode("a"), exprNode("b"), exprNode("c"),
			{Name: "q", Ask: &graph.AskSpec{Value: "state.x"}},
		},
		Edges: []graph.EdgeSpec{
			newEdge(graph.Start, "a"), newEdge(graph.Start, "b"),
			{From: []string{"a", "b"}, To: "c"},
			newEdge("c", "q"), newEdge("q", graph.End),
		},
	}
}

// exprNode returns a node that cannot choose where to go.
func exprNode(name string) graph.NodeSpec {
	return graph.NodeSpec{Name: name, Expr: &graph.ExprSpec{Update: []graph.Assignment{{Channel: "x", Expr: "1"}}}}
}

func newEdge(from, to string) graph.EdgeSpec { return graph.EdgeSpec{From: []string{from}, To: to} }

func newEnv(tb testing.TB) graph.Env {
	tb.Helper()
	expressions, err := expr.New(expr.Options{})
	require.NoError(tb, err)
	return graph.Env{
		Expressions: expressions,
		HasFunction: func(name string) bool { return name == "known" },
		CheckEndpoint: func(endpoint string) error {
			if endpoint == "pricing:443" {
				return nil
			}
			return errors.New("not in the list")
		},
		CheckSchema: func(schema payload.JSON) error {
			if strings.Contains(string(schema), "nonsense") {
				return errors.New("nonsense in it")
			}
			return nil
		},
		CheckValue: func(_, value payload.JSON) error {
			if value == `"wrong"` {
				return errors.New("wrong value")
			}
			return nil
		},
	}
}

func TestProblems(t *testing.T) {
	type spoil func(s *graph.Spec)
	ask := func(f func(a *graph.AskSpec)) spoil { return func(s *graph.Spec) { f(s.Nodes[3].Ask) } }
	tests := map[string]struct {
		spoil spoil
		want  []string // path REASON part of the message
	}{
		"no name":     {func(s *graph.Spec) { s.Name = "" }, []string{"graph MISSING_FIELD has no name"}},
		"name with @": {func(s *graph.Spec) { s.Name = "a@b" }, []string{"graph INVALID_NAME contains '@'"}},
		"version":     {func(s *graph.Spec) { s.Version = "a/b" }, []string{"version INVALID_NAME contains '/'"}},
		"no channels": {func(s *graph.Spec) {
			s.Channels = nil
			s.Nodes = s.Nodes[:0]
			s.Edges = []graph.EdgeSpec{newEdge(graph.Start, graph.End)}
		}, []string{"channels MISSING_FIELD no channels"}},
		"channel twice": {func(s *graph.Spec) { s.Channels = append(s.Channels, s.Channels[0]) }, []string{"channels.x DUPLICATE_NAME declared twice"}},
		"no function":   {func(s *graph.Spec) { s.Channels[1].Reducer = "remote" }, []string{"channels.log.function MISSING_FIELD name of the function"}},
		"idle function": {func(s *graph.Spec) { s.Channels[1].Function = "f" }, []string{"channels.log.function CONFLICTING_FIELDS goes with reducer remote"}},
		"reducer":       {func(s *graph.Spec) { s.Channels[1].Reducer = "apend" }, []string{`channels.log.reducer UNKNOWN_REDUCER did you mean "append"?; known: add, any, append, deep_merge, ephemeral, last, max, merge, messages, min, remote, topic, topic_once, union, untracked`}},
		"bad default":   {func(s *graph.Spec) { s.Channels[1].Default = "[" }, []string{"channels.log.default INVALID_JSON not JSON"}},
		"unfit default": {func(s *graph.Spec) { s.Channels[1].Default = "{}" }, []string{"channels.log.default INVALID_DEFAULT reducer append needs a default of kind array, not object"}},
		"no default": {func(s *graph.Spec) {
			s.Channels[1] = graph.ChannelSpec{Name: "log", Reducer: "ephemeral", Default: "1"}
		}, []string{"channels.log.default INVALID_DEFAULT takes no default"}},
		"add default":   {func(s *graph.Spec) { s.Channels[1] = graph.ChannelSpec{Name: "log", Reducer: "add", Default: "null"} }, []string{"channels.log.default INVALID_DEFAULT number or string or array, not null"}},
		"reserved __":   {func(s *graph.Spec) { s.Channels = append(s.Channels, graph.ChannelSpec{Name: "__x"}) }, []string{"channels.__x RESERVED_NAME begins with __"}},
		"reserved to":   {func(s *graph.Spec) { s.Channels = append(s.Channels, graph.ChannelSpec{Name: "branch:to:a"}) }, []string{"channels.branch:to:a RESERVED_NAME begins with branch:"}},
		"reserved join": {func(s *graph.Spec) { s.Channels = append(s.Channels, graph.ChannelSpec{Name: "join:a"}) }, []string{"channels.join:a RESERVED_NAME begins with join:"}},
		"root and more": {func(s *graph.Spec) { s.Channels = append(s.Channels, graph.ChannelSpec{Name: graph.Root}) }, []string{"channels.__root__ RESERVED_NAME the only channel"}},
		"empty channel": {func(s *graph.Spec) { s.Channels = append(s.Channels, graph.ChannelSpec{}) }, []string{"channels. MISSING_FIELD has no name"}},
		"long channel": {func(s *graph.Spec) {
			s.Channels = append(s.Channels, graph.ChannelSpec{Name: strings.Repeat("n", 129)})
		}, []string{"channels.nnn INVALID_NAME has 129 bytes; at most 128"}},
		"control":        {func(s *graph.Spec) { s.Channels = append(s.Channels, graph.ChannelSpec{Name: "a\nb"}) }, []string{"channels.a\nb INVALID_NAME control character"}},
		"spaces":         {func(s *graph.Spec) { s.Channels = append(s.Channels, graph.ChannelSpec{Name: " a"}) }, []string{"channels. a INVALID_NAME begins or ends with a space"}},
		"not UTF-8":      {func(s *graph.Spec) { s.Channels = append(s.Channels, graph.ChannelSpec{Name: "a\xff"}) }, []string{"channels.a INVALID_NAME not UTF-8"}},
		"input":          {func(s *graph.Spec) { s.Input = []string{"x", "lgo", "x"} }, []string{`input[1] UNKNOWN_CHANNEL did you mean "log"?`, "input[2] DUPLICATE_NAME listed twice"}},
		"output":         {func(s *graph.Spec) { s.Output = []string{"__start__"} }, []string{"output[0] UNKNOWN_CHANNEL known: log, x"}},
		"input schema":   {func(s *graph.Spec) { s.InputSchema = "{" }, []string{"input_schema INVALID_JSON not JSON"}},
		"output schema":  {func(s *graph.Spec) { s.OutputSchema = "[]" }, []string{"output_schema INVALID_SCHEMA an object or a boolean, not array"}},
		"context schema": {func(s *graph.Spec) { s.ContextSchema = `{"type":"nonsense"}` }, []string{"context_schema INVALID_SCHEMA nonsense in it"}},

		"node twice": {func(s *graph.Spec) { s.Nodes = append(s.Nodes, exprNode("a")) }, []string{"nodes.a DUPLICATE_NAME declared twice"}},
		"node START": {func(s *graph.Spec) { s.Nodes = append(s.Nodes, exprNode("__start__")) }, []string{"nodes.__start__ RESERVED_NAME without declaring it"}},
		"node END": {func(s *graph.Spec) {
			s.Nodes = append(s.Nodes, exprNode("__end__"))
			s.Edges = append(s.Edges, newEdge("a", graph.End))
		}, []string{"nodes.__end__ RESERVED_NAME without declaring it", "nodes.__end__ UNREACHABLE_NODE no run"}},
		"node __x": {func(s *graph.Spec) {
			s.Nodes = append(s.Nodes, exprNode("__x"))
			s.Edges = append(s.Edges, newEdge("a", "__x"))
		}, []string{"nodes.__x RESERVED_NAME begins with __"}},
		"node *": {func(s *graph.Spec) {
			s.Nodes = append(s.Nodes, exprNode("*"))
			s.Edges = append(s.Edges, newEdge("a", "*"))
		}, []string{"nodes.* RESERVED_NAME is reserved"}},
		"node |": {func(s *graph.Spec) {
			s.Nodes = append(s.Nodes, exprNode("a|b"))
			s.Edges = append(s.Edges, newEdge("a", "a|b"))
		}, []string{"nodes.a|b INVALID_NAME must not contain any of | :"}},
		"node :": {func(s *graph.Spec) {
			s.Nodes = append(s.Nodes, exprNode("a:b"))
			s.Edges = append(s.Edges, newEdge("a", "a:b"))
		}, []string{"nodes.a:b INVALID_NAME contains ':'"}},
		"no kind":        {func(s *graph.Spec) { s.Nodes[0].Expr = nil }, []string{"nodes.a MISSING_FIELD needs one of function, expr, ask, graph, remote"}},
		"two kinds":      {func(s *graph.Spec) { s.Nodes[0].Remote = &graph.RemoteSpec{} }, []string{"nodes.a CONFLICTING_FIELDS keep one"}},
		"function":       {func(s *graph.Spec) { s.Nodes[0] = graph.NodeSpec{Name: "a", Function: &graph.FunctionSpec{}} }, []string{`nodes.a.function UNKNOWN_FUNCTION no function "a"`}},
		"named function": {func(s *graph.Spec) { s.Nodes[0] = graph.NodeSpec{Name: "a", Function: &graph.FunctionSpec{Name: "f"}} }, []string{`nodes.a.function UNKNOWN_FUNCTION no function "f"`}},
		"endpoint": {func(s *graph.Spec) {
			s.Nodes[0] = graph.NodeSpec{Name: "a", Remote: &graph.RemoteSpec{Endpoint: "pricing:444"}}
			s.Nodes[1] = graph.NodeSpec{Name: "b", Remote: &graph.RemoteSpec{Endpoint: "pricing:443"}}
		}, []string{"nodes.a.remote.endpoint ENDPOINT_NOT_ALLOWED not in the list"}},
		"reads":            {func(s *graph.Spec) { s.Nodes[0].Reads = []string{"y"} }, []string{"nodes.a.reads[0] UNKNOWN_CHANNEL known: log, x"}},
		"not read":         {func(s *graph.Spec) { s.Nodes[3].Reads = []string{"log"} }, []string{`nodes.q.ask.value UNKNOWN_CHANNEL "x", which is not among the node's reads`}},
		"update":           {func(s *graph.Spec) { s.Nodes[0].Expr.Update[0].Channel = "xx" }, []string{`nodes.a.expr.update.xx UNKNOWN_CHANNEL did you mean "x"?`}},
		"update twice":     {func(s *graph.Spec) { u := &s.Nodes[0].Expr.Update; *u = append(*u, (*u)[0]) }, []string{"nodes.a.expr.update.x DUPLICATE_NAME assigned twice"}},
		"empty update":     {func(s *graph.Spec) { s.Nodes[0].Expr.Update[0].Expr = "" }, []string{"nodes.a.expr.update.x MISSING_FIELD to write null say null"}},
		"expression":       {func(s *graph.Spec) { s.Nodes[0].Expr.Update[0].Expr = "1 +" }, []string{"nodes.a.expr.update.x INVALID_EXPRESSION syntax error"}},
		"goto":             {func(s *graph.Spec) { s.Nodes[0].Expr.Goto = "nowhere" }, []string{`nodes.a.expr.goto INVALID_EXPRESSION nothing is called "nowhere"`}},
		"key of the state": {func(s *graph.Spec) { s.Nodes[0].Expr.Update[0].Expr = "state.lgo" }, []string{`nodes.a.expr.update.x UNKNOWN_CHANNEL did you mean "log"?`}},
		"destinations":     {func(s *graph.Spec) { s.Nodes[0].Destinations = []string{"b", "z"} }, []string{"nodes.a.destinations[1] UNKNOWN_NODE known: END, a, b, c, q"}},

		"empty question":    {ask(func(a *graph.AskSpec) { a.Value = "" }), []string{"nodes.q.ask MISSING_FIELD give value, message or both"}},
		"when":              {ask(func(a *graph.AskSpec) { a.When = "1 +" }), []string{"nodes.q.ask.when INVALID_EXPRESSION syntax"}},
		"useless otherwise": {ask(func(a *graph.AskSpec) { a.Otherwise = []graph.Assignment{{Channel: "x", Expr: "1"}} }), []string{"nodes.q.ask.otherwise CONFLICTING_FIELDS always asked"}},
		"answer schema":     {ask(func(a *graph.AskSpec) { a.Schema = `{"a":nonsense}` }), []string{"nodes.q.ask.schema INVALID_JSON"}},
		"ttl":               {ask(func(a *graph.AskSpec) { a.TTL = -time.Second }), []string{"nodes.q.ask.ttl OUT_OF_RANGE negative (-1s)"}},
		"expiry":            {ask(func(a *graph.AskSpec) { a.TTL = 1; a.Expiry = "fail" }), []string{"nodes.q.ask.expiry UNKNOWN_VALUE known: cancel_run, fail_node, resume_default"}},
		"ttl twice":         {ask(func(a *graph.AskSpec) { a.TTL = 1; a.TTLExpr = "1" }), []string{"nodes.q.ask.ttl CONFLICTING_FIELDS say it once"}},
		"default twice": {ask(func(a *graph.AskSpec) {
			a.TTL, a.Expiry, a.Default, a.DefaultExpr = 1, "resume_default", "1", "1"
		}), []string{"nodes.q.ask.default_expr CONFLICTING_FIELDS say it once"}},
		"default for nothing": {ask(func(a *graph.AskSpec) { a.DefaultExpr = "1" }), []string{"nodes.q.ask.default_expr CONFLICTING_FIELDS used by expiry resume_default only"}},
		"undo":                {ask(func(a *graph.AskSpec) { d := 25 * time.Hour; a.Undo = &d }), []string{"nodes.q.ask.undo OUT_OF_RANGE want 0s"}},
		"expiry without ttl":  {ask(func(a *graph.AskSpec) { a.Expiry = "fail_node" }), []string{"nodes.q.ask.expiry MISSING_FIELD needs a ttl"}},
		"no default answer":   {ask(func(a *graph.AskSpec) { a.TTL = 1; a.Expiry = "resume_default" }), []string{"nodes.q.ask.default MISSING_FIELD needs a default"}},
		"useless default":     {ask(func(a *graph.AskSpec) { a.Default = "1" }), []string{"nodes.q.ask.default CONFLICTING_FIELDS resume_default only"}},
		"default answer":      {ask(func(a *graph.AskSpec) { a.TTL = 1; a.Expiry = "resume_default"; a.Default = "{" }), []string{"nodes.q.ask.default INVALID_JSON"}},
		"drift":               {ask(func(a *graph.AskSpec) { a.Drift = "again" }), []string{"nodes.q.ask.drift UNKNOWN_VALUE known: accept, ask_again, fail"}},
		"drift_ignore":        {ask(func(a *graph.AskSpec) { a.DriftIgnore = []string{"/ok", "message", "at"} }), []string{`nodes.q.ask.drift_ignore[2] UNKNOWN_VALUE "at" must be a JSON pointer`}},
		"drift of the graph":  {func(s *graph.Spec) { s.Drift, s.DriftIgnore = "x", []string{"/a~"} }, []string{"drift UNKNOWN_VALUE known: accept", "drift_ignore[0] UNKNOWN_VALUE stands for itself as ~0"}},
		"default misses":      {ask(func(a *graph.AskSpec) { a.TTL = 1; a.Expiry = "resume_default"; a.Default = `"wrong"`; a.Schema = "{}" }), []string{"nodes.q.ask.default INVALID_DEFAULT wrong value"}},

		"subgraph": {func(s *graph.Spec) { s.Nodes[0] = graph.NodeSpec{Name: "a", Graph: &graph.SubgraphSpec{Name: "child"}} }, []string{`nodes.a.graph.name UNKNOWN_GRAPH unknown graph "child"`}},
		"subgraph version": {func(s *graph.Spec) {
			s.Nodes[0] = graph.NodeSpec{Name: "a", Graph: &graph.SubgraphSpec{Name: "child", Version: "2"}}
		}, []string{`nodes.a.graph.name UNKNOWN_GRAPH version "2"`}},
		"subgraph itself": {func(s *graph.Spec) { s.Nodes[0] = graph.NodeSpec{Name: "a", Graph: &graph.SubgraphSpec{Name: "g"}} }, []string{"nodes.a.graph.name SUBGRAPH_CYCLE contains itself"}},
		"subgraph no name": {func(s *graph.Spec) {
			s.Nodes[0] = graph.NodeSpec{Name: "a", Graph: &graph.SubgraphSpec{Persistence: "forever"}}
		}, []string{"nodes.a.graph.persistence UNKNOWN_VALUE known: disabled, inherit, persist", "nodes.a.graph.name MISSING_FIELD no name"}},

		"no entry":        {func(s *graph.Spec) { s.Edges = s.Edges[3:] }, []string{"edges NO_ENTRY add an edge like START -> a"}},
		"END as source":   {func(s *graph.Spec) { s.Edges = append(s.Edges, newEdge(graph.End, "a")) }, []string{"edges[5] INVALID_EDGE END cannot be the source"}},
		"START as target": {func(s *graph.Spec) { s.Edges = append(s.Edges, newEdge("a", graph.Start)) }, []string{"edges[5] INVALID_EDGE START cannot be the target"}},
		"unknown source":  {func(s *graph.Spec) { s.Edges = append(s.Edges, newEdge("z", "a")) }, []string{"edges[5] UNKNOWN_NODE known: START, a, b, c, q"}},
		"unknown target":  {func(s *graph.Spec) { s.Edges = append(s.Edges, newEdge("a", "z")) }, []string{"edges[5] UNKNOWN_NODE known: END, a, b, c, q"}},
		"both unknown":    {func(s *graph.Spec) { s.Edges = append(s.Edges, newEdge("y", "z")) }, []string{`edges[5] UNKNOWN_NODE unknown node "y"`, `edges[5] UNKNOWN_NODE unknown node "z"`}},
		"no source":       {func(s *graph.Spec) { s.Edges = append(s.Edges, graph.EdgeSpec{To: "a"}) }, []string{"edges[5] INVALID_EDGE has no source"}},
		"join of unknown": {func(s *graph.Spec) { s.Edges = append(s.Edges, graph.EdgeSpec{From: []string{"a", "z"}, To: "c"}) }, []string{`edges[5] UNKNOWN_NODE unknown node "z"`}},
		"join of START": {func(s *graph.Spec) {
			s.Edges = append(s.Edges, graph.EdgeSpec{From: []string{"a", graph.Start}, To: "c"})
		}, []string{"edges[5] INVALID_EDGE START cannot be part of a join"}},
		"join of one, twice":  {func(s *graph.Spec) { s.Edges = append(s.Edges, graph.EdgeSpec{From: []string{"a", "a"}, To: "c"}) }, []string{"edges[5] INVALID_EDGE appears twice"}},
		"unreachable":         {func(s *graph.Spec) { s.Nodes = append(s.Nodes, exprNode("lost")) }, []string{"nodes.lost UNREACHABLE_NODE lead an edge to it or remove it"}},
		"join waits for ever": {func(s *graph.Spec) { s.Edges = append(s.Edges[:1], s.Edges[2:]...) }, []string{"nodes.b UNREACHABLE_NODE no run", `edges[1] JOIN_NEVER_COMPLETES the join into "c" waits for b`}},
		"unreachable circle": {func(s *graph.Spec) {
			s.Nodes = append(s.Nodes, exprNode("l"), exprNode("m"))
			s.Edges = append(s.Edges, newEdge("l", "m"), newEdge("m", "l"))
		}, []string{"nodes.l UNREACHABLE_NODE no", "nodes.m UNREACHABLE_NODE no"}},
		"branch without kind":  {withBranches(graph.BranchSpec{From: "a"}), []string{"conditional_edges[0] MISSING_FIELD one of cases, expr, router"}},
		"branch of two kinds":  {withBranches(graph.BranchSpec{From: "a", Expr: "'b'", Router: "known"}), []string{"conditional_edges[0] CONFLICTING_FIELDS keep one"}},
		"branch with paths":    {withBranches(graph.BranchSpec{From: "a", Cases: []graph.CaseSpec{{To: []string{"b"}}}, Then: []string{"b"}}), []string{"conditional_edges[0] CONFLICTING_FIELDS cases name their targets"}},
		"branch paths, then":   {withBranches(graph.BranchSpec{From: "a", Expr: "'b'", Paths: map[string]string{"b": "b"}, Then: []string{"b"}}), []string{"conditional_edges[0] CONFLICTING_FIELDS then repeats"}},
		"branch source":        {withBranches(graph.BranchSpec{From: "z", Expr: "'b'"}), []string{"conditional_edges[0].from UNKNOWN_NODE known: START"}},
		"branch from END":      {withBranches(graph.BranchSpec{From: graph.End, Expr: "'b'"}), []string{"conditional_edges[0].from INVALID_EDGE END cannot be the source"}},
		"branch path":          {withBranches(graph.BranchSpec{From: "a", Expr: "'k'", Paths: map[string]string{"k": "z"}}), []string{"conditional_edges[0].paths.k UNKNOWN_NODE"}},
		"branch then":          {withBranches(graph.BranchSpec{From: "a", Expr: "'k'", Then: []string{"__start__"}}), []string{"conditional_edges[0].then[0] INVALID_EDGE START cannot be the target"}},
		"branch case":          {withBranches(graph.BranchSpec{From: "a", Cases: []graph.CaseSpec{{When: "1 +", To: []string{"z"}}, {}}}), []string{"conditional_edges[0].cases[0].to UNKNOWN_NODE", "conditional_edges[0].cases[0].when INVALID_EXPRESSION", "conditional_edges[0].cases[1].to MISSING_FIELD leads nowhere"}},
		"branch expression":    {withBranches(graph.BranchSpec{From: "a", Expr: "1 +"}), []string{"conditional_edges[0].expr INVALID_EXPRESSION"}},
		"branch nowhere":       {withBranches(graph.BranchSpec{From: "a", InWorker: true, Expr: "'b'"}), []string{"conditional_edges[0] MISSING_FIELD no function of the worker"}},
		"branch router":        {withBranches(graph.BranchSpec{From: "a", Router: "r"}), []string{`conditional_edges[0].router UNKNOWN_FUNCTION no function "r"`}},
		"branches of one name": {withBranches(graph.BranchSpec{From: "a", Name: "n", Router: "known"}, graph.BranchSpec{From: "a", Name: "n", Router: "known"}), []string{`conditional_edges[1].name DUPLICATE_NAME two conditional edges named "n"`}},

		"breakpoint before": {func(s *graph.Spec) { s.InterruptBefore = []string{"*", "z"} }, []string{"interrupt_before[1] UNKNOWN_NODE known: *, a, b, c, q"}},
		"breakpoint after":  {func(s *graph.Spec) { s.InterruptAfter = []string{"__start__"} }, []string{"interrupt_after[0] UNKNOWN_NODE"}},
		"step limit":        {func(s *graph.Spec) { s.StepLimit = -1 }, []string{"step_limit OUT_OF_RANGE negative (-1)"}},
		"step timeout":      {func(s *graph.Spec) { s.StepTimeout = -1 }, []string{"step_timeout OUT_OF_RANGE negative"}},
		"policies": {func(s *graph.Spec) {
			s.Defaults = graph.PolicySpec{Timeout: -1, IdleTimeout: -1}
			s.Nodes[0].Policy = graph.PolicySpec{Timeout: -1, Retry: []graph.RetrySpec{
				{}, {MaxAttempts: -1, InitialInterval: -1, MaxInterval: -1, Backoff: 0.5, On: []string{"x", ""}},
			}}
		}, []string{
			"nodes.a.timeout OUT_OF_RANGE", "nodes.a.retry[1].max_attempts OUT_OF_RANGE 1 means no retry",
			"nodes.a.retry[1].backoff OUT_OF_RANGE 0.5; it must be 1 or more", "nodes.a.retry[1].initial_interval OUT_OF_RANGE",
			"nodes.a.retry[1].max_interval OUT_OF_RANGE", "nodes.a.retry[1].on[1] MISSING_FIELD empty",
			"defaults.timeout OUT_OF_RANGE", "defaults.idle_timeout OUT_OF_RANGE",
		}},
		"handler":         {func(s *graph.Spec) { s.Nodes[0].Policy.ErrorHandler = "z" }, []string{"nodes.a.error_handler UNKNOWN_NODE known: a, b, c, q"}},
		"default handler": {func(s *graph.Spec) { s.Defaults.ErrorHandler = "__start__" }, []string{"defaults.error_handler UNKNOWN_NODE"}},
		"handles itself":  {func(s *graph.Spec) { s.Nodes[0].Policy.ErrorHandler = "a" }, []string{"nodes.a.error_handler HANDLER_CYCLE a -> a"}},
		"handler cycle": {func(s *graph.Spec) {
			s.Nodes[0].Policy.ErrorHandler, s.Nodes[1].Policy.ErrorHandler, s.Nodes[2].Policy.ErrorHandler = "b", "c", "b"
		}, []string{"nodes.b.error_handler HANDLER_CYCLE b -> c -> b"}},
		"all at once": {func(s *graph.Spec) { s.StepLimit = -1; s.Edges[0].To = "aa"; s.Channels[0].Reducer = "lst" }, []string{
			"channels.x.reducer UNKNOWN_REDUCER", "edges[0] UNKNOWN_NODE", "step_limit OUT_OF_RANGE",
		}},
		"condition of text": {withBranches(graph.BranchSpec{From: "a", Cases: []graph.CaseSpec{{When: "'yes'", To: []string{"b"}}, {When: "state.x", To: []string{"b"}}}}), []string{
			"conditional_edges[0].cases[0].when INVALID_EXPRESSION always of type string",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec := validSpec()
			test.spoil(spec)
			g, err := graph.Compile(spec, newEnv(t))
			require.Nil(t, g)
			var build *graph.BuildError
			require.ErrorAs(t, err, &build)
			require.Len(t, build.Problems, len(test.want), "%v", err)
			for i, p := range build.Problems {
				path, rest, _ := strings.Cut(test.want[i], " ")
				if strings.HasPrefix(test.want[i], "channels. a") {
					path, rest = "channels. a", strings.TrimPrefix(test.want[i], "channels. a ")
				}
				reason, message, _ := strings.Cut(rest, " ")
				require.True(t, strings.HasPrefix(p.Path, path), "%s is not at %s", p, path)
				require.Equal(t, graph.Reason(reason), p.Reason, "%s", p)
				require.Contains(t, p.Message, message)
			}
		})
	}
}

func withBranches(list ...graph.BranchSpec) func(s *graph.Spec) {
	return func(s *graph.Spec) { s.Branches = list }
}

// TestStoredRepeatsCompile compiles a graph that an earlier version has stored.
func TestStoredRepeatsCompile(t *testing.T) {
	spec := validSpec()
	spec.Channels[0].Default = `{"k":1,"k":2}`
	_, err := graph.Compile(spec, newEnv(t))
	require.NoError(t, err)
}

func TestProblemText(t *testing.T) {
	err := &graph.BuildError{Graph: "g", Problems: []graph.Problem{
		{Path: "a.b", Reason: "X_Y", Message: "wrong", Line: 3}, {Reason: "Z", Message: "bad"},
	}}
	require.EqualError(t, err, "graph \"g\" has 2 problems\n  line 3: a.b: wrong (X_Y)\n  bad (Z)")
}

func TestSuggest(t *testing.T) {
	require.Equal(t, `; did you mean "analyze"?; known: analyze, execute`, graph.Suggest("analyse", []string{"execute", "analyze"}))
	require.Equal(t, "; known: a", graph.Suggest("zzzzzz", []string{"a"}))
	require.Equal(t, "; there are none", graph.Suggest("x", nil))
	var many []string
	for i := range 30 {
		many = append(many, strings.Repeat("n", i+1))
	}
	require.Contains(t, graph.Suggest("q", many), "and 10 more")
}
