package redis_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/payload"
)

// newSuperstep returns the n-th change of a thread, counted from 1: a checkpoint
// with a value and a list that grows, a task that is used up, an interrupt and
// events.
func newSuperstep(thread string, n uint64, list []payload.JSON) *checkpoint.Change {
	at := time.Date(2026, 1, 1, 0, 0, int(n), 0, time.UTC)
	id := fmt.Sprintf("%012d", n)
	value := payload.JSON(`"` + strings.Repeat("x", 500) + `"`)
	return &checkpoint.Change{
		Thread: thread, Expect: n - 1, Op: id, Lease: time.Minute,
		Head: checkpoint.Head{
			Thread: thread, LogID: "log", Graph: "g", State: checkpoint.ThreadBusy, Owner: "me",
			Created: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Updated: at, Checkpoint: id, Seq: n, LastEvent: 2 * n, FirstEvent: 1,
		},
		Checkpoints: []*checkpoint.Checkpoint{{
			ID: id, Seq: n, Graph: "g", Channels: []checkpoint.Channel{
				{Name: "value", Version: n, Stored: n, Value: value},
				{Name: "list", Version: n, Stored: n, List: &checkpoint.List{
					Items: list, Segments: []checkpoint.Segment{{ID: 1, Len: len(list)}}, Appended: 1,
				}},
			},
		}},
		Tasks:      []checkpoint.Task{{ID: "task", Checkpoint: id, State: checkpoint.TaskDone}},
		ClearTasks: []string{fmt.Sprintf("%012d", n-1)},
		Events: []checkpoint.Event{
			{Seq: 2*n - 1, Time: at, Kind: checkpoint.EventUpdate, Value: "1"},
			{Seq: 2 * n, Time: at, Kind: checkpoint.EventCheckpoint, Checkpoint: id},
		},
	}
}

// applySupersteps applies supersteps first to last of a thread.
func applySupersteps(t *testing.T, s *redis.Store, thread string, first, last uint64) {
	t.Helper()
	for n := first; n <= last; n++ {
		list := make([]payload.JSON, n)
		for i := range list {
			list[i] = payload.JSON(strconv.Itoa(i))
		}
		_, err := s.Apply(t.Context(), newSuperstep(thread, n, list))
		require.NoError(t, err)
	}
}

// readStats reads numbers of the server's INFO.
func readStats(t *testing.T, server *redistest.Server) map[string]string {
	t.Helper()
	text, err := server.Client.Info(t.Context(), "everything").Result()
	require.NoError(t, err)
	out := map[string]string{}
	for line := range strings.Lines(text) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), ":")
		out[k] = v
	}
	return out
}

func statNumber(t *testing.T, s map[string]string, key string) int {
	t.Helper()
	n, err := strconv.Atoi(s[key])
	require.NoError(t, err, key)
	return n
}

func TestSuperstepIsOneExchange(t *testing.T) {
	server := redistest.Start(t)
	s := openStore(t, server.URL(""))
	applySupersteps(t, s, "t", 1, 5)
	require.NoError(t, server.Client.ConfigResetStat(t.Context()).Err())
	before := statNumber(t, readStats(t, server), "total_reads_processed")
	applySupersteps(t, s, "t", 6, 55)
	after := readStats(t, server)
	require.True(t, strings.HasPrefix(after["cmdstat_evalsha"], "calls=50,"), after["cmdstat_evalsha"])
	for _, other := range []string{"eval", "multi", "exec", "script|load"} {
		require.Empty(t, after["cmdstat_"+other], other)
	}
	require.Equal(t, 51, statNumber(t, after, "total_reads_processed")-before,
		"50 requests arrived, and the one that asks for this")
}

func TestSuperstepIsFewCommands(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	s := openStore(t, server.URL(""))
	step := func(n uint64) {
		c := newSuperstep("t", n, []payload.JSON{"1"})
		c.Head.Updated = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) // as of a thread that is at work
		c.Checkpoints[0].Channels, c.Tasks, c.ClearTasks = c.Checkpoints[0].Channels[:1], nil, nil
		_, err := s.Apply(t.Context(), c)
		require.NoError(t, err)
	}
	step(1)
	require.NoError(t, server.Client.ConfigResetStat(t.Context()).Err())
	for n := range uint64(50) {
		step(n + 2)
	}
	after := readStats(t, server)
	calls := func(command string) int {
		text, _, _ := strings.Cut(strings.TrimPrefix(after["cmdstat_"+command], "calls="), ",")
		n, _ := strconv.Atoi(text)
		return n
	}
	require.Equal(t, 50, calls("hget"), "it is read where the thread stands")
	require.Equal(t, 100, calls("hset"), "it is written, and the checkpoint with all that is kept beside it")
	require.Equal(t, 50, calls("rpush"), "the events come together")
	require.InDelta(t, 50, calls("zadd"), 5, "no list of the partition is changed, or only when the lease has moved")
	require.Less(t, calls("zrem"), 5)
}

