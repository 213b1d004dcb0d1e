package redis_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/checkpointtest"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/setup"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/payload"
)

func newKey(id string, b byte) seal.Key {
	return seal.Key{ID: id, Secret: bytes.Repeat([]byte{b}, seal.KeySize)}
}

func sealOptions(keys ...seal.Key) seal.Options { return seal.Options{Keys: keys, Compress: true} }

func openSealed(t *testing.T, url string, opts seal.Options) *redis.Store {
	t.Helper()
	s, err := redis.Open(t.Context(), redis.Options{URL: url, Seal: opts, Tombstones: checkpointtest.Tombstones})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestContractSealed(t *testing.T) {
	server := redistest.Start(t)
	var n atomic.Int32
	checkpointtest.Run(t, func(t *testing.T, _ func() time.Time) checkpointtest.Store {
		t.Helper()
		return openSealed(t, server.URL(fmt.Sprintf("shared=true&prefix=case%d", n.Add(1))), sealOptions(newKey("k1", 1)))
	}, checkpointtest.OwnClock())
}

// secretText must not be readable.
const secretText = "hush-hush"

// TestNothingIsReadable looks for a value in everything that Redis holds,
// writes to its disk and publishes.
func TestNothingIsReadable(t *testing.T) {
	for name, c := range map[string]struct {
		opts  seal.Options
		found bool
	}{
		"plain":      {seal.Options{}, true}, // so the search finds what there is
		"compressed": {seal.Options{Compress: true}, true},
		"sealed":     {sealOptions(newKey("k1", 1)), false},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			s := openSealed(t, server.URL(""), c.opts)
			applySupersteps(t, s, "heard", 1, 1)
			channel := keyOfThread(t, server, "h", "heard")
			heard := server.Client.SSubscribe(t.Context(), channel)
			t.Cleanup(func() { require.NoError(t, heard.Close()) })
			_, err := heard.Receive(t.Context())
			require.NoError(t, err)
			change := newSuperstep("heard", 2, []payload.JSON{"1", "2"})
			change.Events[0].Value = `"` + secretText + `"`
			_, err = s.Apply(t.Context(), change)
			require.NoError(t, err)
			message, err := heard.ReceiveMessage(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.found, strings.Contains(message.Payload, secretText), "what is published")

			_, err = s.Apply(t.Context(), checkpointtest.ChangeWithText("t", secretText))
			require.NoError(t, err)
			require.NoError(t, s.PutGraph(t.Context(), checkpoint.GraphRecord{Name: "g", Version: "1", Source: secretText}, checkpoint.GraphCondition{}))
			require.NoError(t, checkpointtest.ReadThread(t, s, "t"))
			list, err := s.Threads(t.Context(), checkpoint.ThreadQuery{Metadata: map[string]string{"label": secretText}})
			require.NoError(t, err)
			require.Len(t, list, 1, "labels can be asked for")
			asked, err := s.Interrupts(t.Context(), checkpoint.InterruptQuery{Tags: []string{checkpoint.UserTag(secretText)}})
			require.NoError(t, err)
			require.Len(t, asked, 1)
			require.Equal(t, c.found, isOnDisk(t, server, secretText))
		})
	}
}

// isOnDisk looks for a text in the files of a server: its log of commands.
func isOnDisk(t *testing.T, server *redistest.Server, text string) (found bool) {
	t.Helper()
	dir := server.Client.ConfigGet(t.Context(), "dir").Val()["dir"]
	require.NotEmpty(t, dir)
	size := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		size += len(content)
		found = found || bytes.Contains(content, []byte(text))
		return err
	}))
	require.Greater(t, size, 5000)
	return found
}

// TestTamperedRecords changes each sealed record of one thread of two, puts
// another one in its place, and the same one of the other thread.
func TestTamperedRecords(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	s := openSealed(t, server.URL(""), sealOptions(newKey("k1", 1)))
	for _, thread := range []string{"good", "bad"} {
		_, err := s.Apply(t.Context(), checkpointtest.ChangeWithText(thread, secretText))
		require.NoError(t, err)
	}
	require.NoError(t, checkpointtest.ReadThread(t, s, "bad"))
	tried := 0
	numbers := regexp.MustCompile(`^([0-9a-f]+ )*`)
	for _, letter := range []string{"h", "v", "p", "q", "r"} {
		bad := keyOfThread(t, server, letter, "bad")
		good := server.Client.HGetAll(t.Context(), keyOfThread(t, server, letter, "good")).Val()
		for field, was := range server.Client.HGetAll(t.Context(), bad).Val() {
			beside := numbers.FindString(was) // of runs and interrupts, which stand before the record
			if _, ok := seal.SealingKeyID(was[len(beside):]); !ok {
				continue
			}
			tried++
			for _, other := range []string{was[:len(was)-1] + string(was[len(was)-1]^1), good[field], was[:len(beside)+10]} {
				require.NoError(t, server.Client.HSet(t.Context(), bad, field, other).Err())
				requireCorrupt(t, checkpointtest.ReadThread(t, s, "bad"), bad)
				require.NoError(t, checkpointtest.ReadThread(t, s, "good"))
			}
			require.NoError(t, server.Client.HSet(t.Context(), bad, field, was).Err())
			require.NoError(t, checkpointtest.ReadThread(t, s, "bad"))
		}
	}
	require.Equal(t, 10, tried)

	log := keyOfThread(t, server, "e", "bad")
	first := server.Client.LIndex(t.Context(), log, 0).Val()
	second := "2" + first[1:]
	others := server.Client.LIndex(t.Context(), keyOfThread(t, server, "e", "good"), 0).Val()
	for _, other := range []string{second, others, first[:len(first)-1]} {
		require.NoError(t, server.Client.LSet(t.Context(), log, 0, other).Err())
		requireCorrupt(t, checkpointtest.ReadThread(t, s, "bad"), "event 1")
	}
}

