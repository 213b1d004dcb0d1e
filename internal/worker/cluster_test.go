package worker_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/worker"
	"github.com/graphd-dev/graphd/internal/worker/message"
)

// sharedStore is a store in memory with membership and notifier for several
// servers.
type sharedStore struct {
	checkpoint.Store

	losesWakes bool // wakes get lost

	mu           sync.Mutex
	capabilities map[string][]checkpoint.Capability
	claims       map[string]checkpoint.Claims
	onChange     map[string]func()
	subscribers  []func(checkpoint.Signal)
}

func newSharedStore() *sharedStore {
	return &sharedStore{
		Store: memory.New(memory.Options{}), capabilities: map[string][]checkpoint.Capability{}, claims: map[string]checkpoint.Claims{},
		onChange: map[string]func(){},
	}
}

func (s *sharedStore) Register(server string, changed func()) checkpoint.Registration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onChange[server] = changed
	return &registration{s, server}
}

type registration struct {
	store  *sharedStore
	server string
}

func (r *registration) SetCapabilities(served []checkpoint.Capability) {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	if slices.Equal(r.store.capabilities[r.server], served) {
		return
	}
	r.store.capabilities[r.server] = served
	r.notifyOthers()
}

func (r *registration) SetClaims(claims checkpoint.Claims) {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	r.store.claims[r.server] = claims
	r.notifyOthers()
}

// notifyOthers tells the other servers that something has changed. mu is held.
func (r *registration) notifyOthers() {
	for other, changed := range r.store.onChange {
		if other != r.server {
			go changed()
		}
	}
}

func (r *registration) OtherMembers() []checkpoint.Member {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	var out []checkpoint.Member
	for _, name := range slices.Sorted(maps.Keys(r.store.capabilities)) {
		if served := r.store.capabilities[name]; name != r.server && len(served) > 0 {
			out = append(out, checkpoint.Member{Server: name, Capabilities: served, Claims: r.store.claims[name]})
		}
	}
	return out
}

func (r *registration) Close() { r.SetCapabilities(nil) }

func (s *sharedStore) Subscribe(hear func(checkpoint.Signal)) checkpoint.Subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscribers = append(s.subscribers, hear)
	return subscription{s}
}

type subscription struct{ store *sharedStore }

func (subscription) Follow(string) func() { return func() {} }

func (subscription) PublishEphemeral(string, checkpoint.Event) {}

func (subscription) StopPublishing(string) {}

func (subscription) Close() {}

func (s subscription) WakeServers(owner, thread string) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if s.store.losesWakes {
		return
	}
	for _, hear := range s.store.subscribers {
		go hear(checkpoint.Signal{Thread: thread, Kind: checkpoint.SignalWake, Owner: owner})
	}
}

// testCluster is some servers on one store, and the code of all nodes.
type testCluster struct {
	*sharedStore

	t        *testing.T
	graphs   map[string]*graph.Graph
	nodeCode map[string]nodeFunc

	mu         sync.Mutex
	executions []string // "node@server", as they ended
}

// nodeFunc is what a node does, in a worker or in a server.
type nodeFunc func(ctx context.Context, at *testServer, task *runtime.Task, token string) pregel.Result

// testServer is a hub with its engine.
type testServer struct {
	*engine.Engine

	name    string
	hub     *worker.Hub
	cluster *testCluster
}

func newTestCluster(t *testing.T) *testCluster {
	t.Helper()
	return &testCluster{t: t, sharedStore: newSharedStore(), graphs: map[string]*graph.Graph{}, nodeCode: map[string]nodeFunc{}}
}

func (c *testCluster) Graph(name, _ string) (*graph.Graph, error) {
	g, ok := c.graphs[name]
	if !ok {
		return nil, runtime.Errorf(runtime.ReasonGraphNotFound, "no graph %q", name)
	}
	return g, nil
}

// Versions lists the only version of a graph.
func (c *testCluster) Versions(name string, _ int) []string {
	if g := c.graphs[name]; g != nil {
		return []string{g.Version}
	}
	return nil
}

// serverStore is how one server reaches the store.
type serverStore struct {
	checkpoint.Store
	checkpoint.Membership
	checkpoint.Notifier
}

func (c *testCluster) startServer(name string) *testServer {
	return c.startServerOn(name, c.sharedStore, c)
}

func (c *testCluster) startServerOn(name string, store checkpoint.Store, graphs runtime.Graphs) *testServer {
	return c.startServerWith(name, store, graphs, engine.Options{})
}

func (c *testCluster) startServerWith(name string, store checkpoint.Store, graphs runtime.Graphs, opts engine.Options) *testServer {
	s := &testServer{name: name, cluster: c, hub: worker.New(worker.Options{Key: []byte("k"), MaxLosses: 1000})}
	opts.Owner, opts.Workers, opts.PollInterval = name, s.hub, 100*time.Millisecond
	s.Engine = engine.New(c.t.Context(), store, graphs, s, nil, opts)
	c.t.Cleanup(func() {
		s.hub.Close()
		s.Close()
	})
	return s
}

// Execute runs functions here, and everything else in workers.
func (s *testServer) Execute(ctx context.Context, t *runtime.Task) pregel.Result {
	if t.Node != nil && t.Node.Kind != graph.KindRemote {
		return s.cluster.runNode(ctx, s, t, "")
	}
	return s.hub.Execute(ctx, t)
}

