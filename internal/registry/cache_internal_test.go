package registry

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/graph"
)

// A graph whose source is in the store keeps its size when it is taken back.
func TestAGraphThatIsTakenBackCountsInFull(t *testing.T) {
	r := &Registry{versionLoader: &versionLoader{cache: newCompiledCache(100_000)}}
	held := &graph.Graph{Name: "g", Version: "v1", Spec: &graph.Spec{}}
	one, two := &graphVersion{versionID: versionID{"g", "v1"}}, &graphVersion{versionID: versionID{"g", "v2"}}
	r.cache.putCompiled(one, held, 80_000)
	r.cache.putCompiled(two, &graph.Graph{}, 80_000)
	require.Nil(t, r.cache.getCompiled(one), "it made room")
	g, err := r.compileVersion(one, nil)
	require.NoError(t, err)
	require.Same(t, held, g)
	require.Equal(t, 80_000, one.compiled.Load().bytes)
	require.Nil(t, r.cache.getCompiled(two), "it makes room in turn")
}
