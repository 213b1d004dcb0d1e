package engine_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// versionCatalog has the versions of graph g, newest first.
type versionCatalog struct {
	versions []*graph.Graph
	failing  map[string]error // versions that can't be read or compiled
	isSilent bool             // it lists another version as the newest

	mu    sync.Mutex
	found []string // versions that were asked for by name
}

func (c *versionCatalog) Graph(name, version string) (*graph.Graph, error) {
	if version == "" {
		return c.versions[0], nil
	}
	c.mu.Lock()
	c.found = append(c.found, version)
	c.mu.Unlock()
	if err := c.failing[version]; err != nil {
		return nil, err
	}
	for _, g := range c.versions {
		if g.Name == name && g.Version == version {
			return g, nil
		}
	}
	return nil, runtime.Errorf(runtime.ReasonGraphVersionUnavailable, "graph %q has no version %q", name, version)
}

func (c *versionCatalog) Versions(_ string, most int) []string {
	var list []string
	if c.isSilent {
		list = append(list, "does not compile")
	}
	for _, g := range c.versions {
		list = append(list, g.Version)
	}
	return list[:min(most, len(list))]
}

// fakeWorkers serve some capabilities.
type fakeWorkers struct {
	mu     sync.Mutex
	served []checkpoint.Capability
}

func (w *fakeWorkers) SetPeers(runtime.Peers) {}

func (w *fakeWorkers) Covers(need checkpoint.Capability) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.served, func(c checkpoint.Capability) bool { return c.Covers(need) })
}

func (w *fakeWorkers) RecheckTasks() {}

// serve replaces what the workers serve, "VERSION" or "VERSION/NODE" of graph g each.
func (w *fakeWorkers) serve(list ...checkpoint.Capability) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.served = list
}

// all is the capability for all nodes of a version of graph g.
func all(version string) checkpoint.Capability {
	return checkpoint.Capability{Graph: "g", Version: version}
}

// one is the capability for a node of a version of graph g.
func one(version, node string) checkpoint.Capability {
	return checkpoint.Capability{Graph: "g", Version: version, Node: node}
}

// remoteSpec returns a version of graph g whose nodes a and b run in workers.
func remoteSpec(version string) *graph.Spec {
	s := chainSpec("g", channelsAB, "a", "b")
	s.Version = version
	for i := range s.Nodes {
		s.Nodes[i].Function, s.Nodes[i].Remote = nil, &graph.RemoteSpec{}
	}
	return s
}

// versionFixture is an engine with versions of graph g and with workers.
type versionFixture struct {
	*fixture

	catalog *versionCatalog
	workers *fakeWorkers
	logs    *observer.ObservedLogs
}

// newVersionFixture makes an engine with versions of graph g, the newest first.
func newVersionFixture(t *testing.T, specs ...*graph.Spec) *versionFixture {
	t.Helper()
	return newVersionFixtureOn(t, memory.New(memory.Options{}), engine.Options{}, specs...)
}

func newVersionFixtureOn(t *testing.T, store checkpoint.Store, opts engine.Options, specs ...*graph.Spec) *versionFixture {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	f := &versionFixture{
		fixture: &fixture{t: t, store: store, nodes: &nodeExecutor{funcs: map[string]nodeFunc{"a": updateNode(`{}`), "b": updateNode(`{}`)}}},
		catalog: &versionCatalog{failing: map[string]error{}}, workers: &fakeWorkers{}, logs: logs,
	}
	for _, s := range specs {
		g, err := graph.Compile(s, graph.Env{Expressions: expressions})
		require.NoError(t, err)
		f.catalog.versions = append(f.catalog.versions, g)
	}
	opts.Workers, opts.Logger = f.workers, zap.New(core)
	f.engine = engine.New(t.Context(), store, f.catalog, f.nodes, nil, opts)
	t.Cleanup(func() { closeEngine(t, f.engine) })
	return f
}

