package redis_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/payload"
)

// A thread with a missing key is damaged: nothing is added to what is left, it
// says which key it was, and it can be deleted.
func TestMissingKeysAreCorrupt(t *testing.T) {
	server := redistest.Start(t)
	s := openStore(t, server.URL(""))
	applySupersteps(t, s, "good", 1, 2)
	addAllRecords(t, s, "good")
	for _, letter := range []string{"v", "s", "p", "q", "r", "o", "e"} {
		applySupersteps(t, s, "bad", 1, 2)
		addAllRecords(t, s, "bad")
		key := keyOfThread(t, server, letter, "bad")
		require.NoError(t, server.Client.Del(t.Context(), key).Err())

		h, err := s.Head(t.Context(), "bad")
		requireCorrupt(t, err, key)
		_, err = s.Apply(t.Context(), newSuperstep("bad", 4, make([]payload.JSON, 4)))
		requireCorrupt(t, err, key)
		requireGood(t, s)
		_, err = s.Apply(t.Context(), &checkpoint.Change{Thread: "bad", Expect: h.Revision, Delete: true})
		require.NoError(t, err)
		_, err = s.Head(t.Context(), "bad")
		require.ErrorIs(t, err, checkpoint.ErrThreadNotFound)
	}
}

// addAllRecords adds to a thread that grew to two supersteps all that a thread can have.
func addAllRecords(t *testing.T, s checkpoint.Store, thread string) {
	t.Helper()
	c := newSuperstep(thread, 3, nil)
	c.Checkpoints, c.Head.Seq, c.ClearTasks = nil, 2, nil
	c.Tasks = []checkpoint.Task{{Checkpoint: "000000000002", ID: "task"}}
	c.Interrupts = []checkpoint.Interrupt{{ID: "q", Thread: thread}}
	c.Runs = []checkpoint.Run{{ID: "r", Thread: thread}}
	_, err := s.Apply(t.Context(), c)
	require.NoError(t, err)
}

// What is left of a thread without its head is not the beginning of a new one.
func TestRemainsAreNoThread(t *testing.T) {
	server := redistest.Start(t)
	s := openStore(t, server.URL(""))
	applySupersteps(t, s, "good", 1, 2)
	addAllRecords(t, s, "good")
	applySupersteps(t, s, "bad", 1, 2)
	key := keyOfThread(t, server, "h", "bad")
	require.NoError(t, server.Client.Del(t.Context(), key).Err())
	_, err := s.Head(t.Context(), "bad")
	requireCorrupt(t, err, key+" is missing")
	_, err = s.Apply(t.Context(), newSuperstep("bad", 1, make([]payload.JSON, 1)))
	requireCorrupt(t, err, key+" is missing")
	requireGood(t, s)
}

func TestMissingEventsAreCorrupt(t *testing.T) {
	server := redistest.Start(t)
	s := openStore(t, server.URL(""))
	applySupersteps(t, s, "bad", 1, 2)
	key := keyOfThread(t, server, "e", "bad")
	require.NoError(t, server.Client.RPop(t.Context(), key).Err())
	_, err := s.Events(t.Context(), "bad", 0, 0)
	requireCorrupt(t, err, key)
}
