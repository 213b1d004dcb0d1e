package redis_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint/checkpointtest"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
)

func openStore(tb testing.TB, url string) *redis.Store {
	tb.Helper()
	s, err := redis.Open(tb.Context(), redis.Options{URL: url, Tombstones: checkpointtest.Tombstones})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, s.Close()) })
	return s
}
