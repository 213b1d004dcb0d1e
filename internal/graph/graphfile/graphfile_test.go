package graphfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/graphfile"
	"github.com/graphd-dev/graphd/internal/payload"
)

func newEnv(tb testing.TB) graph.Env {
	tb.Helper()
	return graph.Env{
		Expressions: newCompiler(tb),
		HasFunction: func(name string) bool { return name != "missing" },
		CheckSchema: func(schema payload.JSON) error {
			if strings.Contains(string(schema), "boolen") {
				return errors.New(`unknown type "boolen"`)
			}
			return nil
		},
	}
}

// TestBadFiles compares the problems of every file in testdata with the text
// beside it. GRAPHFILE_UPDATE=1 writes the texts anew.
func TestBadFiles(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.*")
	require.NoError(t, err)
	for _, path := range paths {
		if filepath.Ext(path) == ".txt" {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			file, err := graphfile.ReadFile(path)
			if err == nil {
				_, err = file.Compile(newEnv(t))
			}
			var failure *graphfile.FileError
			require.ErrorAs(t, err, &failure)
			golden := path + ".txt"
			if os.Getenv("GRAPHFILE_UPDATE") != "" { //nolint:forbidigo // a switch of this test
				require.NoError(t, os.WriteFile(golden, []byte(err.Error()+"\n"), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), failure.Error()+"\n")
		})
	}
}

const specWithEveryField = `
graph: everything
version: v1
description: |
  Uses every field.
metadata: {team: billing, level: 3}
channels:
  plain:
  short: append
  sum: {reducer: add, default: 9007199254740993}
  table: {default: {z: 1.0, a: [0x10, 1e400, null, true, 2026-01-02, "1"]}}
input: [plain]
output: [plain, sum]
strict: true
input_schema: {type: object}
output_schema: true
context_schema: {}
nodes:
  f: {function: {name: go_function}, metadata: {k: v}, description: d, reads: [plain], defer: true, destinations: [END, e]}
  f2: {function: short}
  e: {expr: {update: {plain: "'x'", sum: 1}, goto: "'q'"}, destinations: q}
  q:
    ask:
      when: state.sum > 1
      value: {user: state.plain, list: [1, state.sum]}
      message: "'m'"
      key: k
      reason: approval
      schema: {type: string}
      update: {plain: answer}
      otherwise: {plain: null}
      assignees: [bob]
      people: {users: [ana], groups: state.plain, approvals: 2, vetoes: 3, agree: answer != null, not_requester: true, requester: "'eva'"}
      ttl: 3d
      expiry: resume_default
      default: "yes"
  r: {remote: {endpoint: "host:1", tls: true}, timeout: 1m30s, idle_timeout: 5s, error_handler: h,
      retry: [{max_attempts: 5, initial_interval: 1s, backoff: 1.5, max_interval: 1m, no_jitter: true, on: [Boom]}, {}]}
  h: {expr: {}}
edges:
  - START -> f -> f2 -> [e, q]
  - [e, q] -> r   # a join
  - e + q -> r
  - {from: r, to: END}
  - {from: [__start__], to: [e, q]}
conditional_edges:
  - {from: r, name: n, cases: [{when: state.sum > 3, to: [e, END]}, {to: f}]}
  - {from: START, expr: "'k'", paths: {k: END}}
  - {from: e, router: fn, then: [q]}
interrupt_before: ["*"]
interrupt_after: [e]
step_limit: 50
step_timeout: 2m
defaults: {retry: {max_attempts: 3}, timeout: 10s}
`

