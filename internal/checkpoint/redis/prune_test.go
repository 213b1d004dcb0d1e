package redis_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/payload"
)

// applyLongHistory makes a history that takes several looks to read.
func applyLongHistory(t *testing.T, s *redis.Store, thread string, n uint64) *checkpoint.Change {
	t.Helper()
	var c *checkpoint.Change
	for i := uint64(1); i <= n; i++ {
		c = newSuperstep(thread, i, []payload.JSON{"1"})
		c.Checkpoints[0].Channels[1].List.Segments[0] = checkpoint.Segment{ID: i, Len: 1}
		_, err := s.Apply(t.Context(), c)
		require.NoError(t, err)
	}
	return c
}

func TestLongHistoriesAreCutOff(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "no")
	s := openStore(t, server.URL(""))
	last := applyLongHistory(t, s, "t", 1500)
	key := keyOfThread(t, server, "v", "t")
	require.EqualValues(t, 3*1500, server.Client.HLen(t.Context(), key).Val())
	cut := &checkpoint.Change{Thread: "t", Expect: 1500, Op: "cut", Head: last.Head, DropBefore: 1491}
	cut.Head.FirstSeq = 1491
	_, err := s.Apply(t.Context(), cut)
	require.NoError(t, err)
	require.EqualValues(t, 3*10, server.Client.HLen(t.Context(), key).Val())
	order := keyOfThread(t, server, "s", "t")
	require.Equal(t, "listpack", server.Client.ObjectEncoding(t.Context(), order).Val(), "the form of what is short")
	require.EqualValues(t, 10, server.Client.ZCard(t.Context(), order).Val())
	list, err := s.Checkpoints(t.Context(), checkpoint.CheckpointQuery{Thread: "t"})
	require.NoError(t, err)
	require.Len(t, list, 10)
	require.Contains(t, readStats(t, server), "cmdstat_hscan", "others get their turn while a long history is read")
}

// TestNothingIsLeftOfADeletedThread looks for its name in all keys, and in the
// members of all lists.
func TestNothingIsLeftOfADeletedThread(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "no")
	s := openStore(t, server.URL(""))
	for _, thread := range []string{"stays", "leaves"} {
		last := applyLongHistory(t, s, thread, 20)
		c := *last
		c.Expect, c.Op, c.Checkpoints, c.Tasks, c.ClearTasks = 20, "more", nil, nil, nil
		c.Head.LastEvent += 2
		c.Events[0].Seq, c.Events[1].Seq = c.Head.LastEvent-1, c.Head.LastEvent
		c.Head.Due = c.Head.Updated
		c.Interrupts = []checkpoint.Interrupt{
			{ID: "open", Thread: thread, State: checkpoint.InterruptOpen},
			{ID: "closed", Thread: thread, State: checkpoint.InterruptConsumed},
		}
		c.Memos = []checkpoint.Memo{{Checkpoint: c.Head.Checkpoint, Task: "x", Value: "1"}}
		c.Runs = []checkpoint.Run{{ID: "r", Thread: thread}}
		c.Request = &checkpoint.Request{ID: "q"}
		_, err := s.Apply(t.Context(), &c)
		require.NoError(t, err)
	}
	require.Equal(t, countMentions(t, server, "stays"), countMentions(t, server, "leaves"))
	require.Greater(t, countMentions(t, server, "leaves"), 12)
	_, err := s.Apply(t.Context(), &checkpoint.Change{Thread: "leaves", Expect: 21, Delete: true})
	require.NoError(t, err)
	require.Zero(t, countMentions(t, server, "leaves"))
	require.Greater(t, countMentions(t, server, "stays"), 12)
}

// countMentions counts keys and members in which a thread's name is.
func countMentions(t *testing.T, server *redistest.Server, thread string) (n int) {
	t.Helper()
	keys, err := server.Client.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	for _, key := range keys {
		if strings.Contains(key, thread) {
			n++
		}
		if server.Client.Type(t.Context(), key).Val() != "zset" {
			continue
		}
		for _, member := range server.Client.ZRange(t.Context(), key, 0, -1).Val() {
			if strings.Contains(member, thread) {
				n++
			}
		}
	}
	return n
}