// newBatchedChange returns the change of a thread that comes after others like it: some
// supersteps at once.
func newBatchedChange(thread string, changes, many uint64) *checkpoint.Change {
	first := changes*many + 1
	c := newSuperstep(thread, first, []payload.JSON{"1"})
	c.Expect = changes
	c.Head.Seq, c.Head.LastEvent = first+many-1, 2*(first+many-1)
	c.Tasks, c.ClearTasks = nil, nil
	c.Checkpoints[0].Channels = c.Checkpoints[0].Channels[:1]
	for n := first + 1; n < first+many; n++ {
		next := newSuperstep(thread, n, []payload.JSON{"1"})
		next.Checkpoints[0].Channels = next.Checkpoints[0].Channels[:1]
		c.Checkpoints = append(c.Checkpoints, next.Checkpoints...)
		c.Events = append(c.Events, next.Events...)
	}
	return c
}

// Checkpoints that are committed together take as many commands as one, and the
// events of all of them a few elements of the log.
func TestManySuperstepsAreAsManyCommandsAsOne(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	s := openStore(t, server.URL(""))
	const many = 64
	_, err := s.Apply(t.Context(), newBatchedChange("t", 0, many))
	require.NoError(t, err)
	require.NoError(t, server.Client.ConfigResetStat(t.Context()).Err())
	_, err = s.Apply(t.Context(), newBatchedChange("t", 1, many))
	require.NoError(t, err)
	after := readStats(t, server)
	for command, calls := range map[string]string{"hset": "2", "rpush": "1", "hget": "1", "exists": "1", "evalsha": "1"} {
		require.True(t, strings.HasPrefix(after["cmdstat_"+command], "calls="+calls+","), "%s: %s", command, after["cmdstat_"+command])
	}
	require.Regexp(t, "^calls=[1-3],", after["cmdstat_zadd"], "the checkpoints; the lists of threads and of what is due")
	require.EqualValues(t, 4, server.Client.LLen(t.Context(), keyOfThread(t, server, "e", "t")).Val())

	list, err := s.Checkpoints(t.Context(), checkpoint.CheckpointQuery{Thread: "t"})
	require.NoError(t, err)
	require.Len(t, list, 2*many)
	events, err := s.Events(t.Context(), "t", 3*many-2, 4)
	require.NoError(t, err)
	require.Len(t, events, 4)
	require.EqualValues(t, 3*many-1, events[0].Seq)

	// What a rollback takes away goes with all that was written with it.
	back := newSuperstep("t", 2*many+1, nil)
	cut := uint64(many + 10)
	back.Expect, back.Checkpoints, back.Tasks, back.Head.Seq, back.DropAfter = 2, nil, nil, cut, &cut
	back.Head.LastEvent = 4*many + 2
	_, err = s.Apply(t.Context(), back)
	require.NoError(t, err)
	require.EqualValues(t, 2*cut, server.Client.HLen(t.Context(), keyOfThread(t, server, "v", "t")).Val())
	require.EqualValues(t, cut, server.Client.ZCard(t.Context(), keyOfThread(t, server, "s", "t")).Val())
	list, err = s.Checkpoints(t.Context(), checkpoint.CheckpointQuery{Thread: "t"})
	require.NoError(t, err)
	require.Len(t, list, int(cut))
}

func TestForgottenScriptsAreSentAgain(t *testing.T) {
	server := redistest.Start(t)
	s := openStore(t, server.URL(""))
	for n := range uint64(3) {
		require.NoError(t, server.Client.ScriptFlush(t.Context()).Err())
		applySupersteps(t, s, "t", n+1, n+1)
		require.NoError(t, server.Client.ScriptFlush(t.Context()).Err())
		_, err := s.Checkpoint(t.Context(), "t", "", "")
		require.NoError(t, err)
		require.NoError(t, server.Client.ScriptFlush(t.Context()).Err())
		heads, err := s.Threads(t.Context(), checkpoint.ThreadQuery{})
		require.NoError(t, err)
		require.Len(t, heads, 1)
		require.NoError(t, server.Client.ScriptFlush(t.Context()).Err())
		_, _, err = s.Due(t.Context(), 1)
		require.NoError(t, err)
		_, err = s.Interrupts(t.Context(), checkpoint.InterruptQuery{ByChange: true})
		require.NoError(t, err)
	}
}