func TestEveryField(t *testing.T) {
	spec, positions, err := graphfile.Parse("x.yaml", []byte(specWithEveryField))
	require.NoError(t, err)
	require.Equal(t, 3, positions.Line("version"))
	require.Equal(t, 25, positions.Line("nodes.q.ask.value.user"))
	require.Equal(t, 43, positions.Line("edges[5].to"), "the line of the edge")
	require.Equal(t, 2, positions.Line("nothing.known"))

	require.Equal(t, &graph.Spec{
		Name: "everything", Version: "v1", Description: "Uses every field.\n",
		Metadata: map[string]string{"team": "billing", "level": "3"},
		Channels: []graph.ChannelSpec{
			{Name: "plain"},
			{Name: "short", Reducer: "append"},
			{Name: "sum", Reducer: "add", Default: "9007199254740993"},
			{Name: "table", Default: `{"z":1.0,"a":[16,1e400,null,true,"2026-01-02","1"]}`},
		},
		Input: []string{"plain"}, Output: []string{"plain", "sum"}, Strict: true,
		InputSchema: `{"type":"object"}`, OutputSchema: "true", ContextSchema: "{}",
		Nodes: []graph.NodeSpec{
			{
				Name: "f", Description: "d", Metadata: map[string]string{"k": "v"}, Reads: []string{"plain"}, Defer: true,
				Destinations: []string{graph.End, "e"}, Function: &graph.FunctionSpec{Name: "go_function"},
			},
			{Name: "f2", Function: &graph.FunctionSpec{Name: "short"}},
			{Name: "e", Destinations: []string{"q"}, Expr: &graph.ExprSpec{
				Update: []graph.Assignment{{Channel: "plain", Expr: "'x'"}, {Channel: "sum", Expr: "1"}}, Goto: "'q'",
			}},
			{Name: "q", Ask: &graph.AskSpec{
				When: "state.sum > 1", Value: `{"user": state.plain, "list": [1, state.sum]}`, Message: "'m'", Key: "k",
				Reason: "approval", Schema: `{"type":"string"}`, Update: []graph.Assignment{{Channel: "plain", Expr: "answer"}},
				Otherwise: []graph.Assignment{{Channel: "plain", Expr: "null"}}, Assignees: graph.NamesSpec{Names: []string{"bob"}},
				People: &graph.PeopleSpec{
					Users: graph.NamesSpec{Names: []string{"ana"}}, Groups: graph.NamesSpec{Expr: "state.plain"}, Approvals: 2, Vetoes: 3,
					Agree: "answer != null", NotRequester: true, Requester: "'eva'",
				},
				TTL: 72 * time.Hour, Expiry: "resume_default", Default: `"yes"`,
			}},
			{Name: "r", Remote: &graph.RemoteSpec{Endpoint: "host:1", TLS: true}, Policy: graph.PolicySpec{
				Timeout: 90 * time.Second, IdleTimeout: 5 * time.Second, ErrorHandler: "h",
				Retry: []graph.RetrySpec{
					{MaxAttempts: 5, InitialInterval: time.Second, Backoff: 1.5, MaxInterval: time.Minute, NoJitter: true, On: []string{"Boom"}},
					{},
				},
			}},
			{Name: "h", Expr: &graph.ExprSpec{}},
		},
		Edges: []graph.EdgeSpec{
			{From: []string{graph.Start}, To: "f"},
			{From: []string{"f"}, To: "f2"},
			{From: []string{"f2"}, To: "e"},
			{From: []string{"f2"}, To: "q"},
			{From: []string{"e", "q"}, To: "r"},
			{From: []string{"e", "q"}, To: "r"},
			{From: []string{"r"}, To: graph.End},
			{From: []string{graph.Start}, To: "e"},
			{From: []string{graph.Start}, To: "q"},
		},
		Branches: []graph.BranchSpec{
			{From: "r", Name: "n", Cases: []graph.CaseSpec{{When: "state.sum > 3", To: []string{"e", graph.End}}, {To: []string{"f"}}}},
			{From: graph.Start, Expr: "'k'", Paths: map[string]string{"k": graph.End}},
			{From: "e", Router: "fn", Then: []string{"q"}},
		},
		InterruptBefore: []string{"*"}, InterruptAfter: []string{"e"},
		StepLimit: 50, StepTimeout: 2 * time.Minute,
		Defaults: graph.PolicySpec{Retry: []graph.RetrySpec{{MaxAttempts: 3}}, Timeout: 10 * time.Second},
	}, spec)
	_, err = graph.Compile(spec, newEnv(t))
	require.NoError(t, err)
}

