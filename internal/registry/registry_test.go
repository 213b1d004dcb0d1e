package registry_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/expr"
	"github.com/graphd-dev/graphd/internal/graph/graphfile"
	"github.com/graphd-dev/graphd/internal/registry"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/schema"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/transport"
)

var (
	_ runtime.Graphs     = (*registry.Registry)(nil)
	_ transport.Registry = (*registry.Registry)(nil)
)

// tickingClock advances by a second with every read.
type tickingClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *tickingClock) nextSecond() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Second)
	return c.now
}

func newOptions(tb testing.TB, store checkpoint.Graphs, functions ...string) registry.Options {
	tb.Helper()
	compiler, err := expr.New(expr.Options{})
	require.NoError(tb, err)
	checker := schema.New(schema.Limits{})
	c := &tickingClock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	return registry.Options{
		Store: store, Now: c.nextSecond,
		Env: graph.Env{
			Expressions: compiler, CheckSchema: checker.CheckSchema, CheckValue: checker.CheckValue,
			HasFunction: func(name string) bool { return strings.Contains(strings.Join(functions, " "), name) },
		},
	}
}

func openRegistry(tb testing.TB, store checkpoint.Graphs, functions ...string) *registry.Registry {
	tb.Helper()
	r, err := registry.New(tb.Context(), newOptions(tb, store, functions...))
	require.NoError(tb, err)
	return r
}

// graphText returns a graph with one node that sets x to an expression.
func graphText(name, version, value string) string {
	return "graph: " + name + "\nversion: " + version + "\nchannels: {x: {}}\n" +
		"nodes:\n  n: {expr: {update: {x: '" + value + "'}}}\nedges: [START -> n]\n"
}

// wrappingGraph returns a graph that contains another.
func wrappingGraph(name, version, sub, subVersion string) string {
	return "graph: " + name + "\nversion: " + version + "\nchannels: {x: {}}\n" +
		"nodes:\n  n: {graph: {name: " + sub + ", version: " + subVersion + "}}\nedges: [START -> n]\n"
}

func putGraph(tb testing.TB, r *registry.Registry, document string) runtime.GraphEntry {
	tb.Helper()
	e, err := r.PutGraph(tb.Context(), runtime.PutGraphRequest{Document: document})
	require.NoError(tb, err)
	return e
}

func requireRefused(tb testing.TB, err error, reason string) *runtime.Error {
	tb.Helper()
	var e *runtime.Error
	require.ErrorAs(tb, err, &e)
	require.Equal(tb, reason, e.Reason)
	return e
}

func TestPutAndGet(t *testing.T) {
	r := openRegistry(t, memory.New(memory.Options{}))
	first := putGraph(t, r, graphText("g", "v1", "1"))
	require.Equal(t, []string{"v1"}, first.Versions)
	require.Equal(t, "v1", first.Graph.Version)
	require.False(t, first.Created.IsZero())
	putGraph(t, r, graphText("g", "v2", "2"))
	putGraph(t, r, graphText("a", `""`, "1"))

	e, err := r.GetGraph(t.Context(), "g", "")
	require.NoError(t, err)
	require.Equal(t, "v2", e.Graph.Version)
	require.Equal(t, []string{"v1", "v2"}, e.Versions)
	e, err = r.GetGraph(t.Context(), "g", "v1")
	require.NoError(t, err)
	require.Same(t, first.Graph, e.Graph)
	require.Equal(t, first.Created, e.Created)

	all, more, err := r.ListGraphs(t.Context(), tenant.Default, "", 100)
	require.NoError(t, err)
	require.False(t, more)
	require.Len(t, all, 2)
	require.Equal(t, "a", all[0].Graph.Name)
	require.True(t, strings.HasPrefix(all[0].Graph.Version, "sha-"))
	require.Equal(t, "v2", all[1].Graph.Version)

	g, err := r.Graph("g", "")
	require.NoError(t, err)
	require.Equal(t, "v2", g.Version)
	_, err = r.Graph("g", "v3")
	require.Error(t, err)
	_, err = r.Graph("nobody", "")
	require.Error(t, err)
}

func TestGetSaysWhatThereIs(t *testing.T) {
	r := openRegistry(t, memory.New(memory.Options{}))
	putGraph(t, r, graphText("refund", "v1", "1"))
	_, err := r.GetGraph(t.Context(), "refunds", "")
	e := requireRefused(t, err, runtime.ReasonGraphNotFound)
	require.Contains(t, e.Message, `did you mean "refund"?`)
	require.Equal(t, map[string]string{"graph": "refunds"}, e.Meta)
	_, err = r.GetGraph(t.Context(), "refund", "v9")
	e = requireRefused(t, err, runtime.ReasonGraphVersionUnavailable)
	require.Contains(t, e.Message, "known: v1")
	require.Equal(t, map[string]string{"graph": "refund", "version": "v9"}, e.Meta)
}

