package memory_test

import (
	"context"
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

func benchmarkApply(b *testing.B, threads int) {
	ctx := context.Background()
	s := memory.New(memory.Options{})
	changes := make([]checkpoint.Change, threads)
	for i := range changes {
		changes[i] = checkpoint.Change{
			Thread: fmt.Sprintf("thread-%d", i),
			Head:   checkpoint.Head{Thread: fmt.Sprintf("thread-%d", i), Owner: "me"},
			Lease:  30 * time.Second,
		}
	}
	// Ids sort in the order of Seq as the contract asks; making them is not
	// what is measured.
	points := make([]*checkpoint.Checkpoint, b.N)
	ops := make([]string, b.N)
	for i := range points {
		points[i] = &checkpoint.Checkpoint{ID: fmt.Sprintf("%012d", i), Seq: uint64(i/threads + 1)}
		ops[i] = fmt.Sprintf("op-%d", i)
	}
	one := make([]*checkpoint.Checkpoint, 1)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		c := &changes[i%threads]
		c.Op, one[0], c.Checkpoints = ops[i], points[i], one
		c.Events = make([]checkpoint.Event, 5) // given away
		for j := range c.Events {
			c.Events[j].Seq = c.Head.LastEvent + uint64(j) + 1
		}
		c.Head.Seq, c.Head.LastEvent = points[i].Seq, c.Head.LastEvent+5
		r, err := s.Apply(ctx, c)
		if err != nil {
			require.NoError(b, err)
		}
		c.Expect = r.Revision
	}
}