func TestEncodedSpecIsReadBack(t *testing.T) {
	spec, _, err := graphfile.Parse("x.yaml", []byte(specWithEveryField))
	require.NoError(t, err)
	text := graph.EncodeSpec(spec)
	for _, name := range []string{"x.json", "x.yaml"} {
		again, _, err := graphfile.Parse(name, []byte(text))
		require.NoError(t, err, text)
		require.Equal(t, spec, again)
		require.Equal(t, graph.Digest(spec), graph.Digest(again))
	}
}

func TestMergeKeysAndAliases(t *testing.T) {
	spec, _, err := graphfile.Parse("x.yaml", []byte(`
graph: g
channels: {x: {}}
nodes:
  a: &base {function: f, timeout: 1s, metadata: {k: v}}
  b: {<<: *base, timeout: 2s}
edges: [START -> a -> b]
`))
	require.NoError(t, err)
	require.Equal(t, graph.NodeSpec{
		Name: "b", Function: &graph.FunctionSpec{Name: "f"}, Metadata: map[string]string{"k": "v"},
		Policy: graph.PolicySpec{Timeout: 2 * time.Second},
	}, spec.Nodes[1])
}

func TestHostileFiles(t *testing.T) {
	bomb := "graph: g\ncontext_schema:\n  a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n"
	for i := range 9 {
		n, m := string(rune('0'+i)), string(rune('1'+i))
		bomb += "  a" + m + ": &a" + m + " [" + strings.Repeat("*a"+n+",", 9) + "*a" + n + "]\n"
	}
	tests := map[string]string{
		"aliases that multiply": bomb,
		"an alias of itself":    "graph: g\ncontext_schema: &a [*a]\n",
		"nested too deeply":     "graph: g\ncontext_schema: " + strings.Repeat("[", 500) + strings.Repeat("]", 500),
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := graphfile.Parse("x.yaml", []byte(text))
			require.ErrorAs(t, err, new(*graph.BuildError))
			require.LessOrEqual(t, len(err.Error()), 1000)
		})
	}
	_, _, err := graphfile.Parse("x.json", []byte(strings.Repeat("[", 500)+strings.Repeat("]", 500)))
	require.ErrorContains(t, err, "nested deeper")
}

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	const body = "\nchannels: {x: {}}\nnodes: {a: {expr: {}}}\nedges: [START -> a]\n"
	writeFile(t, dir, "one.yaml", "graph: one"+body)
	writeFile(t, dir, "two.yml", "graph: two"+body)
	writeFile(t, dir, "notes.txt", "not a graph")
	writeFile(t, dir, ".hidden.yaml", "nonsense: [")
	writeFile(t, dir, "deep/graph.yaml", "graph: deep"+body)
	writeFile(t, dir, "deep/other.yaml", "nonsense: [")
	writeFile(t, dir, "json/graph.json", `{"graph": "json", "channels": ["x"], "nodes": {"a": {"graph": "one"}}, "edges": ["START -> a"]}`)
	var foreign []string
	for name, content := range map[string]string{
		"package.json": `{"name": "worker", "scripts": {"graph": "x"}, "dependencies": {"nodes": "1"}}`, "compose.yaml": "services: {redis: {}}\n",
		"k8s.yaml": "apiVersion: v1\nkind: Service\n---\nkind: Pod\n", "empty.yaml": "", "list.json": "[1, 2]", "half.yaml": "services: [",
	} {
		writeFile(t, dir, name, content)
		foreign = append(foreign, filepath.Join(dir, name))
	}
	files, others, err := graphfile.LoadDir(dir)
	require.NoError(t, err)
	require.ElementsMatch(t, foreign, others)
	graphs, err := graphfile.CompileAll(files, newEnv(t))
	require.NoError(t, err)
	var names []string
	for _, g := range graphs {
		names = append(names, g.Name)
	}
	require.Equal(t, []string{"deep", "json", "one", "two"}, names)
	require.Same(t, graphs[2], graphs[1].Nodes[1].Sub)

	for _, content := range []string{
		"graph: [", "nodes: {a: {expr: {}}}\n  edges: - x", `{"graph": "x",`, "{\n  \"channels\": {},\n  \"nodes\": [\n",
	} {
		writeFile(t, dir, "meant.yaml", content)
		_, _, err = graphfile.LoadDir(dir)
		require.ErrorContains(t, err, "meant.yaml:", content)
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "meant.yaml")))
	writeFile(t, dir, "broken.yaml", "graph: [")
	files, _, err = graphfile.LoadDir(dir)
	require.Len(t, files, 4)
	var failure *graphfile.FileError
	require.ErrorAs(t, err, &failure)
	require.Equal(t, filepath.Join(dir, "broken.yaml"), failure.Path)
	_, _, err = graphfile.LoadDir(filepath.Join(dir, "nowhere"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = graphfile.ReadFile(filepath.Join(dir, "nowhere.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestCompileAllRefuses(t *testing.T) {
	uses := func(name, other string) string {
		return "graph: " + name + "\nchannels: {x: {}}\nnodes: {a: {graph: " + other + "}}\nedges: [START -> a]\n"
	}
	tests := map[string]struct {
		files []string
		want  []string
		count int // graphs that are fine
	}{
		"twins":       {[]string{uses("one", "other"), uses("one", "other")}, []string{`1.yaml:1: graph: graph "one" is in 0.yaml already`}, 1},
		"circle":      {[]string{uses("one", "two"), uses("two", "one")}, []string{`graphs "two" and "one" contain each other (SUBGRAPH_CYCLE)`, `unknown graph "two"`}, 0},
		"itself":      {[]string{uses("one", "one")}, []string{"contains itself"}, 0},
		"not there":   {[]string{uses("one", "nobody"), uses("two", "other")}, []string{`0.yaml:3: nodes.a.graph.name: unknown graph "nobody"`}, 1},
		"broken part": {[]string{uses("one", "two"), strings.Replace(uses("two", "other"), "START", "STRT", 1)}, []string{`unknown node "STRT"; did you mean "START"?`, `unknown graph "two"`}, 0},
	}
	env := newEnv(t)
	other, err := graph.Compile(&graph.Spec{
		Name: "other", Channels: []graph.ChannelSpec{{Name: "x"}},
		Nodes: []graph.NodeSpec{{Name: "a", Expr: &graph.ExprSpec{}}}, Edges: []graph.EdgeSpec{{From: []string{graph.Start}, To: "a"}},
	}, env)
	require.NoError(t, err)
	env.Lookup = func(name, _ string) (*graph.Graph, bool) { return other, name == "other" }
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var files []graphfile.File
			for i, text := range test.files {
				path := string(rune('0'+i)) + ".yaml"
				spec, positions, err := graphfile.Parse(path, []byte(text))
				require.NoError(t, err)
				files = append(files, graphfile.File{Path: path, Spec: spec, Positions: positions})
			}
			graphs, err := graphfile.CompileAll(files, env)
			require.Len(t, graphs, test.count)
			for _, want := range test.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(specWithEveryField), false)
	f.Add([]byte(`{"graph": "x", "nodes": {"a": {"expr": {}}}, "edges": ["START -> a"]}`), true)
	f.Add([]byte("a: &a\n  <<: *a\n"), false)
	f.Fuzz(func(t *testing.T, data []byte, isJSON bool) {
		name := "x.yaml"
		if isJSON {
			name = "x.json"
		}
		spec, _, err := graphfile.Parse(name, data)
		if err != nil {
			require.ErrorAs(t, err, new(*graph.BuildError))
			return
		}
		again, _, err := graphfile.Parse("x.json", []byte(graph.EncodeSpec(spec)))
		require.NoError(t, err, graph.EncodeSpec(spec))
		require.Equal(t, graph.EncodeSpec(spec), graph.EncodeSpec(again))
	})
}