func TestAVersionNeverChanges(t *testing.T) {
	for name, store := range map[string]checkpoint.Graphs{"stored": memory.New(memory.Options{}), "not stored": nil} {
		t.Run(name, func(t *testing.T) {
			r := openRegistry(t, store)
			first := putGraph(t, r, graphText("g", "v1", "1"))
			again := putGraph(t, r, "# the same\n"+graphText("g", "v1", "1"))
			require.Same(t, first.Graph, again.Graph)
			_, err := r.PutGraph(t.Context(), runtime.PutGraphRequest{Document: graphText("g", "v1", "2")})
			e := requireRefused(t, err, runtime.ReasonGraphExists)
			require.Equal(t, map[string]string{"graph": "g", "version": "v1"}, e.Meta)
			_, err = r.PutGraph(t.Context(), runtime.PutGraphRequest{Document: graphText("g", "v1", "2"), ValidateOnly: true})
			require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonGraphExists})
			g, _ := r.Graph("g", "")
			require.Same(t, first.Graph, g)

			// Putting an old version again does not make it the newest.
			putGraph(t, r, graphText("g", "v2", "2"))
			putGraph(t, r, graphText("g", "v1", "1"))
			g, _ = r.Graph("g", "")
			require.Equal(t, "v2", g.Version)
		})
	}
}

func TestOrderDoesNotMakeAVersion(t *testing.T) {
	const one = "graph: g\nchannels: {a: {}, b: {}}\nnodes: {n: {expr: {update: {a: '1'}}}}\nedges: [START -> n]\n"
	const two = "graph: g\nchannels: {b: {}, a: {}}\nnodes: {n: {expr: {update: {a: '1'}}}}\nedges: [START -> n]\n"
	r := openRegistry(t, memory.New(memory.Options{}))
	require.Same(t, putGraph(t, r, one).Graph, putGraph(t, r, two).Graph)
}

func TestProblemsComeAsBuildErrors(t *testing.T) {
	r := openRegistry(t, memory.New(memory.Options{}), "known")
	for name, c := range map[string]struct {
		document string
		reasons  []graph.Reason
	}{
		"no YAML":          {"graph: [", []graph.Reason{graph.ReasonInvalidSyntax}},
		"an unknown field": {graphText("g", "v1", "1") + "nodez: {}\n", []graph.Reason{graph.ReasonUnknownField}},
		"several":          {graphText("g", "v1", "state.y +") + "step_limit: -1\nfoo: 1\n", []graph.Reason{graph.ReasonUnknownField, graph.ReasonInvalidExpression, graph.ReasonOutOfRange}},
		"a function":       {"graph: g\nchannels: {x: {}}\nnodes: {n: {function: {name: unknown}}}\nedges: [START -> n]\n", []graph.Reason{graph.ReasonUnknownFunction}},
		"a schema":         {graphText("g", "v1", "1") + "input_schema: {type: text}\n", []graph.Reason{graph.ReasonInvalidSchema}},
		"a subgraph":       {wrappingGraph("g", "v1", "nobody", `""`), []graph.Reason{graph.ReasonUnknownGraph}},
		"itself":           {wrappingGraph("g", "v1", "g", `""`), []graph.Reason{graph.ReasonSubgraphCycle}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, validate := range []bool{true, false} {
				_, err := r.PutGraph(t.Context(), runtime.PutGraphRequest{Document: c.document, DocumentName: "g.yaml", ValidateOnly: validate})
				build, ok := err.(*graph.BuildError) //nolint:errorlint // transport looks at the error itself
				require.True(t, ok, "%v", err)
				var reasons []graph.Reason
				for _, p := range build.Problems {
					reasons = append(reasons, p.Reason)
					require.Positive(t, p.Line)
				}
				require.ElementsMatch(t, c.reasons, reasons)
			}
		})
	}
	all, more, err := r.ListGraphs(t.Context(), tenant.Default, "", 100)
	require.NoError(t, err)
	require.False(t, more)
	require.Empty(t, all)
}

