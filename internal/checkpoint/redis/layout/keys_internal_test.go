package layout

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

func TestHashSlots(t *testing.T) {
	require.EqualValues(t, 0x31c3, hashSlot("123456789"), "the example of the cluster's specification")
	for _, partitions := range []int{1, 2, 16, 100, MaxPartitions} {
		l := NewKeys("x", partitions)
		for i, tag := range l.tags {
			require.Equal(t, i, int(hashSlot(tag))*partitions/slotCount, "partition %d of %d", i, partitions)
		}
	}
}

// TestPlacesNeverMove holds what stored threads depend on.
func TestPlacesNeverMove(t *testing.T) {
	l := NewKeys("graphd", 16)
	require.Equal(t, "graphd{13.2}:h:order-4711", l.ThreadKeys("order-4711", KeyHead)[0])
	require.Equal(t, "graphd{meta}:format", l.MetadataKey())
}

func FuzzMembers(f *testing.F) {
	f.Add("t", "q", "g", int64(1))
	f.Add("", "\x00", "0000000a", int64(-5))
	f.Fuzz(func(t *testing.T, thread, id, graph string, at int64) {
		m := InterruptMember(&checkpoint.Interrupt{ID: id, Thread: thread, Created: time.Unix(0, at)})
		gotThread, gotID, ok := ParseMember(m)
		require.True(t, ok)
		require.Equal(t, []string{thread, id}, []string{gotThread, gotID})

		later := InterruptMember(&checkpoint.Interrupt{ID: id, Thread: thread, Created: time.Unix(1, at)})
		if at < 1<<62 {
			require.Less(t, m, later)
		}
		_, _, _ = ParseMember(id) // any text is told from a member, or read as one
		_, _, _ = ParseDueMember(id)

		m = ThreadMember(&checkpoint.Head{Thread: thread, Graph: graph, State: "busy"})
		gotThread, gotState, gotGraph, ok := ParseThreadMember(m)
		require.True(t, ok)
		require.Equal(t, []string{thread, "busy", graph}, []string{gotThread, gotState, gotGraph})
	})
}
