package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
)

// TestCrashOnRedis plays the dramas over a Redis server, in real time since
// the server's clock is its own, with each fault at some of the calls. Their
// story must be the one that the memory store tells.
func TestCrashOnRedis(t *testing.T) {
	server := redistest.Start(t)
	for i, d := range crashCases() {
		if slices.Contains([]string{
			"side by side", "an error handler", "a subgraph", "a persistent subgraph, twice",
			"a subgraph that is not kept", "answered while a sibling runs", "a replay", "drained in a superstep that asks",
		}, d.name) {
			continue // a node takes seconds, and time is real here
		}
		if d.name == "a question that nobody answers" {
			d.isTimingDependent = true // a new process may find the question expired before the run pauses
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			want, calls := d.runInBubble(t, openMemory, 0, faultRefused)
			points := 0
			for j, m := range faultModes {
				for at := int64(i*5+j*11) % 61; at <= calls; at += 122 {
					s, err := redis.Open(t.Context(), redis.Options{
						URL: server.URL(fmt.Sprintf("shared=true&prefix=d%d-%d-%d", i, j, at)),
					})
					require.NoError(t, err)
					require.Equal(t, want, d.runInRealTime(t, guardTrails(t, s), at, m), "call %d of %d: %s", at, calls, m)
					require.NoError(t, s.Close())
					points++
				}
			}
			require.NotZero(t, points)
		})
	}
}

// runInRealTime does the work of runInBubble for a store whose time is real.
func (cc *crashCase) runInRealTime(t *testing.T, store checkpoint.Store, at int64, m faultMode) threadSummary {
	t.Helper()
	c := newCluster(t, store, at, m)
	// An answer that is taken back must not take effect before, on a busy machine after a crash either.
	c.times = clusterTimes{retry: 200 * time.Millisecond, undo: 200 * time.Millisecond, slip: 3 * time.Second, step: 100 * time.Millisecond}
	c.opts.LeaseTTL, c.opts.ScanInterval, c.opts.PollInterval = 400*time.Millisecond, 50*time.Millisecond, 20*time.Millisecond
	c.opts.StoreTimeout = 300 * time.Millisecond
	s, _ := cc.runOn(c)
	return s
}
