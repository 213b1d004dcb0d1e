package registry_test

import (
	"context"
	"fmt"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/registry"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/testkit/hostile"
)

// counted is a store that counts what is read, and can be away.
type counted struct {
	checkpoint.Graphs

	sources, lists atomic.Int32
	away           atomic.Bool
}

func (s *counted) GraphRecord(ctx context.Context, name, version string) (checkpoint.GraphRecord, error) {
	s.sources.Add(1)
	if s.away.Load() {
		return checkpoint.GraphRecord{}, checkpoint.ErrUnavailable
	}
	return s.Graphs.GraphRecord(ctx, name, version)
}

func (s *counted) GraphVersions(ctx context.Context, known uint64) ([]checkpoint.GraphRecord, uint64, error) {
	list, revision, err := s.Graphs.GraphVersions(ctx, known)
	if list != nil {
		s.lists.Add(1)
	}
	return list, revision, err
}

func (s *counted) GraphRecords(context.Context) ([]checkpoint.GraphRecord, error) {
	return nil, checkpoint.ErrUnavailable
}

// compiled counts what is compiled.
type compiled struct {
	graph.Expressions

	n atomic.Int32
}

func (c *compiled) Compile(source string) (graph.Program, error) {
	c.n.Add(1)
	return c.Expressions.Compile(source)
}

func TestGraphsAreReadAndCompiledWhenTheyAreUsed(t *testing.T) {
	store := &counted{Graphs: memory.New(memory.Options{})}
	first := open(t, store)
	for i := range 20 {
		put(t, first, text("g", fmt.Sprint("v", i), "1"))
	}
	put(t, first, around("outer", "v1", "g", "v3"))
	store.sources.Store(0)
	store.lists.Store(0)

	o := options(t, store)
	expressions := &compiled{Expressions: o.Env.Expressions}
	o.Env.Expressions = expressions
	r, err := registry.New(t.Context(), o)
	require.NoError(t, err)
	for range 50 {
		require.NoError(t, r.Refresh(t.Context()))
	}
	require.Zero(t, store.sources.Load())
	require.Equal(t, int32(1), store.lists.Load(), "nothing has changed since")
	require.Zero(t, expressions.n.Load())

	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			g, err := r.Graph("outer", "")
			if err != nil || g.Nodes[1].Sub.Version != "v3" {
				t.Error(err)
			}
		})
	}
	group.Wait()
	require.LessOrEqual(t, store.sources.Load(), int32(16))
	require.Equal(t, int32(1), expressions.n.Load(), "of all who asked at the same time")

	// Another server's version is noticed, and only that one is read.
	put(t, first, text("g", "v99", "1"))
	store.sources.Store(0)
	require.NoError(t, r.Refresh(t.Context()))
	require.Zero(t, store.sources.Load())
	g, err := r.Graph("g", "")
	require.NoError(t, err)
	require.Equal(t, "v99", g.Version)
	require.Equal(t, int32(1), store.sources.Load())
}

func TestAGraphThatCantBeReadIsNotGone(t *testing.T) {
	store := &counted{Graphs: memory.New(memory.Options{})}
	put(t, open(t, store), text("g", "v1", "1"))
	r := open(t, store)
	store.away.Store(true)
	_, err := r.Graph("g", "v1")
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonStoreUnavailable})
	_, err = r.PutGraph(t.Context(), runtime.GraphPut{Document: around("outer", "v1", "g", "v1")})
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonStoreUnavailable})
	store.away.Store(false)
	_, err = r.Graph("g", "v1")
	require.NoError(t, err)
}

func TestTheNewestThatCompilesIsUsed(t *testing.T) {
	store := memory.New(memory.Options{})
	with := open(t, store, "f")
	put(t, with, text("g", "v1", "1"))
	put(t, with, "graph: g\nversion: v2\nchannels: {x: {}}\nnodes: {n: {function: {name: f}}}\nedges: [START -> n]\n")
	g, err := open(t, store).Graph("g", "")
	require.NoError(t, err)
	require.Equal(t, "v1", g.Version)
}

// What a subgraph lacked may be put later.
func TestABrokenGraphIsTriedAgainWhenSomethingHasChanged(t *testing.T) {
	store := memory.New(memory.Options{})
	one := open(t, store)
	put(t, one, text("sub", "v1", "1"))
	put(t, one, around("outer", "v1", "sub", "v1"))
	require.NoError(t, store.DeleteGraph(t.Context(), "sub", "v1"))
	two := open(t, store)
	for range 2 {
		_, err := two.Graph("outer", "v1")
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonGraphVersionUnavailable})
	}
	put(t, two, text("sub", "v1", "1"))
	g, err := two.Graph("outer", "v1")
	require.NoError(t, err)
	require.NotNil(t, g.Nodes[1].Sub)
}