// startVersion starts a run in a thread that may be new, and returns its version.
func (f *versionFixture) startVersion(change ...func(*runtime.StartRequest)) string {
	f.t.Helper()
	req := runtime.StartRequest{Thread: "t", CreateThread: true, Graph: "g", Request: checkpoint.RunRequest{Input: `{"a":[]}`}}
	for _, c := range change {
		c(&req)
	}
	s, err := f.engine.Start(f.t.Context(), req)
	require.NoError(f.t, err)
	require.Equal(f.t, s.Head.Version, s.Run.Version)
	return s.Run.Version
}

func TestANewThreadTakesAServedVersion(t *testing.T) {
	for name, c := range map[string]struct {
		served []checkpoint.Capability
		want   string
	}{
		"no version is served":                    {nil, "3"},
		"the newest is served":                    {[]checkpoint.Capability{all("3"), all("2")}, "3"},
		"the newest is served in part":            {[]checkpoint.Capability{one("3", "b"), all("2")}, "3"},
		"all versions are served":                 {[]checkpoint.Capability{all("")}, "3"},
		"an older one is served":                  {[]checkpoint.Capability{all("2"), all("1")}, "2"},
		"the oldest is served":                    {[]checkpoint.Capability{all("1")}, "1"},
		"an older one by two workers":             {[]checkpoint.Capability{one("2", "a"), one("2", "b")}, "2"},
		"an older one in part":                    {[]checkpoint.Capability{one("2", "a"), all("1")}, "1"},
		"only an older one, and in part":          {[]checkpoint.Capability{one("2", "a")}, "3"},
		"a node of all versions that 3 has not":   {[]checkpoint.Capability{one("", "x"), all("1")}, "1"},
		"another graph":                           {[]checkpoint.Capability{{Graph: "h"}}, "3"},
		"a version that the server does not have": {[]checkpoint.Capability{all("0")}, "3"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newVersionFixture(t, remoteSpec("3"), remoteSpec("2"), remoteSpec("1"))
			f.workers.serve(c.served...)
			require.Equal(t, c.want, f.startVersion())
		})
	}
}

// Other servers have their own workers.
func TestAVersionMayBeServedElsewhere(t *testing.T) {
	for name, c := range map[string]struct {
		here, elsewhere []checkpoint.Capability
		want            string
	}{
		"the newest elsewhere":           {[]checkpoint.Capability{all("1")}, []checkpoint.Capability{all("2")}, "2"},
		"an older one elsewhere":         {nil, []checkpoint.Capability{all("1")}, "1"},
		"an older one by two servers":    {[]checkpoint.Capability{one("1", "a")}, []checkpoint.Capability{one("1", "b")}, "1"},
		"an older one in part elsewhere": {nil, []checkpoint.Capability{one("1", "b")}, "2"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newVersionFixtureOn(t, memberStore{memory.New(memory.Options{}), c.elsewhere}, engine.Options{}, remoteSpec("2"), remoteSpec("1"))
			f.workers.serve(c.here...)
			require.Equal(t, c.want, f.startVersion())
		})
	}
}

// memberStore is a store that another server shares.
type memberStore struct {
	checkpoint.Store

	elsewhere []checkpoint.Capability // of the workers of the other server
}

func (s memberStore) Register(string, func()) checkpoint.Registration {
	return otherMember{s.elsewhere}
}

type otherMember struct{ capabilities []checkpoint.Capability }

func (otherMember) SetCapabilities([]checkpoint.Capability) {}

func (otherMember) SetClaims(checkpoint.Claims) {}

func (m otherMember) OtherMembers() []checkpoint.Member {
	return []checkpoint.Member{{Server: "other", Capabilities: m.capabilities}}
}

func (otherMember) Close() {}

