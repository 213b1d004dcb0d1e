package upgrade_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/setup"
	"github.com/graphd-dev/graphd/internal/testkit/built"
	"github.com/graphd-dev/graphd/internal/testkit/network"
)

var breakEvery = flag.Int("every", 13, "after each how many things that a migration sends it is broken off")

// TestMigrationsThatAreBrokenOff ends a migration after things that it sends, as
// kill -9 would, and sees the next one end it: the store is then the same as after
// one that was left alone.
func TestMigrationsThatAreBrokenOff(t *testing.T) {
	t.Parallel()
	const name = "redis-2-d90251d"
	data, err := os.ReadFile(filepath.Join(frozenDir, name, redisFile))
	require.NoError(t, err)
	listing := gunzip(t, data)
	server := redistest.Start(t, "--appendfsync", "no")
	restoreKeys(t, server, listing)
	m, err := setup.Migrate(t.Context(), redis.Options{URL: server.URL("")}, false, ignoreProgress)
	require.NoError(t, err)
	require.Equal(t, []int{2, redis.Format}, []int{m.From, m.To})
	require.Positive(t, m.Changed)
	want := maskEpoch(listKeys(t, server))
	require.NotContains(t, want, "migration", "the lock is released")

	for sent := 1; ; sent += *breakEvery {
		require.NoError(t, server.Client.FlushAll(t.Context()).Err())
		restoreKeys(t, server, listing)
		proxy := network.NewProxy(t, server.Addr())
		isCut := cutAfter(proxy, sent)
		_, err := setup.Migrate(t.Context(), redis.Options{URL: "redis://" + proxy.Address()}, false, ignoreProgress)
		proxy.Close()
		// What the lock of a process that died does by itself, later.
		require.NoError(t, server.Client.Del(t.Context(), "graphd{meta}:migration").Err())
		if err != nil {
			requireUsable(t, server, err)
		}
		_, err = setup.Migrate(t.Context(), redis.Options{URL: server.URL("")}, false, ignoreProgress)
		require.NoError(t, err, "after %d", sent)
		require.Equal(t, want, maskEpoch(listKeys(t, server)), "after %d", sent)
		if !isCut.Load() {
			require.Greater(t, sent, 50, "that was not all there is to break off")
			return
		}
	}
}

// requireUsable sees that a store whose migration was broken off either is as before, or
// complete, or refused with what to do.
func requireUsable(t *testing.T, server *redistest.Server, cause error) {
	t.Helper()
	s, err := redis.Open(t.Context(), redis.Options{URL: server.URL("")})
	if err == nil {
		require.NoError(t, s.Close())
		return
	}
	var refused *setup.Error
	require.ErrorAs(t, err, &refused, "after %v", cause)
	require.Equal(t, setup.ProblemOlder, refused.Problem)
	require.Contains(t, refused.Want, "graphd store migrate")
}

func ignoreProgress(checkpoint.Migration) {}

// maskEpoch leaves the name of the store out of a listing.
func maskEpoch(listing []byte) string {
	epoch := regexp.MustCompile(`"\\"epoch\\"","\\"([0-9a-f]{32})\\""`).FindSubmatch(listing)
	if epoch == nil {
		return string(listing)
	}
	return regexp.MustCompile(string(epoch[1])).ReplaceAllString(string(listing), "epoch")
}

// cutAfter has a proxy pass on what a client sends so many times, and then cut the
// client off for good. It returns whether it has.
func cutAfter(p *network.Proxy, sent int) (isCut *atomic.Bool) {
	isCut = new(atomic.Bool)
	var remaining atomic.Int64
	remaining.Store(int64(sent))
	p.Inspect(func(d network.Direction) bool {
		if d == network.ToServer && remaining.Add(-1) < 0 {
			isCut.Store(true)
			p.Refuse(true)
		}
		return !isCut.Load()
	})
	return isCut
}