func TestPutForms(t *testing.T) {
	store := memory.New(memory.Options{})
	r := openRegistry(t, store, "f")
	e := putGraph(t, r, ` {"graph":"j","channels":{"x":{}},"nodes":{"n":{"function":{"name":"f"}}},"edges":[{"from":"START","to":"n"}]}`)
	require.Equal(t, "j", e.Graph.Name)

	spec := &graph.Spec{
		Name: "s", Channels: []graph.ChannelSpec{{Name: "x"}}, Nodes: []graph.NodeSpec{{Name: "n", Function: &graph.FunctionSpec{Name: "f"}}},
		Edges: []graph.EdgeSpec{{From: []string{graph.Start}, To: "n"}},
	}
	checked, err := r.PutGraph(t.Context(), runtime.PutGraphRequest{Spec: spec, ValidateOnly: true})
	require.NoError(t, err)
	require.Empty(t, checked.Versions)
	_, err = r.Graph("s", "")
	require.Error(t, err)
	kept, err := r.PutGraph(t.Context(), runtime.PutGraphRequest{Spec: spec})
	require.NoError(t, err)
	require.Equal(t, checked.Graph.Version, kept.Graph.Version)

	again := openRegistry(t, store, "f")
	g, err := again.Graph("s", "")
	require.NoError(t, err)
	require.Equal(t, kept.Graph.Version, g.Version)
}

func TestSubgraphsArePinned(t *testing.T) {
	store := memory.New(memory.Options{})
	r := openRegistry(t, store)
	putGraph(t, r, graphText("sub", "v1", "1"))
	outer := putGraph(t, r, wrappingGraph("outer", "v1", "sub", `""`)).Graph
	require.Equal(t, "v1", outer.Spec.Nodes[0].Graph.Version)
	free := putGraph(t, r, wrappingGraph("free", `""`, "sub", `""`)).Graph
	putGraph(t, r, graphText("sub", "v2", "2"))

	// The same text again means the same version, whatever is newest now.
	require.Same(t, outer, putGraph(t, r, wrappingGraph("outer", "v1", "sub", `""`)).Graph)
	// A version of its own content is another one with another subgraph.
	moved := putGraph(t, r, wrappingGraph("free", `""`, "sub", `""`)).Graph
	require.NotEqual(t, free.Version, moved.Version)
	require.Equal(t, "v2", moved.Nodes[1].Sub.Version)

	for _, again := range []*registry.Registry{r, openRegistry(t, store)} {
		g, err := again.Graph("outer", "v1")
		require.NoError(t, err)
		require.Equal(t, "v1", g.Nodes[1].Sub.Version)
		g, err = again.Graph("free", free.Version)
		require.NoError(t, err)
		require.Equal(t, "v1", g.Nodes[1].Sub.Version)
	}
}

func TestStoredGraphsThatNoLongerCompile(t *testing.T) {
	store := memory.New(memory.Options{})
	with := openRegistry(t, store, "f")
	putGraph(t, with, "graph: g\nversion: v1\nchannels: {x: {}}\nnodes: {n: {function: {name: f}}}\nedges: [START -> n]\n")
	putGraph(t, with, graphText("ok", "v1", "1"))
	require.NoError(t, store.PutGraph(t.Context(), checkpoint.GraphRecord{Name: "odd", Version: "v1", Source: "{"}, checkpoint.GraphCondition{}))

	without := openRegistry(t, store)
	_, err := without.Graph("ok", "")
	require.NoError(t, err)
	_, err = without.Graph("g", "v1")
	require.Error(t, err)
	_, err = without.GetGraph(t.Context(), "g", "v1")
	e := requireRefused(t, err, runtime.ReasonGraphVersionUnavailable)
	require.Contains(t, e.Message, `no function "f" is registered`)
	_, err = without.PutGraph(t.Context(), runtime.PutGraphRequest{Document: graphText("g", "v1", "1")})
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonGraphExists})
}

func TestReplicasLearnFromTheStore(t *testing.T) {
	store := memory.New(memory.Options{})
	one, two := openRegistry(t, store), openRegistry(t, store)
	putGraph(t, one, graphText("g", "v1", "1"))
	e, err := two.GetGraph(t.Context(), "g", "")
	require.NoError(t, err)
	require.Equal(t, "v1", e.Graph.Version)

	putGraph(t, one, graphText("g", "v2", "2"))
	same, err := two.PutGraph(t.Context(), runtime.PutGraphRequest{Document: "# theirs\n" + graphText("g", "v2", "2")})
	require.NoError(t, err)
	require.Equal(t, []string{"v1", "v2"}, same.Versions)
	putGraph(t, one, graphText("g", "v3", "3"))
	_, err = two.PutGraph(t.Context(), runtime.PutGraphRequest{Document: graphText("g", "v3", "4")})
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonGraphExists})
}

