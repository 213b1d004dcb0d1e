package sweep_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/sim/sweep"
)

const partitions = 64

// newServers makes the planners of servers that know each other, and have looked once.
func newServers(n int) []*sweep.Planner {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("server-", i)
	}
	all := make([]*sweep.Planner, n)
	for i, name := range names {
		all[i] = sweep.NewPlanner(name, partitions, time.Second)
		all[i].TakeLooks(0, false)
		all[i].SetOthers(names, 0)
	}
	return all
}

func TestEachPartitionHasAnOrderOfServers(t *testing.T) {
	all := newServers(20)
	owned := 0
	for p := range partitions {
		ranks := make([]bool, len(all))
		for _, s := range all {
			require.False(t, ranks[s.Rank(p)], "two servers have a place")
			ranks[s.Rank(p)] = true
		}
	}
	for _, s := range all {
		require.Less(t, s.Owned(), 15, "an owner of too many")
		owned += s.Owned()
	}
	require.Equal(t, partitions, owned)
}

func TestAServerAloneLooksEverywhereAtOnce(t *testing.T) {
	p := sweep.NewPlanner("a", partitions, time.Second)
	looks := p.TakeLooks(0, false)
	require.Len(t, looks, partitions)
	sum := 0
	for _, look := range looks {
		require.Zero(t, look.Skip)
		sum += look.Limit
	}
	require.Equal(t, 2*sweep.Batch, sum)
	require.Empty(t, p.TakeLooks(999*time.Millisecond, false))
	require.Len(t, p.TakeLooks(time.Second, false), partitions)
}

// TestAServerThatIsNotTheOwnerLooksRarely counts looks of many servers: they do not grow with the
// servers as such, and no partition is left out by any.
func TestAServerThatIsNotTheOwnerLooksRarely(t *testing.T) {
	const servers, seconds = 50, 100
	all := newServers(servers)
	looks := 0
	for i, s := range all {
		seen := map[int]int{}
		for now := 100 * time.Millisecond; now <= seconds*time.Second; now += 100 * time.Millisecond {
			for _, look := range s.TakeLooks(now, false) {
				seen[look.Partition]++
				looks++
			}
		}
		require.Len(t, seen, partitions, "server %d", i)
	}
	perPartition := float64(looks) / partitions / seconds
	require.Less(t, perPartition, 6.0, "looks at a partition a second")
}

func TestTheNextOwnerLooksAtOnce(t *testing.T) {
	all := newServers(3)
	for p := range partitions {
		for i, s := range all {
			if s.Rank(p) != 1 {
				continue
			}
			for j, owner := range all {
				if owner.Rank(p) == 0 {
					s.RemoveOther(fmt.Sprint("server-", j), 100*time.Millisecond)
				}
			}
			require.Zero(t, s.Rank(p))
			require.Contains(t, partitionsOf(s.TakeLooks(100*time.Millisecond, false)), p, "server %d", i)
			return
		}
	}
}

func partitionsOf(looks []sweep.Look) (all []int) {
	for _, look := range looks {
		all = append(all, look.Partition)
	}
	return all
}

// findRank finds a partition in which a server has a place.
func findRank(t *testing.T, s *sweep.Planner, rank int) int {
	t.Helper()
	for p := range partitions {
		if s.Rank(p) == rank {
			return p
		}
	}
	require.Fail(t, "no partition")
	return 0
}

// lookAt advances time until a server looks at a partition.
func lookAt(t *testing.T, s *sweep.Planner, partition int, now time.Duration) (time.Duration, sweep.Look) {
	t.Helper()
	for ; now < time.Hour; now += time.Millisecond {
		for _, look := range s.TakeLooks(now, false) {
			if look.Partition == partition {
				return now, look
			}
		}
	}
	require.Fail(t, "no look")
	return 0, sweep.Look{}
}

func TestTheOwnerLooksWhenAThreadBecomesDue(t *testing.T) {
	s := newServers(3)[0]
	p := findRank(t, s, 0)
	now, look := lookAt(t, s, p, 0)
	s.NoteFound(sweep.Found{Partition: p, Due: 1000, Taken: look.Limit}, now)
	at, _ := lookAt(t, s, p, now)
	require.Equal(t, now, at, "there is more")
	s.NoteFound(sweep.Found{Partition: p, Next: 50 * time.Millisecond}, now)
	at, _ = lookAt(t, s, p, now)
	require.Equal(t, now+50*time.Millisecond, at)
	s.NoteFound(sweep.Found{Partition: p, Next: time.Hour}, at)
	later, _ := lookAt(t, s, p, at)
	require.Equal(t, at+time.Second, later)
	s.NoteFound(sweep.Found{Partition: p}, later)
	s.LookNow(later)
	at, _ = lookAt(t, s, p, later)
	require.Equal(t, later, at)
}

