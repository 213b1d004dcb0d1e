package sqlite_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
)

// BenchmarkApply commits supersteps of one checkpoint, five events and a
// renewed lease: one thread alone, and 64 threads at once.
func BenchmarkApply(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			s, err := sqlite.Open(b.Context(), sqlite.Options{Path: filepath.Join(b.TempDir(), "bench.db")})
			require.NoError(b, err)
			b.Cleanup(func() { require.NoError(b, s.Close()) })
			var thread atomic.Int64
			b.SetParallelism(max(1, writers/runtime.GOMAXPROCS(0)))
			b.ReportAllocs()
			if writers == 1 {
				w := threadDriver{id: "lone"}
				for b.Loop() {
					w.commitSuperstep(b, s)
				}
				return
			}
			b.RunParallel(func(pb *testing.PB) {
				w := threadDriver{id: fmt.Sprint("thread-", thread.Add(1))}
				for pb.Next() {
					w.commitSuperstep(b, s)
				}
			})
		})
	}
}

// threadDriver drives one thread.
type threadDriver struct {
	id   string
	head checkpoint.Head
	rev  uint64
}

func (w *threadDriver) commitSuperstep(b *testing.B, s *sqlite.Store) {
	b.Helper()
	w.head.Thread, w.head.Owner, w.head.Updated = w.id, "me", time.Now()
	w.head.Seq++
	w.head.Checkpoint = fmt.Sprintf("%012d", w.head.Seq)
	cp := &checkpoint.Checkpoint{
		ID: w.head.Checkpoint, Seq: w.head.Seq, Graph: "g", Version: "1", Run: "r", Time: time.Now(),
		Channels: []checkpoint.Channel{
			{Name: "request", Version: 1, Stored: 1, Value: `"I want my money back"`},
			{Name: "step", Version: w.head.Seq, Stored: w.head.Seq, Value: `{"n": 1}`},
		},
		Next: []checkpoint.NextTask{{ID: "0123456789abcdef", Node: "n"}},
	}
	c := &checkpoint.Change{
		Thread: w.id, Expect: w.rev, Op: w.head.Checkpoint, Lease: 30 * time.Second,
		Checkpoints: []*checkpoint.Checkpoint{cp}, Events: make([]checkpoint.Event, 5),
	}
	for i := range c.Events {
		w.head.LastEvent++
		c.Events[i] = checkpoint.Event{
			Seq: w.head.LastEvent, Time: cp.Time, Kind: checkpoint.EventUpdate, Run: "r", Node: "n",
			Task: "0123456789abcdef", Value: `{"n": 1}`,
		}
	}
	c.Head = w.head
	r, err := s.Apply(b.Context(), c)
	if err != nil {
		require.NoError(b, err)
	}
	w.rev = r.Revision
}

// BenchmarkRead reads what a caller usually asks for: a page of a history, and
// its newest events.
func BenchmarkRead(b *testing.B) {
	s, err := sqlite.Open(b.Context(), sqlite.Options{Path: filepath.Join(b.TempDir(), "bench.db")})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	w := threadDriver{id: "read"}
	for range 100 {
		w.commitSuperstep(b, s)
	}
	b.Run("checkpoints", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			list, err := s.Checkpoints(b.Context(), checkpoint.CheckpointQuery{Thread: "read", Limit: 21})
			require.NoError(b, err)
			require.Len(b, list, 21)
		}
	})
	b.Run("events", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			list, err := s.Events(b.Context(), "read", 450, 32)
			require.NoError(b, err)
			require.Len(b, list, 32)
		}
	})
}