// clockStore is a store that counts time for all servers that share it.
type clockStore struct {
	checkpoint.Graphs

	tickingClock
}

func (s *clockStore) Now(context.Context) (time.Time, error) { return s.nextSecond(), nil }

// The newest version is the one that was put last, whatever the clocks of the
// servers show.
func TestTheStoreSaysWhatIsNewest(t *testing.T) {
	store := &clockStore{Graphs: memory.New(memory.Options{})}
	var servers []*registry.Registry
	for _, wrong := range []time.Duration{5 * time.Hour, 0, -5 * time.Hour} {
		o := newOptions(t, store)
		o.Now = func() time.Time { return store.nextSecond().Add(wrong) }
		r, err := registry.New(t.Context(), o)
		require.NoError(t, err)
		servers = append(servers, r)
	}
	for i, version := range []string{"v1", "v2", "v3"} {
		putGraph(t, servers[i], graphText("g", version, version[1:]))
	}
	for _, r := range append(servers, openRegistry(t, store)) {
		require.NoError(t, r.Refresh(t.Context()))
		e, err := r.GetGraph(t.Context(), "g", "")
		require.NoError(t, err)
		require.Equal(t, "v3", e.Graph.Version)
	}
}

// unavailableStore is a store that is down.
type unavailableStore struct{}

func (unavailableStore) PutGraph(context.Context, checkpoint.GraphRecord, checkpoint.GraphCondition) error {
	return checkpoint.ErrUnavailable
}

func (unavailableStore) GraphRecords(context.Context) ([]checkpoint.GraphRecord, error) {
	return nil, checkpoint.ErrUnavailable
}

func (unavailableStore) DeleteGraph(context.Context, string, string, checkpoint.GraphCondition) error {
	return checkpoint.ErrUnavailable
}

func (unavailableStore) GraphRecord(context.Context, string, string) (checkpoint.GraphRecord, error) {
	return checkpoint.GraphRecord{}, checkpoint.ErrUnavailable
}

func (unavailableStore) GraphVersions(context.Context, uint64) ([]checkpoint.GraphRecord, uint64, error) {
	return nil, 0, checkpoint.ErrUnavailable
}

// unwritableStore is a store that refuses every change.
type unwritableStore struct{ unavailableStore }

func (unwritableStore) GraphRecords(context.Context) ([]checkpoint.GraphRecord, error) {
	return nil, nil
}

func (unwritableStore) GraphVersions(context.Context, uint64) ([]checkpoint.GraphRecord, uint64, error) {
	return nil, 1, nil
}

func TestStoreThatFails(t *testing.T) {
	_, err := registry.New(t.Context(), newOptions(t, unavailableStore{}))
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonStoreUnavailable})
	require.ErrorIs(t, err, checkpoint.ErrUnavailable)

	r := openRegistry(t, unwritableStore{})
	_, err = r.PutGraph(t.Context(), runtime.PutGraphRequest{Document: graphText("g", "v1", "1")})
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonStoreUnavailable})
	_, err = r.Graph("g", "")
	require.Error(t, err, "what is not stored is not visible")
}

