package graphfile_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/expr"
	"github.com/graphd-dev/graphd/internal/graph/graphfile"
	"github.com/graphd-dev/graphd/internal/schema"
	"github.com/graphd-dev/graphd/internal/testkit/hostile"
)

func TestHostileGraphs(t *testing.T) {
	for _, h := range hostile.Graphs() {
		t.Run(h.Name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := compileInOrder(t, h.Documents)
			runtime.ReadMemStats(&after)
			require.ErrorContains(t, err, h.WantError)
			require.Less(t, len(err.Error()), 128<<10)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(400<<20), "bytes")
		})
	}
}

// compileInOrder compiles documents that may use those before them, and
// returns the first error.
func compileInOrder(t *testing.T, documents []string) error {
	t.Helper()
	compiler, err := expr.New(expr.Options{})
	require.NoError(t, err)
	checker := schema.New(schema.Limits{})
	known := make(map[string]*graph.Graph)
	env := graph.Env{
		Expressions: compiler, CheckSchema: checker.CheckSchema, CheckValue: checker.CheckValue, Limits: graph.DefaultLimits(),
		Lookup: func(name, _ string) (*graph.Graph, bool) {
			g, ok := known[name]
			return g, ok
		},
	}
	for _, document := range documents {
		name := "g.yaml"
		if document[0] == '{' || document[0] == '[' {
			name = "g.json"
		}
		spec, positions, err := graphfile.Parse(name, []byte(document))
		if spec == nil {
			return err
		}
		g, err := graphfile.File{Path: name, Spec: spec, Positions: positions, Err: err}.Compile(env)
		if err != nil {
			return err
		}
		known[g.Name] = g
	}
	return nil
}

// What a cache counts must be about what is taken.
func TestFootprint(t *testing.T) {
	var document strings.Builder
	document.WriteString(`{"graph":"g","version":"v1","channels":{"x":{}},"nodes":{`)
	for i := range 300 {
		fmt.Fprintf(&document, `"n%d":{"expr":{"update":{"x":"[state.x, %d, 'some text'].size()"},"goto":"'n%d'"}},`, i, i, i+1)
	}
	document.WriteString(`"n300":{"remote":{}}},"edges":["START -> n0"]}`)
	compiler, err := expr.New(expr.Options{})
	require.NoError(t, err)
	_, err = compiler.Compile("1") // what is shared
	require.NoError(t, err)
	before := liveHeapBytes()
	spec, _, err := graphfile.Parse("g.json", []byte(document.String()))
	require.NoError(t, err)
	g, err := graph.Compile(spec, graph.Env{Expressions: compiler})
	require.NoError(t, err)
	taken := liveHeapBytes() - before
	counted := g.Footprint(document.Len())
	require.Greater(t, counted*5/4, taken)
	require.Less(t, counted, 10*taken)
	runtime.KeepAlive(g)
}

func liveHeapBytes() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// Without limits, as for what is stored, nested graphs cost what each of them
// costs.
func TestNestedGraphsAreNotWalkedThrough(t *testing.T) {
	known := make(map[string]*graph.Graph)
	for _, h := range hostile.Graphs()[:1] {
		for _, document := range h.Documents {
			spec, _, err := graphfile.Parse("g.json", []byte(document))
			require.NoError(t, err)
			g, err := graph.Compile(spec, graph.Env{Lookup: func(name, _ string) (*graph.Graph, bool) {
				g, ok := known[name]
				return g, ok
			}})
			require.NoError(t, err)
			known[g.Name] = g
		}
	}
	top := known["tower40"]
	require.Equal(t, 41, top.Depth)
	require.Equal(t, 1<<30, top.Expanded)
}