// TestServersKeepAMigrationOut sees that nothing is migrated under a server.
func TestServersKeepAMigrationOut(t *testing.T) {
	t.Parallel()
	at := restoreFrozen(t, "redis-2")
	_, err := setup.Migrate(t.Context(), redis.Options{URL: at.store}, false, ignoreProgress)
	require.NoError(t, err)
	s := startServer(t, built.Graphd(t), at.store)
	require.NoError(t, at.redis.Client.HSet(t.Context(), "graphd{meta}:format", "format", 2).Err()) // as if it were an earlier one
	code, said := runCommand(t, built.Graphd(t), "store", "migrate", "--store", at.store)
	require.Equal(t, 1, code)
	require.Contains(t, said, "servers use the store")
	require.Contains(t, said, "stop all of them")
	s.Kill()
	require.Eventually(t, func() bool {
		code, said = runCommand(t, built.Graphd(t), "store", "migrate", "--store", at.store)
		return code == 0
	}, waitTimeout, waitTimeout/100, said)

	file := restoreFrozen(t, "sqlite-2")
	code, said = runCommand(t, built.Graphd(t), "store", "migrate", "--store", file.store)
	require.Zero(t, code, said)
	s = startServer(t, built.Graphd(t), file.store)
	code, said = runCommand(t, built.Graphd(t), "store", "migrate", "--store", file.store)
	require.Equal(t, 1, code)
	require.Contains(t, said, "is in use by")
	s.Kill()
}

// TestServeMigrates starts a server with --migrate on a store of an earlier
// format.
func TestServeMigrates(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"redis-2", "sqlite-2"} {
		s := startServer(t, built.Graphd(t), restoreFrozen(t, name).store, "--migrate")
		s.WaitForLine("store was migrated")
		run := s.answerOldest("waiting", `{"ok":true}`, true)
		require.Contains(t, run.GetOutput().GetJson(), "closed")
		s.Kill()
	}
}

// TestAMigrationThatOnlyChangesTheNumber brings a store of format 3 to the present one: it
// writes no record, and does not begin while a server that was killed has a lease.
func TestAMigrationThatOnlyChangesTheNumber(t *testing.T) {
	t.Parallel()
	at := restoreFrozen(t, "redis-3")
	setLease := func(seconds int) {
		heads, err := at.redis.Client.Keys(t.Context(), "*}:h:waiting").Result()
		require.NoError(t, err)
		require.Len(t, heads, 1)
		require.NoError(t, at.redis.Client.Eval(t.Context(), `local s = cmsgpack.unpack(redis.call('HGET', KEYS[1], 'n'))
			s[8] = tonumber(ARGV[1]) == 0 and 0 or (redis.call('TIME')[1] + ARGV[1]) * 1000000
			return redis.call('HSET', KEYS[1], 'n', cmsgpack.pack(s))`, heads, seconds).Err())
	}
	listRecords := func() []string {
		return slices.DeleteFunc(strings.Split(string(listKeys(t, at.redis)), "\n"), func(line string) bool {
			return strings.Contains(line, `"key":"graphd{meta}:format"`) || strings.Contains(line, `}:store"`)
		})
	}
	migrate := func() (checkpoint.Migration, error) {
		return setup.Migrate(t.Context(), redis.Options{URL: at.store}, false, ignoreProgress)
	}
	setLease(3600)
	before := listRecords()
	_, err := migrate()
	require.ErrorContains(t, err, `a server runs the thread "waiting"`)
	require.Equal(t, before, listRecords())
	require.Equal(t, "3", at.redis.Client.HGet(t.Context(), "graphd{meta}:format", "format").Val())

	setLease(0)
	before = listRecords()
	m, err := migrate()
	require.NoError(t, err)
	require.Equal(t, checkpoint.Migration{From: 3, To: redis.Format, Threads: m.Threads, Done: m.Threads}, m)
	require.NotZero(t, m.Threads)
	require.Equal(t, before, listRecords())
}
