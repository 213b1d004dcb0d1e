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
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/worker"
)

// board is a roster and signals for several servers on one store in memory.
type board struct {
	checkpoint.Store

	deaf bool // wakes get lost

	mu       sync.Mutex
	stations map[string][]checkpoint.Served
	claims   map[string]checkpoint.Claims
	changed  map[string]func()
	hear     []func(checkpoint.Signal)
}

func newBoard() *board {
	return &board{
		Store: memory.New(memory.Options{}), stations: map[string][]checkpoint.Served{}, claims: map[string]checkpoint.Claims{},
		changed: map[string]func(){},
	}
}

func (b *board) Enlist(server string, changed func()) checkpoint.Post {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changed[server] = changed
	return &post{b, server}
}

type post struct {
	board  *board
	server string
}

func (p *post) Serve(served []checkpoint.Served) {
	p.board.mu.Lock()
	defer p.board.mu.Unlock()
	if slices.Equal(p.board.stations[p.server], served) {
		return
	}
	p.board.stations[p.server] = served
	p.tellOthers()
}

func (p *post) Claim(claims checkpoint.Claims) {
	p.board.mu.Lock()
	defer p.board.mu.Unlock()
	p.board.claims[p.server] = claims
	p.tellOthers()
}

// tellOthers tells the other servers that something has changed. mu is held.
func (p *post) tellOthers() {
	for other, changed := range p.board.changed {
		if other != p.server {
			go changed()
		}
	}
}

func (p *post) Others() []checkpoint.Station {
	p.board.mu.Lock()
	defer p.board.mu.Unlock()
	var out []checkpoint.Station
	for _, name := range slices.Sorted(maps.Keys(p.board.stations)) {
		if served := p.board.stations[name]; name != p.server && len(served) > 0 {
			out = append(out, checkpoint.Station{Server: name, Serves: served, Claims: p.board.claims[name]})
		}
	}
	return out
}

func (p *post) Close() { p.Serve(nil) }

func (b *board) Tune(hear func(checkpoint.Signal)) checkpoint.Tuner {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hear = append(b.hear, hear)
	return tuner{b}
}

type tuner struct{ board *board }

func (tuner) Follow(string) func()          { return func() {} }
func (tuner) Tell(string, checkpoint.Event) {}
func (tuner) Hush(string)                   {}
func (tuner) Close()                        {}

func (t tuner) Wake(owner, thread string) {
	t.board.mu.Lock()
	defer t.board.mu.Unlock()
	if t.board.deaf {
		return
	}
	for _, hear := range t.board.hear {
		go hear(checkpoint.Signal{Thread: thread, Kind: checkpoint.SignalWake, Owner: owner})
	}
}

// town is some servers on one store, and the code of all nodes.
type town struct {
	*board

	t      *testing.T
	graphs map[string]*graph.Graph
	code   map[string]code

	mu  sync.Mutex
	ran []string // "node@server", as they ended
}

// code is what a node does, in a worker or in a server.
type code func(ctx context.Context, at *server, task *runtime.Task, token string) pregel.Result

// server is a hub with its engine.
type server struct {
	*runtime.Engine

	name string
	hub  *worker.Hub
	town *town
}

func newTown(t *testing.T) *town {
	t.Helper()
	return &town{t: t, board: newBoard(), graphs: map[string]*graph.Graph{}, code: map[string]code{}}
}

func (w *town) Graph(name, _ string) (*graph.Graph, error) {
	g, ok := w.graphs[name]
	if !ok {
		return nil, runtime.Errorf(runtime.ReasonGraphNotFound, "no graph %q", name)
	}
	return g, nil
}

// way is how one server reaches the store.
type way struct {
	checkpoint.Store
	checkpoint.Roster
	checkpoint.Signals
}

func (w *town) server(name string) *server { return w.serverOn(name, w.board, w) }

func (w *town) serverOn(name string, store checkpoint.Store, graphs runtime.Graphs) *server {
	return w.serverWith(name, store, graphs, runtime.Options{})
}