// Nodes that no worker runs need none.
func TestAVersionWithoutNodesOfWorkersNeedsNone(t *testing.T) {
	inServer := chainSpec("g", channelsAB, "a", "b")
	inServer.Version = "2"
	atEndpoint := remoteSpec("2")
	for i := range atEndpoint.Nodes {
		atEndpoint.Nodes[i].Remote.Endpoint = "dns:///nodes:1"
	}
	for _, newest := range []*graph.Spec{inServer, atEndpoint} {
		f := newVersionFixture(t, newest, remoteSpec("1"))
		f.workers.serve(all("1"))
		require.Equal(t, "2", f.startVersion())
	}
}

// addQuestion makes a graph ask before its first node.
func addQuestion(s *graph.Spec, message string) *graph.Spec {
	s.Nodes = append(s.Nodes, graph.NodeSpec{Name: "ask", Ask: &graph.AskSpec{Message: message}})
	s.Edges[0].To = "ask"
	s.Edges = append(s.Edges, newEdge("ask", "a"))
	return s
}

func addBreakpoint(s *graph.Spec, node string) *graph.Spec {
	s.InterruptBefore = append(s.InterruptBefore, node)
	return s
}

func describe(s *graph.Spec, text string) *graph.Spec {
	s.Description = text
	return s
}

// An older version takes the place of the newest one only where it asks all that the newest
// one asks.
func TestAnOlderVersionKeepsTheQuestions(t *testing.T) {
	for name, c := range map[string]struct {
		newest, older *graph.Spec
		want          string
	}{
		"no questions":           {remoteSpec("2"), chainWithout("1"), "1"},
		"more questions":         {remoteSpec("2"), addQuestion(remoteSpec("1"), "'Sure?'"), "1"},
		"the same question":      {addQuestion(describe(remoteSpec("2"), "Asks."), "'Sure?'"), addQuestion(remoteSpec("1"), "'Sure?'"), "1"},
		"another question":       {addQuestion(remoteSpec("2"), "'Sure?'"), addQuestion(remoteSpec("1"), "'Well?'"), "2"},
		"no such question":       {addQuestion(remoteSpec("2"), "'Sure?'"), remoteSpec("1"), "2"},
		"the same breakpoint":    {addBreakpoint(remoteSpec("2"), "b"), addBreakpoint(remoteSpec("1"), "b"), "1"},
		"another breakpoint":     {addBreakpoint(remoteSpec("2"), "b"), addBreakpoint(remoteSpec("1"), "a"), "2"},
		"no such breakpoint":     {addBreakpoint(remoteSpec("2"), "b"), remoteSpec("1"), "2"},
		"one breakpoint more":    {addBreakpoint(remoteSpec("2"), "b"), addBreakpoint(remoteSpec("1"), graph.AllNodes), "1"},
		"other edges and a stop": {addBreakpoint(remoteSpec("2"), "a"), addBreakpoint(chainWithout("1"), "a"), "2"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newVersionFixture(t, c.newest, c.older)
			f.workers.serve(all("1"))
			for _, thread := range []string{"t", "t2"} { // the second comparison is remembered
				require.Equal(t, c.want, f.startVersion(func(r *runtime.StartRequest) { r.Thread = thread }))
			}
		})
	}
}

// chainWithout returns a version of graph g that has node a alone.
func chainWithout(version string) *graph.Spec {
	s := chainSpec("g", channelsAB, "a")
	s.Version = version
	s.Nodes[0].Function, s.Nodes[0].Remote = nil, &graph.RemoteSpec{}
	return s
}

// A version that would pass by a question does not hide an older one that asks it.
func TestTheNextOlderVersionMayFit(t *testing.T) {
	f := newVersionFixture(t, addBreakpoint(remoteSpec("3"), "b"), remoteSpec("2"), addBreakpoint(remoteSpec("1"), "b"))
	f.workers.serve(all("2"), all("1"))
	require.Equal(t, "1", f.startVersion())
}

