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
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/testkit/hostile"
)

// countingStore is a store that counts reads, and can be unavailable.
type countingStore struct {
	checkpoint.Graphs

	sourceReads, listReads atomic.Int32
	isUnavailable          atomic.Bool
}

func (s *countingStore) GraphRecord(ctx context.Context, name, version string) (checkpoint.GraphRecord, error) {
	s.sourceReads.Add(1)
	if s.isUnavailable.Load() {
		return checkpoint.GraphRecord{}, checkpoint.ErrUnavailable
	}
	return s.Graphs.GraphRecord(ctx, name, version)
}

func (s *countingStore) GraphVersions(ctx context.Context, known uint64) ([]checkpoint.GraphRecord, uint64, error) {
	list, revision, err := s.Graphs.GraphVersions(ctx, known)
	if list != nil {
		s.listReads.Add(1)
	}
	return list, revision, err
}

func (s *countingStore) GraphRecords(context.Context) ([]checkpoint.GraphRecord, error) {
	return nil, checkpoint.ErrUnavailable
}

// countingCompiler counts compilations.
type countingCompiler struct {
	graph.Expressions

	count atomic.Int32
}

func (c *countingCompiler) Compile(source string) (graph.Program, error) {
	c.count.Add(1)
	return c.Expressions.Compile(source)
}

func TestGraphsAreReadAndCompiledWhenTheyAreUsed(t *testing.T) {
	store := &countingStore{Graphs: memory.New(memory.Options{})}
	first := openRegistry(t, store)
	for i := range 20 {
		putGraph(t, first, graphText("g", fmt.Sprint("v", i), "1"))
	}
	putGraph(t, first, wrappingGraph("outer", "v1", "g", "v3"))
	store.sourceReads.Store(0)
	store.listReads.Store(0)

	o := newOptions(t, store)
	expressions := &countingCompiler{Expressions: o.Env.Expressions}
	o.Env.Expressions = expressions
	r, err := registry.New(t.Context(), o)
	require.NoError(t, err)
	for range 50 {
		require.NoError(t, r.Refresh(t.Context()))
	}
	require.Zero(t, store.sourceReads.Load())
	require.Equal(t, int32(1), store.listReads.Load(), "nothing has changed since")
	require.Zero(t, expressions.count.Load())

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
	require.LessOrEqual(t, store.sourceReads.Load(), int32(16))
	require.Equal(t, int32(1), expressions.count.Load(), "of all who asked at the same time")

	// Another server's version is noticed, and only that version is read.
	putGraph(t, first, graphText("g", "v99", "1"))
	store.sourceReads.Store(0)
	require.NoError(t, r.Refresh(t.Context()))
	require.Zero(t, store.sourceReads.Load())
	g, err := r.Graph("g", "")
	require.NoError(t, err)
	require.Equal(t, "v99", g.Version)
	require.Equal(t, int32(1), store.sourceReads.Load())
}

func TestAGraphThatCantBeReadIsNotGone(t *testing.T) {
	store := &countingStore{Graphs: memory.New(memory.Options{})}
	putGraph(t, openRegistry(t, store), graphText("g", "v1", "1"))
	r := openRegistry(t, store)
	store.isUnavailable.Store(true)
	_, err := r.Graph("g", "v1")
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonStoreUnavailable})
	_, err = r.PutGraph(t.Context(), runtime.PutGraphRequest{Document: wrappingGraph("outer", "v1", "g", "v1")})
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonStoreUnavailable})
	store.isUnavailable.Store(false)
	_, err = r.Graph("g", "v1")
	require.NoError(t, err)
}

func TestTheNewestThatCompilesIsUsed(t *testing.T) {
	store := memory.New(memory.Options{})
	with := openRegistry(t, store, "f")
	putGraph(t, with, graphText("g", "v1", "1"))
	putGraph(t, with, "graph: g\nversion: v2\nchannels: {x: {}}\nnodes: {n: {function: {name: f}}}\nedges: [START -> n]\n")
	g, err := openRegistry(t, store).Graph("g", "")
	require.NoError(t, err)
	require.Equal(t, "v1", g.Version)
}

// A missing subgraph may be put later.
func TestABrokenGraphIsTriedAgainWhenSomethingHasChanged(t *testing.T) {
	store := memory.New(memory.Options{})
	one := openRegistry(t, store)
	putGraph(t, one, graphText("sub", "v1", "1"))
	putGraph(t, one, wrappingGraph("outer", "v1", "sub", "v1"))
	require.NoError(t, store.DeleteGraph(t.Context(), "sub", "v1", checkpoint.GraphCondition{}))
	two := openRegistry(t, store)
	for range 2 {
		_, err := two.Graph("outer", "v1")
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonGraphVersionUnavailable})
	}
	putGraph(t, two, graphText("sub", "v1", "1"))
	g, err := two.Graph("outer", "v1")
	require.NoError(t, err)
	require.NotNil(t, g.Nodes[1].Sub)
}

