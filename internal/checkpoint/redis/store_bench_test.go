package redis_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/payload"
)

// BenchmarkApply commits supersteps of one thread: with a long history behind
// it, and among many threads that wait.
func BenchmarkApply(b *testing.B) {
	for _, c := range []struct {
		history, parked int
		seal            seal.Options
	}{
		{10, 0, seal.Options{}},
		{10_000, 0, seal.Options{}},
		{10, 100_000, seal.Options{}},
		{10, 0, seal.Options{Compress: true}},
		{10, 0, sealOptions(newKey("k1", 1))},
	} {
		b.Run(fmt.Sprintf("history=%d/parked=%d/compress=%t/keys=%d",
			c.history, c.parked, c.seal.Compress, len(c.seal.Keys)), func(b *testing.B) {
			server := redistest.Start(b, "--appendonly", "no")
			s, err := redis.Open(b.Context(), redis.Options{URL: server.URL(""), Seal: c.seal})
			require.NoError(b, err)
			b.Cleanup(func() { require.NoError(b, s.Close()) })
			createParkedThreads(b, s, c.parked)
			var n uint64
			step := func() {
				n++
				change := newSuperstep("t", n, []payload.JSON{"1"})
				change.Checkpoints[0].Channels[1].List.Segments[0] = checkpoint.Segment{ID: n, Len: 1}
				_, err := s.Apply(b.Context(), change)
				require.NoError(b, err)
			}
			for range c.history {
				step()
			}
			for b.Loop() {
				step()
			}
		})
	}
}

// BenchmarkApplyTogether commits ten supersteps with each change.
func BenchmarkApplyTogether(b *testing.B) {
	server := redistest.Start(b, "--appendonly", "no")
	s := openStore(b, server.URL(""))
	const many = 10
	var changes uint64
	for b.Loop() {
		_, err := s.Apply(b.Context(), newBatchedChange("t", changes, many))
		require.NoError(b, err)
		changes++
	}
}

// createParkedThreads makes threads with a checkpoint and an interrupt each.
func createParkedThreads(b *testing.B, s *redis.Store, n int) {
	b.Helper()
	for i := range n {
		thread := fmt.Sprint("parked-", i)
		c := newSuperstep(thread, 1, []payload.JSON{"1"})
		c.Head.Owner, c.Lease = "", 0
		c.Interrupts = []checkpoint.Interrupt{{ID: "q", Thread: thread, State: checkpoint.InterruptOpen}}
		_, err := s.Apply(b.Context(), c)
		require.NoError(b, err)
	}
}

// BenchmarkRead reads what a caller usually asks for: a page of a history, its
// newest events, and the interrupts of a thread.
func BenchmarkRead(b *testing.B) {
	server := redistest.Start(b, "--appendonly", "no")
	s := openStore(b, server.URL(""))
	for n := uint64(1); n <= 100; n++ {
		change := newSuperstep("t", n, []payload.JSON{"1"})
		change.Checkpoints[0].Channels[1].List.Segments[0] = checkpoint.Segment{ID: n, Len: 1}
		_, err := s.Apply(b.Context(), change)
		require.NoError(b, err)
	}
	createParkedThreads(b, s, 100)
	b.Run("checkpoints", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			list, err := s.Checkpoints(b.Context(), checkpoint.CheckpointQuery{Thread: "t", Limit: 21})
			require.NoError(b, err)
			require.Len(b, list, 21)
		}
	})
	b.Run("events", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := s.Events(b.Context(), "t", 50, 32)
			require.NoError(b, err)
		}
	})
	b.Run("questions", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			list, err := s.Interrupts(b.Context(), checkpoint.InterruptQuery{Limit: 51})
			require.NoError(b, err)
			require.Len(b, list, 51)
		}
	})
	b.Run("questions of a thread", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			list, err := s.Interrupts(b.Context(), checkpoint.InterruptQuery{Thread: "parked-1", Limit: 51})
			require.NoError(b, err)
			require.Len(b, list, 1)
		}
	})
}