func TestKeysAreRotated(t *testing.T) {
	server := redistest.Start(t)
	k1, k2 := newKey("k1", 1), newKey("k2", 2)
	openWith := func(keys ...seal.Key) (*redis.Store, error) {
		return redis.Open(t.Context(), redis.Options{URL: server.URL(""), Seal: sealOptions(keys...)})
	}
	write := func(thread string, keys ...seal.Key) {
		s := openSealed(t, server.URL(""), sealOptions(keys...))
		_, err := s.Apply(t.Context(), checkpointtest.ChangeWithText(thread, secretText))
		require.NoError(t, err)
	}
	write("bad", k1)
	first := openSealed(t, server.URL(""), sealOptions(k1))
	g := checkpoint.GraphRecord{Name: "g", Version: "1", Source: secretText}
	require.NoError(t, first.PutGraph(t.Context(), g, checkpoint.GraphCondition{}))
	require.NoError(t, first.DeleteGraph(t.Context(), "g", "1", checkpoint.GraphCondition{}))
	write("good", k2, k1)
	second, err := openWith(k2)
	require.NoError(t, err)
	other := g
	other.Source = "other"
	require.ErrorIs(t, second.PutGraph(t.Context(), other, checkpoint.GraphCondition{}), checkpoint.ErrGraphExists)
	require.NoError(t, second.PutGraph(t.Context(), g, checkpoint.GraphCondition{}), "what is remembered of it is sealed anew")
	require.NoError(t, second.Close())
	both := openSealed(t, server.URL(""), sealOptions(k1, k2))
	require.NoError(t, checkpointtest.ReadThread(t, both, "bad"))
	require.NoError(t, checkpointtest.ReadThread(t, both, "good"))
	require.Empty(t, both.Warnings())

	late, err := openWith(k2)
	require.NoError(t, err)
	require.Len(t, late.Warnings(), 1)
	require.Contains(t, late.Warnings()[0], `"k1"`)
	require.NoError(t, checkpointtest.ReadThread(t, late, "good"))
	err = checkpointtest.ReadThread(t, late, "bad")
	requireCorrupt(t, err, `sealed with the key "k1", which was not given`)
	require.NotContains(t, err.Error(), base64.StdEncoding.EncodeToString(k2.Secret))
	require.NoError(t, late.Close())

	for name, keys := range map[string][]seal.Key{
		"no keys": nil, "another key of that id": {newKey("k1", 3)}, "one of two": {k1, newKey("k2", 3)},
		"none that was used": {newKey("k3", 3)},
	} {
		_, err = openWith(keys...)
		problem, ok := errors.AsType[*setup.Error](err)
		require.True(t, ok, "%s: %v", name, err)
		require.Equal(t, setup.ProblemKeys, problem.Problem, name)
	}
}

// TestOptionsMayChange writes one thread with a server after the other, each
// with other options.
func TestOptionsMayChange(t *testing.T) {
	server := redistest.Start(t)
	k1, k2 := newKey("k1", 1), newKey("k2", 2)
	for i, opts := range []seal.Options{
		{}, {Compress: true}, {Keys: []seal.Key{k1}}, sealOptions(k2, k1), {Keys: []seal.Key{k1, k2}},
	} {
		s := openSealed(t, server.URL(""), opts)
		n := uint64(i + 1)
		applySupersteps(t, s, "t", n, n)
		list, err := s.Checkpoints(t.Context(), checkpoint.CheckpointQuery{Thread: "t"})
		require.NoError(t, err)
		require.Len(t, list, i+1)
		require.Len(t, list[0].Channels[1].List.Items, i+1)
		events, err := s.Events(t.Context(), "t", 0, 0)
		require.NoError(t, err)
		require.Len(t, events, 2*i+2)
	}
}

// TestTokensAreSealed tells what is never stored from one server to another, and
// listens between them.
func TestTokensAreSealed(t *testing.T) {
	server := redistest.Start(t)
	here := openSealed(t, server.URL(""), sealOptions(newKey("k1", 1)))
	there := openSealed(t, server.URL(""), sealOptions(newKey("k2", 2), newKey("k1", 1)))
	applySupersteps(t, here, "t", 1, 1)
	between := server.Client.SSubscribe(t.Context(), keyOfThread(t, server, "h", "t"))
	t.Cleanup(func() { require.NoError(t, between.Close()) })
	_, err := between.Receive(t.Context())
	require.NoError(t, err)

	heard, tuned := make(chan checkpoint.Event, 64), make(chan struct{})
	tuner := there.Subscribe(func(s checkpoint.Signal) {
		if s.Kind == checkpoint.SignalConnected {
			close(tuned)
		}
		for _, e := range s.Events {
			heard <- e
		}
	})
	defer tuner.Close()
	defer tuner.Follow("t")()
	<-tuned
	token := checkpoint.Event{Seq: 2, Kind: checkpoint.EventMessage, Value: `"` + secretText + `"`}
	here.Subscribe(func(checkpoint.Signal) {}).PublishEphemeral("t", token)
	got := <-heard
	require.True(t, got.Ephemeral)
	require.Equal(t, token.Value, got.Value)
	message, err := between.ReceiveMessage(t.Context())
	require.NoError(t, err)
	require.NotContains(t, message.Payload, secretText)
}
