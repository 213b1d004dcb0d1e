package redis_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/setup"
	"github.com/graphd-dev/graphd/internal/payload"
)

// requireRefusesChanges sees that a store takes no change of any kind, says why without one,
// and writes nothing.
func requireRefusesChanges(t *testing.T, s *redis.Store, is string) {
	t.Helper()
	err := s.CheckWritable(t.Context())
	require.ErrorIs(t, err, checkpoint.ErrStoreReplaced)
	require.ErrorContains(t, err, is)
	_, err = s.Apply(t.Context(), newSuperstep("new", 1, make([]payload.JSON, 1)))
	require.ErrorIs(t, err, checkpoint.ErrStoreReplaced, "a thread is not made in the void")
	_, err = s.Apply(t.Context(), newSuperstep("old", 3, make([]payload.JSON, 3)))
	require.ErrorIs(t, err, checkpoint.ErrStoreReplaced, "the change has no conflict with another writer")
	_, err = s.Apply(t.Context(), &checkpoint.Change{Thread: "old", Expect: 2, Delete: true})
	require.ErrorIs(t, err, checkpoint.ErrStoreReplaced)
	require.ErrorIs(t, s.PutGraph(t.Context(), checkpoint.GraphRecord{Name: "late", Version: "1"}, checkpoint.GraphCondition{}), checkpoint.ErrStoreReplaced)
}

// TestEmptyRedisIsNoticed flushes a store under servers.
func TestEmptyRedisIsNoticed(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	s := openStore(t, server.URL(""))
	require.NoError(t, s.CheckWritable(t.Context()))
	applySupersteps(t, s, "old", 1, 2)
	require.NoError(t, server.Client.FlushAll(t.Context()).Err())
	for _, thread := range []string{"old", "new"} {
		_, err := s.Head(t.Context(), thread)
		require.ErrorIs(t, err, checkpoint.ErrStoreReplaced, "a thread that was lost is not one that never was")
		_, err = s.ViewThread(t.Context(), thread, "")
		require.ErrorIs(t, err, checkpoint.ErrStoreReplaced)
	}
	requireRefusesChanges(t, s, "came back empty")
	_, err := s.Threads(t.Context(), checkpoint.ThreadQuery{})
	require.ErrorIs(t, err, checkpoint.ErrStoreReplaced, "a list of what is left is not the list")
	for _, q := range []checkpoint.InterruptQuery{{}, {States: []checkpoint.InterruptState{checkpoint.InterruptOpen}, Limit: 5}, {Thread: "old"}} {
		_, err = s.Interrupts(t.Context(), q)
		require.ErrorIs(t, err, checkpoint.ErrStoreReplaced, "%+v", q)
	}
	_, err = s.Interrupts(t.Context(), checkpoint.InterruptQuery{ByChange: true})
	require.NoError(t, err, "who waits for changes waits on")
	post := s.Register("server", func() {})
	post.SetCapabilities([]checkpoint.Capability{{Graph: "g"}})
	post.Close()
	require.Zero(t, server.Client.DBSize(t.Context()).Val(), "the next server finds an empty database")

	next := openStore(t, server.URL(""))
	applySupersteps(t, next, "old", 1, 2)
	requireRefusesChanges(t, s, "restart this server")
	require.NoError(t, next.CheckWritable(t.Context()))
}

// TestBackupIsTakenUp brings a store back under a server that missed it.
func TestBackupIsTakenUp(t *testing.T) {
	server := redistest.Start(t)
	s := openStore(t, server.URL(""))
	applySupersteps(t, s, "old", 1, 2)
	saved := map[string]string{}
	for _, key := range server.Client.Keys(t.Context(), "*").Val() {
		saved[key] = server.Client.Dump(t.Context(), key).Val()
	}
	require.NoError(t, server.Client.FlushAll(t.Context()).Err())
	requireRefusesChanges(t, s, "came back empty")
	for key, dump := range saved {
		require.NoError(t, server.Client.Restore(t.Context(), key, 0, dump).Err())
	}
	require.NoError(t, s.CheckWritable(t.Context()))
	applySupersteps(t, s, "old", 3, 4)
}

// TestLostPartitionsAreReported takes some partitions away: the others go on, and no
// server starts before a person has accepted the loss.
func TestLostPartitionsAreReported(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	testLostPartitions(t, server.URL(""), server.Client)
}