func writeFile(tb testing.TB, dir, name, content string) {
	tb.Helper()
	path := filepath.Join(dir, name)
	require.NoError(tb, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(tb, os.WriteFile(path, []byte(content), 0o600))
}

func graphVersionNames(graphs []*graph.Graph) []string {
	var out []string
	for _, g := range graphs {
		out = append(out, g.Name+"@"+g.Version)
	}
	return out
}

func TestFolder(t *testing.T) {
	dir, store := t.TempDir(), memory.New(memory.Options{})
	writeFile(t, dir, "a-outer.yaml", wrappingGraph("outer", "v1", "sub", `""`))
	writeFile(t, dir, "z.yaml", graphText("sub", "s1", "1"))
	writeFile(t, dir, "deep/graph.yaml", graphText("deep", "d1", "1"))
	r := openRegistry(t, store)
	changed, err := r.LoadDir(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, []string{"sub@s1", "outer@v1", "deep@d1"}, graphVersionNames(changed))

	changed, err = r.LoadDir(t.Context(), dir)
	require.NoError(t, err)
	require.Empty(t, changed)

	// A changed file is a new version; a broken one keeps what it was.
	writeFile(t, dir, "z.yaml", graphText("sub", "s2", "2"))
	writeFile(t, dir, "deep/graph.yaml", graphText("deep", "d2", "state.nothing"))
	changed, err = r.LoadDir(t.Context(), dir)
	require.Equal(t, []string{"sub@s2"}, graphVersionNames(changed))
	var file *graphfile.FileError
	require.ErrorAs(t, err, &file)
	require.Equal(t, filepath.Join(dir, "deep", "graph.yaml"), file.Path)
	require.ErrorContains(t, err, "graph.yaml:5: nodes.n.expr.update.x")
	g, _ := r.Graph("deep", "")
	require.Equal(t, "d1", g.Version)

	// Other content under the same version is refused, with the file's name.
	writeFile(t, dir, "deep/graph.yaml", graphText("deep", "d1", "7"))
	_, err = r.LoadDir(t.Context(), dir)
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonGraphExists})
	require.ErrorContains(t, err, "deep/graph.yaml")

	// With its earlier content the file makes that version the newest again.
	writeFile(t, dir, "z.yaml", graphText("sub", "s1", "1"))
	changed, err = r.LoadDir(t.Context(), dir)
	require.Error(t, err)
	require.Equal(t, []string{"sub@s1"}, graphVersionNames(changed))
	g, _ = r.Graph("sub", "")
	require.Equal(t, "s1", g.Version)

	// All of it was stored.
	again := openRegistry(t, store)
	for _, want := range [][2]string{{"sub", "s1"}, {"sub", "s2"}, {"outer", "v1"}, {"deep", "d1"}} {
		_, err = again.Graph(want[0], want[1])
		require.NoError(t, err, want)
	}
	_, err = r.LoadDir(t.Context(), filepath.Join(dir, "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestFilesWithoutAVersion(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "outer.yaml", wrappingGraph("outer", `""`, "sub", `""`))
	writeFile(t, dir, "sub.yaml", graphText("sub", `""`, "1"))
	r := openRegistry(t, memory.New(memory.Options{}))
	first, err := r.LoadDir(t.Context(), dir)
	require.NoError(t, err)
	require.Len(t, first, 2)
	writeFile(t, dir, "sub.yaml", graphText("sub", `""`, "2"))
	second, err := r.LoadDir(t.Context(), dir)
	require.NoError(t, err)
	require.Len(t, second, 2, "what contains the changed graph has changed, too")
	require.Same(t, second[0], second[1].Nodes[1].Sub)
}

func TestWatch(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "g.yaml", graphText("g", "v1", "1"))
	r := openRegistry(t, memory.New(memory.Options{}))
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		type report struct {
			names []string
			err   error
		}
		reports := make(chan report, 4)
		look := r.WatchDir(ctx, dir, time.Second, func(g []*graph.Graph, err error) { reports <- report{graphVersionNames(g), err} })
		require.Equal(t, report{names: []string{"g@v1"}}, <-reports)
		writeFile(t, dir, "g.yaml", graphText("g", "in-between", "1"))
		go look()
		require.Equal(t, report{names: []string{"g@in-between"}}, <-reports, "no watcher was there yet")
		synctest.Wait()
		<-time.NewTimer(10500 * time.Millisecond).C
		require.Empty(t, reports, "nothing has changed")
		writeFile(t, dir, "notes.txt", "not a graph")
		writeFile(t, dir, "g.yaml", graphText("g", "version2", "2"))
		require.Equal(t, report{names: []string{"g@version2"}}, <-reports)
		writeFile(t, dir, "g.yaml", "graph: [")
		broken := <-reports
		require.Error(t, broken.err)
		require.Empty(t, broken.names)
		require.NoError(t, os.Remove(filepath.Join(dir, "g.yaml")))
		require.Equal(t, report{}, <-reports)
		cancel()
	})
	g, _ := r.Graph("g", "")
	require.Equal(t, "version2", g.Version)
}

func TestReadingWhileWriting(t *testing.T) {
	r := openRegistry(t, nil)
	putGraph(t, r, graphText("g", "v0", "0"))
	var group sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := r.Graph("g", ""); err != nil {
					t.Error("the graph was gone")
					return
				}
			}
		})
	}
	for i := range 20 {
		v := "v" + strings.Repeat("i", i+1)
		_, err := r.PutGraph(t.Context(), runtime.PutGraphRequest{Document: graphText("g", v, "1")})
		if err != nil {
			t.Error(errors.Unwrap(err), err)
		}
	}
	close(stop)
	group.Wait()
}
