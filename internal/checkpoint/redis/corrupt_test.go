package redis_test

import (
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/payload"
)

// TestCorruptRecords breaks one record after another of one thread of two.
func TestCorruptRecords(t *testing.T) {
	const last = "000000000002"
	for name, c := range map[string]struct {
		key   string // letter of the key
		field string
		read  func(s *redis.Store) error
		names string
	}{
		"head": {"h", "head", func(s *redis.Store) error {
			_, err := s.Head(t.Context(), "bad")
			return err
		}, ":h:bad"},
		"manifest": {"v", "c" + last, func(s *redis.Store) error {
			_, err := s.Checkpoint(t.Context(), "bad", "", "")
			return err
		}, last},
		"value": {"v", "v2:value", func(s *redis.Store) error {
			_, err := s.Checkpoint(t.Context(), "bad", "", last)
			return err
		}, `"v2:value"`},
		"task": {"p", "12:" + last + "ttask", func(s *redis.Store) error {
			_, err := s.Pending(t.Context(), "bad", last)
			return err
		}, `task "task"`},
		"question": {"q", "rq", func(s *redis.Store) error {
			_, err := s.Interrupt(t.Context(), "bad", "q")
			return err
		}, `interrupt "q"`},
		"run": {"r", "rr", func(s *redis.Store) error {
			_, err := s.Run(t.Context(), "bad", "r")
			return err
		}, `run "r"`},
		"request": {"r", "qx", func(s *redis.Store) error {
			_, err := s.Request(t.Context(), "bad", "x")
			return err
		}, `request "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			s := openStore(t, server.URL(""))
			for _, thread := range []string{"good", "bad"} {
				applySupersteps(t, s, thread, 1, 2)
				c := newSuperstep(thread, 3, nil)
				c.Checkpoints, c.Head.Seq, c.ClearTasks, c.Tasks = nil, 2, nil, nil
				c.Interrupts = []checkpoint.Interrupt{{ID: "q", Thread: thread}}
				c.Runs = []checkpoint.Run{{ID: "r", Thread: thread}}
				c.Request = &checkpoint.Request{ID: "x"}
				_, err := s.Apply(t.Context(), c)
				require.NoError(t, err)
			}
			key := keyOfThread(t, server, c.key, "bad")
			require.True(t, server.Client.HExists(t.Context(), key, c.field).Val(), "%s %s", key, c.field)
			require.NoError(t, server.Client.HSet(t.Context(), key, c.field, "garbage").Err())
			requireCorrupt(t, c.read(s), c.names)
			requireGood(t, s)

			require.NoError(t, server.Client.Set(t.Context(), key, "another type", 0).Err())
			requireCorrupt(t, c.read(s), "another type")
			requireGood(t, s)
		})
	}
}

func keyOfThread(t *testing.T, server *redistest.Server, letter, thread string) string {
	t.Helper()
	keys, err := server.Client.Keys(t.Context(), "graphd{*}:"+letter+":"+thread).Result()
	require.NoError(t, err)
	require.Len(t, keys, 1)
	return keys[0]
}

func requireCorrupt(t *testing.T, err error, names string) {
	t.Helper()
	require.ErrorIs(t, err, checkpoint.ErrCorrupt)
	require.ErrorContains(t, err, `thread "bad"`)
	require.ErrorContains(t, err, names)
}

// requireGood checks that the other thread and the lists go on.
func requireGood(t *testing.T, s *redis.Store) {
	t.Helper()
	cp, err := s.Checkpoint(t.Context(), "good", "", "")
	require.NoError(t, err)
	require.Len(t, cp.Channels[1].List.Items, 2)
	heads, err := s.Threads(t.Context(), checkpoint.ThreadQuery{})
	require.NoError(t, err)
	require.NotEmpty(t, heads)
	for _, byChange := range []bool{false, true} {
		list, err := s.Interrupts(t.Context(), checkpoint.InterruptQuery{ByChange: byChange})
		require.NoError(t, err)
		require.NotEmpty(t, list)
	}
}

// A rollback takes away what can't be read, and the thread goes on.
func TestDamagedCheckpointsAreTakenBack(t *testing.T) {
	server := redistest.Start(t)
	s := openStore(t, server.URL(""))
	applySupersteps(t, s, "good", 1, 2)
	addAllRecords(t, s, "good")
	applySupersteps(t, s, "bad", 1, 3)
	values, order := keyOfThread(t, server, "v", "bad"), keyOfThread(t, server, "s", "bad")
	require.NoError(t, server.Client.HSet(t.Context(), values, "c000000000003", "garbage").Err())
	_, err := s.Checkpoint(t.Context(), "bad", "", "")
	requireCorrupt(t, err, "000000000003")

	cut := uint64(2)
	back := newSuperstep("bad", 4, nil)
	back.Checkpoints, back.Tasks, back.ClearTasks, back.Head.Seq, back.DropAfter = nil, nil, nil, cut, &cut
	require.NoError(t, server.Client.ZAdd(t.Context(), order, goredis.Z{Score: 9, Member: "garbage"}).Err())
	_, err = s.Apply(t.Context(), back)
	requireCorrupt(t, err, order)
	require.NoError(t, server.Client.ZRem(t.Context(), order, "garbage").Err())
	_, err = s.Apply(t.Context(), back)
	require.NoError(t, err)
	cp, err := s.Checkpoint(t.Context(), "bad", "", "")
	require.NoError(t, err)
	require.Equal(t, "000000000002", cp.ID)
	requireGood(t, s)
}

func TestMissingRecordsAreCorrupt(t *testing.T) {
	server := redistest.Start(t)
	s := openStore(t, server.URL(""))
	applySupersteps(t, s, "bad", 1, 2)
	key := keyOfThread(t, server, "v", "bad")
	for _, field := range []string{"v2:value", "i1:0:list"} {
		was := server.Client.HGet(t.Context(), key, field).Val()
		require.NotEmpty(t, was)
		require.NoError(t, server.Client.HDel(t.Context(), key, field).Err())
		_, err := s.Checkpoint(t.Context(), "bad", "", "")
		requireCorrupt(t, err, field)
		require.NoError(t, server.Client.HSet(t.Context(), key, field, was).Err())
	}
	_, err := s.Checkpoint(t.Context(), "bad", "", "")
	require.NoError(t, err)
}

func TestOutOfMemory(t *testing.T) {
	server := redistest.Start(t, "--maxmemory", "4mb")
	s := openStore(t, server.URL(""))
	var err error
	var n uint64
	for n = 1; err == nil && n < 200; n++ {
		c := newSuperstep("t", n, make([]payload.JSON, n))
		c.Checkpoints[0].Channels[0].Value = payload.JSON(`"` + strings.Repeat("x", 100_000) + `"`)
		_, err = s.Apply(t.Context(), c)
	}
	require.ErrorIs(t, err, checkpoint.ErrUnavailable)
	require.ErrorContains(t, err, "OOM")
	h, err := s.Head(t.Context(), "t")
	require.NoError(t, err)
	require.Equal(t, n-2, h.Revision, "nothing of the refused change is there")
	_, err = s.Apply(t.Context(), &checkpoint.Change{Thread: "t", Expect: h.Revision, Delete: true})
	require.NoError(t, err, "room can be made")
	require.Eventually(t, func() bool {
		_, err := s.Apply(t.Context(), newSuperstep("t", 1, []payload.JSON{"1"}))
		return err == nil
	}, time.Minute, 10*time.Millisecond, "Redis gives back what is large in the background")
}