func TestKilledServerForgetsNothing(t *testing.T) {
	server := redistest.Start(t)
	s := openStore(t, server.URL(""))
	for n := range uint64(3) {
		applySupersteps(t, s, "t", 2*n+1, 2*n+2)
		server.Restart()
		h, err := s.Head(t.Context(), "t")
		require.NoError(t, err)
		require.Equal(t, 2*n+2, h.Revision)
		cp, err := s.Checkpoint(t.Context(), "t", "", "")
		require.NoError(t, err)
		require.Len(t, cp.Channels[1].List.Items, int(2*n+2))
		events, err := s.Events(t.Context(), "t", 0, 0)
		require.NoError(t, err)
		require.Len(t, events, int(4*n+4))
	}
}

func TestStoppedServerIsUnavailable(t *testing.T) {
	server := redistest.Start(t)
	s := openStore(t, server.URL(""))
	applySupersteps(t, s, "t", 1, 1)
	server.Kill()
	_, err := s.Apply(t.Context(), newSuperstep("t", 2, []payload.JSON{"1", "2"}))
	require.ErrorIs(t, err, checkpoint.ErrUnavailable)
	require.ErrorContains(t, err, `thread "t"`)
	_, err = s.Head(t.Context(), "t")
	require.ErrorIs(t, err, checkpoint.ErrUnavailable)
	server.Restart()
	_, err = s.Head(t.Context(), "t")
	require.NoError(t, err)
}

// valueBytes counts the bytes of the values of a thread.
func valueBytes(t *testing.T, server *redistest.Server) (n int) {
	t.Helper()
	keys, err := server.Client.Keys(t.Context(), "graphd{*}:v:t").Result()
	require.NoError(t, err)
	require.Len(t, keys, 1)
	all, err := server.Client.HGetAll(t.Context(), keys[0]).Result()
	require.NoError(t, err)
	for field, v := range all {
		n += len(field) + len(v)
	}
	return n
}

func TestAppendCostsItsOwnSize(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "everysec")
	s := openStore(t, server.URL(""))
	item := payload.JSON(`"` + strings.Repeat("x", 1022) + `"`)
	var list []payload.JSON
	for n := range uint64(500) {
		list = append(list, item)
		c := newSuperstep("t", n+1, list)
		c.Checkpoints[0].Channels = c.Checkpoints[0].Channels[1:]
		_, err := s.Apply(t.Context(), c)
		require.NoError(t, err)
	}
	require.Less(t, valueBytes(t, server), 1_000_000)
	cp, err := s.Checkpoint(t.Context(), "t", "", "")
	require.NoError(t, err)
	require.Equal(t, list, cp.Channels[0].List.Items)

	key := keyOfThread(t, server, "v", "t")
	used, err := server.Client.MemoryUsage(t.Context(), key, 0).Result()
	require.NoError(t, err)
	require.Less(t, used, int64(750_000), "with 500 checkpoints")
	require.EqualValues(t, 1500, server.Client.HLen(t.Context(), key).Val(), "each element in two parts that fit")

	cut := uint64(100)
	back := newSuperstep("t", 501, nil)
	back.Checkpoints, back.Tasks, back.Head.Seq, back.DropAfter = nil, nil, cut, &cut
	_, err = s.Apply(t.Context(), back)
	require.NoError(t, err)
	require.EqualValues(t, 300, server.Client.HLen(t.Context(), key).Val())
	cp, err = s.Checkpoint(t.Context(), "t", "", "")
	require.NoError(t, err)
	require.Equal(t, list[:100], cp.Channels[0].List.Items)
	require.NoError(t, server.Client.HDel(t.Context(), key, "ji1:7:list").Err())
	_, err = s.Checkpoint(t.Context(), "t", "", "")
	require.ErrorIs(t, err, checkpoint.ErrCorrupt)
	require.ErrorContains(t, err, "i1:7:list")
}

func TestDeletedThreadLeavesNoKey(t *testing.T) {
	server := redistest.Start(t)
	s := openStore(t, server.URL(""))
	applySupersteps(t, s, "t", 1, 3)
	c := newSuperstep("t", 4, make([]payload.JSON, 4))
	c.Interrupts = []checkpoint.Interrupt{{ID: "q", Thread: "t", State: checkpoint.InterruptOpen}, {ID: "p", Thread: "t"}}
	c.Runs = []checkpoint.Run{{ID: "r", Thread: "t", Order: 1}}
	c.Request = &checkpoint.Request{ID: "x"}
	c.Memos = []checkpoint.Memo{{Task: "task", Checkpoint: "c", Value: "1"}}
	c.Checkpoints, c.Head.Seq = nil, 3
	_, err := s.Apply(t.Context(), c)
	require.NoError(t, err)
	_, err = s.Apply(t.Context(), &checkpoint.Change{Thread: "t", Expect: 4, Delete: true})
	require.NoError(t, err)
	keys, err := server.Client.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	for _, key := range keys {
		require.True(t, strings.HasSuffix(key, ":format") || strings.HasSuffix(key, ":count") || strings.HasSuffix(key, ":store"), key)
	}
	require.Len(t, keys, 2+16)
}
