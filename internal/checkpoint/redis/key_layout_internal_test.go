package redis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

func TestHashSlots(t *testing.T) {
	require.EqualValues(t, 0x31c3, hashSlot("123456789"), "the example of the cluster's specification")
	for _, partitions := range []int{1, 2, 16, 100, maxPartitions} {
		l := newKeyLayout("x", partitions)
		for i, tag := range l.tags {
			require.Equal(t, i, int(hashSlot(tag))*partitions/slotCount, "partition %d of %d", i, partitions)
		}
	}
}

// TestPlacesNeverMove holds what stored threads depend on.
func TestPlacesNeverMove(t *testing.T) {
	l := newKeyLayout("graphd", defaultPartitions)
	require.Equal(t, "graphd{13.2}:h:order-4711", l.threadKeys("order-4711", keyHead)[0])
	require.Equal(t, "graphd{meta}:format", l.metadataKey())
}

func FuzzMembers(f *testing.F) {
	f.Add("t", "q", "g", int64(1))
	f.Add("", "\x00", "0000000a", int64(-5))
	f.Fuzz(func(t *testing.T, thread, id, graph string, at int64) {
		m := interruptMember(&checkpoint.Interrupt{ID: id, Thread: thread, Created: time.Unix(0, at)})
		gotThread, gotID, ok := parseMember(m)
		require.True(t, ok)
		require.Equal(t, []string{thread, id}, []string{gotThread, gotID})

		later := interruptMember(&checkpoint.Interrupt{ID: id, Thread: thread, Created: time.Unix(1, at)})
		if at < 1<<62 {
			require.Less(t, m, later)
		}
		_, _, _ = parseMember(id) // any text is told from a member, or read as one
		_, _, _ = parseDueMember(id)

		m = threadMember(&checkpoint.Head{Thread: thread, Graph: graph, State: "busy"})
		gotThread, gotState, gotGraph, ok := parseThreadMember(m)
		require.True(t, ok)
		require.Equal(t, []string{thread, "busy", graph}, []string{gotThread, gotState, gotGraph})
	})
}
