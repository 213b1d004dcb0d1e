package redis_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/checkpointtest"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
)

var openStates = []checkpoint.InterruptState{checkpoint.InterruptOpen}

func TestTagsUnderKeys(t *testing.T) {
	server := redistest.Start(t)
	checkpointtest.RunTagsUnderKeys(t, func(t *testing.T, options seal.Options) checkpointtest.Store {
		t.Helper()
		s, err := redis.Open(t.Context(), redis.Options{URL: server.URL("partitions=2"), Seal: options})
		require.NoError(t, err)
		return s
	}, func(t *testing.T) string {
		t.Helper()
		var all strings.Builder
		keys, err := server.Client.Keys(t.Context(), "*").Result()
		require.NoError(t, err)
		for _, key := range keys {
			var value any
			switch server.Client.Type(t.Context(), key).Val() {
			case "hash":
				value = server.Client.HGetAll(t.Context(), key).Val()
			case "zset":
				value = server.Client.ZRange(t.Context(), key, 0, -1).Val()
			case "list":
				value = server.Client.LRange(t.Context(), key, 0, -1).Val()
			}
			fmt.Fprintf(&all, "%s %v\n", key, value)
		}
		return all.String()
	})
}

// TestAMigratedStoreIsTagged takes the tags from a store, as a migration leaves it.
func TestAMigratedStoreIsTagged(t *testing.T) {
	server := redistest.Start(t)
	s := openStore(t, server.URL("partitions=2"))
	day := time.Date(2026, 1, 1, 0, 0, 0, 7, time.UTC)
	want := map[string][]string{}
	for i := range 60 {
		for _, owner := range []string{"", "acme@"} {
			in := checkpoint.Interrupt{
				ID: "q", Thread: fmt.Sprintf("%st%02d", owner, i), State: checkpoint.InterruptOpen, Created: day.Add(time.Duration(i)),
				Graph: fmt.Sprint("g", i%3), Policy: &approval.Policy{Groups: []string{fmt.Sprint("team", i%4)}}, Expires: day.Add(time.Hour),
			}
			if i%5 == 0 {
				in.State = checkpoint.InterruptAnswered
			}
			_, err := s.Apply(t.Context(), &checkpoint.Change{
				Thread: in.Thread, Interrupts: []checkpoint.Interrupt{in},
				Head: checkpoint.Head{Thread: in.Thread, Created: day, Updated: day, Graph: in.Graph, Metadata: map[string]string{"n": fmt.Sprint(i % 7)}},
			})
			require.NoError(t, err)
			for _, tag := range in.Tags() {
				want[owner+tag] = append(want[owner+tag], in.Thread)
			}
		}
	}
	requireTags := func(s *redis.Store) {
		t.Helper()
		for key, threads := range want {
			owner, tag := "default", key
			if rest, ok := strings.CutPrefix(key, "acme@"); ok {
				owner, tag = "acme", rest
			}
			for _, byDue := range []bool{false, true} {
				found, err := s.Interrupts(t.Context(), checkpoint.InterruptQuery{Tenant: owner, States: openStates, Tags: []string{tag}, ByDue: byDue})
				require.NoError(t, err)
				var got []string
				for i := range found {
					got = append(got, found[i].Thread)
				}
				require.Equal(t, threads, got, key)
			}
		}
	}
	requireThreads := func(s *redis.Store, want int) {
		t.Helper()
		for _, q := range []checkpoint.ThreadQuery{{Graph: "g1"}, {Metadata: map[string]string{"n": "3"}}} {
			n := 0
			for _, owner := range []string{"default", "acme"} {
				q.Tenant = owner
				found, err := s.Threads(t.Context(), q)
				require.NoError(t, err)
				for i := range found {
					require.True(t, q.MatchesThread(&found[i]))
				}
				n += len(found)
			}
			require.Equal(t, want > 0, n > 0, "%+v", q)
		}
	}
	requireTags(s)
	requireThreads(s, 1)
	remove := `for _, key in ipairs(redis.call('KEYS', '*')) do
		if string.find(key, '}:tags', 1, true) or string.find(key, '}:threadtags', 1, true) then redis.call('DEL', key) end
		if string.find(key, '}:h:', 1, true) then
			local head = cmsgpack.unpack(redis.call('HGET', key, 'n'))
			head[15] = nil
			redis.call('HSET', key, 'n', cmsgpack.pack(head))
		end
		if string.find(key, '}:q:', 1, true) then
			local old = redis.call('HGET', key, 'rq')
			local head, size, first = string.match(old, '^(%d+ %d+ %x+):(%d+) ()')
			if size then redis.call('HSET', key, 'rq', head .. ' ' .. string.sub(old, first + size)) end
		end
	end
	redis.call('HSET', 'graphd{meta}:format', 'untagged', 'yes')
	return 1`
	require.NoError(t, server.Client.Eval(t.Context(), remove, nil).Err())
	found, err := s.Interrupts(t.Context(), checkpoint.InterruptQuery{Tenant: "acme", States: openStates, Tags: []string{checkpoint.GraphTag("g1")}})
	require.NoError(t, err)
	require.Empty(t, found)
	requireThreads(s, 0)
	again := openStore(t, server.URL(""))
	requireTags(again)
	requireThreads(again, 1)
	require.False(t, server.Client.HExists(t.Context(), "graphd{meta}:format", "untagged").Val())
	_, err = s.Apply(t.Context(), &checkpoint.Change{Thread: "t01", Expect: 1, Delete: true})
	require.NoError(t, err)
	counts, err := s.CountTags(t.Context(), "default", []string{checkpoint.GraphTag("g1")})
	require.NoError(t, err)
	require.Equal(t, []int{len(want[checkpoint.GraphTag("g1")]) - 1}, counts)
}

// TestAQuestionThatMovedComesOnce has an entry of the time that a question was due before, as a list
// reads it while the question is extended.
func TestAQuestionThatMovedComesOnce(t *testing.T) {
	server := redistest.Start(t)
	s := openStore(t, server.URL("partitions=1"))
	day := time.Date(2026, 1, 1, 0, 0, 0, 7, time.UTC)
	for i, due := range []int{9, 5} {
		in := checkpoint.Interrupt{ID: "q", Thread: fmt.Sprint("t", i), Graph: "g", State: checkpoint.InterruptOpen, Created: day, Expires: day.Add(time.Duration(due) * time.Hour)}
		_, err := s.Apply(t.Context(), &checkpoint.Change{
			Thread: in.Thread, Head: checkpoint.Head{Thread: in.Thread, Updated: day}, Interrupts: []checkpoint.Interrupt{in},
		})
		require.NoError(t, err)
	}
	position := checkpoint.InterruptPosition{Due: day.Add(time.Hour), Thread: "t0", ID: "q"}
	stale := layout.TagByDue + layout.AnyDue + "\x00" + layout.MemberAt(position)
	require.NoError(t, server.Client.ZAdd(t.Context(), "graphd{0}:tags", goredis.Z{Member: stale}).Err())
	found, err := s.Interrupts(t.Context(), checkpoint.InterruptQuery{Tenant: "default", States: openStates, ByDue: true, Limit: 1})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, "t1", found[0].Thread, "the one that is due next by its record")
}
