package redis_test

import (
	"fmt"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
)

// askQuestion makes a thread with an open question.
func askQuestion(t *testing.T, s *redis.Store, thread string) {
	t.Helper()
	h := checkpoint.Head{Thread: thread, LogID: "log", State: checkpoint.ThreadInterrupted, Updated: time.Unix(7, 0)}
	_, err := s.Apply(t.Context(), &checkpoint.Change{
		Thread: thread, Op: "op", Head: h,
		Interrupts: []checkpoint.Interrupt{{ID: "q", Thread: thread, State: checkpoint.InterruptOpen, Created: time.Unix(7, 0)}},
	})
	assert.NoError(t, err) // also in goroutines
}

// askTenants makes a thread with an open question for each of some tenants.
func askTenants(t *testing.T, s *redis.Store, tenants int) {
	t.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for n := next.Add(1); n <= int64(tenants); n = next.Add(1) {
				askQuestion(t, s, fmt.Sprintf("tenant%05d@t", n))
			}
		})
	}
	wg.Wait()
	require.False(t, t.Failed())
}

// TestTheDefaultTenantHasTheKeysOfBefore sees that a store without other tenants is what an
// earlier graphd of the same format has made and reads, and what the others add to it.
func TestTheDefaultTenantHasTheKeysOfBefore(t *testing.T) {
	server := redistest.Start(t)
	s := openStore(t, server.URL("partitions=1"))
	keys := func() []string {
		all, err := server.Client.Keys(t.Context(), "graphd{0}:*").Result()
		require.NoError(t, err)
		slices.Sort(all)
		return all
	}
	empty := keys()
	askQuestion(t, s, "t")
	before := keys()
	require.Equal(t, []string{
		"graphd{0}:count", "graphd{0}:h:t", "graphd{0}:inbox", "graphd{0}:open", "graphd{0}:q:t", "graphd{0}:store", "graphd{0}:tags",
		"graphd{0}:threads", "graphd{0}:threadtags",
	}, before)
	askQuestion(t, s, "acme@t")
	require.ElementsMatch(t, append(before,
		"graphd{0}:h:acme@t", "graphd{0}:q:acme@t", "graphd{0}:inbox@acme", "graphd{0}:open@acme", "graphd{0}:tags@acme", "graphd{0}:threads@acme", "graphd{0}:threadtags@acme",
		"graphd{0}:tenants"), keys())
	_, err := s.Apply(t.Context(), &checkpoint.Change{Thread: "acme@t", Expect: 1, Delete: true})
	require.NoError(t, err)
	require.Equal(t, before, keys(), "nothing is left of a tenant without threads")
	_, err = s.Apply(t.Context(), &checkpoint.Change{Thread: "t", Expect: 1, Delete: true})
	require.NoError(t, err)
	require.Equal(t, append([]string{"graphd{0}:count"}, empty...), keys())
}

// TestOtherTenantsCostNothing counts the commands that Redis runs for the lists of one
// tenant, alone and beside 10,000 others.
func TestOtherTenantsCostNothing(t *testing.T) {
	const tenants = 10_000
	server := redistest.Start(t)
	s := openStore(t, server.URL("partitions=4"))
	for n := range 20 {
		askQuestion(t, s, fmt.Sprint("acme@t", n))
		askQuestion(t, s, fmt.Sprint("t", n))
	}
	requireLists := func(owner string, want int) {
		heads, err := s.Threads(t.Context(), checkpoint.ThreadQuery{Tenant: owner, Limit: 50})
		require.NoError(t, err)
		require.Len(t, heads, want)
		threads, err := s.CountThreads(t.Context(), owner, 100)
		require.NoError(t, err)
		open, err := s.CountOpenInterrupts(t.Context(), owner, 100)
		require.NoError(t, err)
		require.Equal(t, []int{want, want}, []int{threads, open})
		for _, q := range []checkpoint.InterruptQuery{
			{Limit: 50, States: []checkpoint.InterruptState{checkpoint.InterruptOpen}},
			{ByChange: true, Limit: 50},
			{ByChange: true, Limit: 50, After: checkpoint.InterruptPosition{Change: 1 << 60}},
		} {
			q.Tenant = owner
			found, err := s.Interrupts(t.Context(), q)
			require.NoError(t, err)
			if q.After.Change == 0 {
				require.Len(t, found, want)
			} else {
				require.Empty(t, found)
			}
		}
	}
	count := func(owner string, want int) string {
		requireLists(owner, want) // partitions that are behind are raised once
		require.NoError(t, server.Client.ConfigResetStat(t.Context()).Err())
		requireLists(owner, want)
		stats, err := server.Client.Info(t.Context(), "commandstats").Result()
		require.NoError(t, err)
		calls := regexp.MustCompile(`cmdstat_([a-z|]+):calls=(\d+)`).FindAllStringSubmatch(stats, -1)
		var list []string
		for _, c := range calls {
			switch c[1] {
			case "evalsha", "zrangebylex", "zrangebyscore", "hget", "hgetall", "hmget", "zcard":
				list = append(list, c[1]+"="+c[2])
			}
		}
		slices.Sort(list)
		return fmt.Sprint(list)
	}
	acme, standard := count("acme", 20), count("default", 20)
	askTenants(t, s, tenants)
	require.Equal(t, acme, count("acme", 20))
	require.Equal(t, standard, count("default", 20))
	t.Logf("commands of a list, an inbox and a watch beside %d tenants: %s", tenants, acme)
}

// TestListsOverAllTenants pages through the threads and questions of more tenants than an
// exchange reads.
func TestListsOverAllTenants(t *testing.T) {
	const tenants = 150
	s := openStore(t, redistest.Start(t).URL("partitions=2"))
	askTenants(t, s, tenants)
	askQuestion(t, s, "t")
	want := []string{"t"}
	for n := range tenants {
		want = append(want, fmt.Sprintf("tenant%05d@t", n+1))
	}
	for _, size := range []int{7, 64, 151, 1000} {
		var got []string
		for q := (checkpoint.ThreadQuery{Limit: size}); ; {
			heads, err := s.Threads(t.Context(), q)
			require.NoError(t, err)
			for i := range heads {
				got = append(got, heads[i].Thread)
				q.Before = checkpoint.ThreadPosition{Updated: heads[i].Updated, Thread: heads[i].Thread}
			}
			if len(heads) < size {
				break
			}
		}
		require.Equal(t, want, got, "pages of %d", size)
		for _, byChange := range []bool{false, true} {
			got = nil
			for q := (checkpoint.InterruptQuery{Limit: size, ByChange: byChange}); ; {
				found, err := s.Interrupts(t.Context(), q)
				require.NoError(t, err)
				for i := range found {
					got = append(got, found[i].Thread)
					q.After = checkpoint.InterruptPosition{
						Created: found[i].Created, Thread: found[i].Thread, ID: found[i].ID, Change: found[i].Change,
					}
				}
				if len(found) < size {
					break
				}
			}
			if byChange {
				slices.Sort(got)
				require.Equal(t, slices.Sorted(slices.Values(want)), got, "pages of %d", size)
			} else {
				require.Equal(t, want, got, "pages of %d", size)
			}
		}
	}
}