// TestOthersTakeWhatIsBehind has much due: a server that is not the owner takes what the servers
// before it do not.
func TestOthersTakeWhatIsBehind(t *testing.T) {
	s := newServers(5)[0]
	p := findRank(t, s, 2)
	now, look := lookAt(t, s, p, 0)
	require.Equal(t, 2*sweep.Batch, look.Skip)
	s.NoteFound(sweep.Found{Partition: p, Skip: look.Skip, Due: 10_000, Taken: look.Limit, Late: time.Hour}, now)
	at, look := lookAt(t, s, p, now)
	require.Equal(t, now, at)
	s.NoteFound(sweep.Found{Partition: p, Skip: look.Skip, Due: look.Skip + 3, Taken: 3, Late: time.Hour}, now)
	at, look = lookAt(t, s, p, now)
	require.Equal(t, now+time.Second, at, "there may be more")
	require.Equal(t, 2*sweep.Batch, look.Skip)
	s.NoteFound(sweep.Found{Partition: p, Skip: look.Skip}, at)
	later, _ := lookAt(t, s, p, at)
	require.Equal(t, at+3*time.Second, later)
}

// TestOthersTakeWhatTheOwnerLeaves has little due, for long.
func TestOthersTakeWhatTheOwnerLeaves(t *testing.T) {
	s := newServers(5)[0]
	p := findRank(t, s, 1)
	now, look := lookAt(t, s, p, 0)
	s.NoteFound(sweep.Found{Partition: p, Skip: look.Skip, Due: 4, Late: time.Second / 2}, now)
	now, look = lookAt(t, s, p, now)
	require.Equal(t, sweep.Batch, look.Skip, "the owner may be at it")
	s.NoteFound(sweep.Found{Partition: p, Skip: look.Skip, Due: 4, Late: 3 * time.Second}, now)
	at, look := lookAt(t, s, p, now)
	require.Equal(t, now, at)
	require.Zero(t, look.Skip)
	s.NoteFound(sweep.Found{Partition: p, Due: 4, Taken: 4, Late: 3 * time.Second}, at)
	later, look := lookAt(t, s, p, at)
	require.Equal(t, at+time.Second, later, "there may be more")
	require.Equal(t, sweep.Batch, look.Skip)
}

// TestAServerThatBeginsAwaitsTheOthers has a server that would take all partitions for its own.
func TestAServerThatBeginsAwaitsTheOthers(t *testing.T) {
	s := sweep.NewPlanner("server-0", partitions, time.Second)
	s.AwaitOthers(time.Hour)
	s.LookNow(time.Hour)
	require.Empty(t, s.TakeLooks(time.Hour, false))
	require.Greater(t, s.Rank(0), 1000)
	s.SetOthers([]string{"server-0", "server-1", "server-2"}, time.Hour+time.Millisecond)
	require.Len(t, s.TakeLooks(time.Hour+time.Millisecond, false), s.Owned())

	s = sweep.NewPlanner("server-0", partitions, time.Second)
	s.AwaitOthers(time.Hour)
	require.Len(t, s.TakeLooks(time.Hour+time.Second, false), partitions, "it knows no other by then")
	require.Zero(t, s.Rank(0))
	s.LookNow(time.Hour + 1500*time.Millisecond)
	require.Len(t, s.TakeLooks(time.Hour+1500*time.Millisecond, false), partitions)
}

func TestAFullServerLooksWhereItIsTheOwner(t *testing.T) {
	s := newServers(5)[0]
	looks := s.TakeLooks(time.Hour, true)
	require.Len(t, looks, s.Owned())
}

func TestAPartitionThatDoesNotAnswer(t *testing.T) {
	s := newServers(5)[0]
	p := findRank(t, s, 0)
	now, _ := lookAt(t, s, p, 0)
	s.NoteFound(sweep.Found{Partition: p, Failed: true}, now)
	require.True(t, s.HasFailed(p))
	s.LookNow(now)
	at, _ := lookAt(t, s, p, now)
	require.Equal(t, now+time.Second, at)
	s.NoteAnswer(p, at)
	require.False(t, s.HasFailed(p))
	again, _ := lookAt(t, s, p, at)
	require.Equal(t, at, again)
}