// Graphs come and go in a cache of two, while runs use them.
func TestDroppedGraphsLiveOnInRuns(t *testing.T) {
	for name, store := range map[string]checkpoint.Graphs{"stored": memory.New(memory.Options{}), "not stored": nil} {
		t.Run(name, func(t *testing.T) {
			o := newOptions(t, store)
			o.Limits.CacheBytes = 25_000
			r, err := registry.New(t.Context(), o)
			require.NoError(t, err)
			held := putGraph(t, r, graphText("g0", "v1", "0")).Graph
			for i := range 8 {
				putGraph(t, r, graphText(fmt.Sprint("g", i), "v1", fmt.Sprint(i)))
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

// Compiled graphs of five times the cache's size do not stay compiled for ever.
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
	o := newOptions(t, store)
	o.Limits.CacheBytes = 2 << 20
	r, err := registry.New(t.Context(), o)
	require.NoError(t, err)
	before := liveHeapBytes()
	for i := range 12 {
		putGraph(t, r, large(i))
	}
	require.Less(t, liveHeapBytes()-before, int64(8<<20), "bytes")
	for i := range 12 {
		_, err := r.Graph(fmt.Sprint("g", i), "")
		require.NoError(t, err)
	}
	require.Less(t, liveHeapBytes()-before, int64(8<<20), "bytes")
	goruntime.KeepAlive(r)
}

func liveHeapBytes() int64 {
	goruntime.GC()
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestGraphsAndVersionsAreCounted(t *testing.T) {
	o := newOptions(t, memory.New(memory.Options{}))
	o.Limits = registry.Limits{Graphs: 2, Versions: 3}
	r, err := registry.New(t.Context(), o)
	require.NoError(t, err)
	putGraph(t, r, graphText("a", "v1", "1"))
	putGraph(t, r, graphText("b", "v1", "1"))
	_, err = r.PutGraph(t.Context(), runtime.PutGraphRequest{Document: graphText("c", "v1", "1")})
	require.Equal(t, map[string]string{"limit": "max-graphs", "most": "2"}, requireRefused(t, err, runtime.ReasonTooManyGraphs).Meta)
	putGraph(t, r, graphText("b", "v2", "2"))
	putGraph(t, r, graphText("b", "v2", "2"))
	_, err = r.PutGraph(t.Context(), runtime.PutGraphRequest{Document: graphText("b", "v3", "3")})
	require.Equal(t, map[string]string{"limit": "max-graph-versions", "most": "3"}, requireRefused(t, err, runtime.ReasonTooManyGraphs).Meta)
}

func TestHostileGraphsAreRefused(t *testing.T) {
	for _, h := range hostile.Graphs() {
		t.Run(h.Name, func(t *testing.T) {
			o := newOptions(t, memory.New(memory.Options{}))
			o.Env.Limits = graph.DefaultLimits()
			r, err := registry.New(t.Context(), o)
			require.NoError(t, err)
			for _, document := range h.Documents {
				if _, err = r.PutGraph(t.Context(), runtime.PutGraphRequest{Document: document}); err != nil {
					break
				}
			}
			require.ErrorContains(t, err, h.WantError)
		})
	}
}

func TestListsArePagedAndBounded(t *testing.T) {
	store := memory.New(memory.Options{})
	first := openRegistry(t, store)
	for _, name := range []string{"c", "a", "b"} {
		putGraph(t, first, graphText(name, "v1", "1"))
	}
	r := openRegistry(t, store)
	list, more, err := r.ListGraphs(t.Context(), tenant.Default, "", 2)
	require.NoError(t, err)
	require.True(t, more)
	require.Equal(t, "b", list[1].Graph.Name)
	require.Equal(t, "b", list[1].Graph.Spec.Name)
	list, more, err = r.ListGraphs(t.Context(), tenant.Default, "b", 2)
	require.NoError(t, err)
	require.False(t, more)
	require.Len(t, list, 1)

	wide := `{"graph":"%s","version":"v1","description":"%s","channels":{"x":{}},"nodes":{"n":{"remote":{}}},"edges":["START -> n"]}`
	for i := range 8 {
		source := fmt.Sprintf(wide, fmt.Sprint("w", i), strings.Repeat("x", 1<<20))
		require.NoError(t, store.PutGraph(t.Context(), checkpoint.GraphRecord{Name: fmt.Sprint("w", i), Version: "v1", Source: source}, checkpoint.GraphCondition{}))
	}
	list, more, err = openRegistry(t, store).ListGraphs(t.Context(), tenant.Default, "", 100)
	require.NoError(t, err)
	require.True(t, more)
	require.Less(t, len(list), 10)
}
