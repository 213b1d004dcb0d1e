package redis_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/payload"
)

// BenchmarkCostInRedis reports the processor time that Redis takes for the calls of
// the simulator (internal/sim/costs.go), in microseconds a call.
func BenchmarkCostInRedis(b *testing.B) {
	server := redistest.Start(b, "--appendonly", "yes", "--appendfsync", "everysec")
	s, err := redis.Open(b.Context(), redis.Options{URL: server.URL("partitions=16"), Heartbeat: time.Hour})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	createParkedThreads(b, s, 1000)
	measure := func(name string, calls int, call func()) {
		b.Run(name, func(b *testing.B) {
			before := processorTime(b, server)
			for b.Loop() {
				call()
			}
			spent := processorTime(b, server) - before
			b.ReportMetric(float64(spent.Nanoseconds())/1000/float64(b.N*calls), "redis-µs/call")
		})
	}
	var n uint64
	measure("a change", 1, func() {
		n++
		change := newSuperstep("t", n, []payload.JSON{"1"})
		change.Checkpoints[0].Channels[1].List.Segments[0] = checkpoint.Segment{ID: n, Len: 1}
		_, err := s.Apply(b.Context(), change)
		require.NoError(b, err)
	})
	measure("a head", 1, func() {
		_, err := s.Head(b.Context(), "parked-1")
		require.NoError(b, err)
	})
	measure("a look that finds nothing", 16, func() {
		_, _, err := s.Due(b.Context(), 256)
		require.NoError(b, err)
	})
	createDueThreads(b, s, 16*300)
	measure("a look that finds 257", 16, func() {
		list, _, err := s.Due(b.Context(), 256)
		require.NoError(b, err)
		require.Len(b, list, 256)
	})
	looks := make([]checkpoint.DueLook, 16)
	for i := range looks {
		looks[i] = checkpoint.DueLook{Partition: i, Limit: 256}
	}
	measure("a look of its own that finds 256", 16, func() { s.LookForDue(b.Context(), looks) })
	for i := range looks {
		looks[i].Limit = 1
	}
	measure("… that finds 1", 16, func() { s.LookForDue(b.Context(), looks) })
	for i := range looks {
		looks[i].Skip = 250
	}
	measure("… behind 250", 16, func() { s.LookForDue(b.Context(), looks) })
	for i := range looks {
		looks[i].Skip = 1000
	}
	measure("… that finds less than it skips", 16, func() { s.LookForDue(b.Context(), looks) })

	run, keys := loadMembership(b)
	const entry = `[{"graph":"refund","version":"0123456789abcdef"}]`
	for _, members := range []int{10, 100, 1000} {
		for i := range members {
			exchangeMembership(b, server, run, keys, "server-"+strconv.Itoa(i), entry, "")
		}
		known := exchangeMembership(b, server, run, keys, "server-0", entry, "").TextAt(1)
		measure(fmt.Sprintf("all of a roster of %d", members), 1, func() { exchangeMembership(b, server, run, keys, "server-0", entry, "") })
		measure(fmt.Sprintf("what has changed in a roster of %d", members), 1, func() {
			exchangeMembership(b, server, run, keys, "server-0", entry, known)
		})
	}
}

// createDueThreads makes threads whose time has come.
func createDueThreads(b *testing.B, s *redis.Store, n int) {
	b.Helper()
	for i := range n {
		c := newSuperstep(fmt.Sprint("due-", i), 1, []payload.JSON{"1"})
		c.Head.Owner, c.Lease, c.Head.Due = "", 0, time.Now().Add(-time.Minute)
		_, err := s.Apply(b.Context(), c)
		require.NoError(b, err)
	}
}

// processorTime returns the processor time that a Redis server has taken so far.
func processorTime(b *testing.B, server *redistest.Server) time.Duration {
	b.Helper()
	stats := readStats(b, server)
	var sum float64
	for _, name := range []string{"used_cpu_user_main_thread", "used_cpu_sys_main_thread"} {
		seconds, err := strconv.ParseFloat(stats[name], 64)
		require.NoError(b, err, name)
		sum += seconds
	}
	return time.Duration(sum * float64(time.Second))
}
