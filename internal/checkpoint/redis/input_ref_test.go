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

// changeWithInput is the first change of a thread: a run with a large input, the checkpoint
// that takes it in, and one in which its parts are in channels.
func changeWithInput(thread string, note payload.JSON) *checkpoint.Change {
	input := `{"x":0,"note":` + note + `}`
	c := newSuperstep(thread, 1, nil)
	c.Checkpoints[0].Channels = []checkpoint.Channel{{Name: "__start__", Version: 1, Stored: 1, Value: input}}
	c.Checkpoints = append(c.Checkpoints, &checkpoint.Checkpoint{
		ID: "000000000002", Seq: 2, Graph: "g", Parent: "000000000001", Channels: []checkpoint.Channel{
			{Name: "x", Version: 2, Stored: 2, Value: "0"},
			{Name: "note", Version: 2, Stored: 2, Value: note},
			{Name: "other", Version: 2, Stored: 2, Value: note[:len(note)-1] + `!"`},
		},
	})
	c.Tasks, c.ClearTasks = nil, nil
	c.Head.Seq, c.Head.Checkpoint, c.Head.Run = 2, "000000000002", "r"
	c.Runs = []checkpoint.Run{{ID: "r", Thread: thread, Order: 1, Request: checkpoint.RunRequest{Input: input}}}
	return c
}

func requireChangeWithInput(t *testing.T, s *redis.Store, c *checkpoint.Change) {
	t.Helper()
	list, err := s.Checkpoints(t.Context(), checkpoint.CheckpointQuery{Thread: c.Thread})
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, c.Checkpoints[1].Channels, list[0].Channels)
	require.Equal(t, c.Checkpoints[0].Channels, list[1].Channels)
	run, err := s.Run(t.Context(), c.Thread, "r")
	require.NoError(t, err)
	require.Equal(t, c.Runs[0].Request, run.Request)
	runs, err := s.Runs(t.Context(), c.Thread, 0, 0)
	require.NoError(t, err)
	require.Equal(t, []checkpoint.Run{run}, runs)
	g, err := s.ViewThread(t.Context(), c.Thread, "")
	require.NoError(t, err)
	require.Equal(t, &run, g.Run)
	require.Equal(t, list[0], g.Checkpoint)
}

// A large input is stored once, however many values are part of it.
func TestInputsAreReferenced(t *testing.T) {
	server := redistest.Start(t)
	s := openStore(t, server.URL(""))
	c := changeWithInput("bad", payload.JSON(`"`+strings.Repeat("\\u00e9 ", 1000)+`"`))
	_, err := s.Apply(t.Context(), c)
	require.NoError(t, err)
	requireChangeWithInput(t, s, c)
	values := server.Client.HGetAll(t.Context(), keyOfThread(t, server, "v", "bad")).Val()
	require.Less(t, len(values["v1:__start__"]), 20)
	require.Less(t, len(values["v2:note"]), 20)
	require.Greater(t, len(values["v2:other"]), 1000)

	// The run changes, its input does not.
	later := newSuperstep("bad", 2, nil)
	later.Checkpoints, later.Tasks, later.Head = nil, nil, c.Head
	later.Head.LastEvent = 4
	later.Runs = []checkpoint.Run{c.Runs[0]}
	later.Runs[0].State = checkpoint.RunInterrupted
	_, err = s.Apply(t.Context(), later)
	require.NoError(t, err)
	requireChangeWithInput(t, s, c)
	for _, record := range []string{"r", "i"} {
		require.Less(t, len(server.Client.HGet(t.Context(), keyOfThread(t, server, "r", "bad"), record+"r").Val()),
			map[string]int{"r": 200, "i": len(c.Runs[0].Request.Input) + 1}[record])
	}

	good := changeWithInput("good", `"x"`)
	_, err = s.Apply(t.Context(), good)
	require.NoError(t, err)
	requireChangeWithInput(t, s, good)

	broken := func(key, field, value string) {
		t.Helper()
		was := server.Client.HGet(t.Context(), key, field).Val()
		require.NotEmpty(t, was)
		if value == "" {
			require.NoError(t, server.Client.HDel(t.Context(), key, field).Err())
		} else {
			require.NoError(t, server.Client.HSet(t.Context(), key, field, value).Err())
		}
		_, err := s.Checkpoint(t.Context(), "bad", "", "")
		requireCorrupt(t, err, "v2:note")
		require.NoError(t, server.Client.HSet(t.Context(), key, field, was).Err())
	}
	records, v := keyOfThread(t, server, "r", "bad"), keyOfThread(t, server, "v", "bad")
	broken(records, "ir", "")
	broken(records, "ir", `"short"`)
	for _, damaged := range []string{"\x05", "\x051", "\x051:2", "\x05a:2:r", "\x05-1:2:r", "\x051:-2:r", "\x051:9999999:r", "\x051:2:s", "\x051:2:r"} {
		broken(v, "v2:note", damaged)
	}
	requireChangeWithInput(t, s, c)
	require.NoError(t, server.Client.HDel(t.Context(), records, "ir").Err())
	_, err = s.Run(t.Context(), "bad", "r")
	requireCorrupt(t, err, `run "r"`)
}

// What opens in its own place only is not quoted.
func TestSealedInputsAreNotReferenced(t *testing.T) {
	server := redistest.Start(t)
	s := openSealed(t, server.URL(""), sealOptions(newKey("k1", 1)))
	c := changeWithInput("t", payload.JSON(`"`+strings.Repeat("x", 1000)+`"`))
	_, err := s.Apply(t.Context(), c)
	require.NoError(t, err)
	requireChangeWithInput(t, s, c)
	for field, value := range server.Client.HGetAll(t.Context(), keyOfThread(t, server, "v", "t")).Val() {
		require.Less(t, value[0], byte(4), field)
	}
}
