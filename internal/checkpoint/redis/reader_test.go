package redis_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/checkpointtest"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/setup"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
)

// dumpKeys returns what stands under each key.
func dumpKeys(t *testing.T, server *redistest.Server) map[string]string {
	t.Helper()
	keys, err := server.Client.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	all := map[string]string{}
	for _, key := range keys {
		all[key], err = server.Client.Dump(t.Context(), key).Result()
		require.NoError(t, err)
	}
	return all
}

// readerURL is a server as a user sees it who may neither write nor publish.
func readerURL(t *testing.T, server *redistest.Server) string {
	t.Helper()
	require.NoError(t, server.Client.Do(t.Context(), "ACL", "SETUSER", "reader", "on", ">secret", "~*", "&*", "+@all", "-@write", "-@pubsub").Err())
	return "redis://reader:secret@" + server.Addr() + "/0"
}

// A reader with keys that the store does not need, or in another order, leaves the store to its
// servers as it was.
func TestAReaderWritesNothing(t *testing.T) {
	k1, k2 := newKey("k1", 1), newKey("k2", 2)
	for name, c := range map[string]struct {
		stored, given []seal.Key
		lose          []string // fields of the metadata
	}{
		"plain":                      {},
		"plain, keys not needed":     {given: []seal.Key{k1}},
		"sealed":                     {stored: []seal.Key{k1}, given: []seal.Key{k1}},
		"sealed, another order":      {stored: []seal.Key{k1}, given: []seal.Key{k2, k1}},
		"not known to be whole":      {lose: []string{"whole"}},
		"without metadata":           {lose: []string{"format", "partitions", "epoch", "whole"}},
		"without metadata, and keys": {given: []seal.Key{k1}, lose: []string{"format", "partitions", "epoch", "whole"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			s, err := redis.Open(t.Context(), redis.Options{URL: server.URL(""), Seal: seal.Options{Keys: c.stored}})
			require.NoError(t, err)
			checkpointtest.WriteAll(t.Context(), t, s)
			require.NoError(t, s.PutGraph(t.Context(), checkpoint.GraphRecord{Name: "g", Version: "1", Source: "nodes: {}"}, checkpoint.GraphCondition{}))
			require.NoError(t, s.Close())
			if c.lose != nil {
				require.NoError(t, server.Client.HDel(t.Context(), "graphd{meta}:format", c.lose...).Err())
			}
			before := dumpKeys(t, server)

			r, err := redis.OpenReader(t.Context(), redis.Options{URL: readerURL(t, server), Seal: seal.Options{Keys: c.given}})
			require.NoError(t, err)
			h, err := r.Head(t.Context(), "t")
			require.NoError(t, err)
			require.Equal(t, "t", h.Thread)
			events, err := r.Events(t.Context(), "t", h.LastEvent-1, 0)
			require.NoError(t, err)
			require.NotEmpty(t, events)
			runs, err := r.Runs(t.Context(), "t", 0, 0)
			require.NoError(t, err)
			require.NotEmpty(t, runs)
			_, err = r.Interrupts(t.Context(), checkpoint.InterruptQuery{Thread: "t"})
			require.NoError(t, err)
			list, err := r.Checkpoints(t.Context(), checkpoint.CheckpointQuery{Thread: "t", AllNamespaces: true})
			require.NoError(t, err)
			require.NotEmpty(t, list)
			_, err = r.Pending(t.Context(), "t", list[0].ID)
			require.NoError(t, err)
			require.NoError(t, r.Close())
			_, err = r.Head(t.Context(), "t")
			require.ErrorIs(t, err, checkpoint.ErrUnavailable)
			require.Equal(t, before, dumpKeys(t, server))

			again, err := redis.Open(t.Context(), redis.Options{URL: server.URL(""), Seal: seal.Options{Keys: c.stored}})
			require.NoError(t, err, "a server starts with the keys that it had")
			require.NoError(t, again.Close())
		})
	}
}

func requireProblem(t *testing.T, err error, want setup.Problem) {
	t.Helper()
	var problem *setup.Error
	require.ErrorAs(t, err, &problem)
	require.Equal(t, want, problem.Problem, err)
}

func TestAReaderRefusesWhatAServerRefuses(t *testing.T) {
	server := redistest.Start(t)
	_, err := redis.OpenReader(t.Context(), redis.Options{URL: server.URL("")})
	requireProblem(t, err, setup.ProblemMissing)
	require.Zero(t, server.Client.DBSize(t.Context()).Val())

	s, err := redis.Open(t.Context(), redis.Options{URL: server.URL(""), Seal: sealOptions(newKey("k1", 1))})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	before := dumpKeys(t, server)
	for _, keys := range [][]seal.Key{nil, {newKey("k2", 2)}, {newKey("k1", 3)}} {
		_, err = redis.OpenReader(t.Context(), redis.Options{URL: server.URL(""), Seal: sealOptions(keys...)})
		requireProblem(t, err, setup.ProblemKeys)
	}
	require.NoError(t, server.Client.HSet(t.Context(), "graphd{meta}:format", "format", redis.Format-1).Err())
	_, err = redis.OpenReader(t.Context(), redis.Options{URL: server.URL(""), Seal: sealOptions(newKey("k1", 1))})
	requireProblem(t, err, setup.ProblemOlder)
	require.NoError(t, server.Client.HSet(t.Context(), "graphd{meta}:format", "format", redis.Format).Err())
	require.Equal(t, before, dumpKeys(t, server))
	for key := range before {
		if key != "graphd{meta}:format" {
			require.NoError(t, server.Client.Del(t.Context(), key).Err())
			break
		}
	}
	_, err = redis.OpenReader(t.Context(), redis.Options{URL: server.URL(""), Seal: sealOptions(newKey("k1", 1))})
	requireProblem(t, err, setup.ProblemLost)
	require.Len(t, dumpKeys(t, server), len(before)-1)
}