func testLostPartitions(t *testing.T, url string, c goredis.Cmdable) {
	t.Helper()
	s := openStore(t, url)
	applySupersteps(t, s, "old", 1, 2)
	applySupersteps(t, s, "gone", 1, 2)
	tag := hashTagOf(t, c, "gone")
	for _, key := range keysOf(t, c, tag) {
		require.NoError(t, c.Del(t.Context(), key).Err())
	}
	applySupersteps(t, s, "old", 3, 4)
	_, err := s.Head(t.Context(), "gone")
	require.ErrorIs(t, err, checkpoint.ErrStoreReplaced)
	_, err = s.Interrupts(t.Context(), checkpoint.InterruptQuery{Thread: "gone"})
	require.ErrorIs(t, err, checkpoint.ErrStoreReplaced)
	_, err = s.Interrupts(t.Context(), checkpoint.InterruptQuery{})
	require.ErrorIs(t, err, checkpoint.ErrStoreReplaced)
	_, err = s.Interrupts(t.Context(), checkpoint.InterruptQuery{Thread: "old"})
	require.NoError(t, err, "threads that are there can be read")
	_, err = s.Apply(t.Context(), newSuperstep("gone", 3, make([]payload.JSON, 3)))
	require.ErrorIs(t, err, checkpoint.ErrStoreReplaced)
	err = s.CheckWritable(t.Context())
	require.ErrorIs(t, err, checkpoint.ErrStoreReplaced)
	require.ErrorContains(t, err, "graphd{"+tag+"}:store is missing")

	p := requireSetupError(t, url)
	require.Equal(t, setup.ProblemLost, p.Problem)
	require.Contains(t, p.Is, "1 of the store's 16 partitions are gone with their threads: graphd{"+tag+"}:*")
	require.Contains(t, p.Want, "graphd store repair --store redis://")
	loss, err := setup.Repair(t.Context(), redis.Options{URL: url}, false)
	require.NoError(t, err)
	require.Equal(t, checkpoint.Loss{LostPartitions: []string{"graphd{" + tag + "}:*"}, PartitionCount: 16}, loss)
	_ = requireSetupError(t, url)
	_, err = setup.Repair(t.Context(), redis.Options{URL: url}, true)
	require.NoError(t, err)
	next := openStore(t, url)
	applySupersteps(t, next, "gone", 1, 2)
	applySupersteps(t, next, "old", 5, 6)
	require.NoError(t, s.CheckWritable(t.Context()), "servers that were running go on")
	applySupersteps(t, s, "gone", 3, 4)
}

// hashTagOf is the hash tag of the keys of a thread, if they are there.
func hashTagOf(t *testing.T, c goredis.Cmdable, thread string) string {
	t.Helper()
	for _, key := range keysOf(t, c, "*") {
		if tag, ok := strings.CutSuffix(key, "}:h:"+thread); ok {
			return strings.TrimPrefix(tag, "graphd{")
		}
	}
	return ""
}

// keysOf lists the keys with a hash tag, on all servers.
func keysOf(t *testing.T, c goredis.Cmdable, tag string) (keys []string) {
	t.Helper()
	pattern := "graphd{" + tag + "}*"
	if many, ok := c.(*goredis.ClusterClient); ok {
		var mu sync.Mutex
		require.NoError(t, many.ForEachMaster(t.Context(), func(ctx context.Context, node *goredis.Client) error {
			mu.Lock() // they are asked side by side
			defer mu.Unlock()
			keys = append(keys, node.Keys(ctx, pattern).Val()...)
			return nil
		}))
		return keys
	}
	return c.Keys(t.Context(), pattern).Val()
}

