package redis_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
)

// A graphd of an earlier format has put graphs without an index.
func TestGraphsWithoutAnIndexAreListed(t *testing.T) {
	server := redistest.Start(t)
	s := openStore(t, server.URL(""))
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	old := []checkpoint.GraphRecord{{Name: "g", Version: "1", Source: "1", Created: day}, {Name: "g", Version: "2", Source: "2", Created: day.Add(1)}}
	for _, g := range old {
		require.NoError(t, s.PutGraph(t.Context(), g, checkpoint.GraphCondition{}))
	}
	require.NoError(t, server.Client.Del(t.Context(), "graphd{meta}:graphs:index").Err())
	list, revision, err := s.GraphVersions(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, uint64(1), revision)
	for i := range old {
		old[i].Source = ""
	}
	require.Equal(t, old, list)

	require.NoError(t, s.DeleteGraph(t.Context(), "g", "1", checkpoint.GraphCondition{}))
	list, revision, err = s.GraphVersions(t.Context(), revision)
	require.NoError(t, err)
	require.Equal(t, uint64(2), revision)
	require.Equal(t, old[1:], list)
}
