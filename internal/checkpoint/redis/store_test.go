package redis_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint/checkpointtest"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
)

func openStore(tb testing.TB, url string) *redis.Store {
	tb.Helper()
	s, err := redis.Open(tb.Context(), redis.Options{URL: url, Tombstones: checkpointtest.Tombstones})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, s.Close()) })
	return s
}

func TestContract(t *testing.T) {
	runContract(t, redistest.Start(t))
}

// runContract runs the suite on one server, each case under keys of its own.
func runContract(t *testing.T, server *redistest.Server) {
	t.Helper()
	var n atomic.Int32
	checkpointtest.Run(t, func(t *testing.T, _ func() time.Time) checkpointtest.Store {
		t.Helper()
		return openStore(t, server.URL(fmt.Sprintf("shared=true&prefix=case%d", n.Add(1))))
	}, checkpointtest.OwnClock())
}