// TestMetadataIsRestored takes away what the whole store agrees on: threads go on,
// health says that something is missing, and the next start puts it back.
func TestMetadataIsRestored(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	s := openStore(t, server.URL("partitions=5"))
	applySupersteps(t, s, "old", 1, 2)
	require.NoError(t, s.PutGraph(t.Context(), checkpoint.GraphRecord{Name: "g", Version: "1", Source: "{}"}, checkpoint.GraphCondition{}))
	require.NoError(t, server.Client.Del(t.Context(), "graphd{meta}:format", "graphd{meta}:graphs").Err())
	applySupersteps(t, s, "old", 3, 4)
	err := s.CheckWritable(t.Context())
	require.ErrorIs(t, err, checkpoint.ErrStoreReplaced)
	require.ErrorContains(t, err, "graphd{meta}:format is missing")
	require.ErrorContains(t, err, "restart a server, which puts the key back")

	next := openStore(t, server.URL(""))
	require.Contains(t, strings.Join(next.Warnings(), "\n"), "graphd{meta}:format was missing and was put back")
	require.Contains(t, strings.Join(next.Warnings(), "\n"), "0 graphs are there")
	applySupersteps(t, next, "old", 5, 6)
	require.NoError(t, s.CheckWritable(t.Context()))
	require.NoError(t, s.PutGraph(t.Context(), checkpoint.GraphRecord{Name: "g", Version: "1", Source: "{}"}, checkpoint.GraphCondition{}))
}

// TestMigratedUnderAServer plays a newer graphd that migrates a store which this
// one still uses.
func TestMigratedUnderAServer(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	s := openStore(t, server.URL(""))
	applySupersteps(t, s, "old", 1, 2)
	for _, key := range server.Client.Keys(t.Context(), "*:store").Val() {
		mark := server.Client.Get(t.Context(), key).Val()
		_, rest, _ := strings.Cut(mark, " ")
		require.NoError(t, server.Client.Set(t.Context(), key, "99 "+rest, 0).Err())
	}
	err := s.CheckWritable(t.Context())
	require.ErrorIs(t, err, checkpoint.ErrStoreReplaced)
	require.ErrorContains(t, err, "16 partitions of 16")
	require.ErrorContains(t, err, "migrated to format 99")
	_, err = s.Apply(t.Context(), newSuperstep("old", 3, make([]payload.JSON, 3)))
	require.ErrorIs(t, err, checkpoint.ErrStoreReplaced)
	require.Equal(t, setup.ProblemFormat, requireSetupError(t, server.URL("")).Problem)
}

// TestServersOfAnEarlierFormatOnAnEmptyRedis repairs what they have left behind:
// threads without what their store agrees on.
func TestServersOfAnEarlierFormatOnAnEmptyRedis(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	s := openStore(t, server.URL("partitions=7"))
	for thread := range strings.FieldsSeq("a b c d e f g h i j k l m n") {
		c := newSuperstep(thread, 1, make([]payload.JSON, 1))
		c.Lease, c.Head.Owner = 0, "" // it is not running any more
		_, err := s.Apply(t.Context(), c)
		require.NoError(t, err)
	}
	for _, key := range append(server.Client.Keys(t.Context(), "*:store").Val(), "graphd{meta}:format") {
		require.NoError(t, server.Client.Del(t.Context(), key).Err())
	}
	p := requireSetupError(t, server.URL(""))
	require.Equal(t, setup.ProblemNoMetadata, p.Problem)
	require.Contains(t, p.Want, "graphd store repair")
	loss, err := setup.Repair(t.Context(), redis.Options{URL: server.URL("")}, true)
	require.NoError(t, err)
	require.Equal(t, checkpoint.Loss{MetadataLost: true}, loss)
	require.Equal(t, setup.ProblemOlder, requireSetupError(t, server.URL("")).Problem)
	m, err := setup.Migrate(t.Context(), redis.Options{URL: server.URL("")}, false, func(checkpoint.Migration) {})
	require.NoError(t, err)
	require.Equal(t, 14, m.Done)
	applySupersteps(t, openStore(t, server.URL("partitions=7")), "a", 2, 3)
}

func TestMarksOnCluster(t *testing.T) {
	nodes := redistest.StartCluster(t, 3)
	c := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{nodes[0].Addr()}})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	testLostPartitions(t, nodes[1].URL(""), c)

	// One of the masters comes back empty.
	s := openStore(t, nodes[1].URL(""))
	require.NoError(t, nodes[2].Client.FlushAll(t.Context()).Err())
	err := s.CheckWritable(t.Context())
	require.ErrorIs(t, err, checkpoint.ErrStoreReplaced)
	require.ErrorContains(t, err, "partitions of 16")
	p := requireSetupError(t, nodes[1].URL(""))
	require.Equal(t, setup.ProblemLost, p.Problem)
	_, err = setup.Repair(t.Context(), redis.Options{URL: nodes[1].URL("")}, true)
	require.NoError(t, err)
	require.NoError(t, openStore(t, nodes[1].URL("")).CheckWritable(t.Context()))
}