func (w *town) serverWith(name string, store checkpoint.Store, graphs runtime.Graphs, opts runtime.Options) *server {
	s := &server{name: name, town: w, hub: worker.New(worker.Options{Key: []byte("k"), Losses: 1000})}
	opts.Owner, opts.Workers, opts.Poll = name, s.hub, 100*time.Millisecond
	s.Engine = runtime.New(w.t.Context(), store, graphs, s, nil, opts)
	w.t.Cleanup(func() {
		s.hub.Close()
		s.Close()
	})
	return s
}

// Execute runs functions here, and everything else in workers.
func (s *server) Execute(ctx context.Context, t *runtime.Task) pregel.Result {
	if t.Node != nil && t.Node.Kind != graph.KindRemote {
		return s.town.run(ctx, s, t, "")
	}
	return s.hub.Execute(ctx, t)
}

func (w *town) run(ctx context.Context, s *server, t *runtime.Task, token string) pregel.Result {
	r := pregel.Result{Update: payload.JSON(fmt.Sprintf(`{"log":[%q]}`, t.Node.Name))}
	if do := w.code[t.Node.Name]; do != nil {
		r = do(ctx, s, t, token)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ran = append(w.ran, t.Node.Name+"@"+s.name)
	return r
}

// attach connects a worker for nodes of graph g to a server until leave is
// called.
func (s *server) attach(name string, nodes ...string) (leave func()) {
	return s.attachTo(name, "g", nodes...)
}

func (s *server) attachTo(name, graph string, nodes ...string) (leave func()) {
	h := worker.Hello{Worker: name, Credit: worker.Credit{Total: 10}, Compares: true}
	for _, n := range nodes {
		h.Serves = append(h.Serves, worker.Served{Graph: graph, Node: n})
	}
	session, _, err := s.hub.Open(h)
	require.NoError(s.town.t, err)
	ctx, cancel := context.WithCancel(s.town.t.Context())
	var all sync.WaitGroup
	var held sync.Map
	all.Go(func() {
		for {
			m, err := session.Next(ctx)
			if err != nil {
				return
			}
			a, ok := m.(worker.Assignment)
			if !ok {
				continue
			}
			session.Emit(a.Token, nil, 0) // it has begun
			held.Store(a.Token, nil)
			all.Go(func() {
				defer held.Delete(a.Token)
				r := s.town.run(ctx, s, a.Task, a.Token)
				if ctx.Err() == nil {
					_, _ = s.hub.Complete(ctx, worker.Completion{Token: a.Token, Result: r})
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
				session.Beat(n, tokens)
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
	s.town.t.Cleanup(leave)
	return leave
}

// compile makes graph g of nodes in a line, some of them side by side. Those of
// upper case are functions of the server.
func (w *town) compile(steps ...[]string) {
	w.t.Helper()
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
	require.NoError(w.t, err)
	w.graphs["g"] = g
}

func (s *server) begin(thread string) checkpoint.Run {
	s.town.t.Helper()
	started, err := s.Start(s.town.t.Context(), runtime.StartRequest{
		Thread: thread, CreateThread: true, Graph: "g", Request: checkpoint.RunRequest{Input: `{"log":[]}`},
	})
	require.NoError(s.town.t, err)
	return started.Run
}

// ends waits until a run has stopped, and for the events of its thread, which
// must come without a gap or a repetition.
func (s *server) ends(run checkpoint.Run, want checkpoint.RunState) checkpoint.Run {
	s.town.t.Helper()
	ctx, cancel := context.WithTimeout(s.town.t.Context(), 10*time.Minute)
	defer cancel()
	r, err := s.WaitRun(ctx, run.Thread, run.ID)
	require.NoError(s.town.t, err)
	require.Equal(s.town.t, want, r.State, "%v", r.Failure)
	f := s.Follow(runtime.FollowRequest{Thread: run.Thread})
	defer f.Close()
	for last := uint64(0); last < r.LastEvent; {
		events, err := f.Next(ctx)
		require.NoError(s.town.t, err)
		for _, e := range events {
			if !e.Ephemeral {
				require.Equal(s.town.t, last+1, e.Seq)
				last = e.Seq
			}
		}
	}
	return r
}

func (w *town) head(thread string) checkpoint.Head {
	w.t.Helper()
	h, err := w.Head(w.t.Context(), thread)
	require.NoError(w.t, err)
	return h
}

// took says where nodes ran.
func (w *town) took() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.ran)
}