// What the newest version asks is not known where it does not compile.
func TestNoOlderVersionStandsInForOneThatDoesNotCompile(t *testing.T) {
	f := newVersionFixture(t, remoteSpec("2"), remoteSpec("1"))
	f.catalog.isSilent = true
	f.workers.serve(all("1"))
	require.Equal(t, "2", f.startVersion())
}

func TestAnOlderVersionThatCanNotBeUsedIsPassedOver(t *testing.T) {
	f := newVersionFixture(t, remoteSpec("3"), remoteSpec("2"), remoteSpec("1"))
	f.catalog.failing["2"] = runtime.Errorf(runtime.ReasonGraphVersionUnavailable, "does not compile")
	f.workers.serve(all("2"), all("1"))
	require.Equal(t, "1", f.startVersion())
}

// A thread stays on its version: where the versions can't be read the run is not begun on
// any.
func TestAVersionIsNotChosenWhileTheStoreIsAway(t *testing.T) {
	f := newVersionFixture(t, remoteSpec("2"), remoteSpec("1"))
	f.catalog.failing["1"] = runtime.Errorf(runtime.ReasonStoreUnavailable, "the store is away")
	f.workers.serve(all("1"))
	_, err := f.engine.Start(t.Context(), runtime.StartRequest{
		Thread: "t", CreateThread: true, Graph: "g", Request: checkpoint.RunRequest{Input: `{"a":[]}`},
	})
	require.Equal(t, runtime.ReasonStoreUnavailable, errorReason(err))
}

func TestSixteenOlderVersionsAreLookedAt(t *testing.T) {
	for older, want := range map[int]string{16: "0", 17: "newest"} {
		specs := []*graph.Spec{remoteSpec("newest")}
		for i := range older {
			specs = append(specs, remoteSpec(string(rune('a'+older-i-2))))
		}
		specs[older].Version = "0"
		f := newVersionFixture(t, specs...)
		f.workers.serve(all("0"))
		require.Equal(t, want, f.startVersion())
		if want == "0" {
			require.Equal(t, "0", f.catalog.found[0], "versions without workers are not even compiled")
		}
	}
}

func TestTheLogSaysWhyAnOlderVersionWasTaken(t *testing.T) {
	f := newVersionFixture(t, remoteSpec("2"), remoteSpec("1"))
	f.workers.serve(all("1"))
	require.Equal(t, "1", f.startVersion())
	lines := f.logs.FilterMessage("a new thread takes an older version of its graph").All()
	require.Len(t, lines, 1)
	require.Equal(t, zap.DebugLevel, lines[0].Level)
	require.Equal(t, map[string]any{"graph": "g", "version": "1", "reason": "no worker serves the newest version, 2"}, lines[0].ContextMap())
}

// Only a thread without a graph gets a version that the call does not name.
func TestThreadsWithAVersionKeepIt(t *testing.T) {
	f := newVersionFixture(t, remoteSpec("2"), remoteSpec("1"))
	f.workers.serve(all("2"))
	require.Equal(t, "2", f.startVersion())
	f.workers.serve(all("1"))
	_, err := f.engine.ForkThread(t.Context(), runtime.ForkRequest{Source: "t", Thread: "fork"})
	require.NoError(t, err)
	for _, thread := range []string{"t", "fork"} {
		require.Equal(t, "2", f.startVersion(func(r *runtime.StartRequest) { r.Thread, r.Concurrency = thread, runtime.EnqueueBusy }))
	}
	require.Equal(t, "2", f.startVersion(func(r *runtime.StartRequest) { r.Thread, r.Version = "named", "2" }))
	require.Equal(t, "1", f.startVersion(func(r *runtime.StartRequest) { r.Thread, r.Version = "named older", "1" }))
	f.workers.serve(all("2"))
	require.Equal(t, "1", f.startVersion(func(r *runtime.StartRequest) { r.Thread, r.Concurrency = "named older", runtime.EnqueueBusy }))
}