// Graphs come and go in a cache that has room for two, while runs use them.
func TestDroppedGraphsLiveOnInRuns(t *testing.T) {
	for name, store := range map[string]checkpoint.Graphs{"stored": memory.New(memory.Options{}), "not stored": nil} {
		t.Run(name, func(t *testing.T) {
			o := options(t, store)
			o.Limits.CacheBytes = 25_000
			r, err := registry.New(t.Context(), o)
			require.NoError(t, err)
			held := put(t, r, text("g0", "v1", "0")).Graph
			for i := range 8 {
				put(t, r, text(fmt.Sprint("g", i), "v1", fmt.Sprint(i)))
			}
			again, err := r.Graph("g0", "")
			require.NoError(t, err)
			require.Same(t, held, again, "what a run holds is not compiled again")
			goruntime.KeepAlive(held)

			var group sync.WaitGroup
			for worker := range 4 {
				group.Go(func() {
					for i := range 100 {
						n := (worker + i) % 8
						g, err := r.Graph(fmt.Sprint("g", n), "")
						if err != nil {
							t.Error(err)
							return
						}
						value, err := g.Nodes[1].Update[0].Eval(graph.Vars{})
						if err != nil || value != payload.JSON(fmt.Sprint(n)) {
							t.Errorf("%s: %v", value, err)
						}
					}
				})
			}
			group.Wait()
		})
	}
}

// Five times what one call could hold would once have stayed compiled for ever.
func TestCompiledGraphsHaveASize(t *testing.T) {
	store := memory.New(memory.Options{})
	large := func(i int) string {
		var b strings.Builder
		fmt.Fprintf(&b, `{"graph":"g%d","version":"v1","channels":{"x":{}},"nodes":{`, i)
		for n := range 150 {
			fmt.Fprintf(&b, `"n%d":{"expr":{"update":{"x":"[state.x, %d, 'some text']"}}},`, n, n)
		}
		b.WriteString(`"last":{"remote":{}}},"edges":["START -> n0"`)
		for n := range 149 {
			fmt.Fprintf(&b, `,"n%d -> n%d"`, n, n+1)
		}
		b.WriteString(`,"n149 -> last"]}`)
		return b.String()
	}
	o := options(t, store)
	o.Limits.CacheBytes = 2 << 20
	r, err := registry.New(t.Context(), o)
	require.NoError(t, err)
	before := live()
	for i := range 12 {
		put(t, r, large(i))
	}
	require.Less(t, live()-before, int64(8<<20), "bytes")
	for i := range 12 {
		_, err := r.Graph(fmt.Sprint("g", i), "")
		require.NoError(t, err)
	}
	require.Less(t, live()-before, int64(8<<20), "bytes")
	goruntime.KeepAlive(r)
}

func live() int64 {
	goruntime.GC()
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestGraphsAndVersionsAreCounted(t *testing.T) {
	o := options(t, memory.New(memory.Options{}))
	o.Limits = registry.Limits{Graphs: 2, Versions: 3}
	r, err := registry.New(t.Context(), o)
	require.NoError(t, err)
	put(t, r, text("a", "v1", "1"))
	put(t, r, text("b", "v1", "1"))
	_, err = r.PutGraph(t.Context(), runtime.GraphPut{Document: text("c", "v1", "1")})
	require.Equal(t, map[string]string{"limit": "max-graphs", "most": "2"}, refused(t, err, runtime.ReasonTooManyGraphs).Meta)
	put(t, r, text("b", "v2", "2"))
	put(t, r, text("b", "v2", "2"))
	_, err = r.PutGraph(t.Context(), runtime.GraphPut{Document: text("b", "v3", "3")})
	require.Equal(t, map[string]string{"limit": "max-graph-versions", "most": "3"}, refused(t, err, runtime.ReasonTooManyGraphs).Meta)
}

func TestHostileGraphsAreRefused(t *testing.T) {
	for _, h := range hostile.Graphs() {
		t.Run(h.Name, func(t *testing.T) {
			o := options(t, memory.New(memory.Options{}))
			o.Env.Limits = graph.DefaultLimits()
			r, err := registry.New(t.Context(), o)
			require.NoError(t, err)
			for _, document := range h.Documents {
				if _, err = r.PutGraph(t.Context(), runtime.GraphPut{Document: document}); err != nil {
					break
				}
			}
			require.ErrorContains(t, err, h.Says)
		})
	}
}

func TestListsArePagedAndBounded(t *testing.T) {
	store := memory.New(memory.Options{})
	first := open(t, store)
	for _, name := range []string{"c", "a", "b"} {
		put(t, first, text(name, "v1", "1"))
	}
	r := open(t, store)
	list, more, err := r.ListGraphs(t.Context(), "", 2)
	require.NoError(t, err)
	require.True(t, more)
	require.Equal(t, "b", list[1].Graph.Name)
	require.Equal(t, "b", list[1].Graph.Spec.Name)
	list, more, err = r.ListGraphs(t.Context(), "b", 2)
	require.NoError(t, err)
	require.False(t, more)
	require.Len(t, list, 1)

	wide := `{"graph":"%s","version":"v1","description":"%s","channels":{"x":{}},"nodes":{"n":{"remote":{}}},"edges":["START -> n"]}`
	for i := range 8 {
		source := fmt.Sprintf(wide, fmt.Sprint("w", i), strings.Repeat("x", 1<<20))
		require.NoError(t, store.PutGraph(t.Context(), checkpoint.GraphRecord{Name: fmt.Sprint("w", i), Version: "v1", Source: source}))
	}
	list, more, err = open(t, store).ListGraphs(t.Context(), "", 100)
	require.NoError(t, err)
	require.True(t, more)
	require.Less(t, len(list), 10)
}
