package registry_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/runtime"
)

func TestVersionsAreListedNewestFirst(t *testing.T) {
	r := openRegistry(t, memory.New(memory.Options{}))
	require.Empty(t, r.Versions("g", 10))
	for _, version := range []string{"b", "a", "c"} {
		putGraph(t, r, graphText("g", version, "1"))
	}
	putGraph(t, r, graphText("other", "d", "1"))
	name := putGraph(t, r, graphText("g", "a", "1")).Graph.Name
	require.Equal(t, []string{"c", "a", "b"}, r.Versions(name, 10), "putting a version again changes nothing")
	require.Equal(t, []string{"c", "a"}, r.Versions(name, 2))
	require.Empty(t, r.Versions(name, 0))
	_, err := r.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: name, Version: "c"})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, r.Versions(name, 10))
}

// A version that another server has stored is listed whether it compiles here or not.
func TestVersionsThatDoNotCompileAreListed(t *testing.T) {
	store := memory.New(memory.Options{})
	there := openRegistry(t, store, "f")
	name := putGraph(t, there, graphText("g", "1", "1")).Graph.Name
	putGraph(t, there, "graph: g\nversion: '2'\nchannels: {x: {}}\nnodes:\n  n: {function: f}\nedges: [START -> n]\n")
	here := openRegistry(t, store)
	g, err := here.Graph(name, "")
	require.NoError(t, err)
	require.Equal(t, "1", g.Version)
	require.Equal(t, []string{"2", "1"}, here.Versions(name, 10))
}

// Where a file goes back to an earlier version, that one is the newest, and a version that
// was put after it is none of the older ones.
func TestVersionsPutAfterTheNewestAreNotListed(t *testing.T) {
	r := openRegistry(t, memory.New(memory.Options{}))
	dir := t.TempDir()
	file := filepath.Join(dir, "g.yaml")
	load := func(version string) {
		require.NoError(t, os.WriteFile(file, []byte(graphText("g", version, "1")), 0o600))
		_, err := r.LoadDir(t.Context(), dir)
		require.NoError(t, err)
	}
	for _, version := range []string{"1", "2", "3"} {
		load(version)
	}
	load("2")
	name := putGraph(t, r, graphText("g", "1", "1")).Graph.Name
	require.Equal(t, []string{"2", "1"}, r.Versions(name, 10))
}