// A queued run begins on the version that its thread had when it was queued, whatever is
// served when it begins.
func TestQueuedRunsKeepTheirVersion(t *testing.T) {
	f := newVersionFixtureOn(t, memory.New(memory.Options{}), engine.Options{MaxLiveRuns: 1}, remoteSpec("2"), remoteSpec("1"))
	begun, goOn := make(chan struct{}, 3), make(chan struct{})
	f.nodes.funcs["a"] = func(context.Context, *nodeCall) pregel.Result {
		begun <- struct{}{}
		<-goOn
		return pregel.Result{}
	}
	f.workers.serve(all("1"))
	enqueue := func(thread string) *runtime.Started {
		s, err := f.engine.Start(t.Context(), runtime.StartRequest{
			Thread: thread, CreateThread: true, Graph: "g", Concurrency: runtime.EnqueueBusy, Request: checkpoint.RunRequest{Input: `{"a":[]}`},
		})
		require.NoError(t, err)
		return s
	}
	runs := []*runtime.Started{enqueue("t")}
	<-begun
	runs = append(runs, enqueue("t"), enqueue("no room"))
	f.workers.serve(all("2"))
	close(goOn)
	for i, s := range runs {
		run := f.waitRun(s)
		require.Equal(t, checkpoint.RunSucceeded, run.State)
		require.Equal(t, "1", run.Version, i)
		require.Equal(t, i > 0, s.Run.State == checkpoint.RunQueued, i)
	}
}

// A thread that was made without a graph gets its version from its first run.
func TestAThreadWithoutAGraphTakesAServedVersion(t *testing.T) {
	f := newVersionFixture(t, remoteSpec("2"), remoteSpec("1"))
	f.workers.serve(all("1"))
	_, err := f.engine.CreateThread(t.Context(), runtime.CreateThreadRequest{Thread: "t"})
	require.NoError(t, err)
	require.Equal(t, "1", f.startVersion())
}

// A thread that is made with a graph gets its version then, and keeps it.
func TestAThreadIsMadeWithAServedVersion(t *testing.T) {
	f := newVersionFixture(t, remoteSpec("2"), remoteSpec("1"))
	f.workers.serve(all("1"))
	for version, want := range map[string]string{"": "1", "2": "2", "1": "1"} {
		thread := "thread" + version
		head, err := f.engine.CreateThread(t.Context(), runtime.CreateThreadRequest{Thread: thread, Graph: "g", Version: version})
		require.NoError(t, err)
		require.Equal(t, want, head.Version)
		f.workers.serve(all("2"))
		require.Equal(t, want, f.startVersion(func(r *runtime.StartRequest) { r.Thread = thread }))
		f.workers.serve(all("1"))
	}
}

// A run that is repeated is the run of the first call, whatever is served now.
func TestARepeatedStartKeepsItsVersion(t *testing.T) {
	f := newVersionFixture(t, remoteSpec("2"), remoteSpec("1"))
	f.workers.serve(all("1"))
	for range 2 {
		require.Equal(t, "1", f.startVersion(func(r *runtime.StartRequest) { r.Thread, r.RequestID = "", "request" }))
		f.workers.serve(all("2"))
	}
}

// A thread that is begun without a look-up, because those before it were new, is chosen
// for like any other.
func TestOptimisticallyCreatedThreadsTakeAServedVersion(t *testing.T) {
	f := newVersionFixture(t, remoteSpec("2"), remoteSpec("1"))
	f.workers.serve(all("1"))
	for i := range 20 {
		require.Equal(t, "1", f.startVersion(func(r *runtime.StartRequest) { r.Thread = string(rune('a' + i)) }))
	}
	f.workers.serve(all("2"))
	require.Equal(t, "1", f.startVersion(func(r *runtime.StartRequest) { r.Thread, r.Concurrency = "a", runtime.EnqueueBusy }))
	require.Equal(t, "2", f.startVersion(func(r *runtime.StartRequest) { r.Thread = "z" }))
}
