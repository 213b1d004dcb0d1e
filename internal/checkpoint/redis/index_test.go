package redis_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
)

// putInterrupt makes a thread with one interrupt.
func putInterrupt(t *testing.T, s *redis.Store, thread string, state checkpoint.InterruptState, at time.Time) {
	t.Helper()
	_, err := s.Apply(t.Context(), &checkpoint.Change{
		Thread: thread,
		Head:   checkpoint.Head{Thread: thread, Updated: at, State: checkpoint.ThreadInterrupted, Due: at},
		Interrupts: []checkpoint.Interrupt{
			{ID: "q", Thread: thread, State: state, Created: at},
		},
	})
	require.NoError(t, err)
}

// TestListsOverManyPages has more members per partition than one page holds.
func TestListsOverManyPages(t *testing.T) {
	const n = 700
	server := redistest.Start(t, "--appendfsync", "no")
	s := openStore(t, server.URL("partitions=2"))
	day := time.Date(2026, 1, 1, 0, 0, 0, 7, time.UTC)
	for i := range n {
		state := checkpoint.InterruptOpen
		if i%3 == 0 {
			state = checkpoint.InterruptConsumed
		}
		putInterrupt(t, s, fmt.Sprintf("t%03d", i), state, day.Add(time.Duration(i/2)*time.Second))
	}
	for _, limit := range []int{0, 1, 300, 699, 700, 701} {
		heads, err := s.Threads(t.Context(), checkpoint.ThreadQuery{Limit: limit})
		require.NoError(t, err)
		want := n
		if limit > 0 {
			want = min(n, limit)
		}
		require.Len(t, heads, want)
		for i := range heads {
			require.Equal(t, fmt.Sprintf("t%03d", n-2-i/2*2+i%2), heads[i].Thread)
		}
		for _, byChange := range []bool{false, true} {
			list, err := s.Interrupts(t.Context(), checkpoint.InterruptQuery{Limit: limit, ByChange: byChange})
			require.NoError(t, err)
			require.Len(t, list, want)
			for i := range list {
				require.Equal(t, fmt.Sprintf("t%03d", i), list[i].Thread)
			}
		}
		threads, _, err := s.Due(t.Context(), limit)
		require.NoError(t, err)
		require.Len(t, threads, want)
		require.Equal(t, "t000", threads[0])
	}
	used, err := s.Interrupts(t.Context(), checkpoint.InterruptQuery{States: []checkpoint.InterruptState{checkpoint.InterruptConsumed}})
	require.NoError(t, err)
	require.Len(t, used, (n+2)/3)
	none, err := s.Threads(t.Context(), checkpoint.ThreadQuery{State: checkpoint.ThreadBusy})
	require.NoError(t, err)
	require.Empty(t, none)
}

// TestFollowerMissesNothingWhenClocksDiffer puts the number of one partition
// far ahead, as a server whose clock is wrong would.
func TestFollowerMissesNothingWhenClocksDiffer(t *testing.T) {
	server := redistest.Start(t)
	s := openStore(t, server.URL("partitions=4"))
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	putInterrupt(t, s, "first", checkpoint.InterruptOpen, day)
	counts, err := server.Client.Keys(t.Context(), "*:count").Result()
	require.NoError(t, err)
	require.Len(t, counts, 1)
	ahead := time.Now().Add(3 * time.Hour).UnixMicro()
	require.NoError(t, server.Client.Set(t.Context(), counts[0], ahead, 0).Err())

	seen := map[string]int{}
	var cursor uint64
	follow := func() {
		t.Helper()
		list, err := s.Interrupts(t.Context(), checkpoint.InterruptQuery{
			ByChange: true, After: checkpoint.InterruptPosition{Change: cursor},
		})
		require.NoError(t, err)
		for i := range list {
			require.Greater(t, list[i].Change, cursor)
			cursor = list[i].Change
			seen[list[i].Thread]++
		}
	}
	putInterrupt(t, s, "first2", checkpoint.InterruptOpen, day)
	for i := range 20 { // in all partitions, the one that is ahead among them
		putInterrupt(t, s, fmt.Sprint("t", i), checkpoint.InterruptOpen, day)
		if i%3 == 0 {
			follow()
		}
	}
	follow()
	require.Len(t, seen, 22)
	for thread, n := range seen {
		require.Equal(t, 1, n, thread)
	}
}

func TestPartitionsAreSpread(t *testing.T) {
	server := redistest.Start(t)
	s := openStore(t, server.URL("partitions=8"))
	for i := range 200 {
		putInterrupt(t, s, fmt.Sprint("t", i), checkpoint.InterruptOpen, time.Unix(0, 0))
	}
	keys, err := server.Client.Keys(t.Context(), "*:threads").Result()
	require.NoError(t, err)
	require.Len(t, keys, 8)
	for _, key := range keys {
		n, err := server.Client.ZCard(t.Context(), key).Result()
		require.NoError(t, err)
		require.Greater(t, n, int64(8), key)
		require.True(t, strings.HasPrefix(key, "graphd{"), key)
	}
}

// TestDueReadsWhatIsDue has many threads that are due later: of these a server reads the next one of
// each partition.
func TestDueReadsWhatIsDue(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	s := openStore(t, server.URL("partitions=2"))
	later := time.Now().Add(time.Hour)
	for i := range 400 {
		putInterrupt(t, s, fmt.Sprintf("later%03d", i), checkpoint.InterruptOpen, later.Add(time.Duration(i)))
	}
	putInterrupt(t, s, "due", checkpoint.InterruptOpen, time.Unix(1, 0))
	sent := func() int { return statNumber(t, readStats(t, server), "total_net_output_bytes") }
	before := sent()
	cost := sent() - before // of the question itself
	due, next, err := s.Due(t.Context(), 256)
	require.NoError(t, err)
	require.Equal(t, []string{"due"}, due)
	require.True(t, later.Equal(next), "%v", next)
	require.Less(t, sent()-before-2*cost, 1000)
}