func (c *testCluster) runNode(ctx context.Context, s *testServer, t *runtime.Task, token string) pregel.Result {
	r := pregel.Result{Update: payload.JSON(fmt.Sprintf(`{"log":[%q]}`, t.Node.Name))}
	if do := c.nodeCode[t.Node.Name]; do != nil {
		r = do(ctx, s, t, token)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.executions = append(c.executions, t.Node.Name+"@"+s.name)
	return r
}

// attachWorker connects a worker for nodes of graph g to a server until leave is
// called.
func (s *testServer) attachWorker(name string, nodes ...string) (leave func()) {
	return s.attachWorkerOf(name, "g", nodes...)
}

func (s *testServer) attachWorkerOf(name, graph string, nodes ...string) (leave func()) {
	h := message.Hello{Worker: name, Credit: message.Credit{Total: 10}, ComparesAnswers: true}
	for _, n := range nodes {
		h.Capabilities = append(h.Capabilities, message.Capability{Graph: graph, Node: n})
	}
	session, _, err := s.hub.OpenSession(h)
	require.NoError(s.cluster.t, err)
	ctx, cancel := context.WithCancel(s.cluster.t.Context())
	var all sync.WaitGroup
	var held sync.Map
	all.Go(func() {
		for {
			m, err := session.NextMessage(ctx)
			if err != nil {
				return
			}
			a, ok := m.(message.Assignment)
			if !ok {
				continue
			}
			session.HandleEvents(a.Token, nil, 0) // it has begun
			held.Store(a.Token, nil)
			all.Go(func() {
				defer held.Delete(a.Token)
				r := s.cluster.runNode(ctx, s, a.Task, a.Token)
				if ctx.Err() == nil {
					_, _ = s.hub.CompleteTask(ctx, message.Completion{Token: a.Token, Result: r})
				}
			})
		}
	})
	var beat sync.WaitGroup
	beat.Go(func() {
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for n := uint64(1); ; n++ {
			select {
			case <-tick.C:
				var tokens []string
				held.Range(func(token, _ any) bool {
					tokens = append(tokens, fmt.Sprint(token))
					return true
				})
				session.HandleHeartbeat(n, tokens)
			case <-ctx.Done():
				return
			}
		}
	})
	leave = sync.OnceFunc(func() {
		cancel()
		all.Wait()
		beat.Wait()
		session.Close()
	})
	s.cluster.t.Cleanup(leave)
	return leave
}

// compileGraph makes graph g of nodes in a line, some of them side by side. Those of
// upper case are functions of the server.
func (c *testCluster) compileGraph(steps ...[]string) {
	c.t.Helper()
	s := &graph.Spec{Name: "g", Version: "1", Channels: []graph.ChannelSpec{{Name: "log", Reducer: "append"}}}
	from := []string{graph.Start}
	for _, step := range steps {
		for _, n := range step {
			spec := graph.NodeSpec{Name: n, Remote: &graph.RemoteSpec{}}
			if n[0] < 'a' {
				spec = graph.NodeSpec{Name: n, Function: &graph.FunctionSpec{}}
			}
			s.Nodes = append(s.Nodes, spec)
			s.Edges = append(s.Edges, graph.EdgeSpec{From: from, To: n})
		}
		from = step
	}
	s.Edges = append(s.Edges, graph.EdgeSpec{From: from, To: graph.End})
	g, err := graph.Compile(s, graph.Env{})
	require.NoError(c.t, err)
	c.graphs["g"] = g
}

func (s *testServer) startRun(thread string) checkpoint.Run {
	s.cluster.t.Helper()
	started, err := s.Start(s.cluster.t.Context(), runtime.StartRequest{
		Thread: thread, CreateThread: true, Graph: "g", Request: checkpoint.RunRequest{Input: `{"log":[]}`},
	})
	require.NoError(s.cluster.t, err)
	return started.Run
}

// waitForRun waits until a run has stopped, and for the events of its thread, which
// must come without a gap or a repetition.
func (s *testServer) waitForRun(run checkpoint.Run, want checkpoint.RunState) checkpoint.Run {
	s.cluster.t.Helper()
	ctx, cancel := context.WithTimeout(s.cluster.t.Context(), 10*time.Minute)
	defer cancel()
	r, err := s.WaitRun(ctx, run.Thread, run.ID)
	require.NoError(s.cluster.t, err)
	require.Equal(s.cluster.t, want, r.State, "%v", r.Failure)
	f := s.Follow(runtime.FollowRequest{Thread: run.Thread})
	defer f.Close()
	for last := uint64(0); last < r.LastEvent; {
		events, err := f.Next(ctx)
		require.NoError(s.cluster.t, err)
		for _, e := range events {
			if !e.Ephemeral {
				require.Equal(s.cluster.t, last+1, e.Seq)
				last = e.Seq
			}
		}
	}
	return r
}

func (c *testCluster) readHead(thread string) checkpoint.Head {
	c.t.Helper()
	h, err := c.Head(c.t.Context(), thread)
	require.NoError(c.t, err)
	return h
}

// listExecutions lists where nodes ran.
func (c *testCluster) listExecutions() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.executions)
}
