package registry

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/graph"
)

// What the store has the source of is as large when it is taken back.
func TestAGraphThatIsTakenBackCountsInFull(t *testing.T) {
	r := &Registry{cache: newCache(100_000)}
	held := &graph.Graph{Name: "g", Version: "v1", Spec: &graph.Spec{}}
	one, two := &entry{identity: identity{"g", "v1"}}, &entry{identity: identity{"g", "v2"}}
	r.cache.put(one, held, 80_000)
	r.cache.put(two, &graph.Graph{}, 80_000)
	require.Nil(t, r.cache.get(one), "it made room")
	g, err := r.make(one, nil)
	require.NoError(t, err)
	require.Same(t, held, g)
	require.Equal(t, 80_000, one.loaded.Load().bytes)
	require.Nil(t, r.cache.get(two), "it makes room in turn")
}
