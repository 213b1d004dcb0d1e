package memory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
)

// BenchmarkApply commits supersteps of one checkpoint, five events and a
// renewed lease, to one thread among many.
func BenchmarkApply(b *testing.B) {
	for _, threads := range []int{1, 2000} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) { benchmarkApply(b, threads) })
	}
}

// maxLiveSupersteps is how many supersteps are kept before the store is thrown away: the
// commit is measured, not what a collector does with a heap without bound.
const maxLiveSupersteps = 20_000

func benchmarkApply(b *testing.B, threads int) {
	b.Helper()
	ctx := b.Context()
	// Ids sort in the order of Seq as the contract asks; making them is not
	// what is measured.
	ids := make([]string, maxLiveSupersteps)
	for i := range ids {
		ids[i] = fmt.Sprintf("%012d", i)
	}
	var s *memory.Store
	var changes []checkpoint.Change
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if i%maxLiveSupersteps == 0 {
			b.StopTimer()
			s, changes = memory.New(memory.Options{}), newThreads(threads)
			b.StartTimer()
		}
		c := &changes[i%maxLiveSupersteps%threads]
		c.Op, c.Head.Seq = ids[i%maxLiveSupersteps], c.Head.Seq+1
		c.Checkpoints[0] = &checkpoint.Checkpoint{ID: ids[i%maxLiveSupersteps], Seq: c.Head.Seq}
		c.Events = make([]checkpoint.Event, 5) // given away
		for j := range c.Events {
			c.Head.LastEvent++
			c.Events[j].Seq = c.Head.LastEvent
		}
		r, err := s.Apply(ctx, c)
		if err != nil {
			require.NoError(b, err)
		}
		c.Expect = r.Revision
	}
}

func newThreads(n int) []checkpoint.Change {
	changes := make([]checkpoint.Change, n)
	for i := range changes {
		id := fmt.Sprintf("thread-%d", i)
		changes[i] = checkpoint.Change{
			Thread: id, Head: checkpoint.Head{Thread: id, Owner: "me"}, Lease: 30 * time.Second,
			Checkpoints: make([]*checkpoint.Checkpoint, 1),
		}
	}
	return changes
}
