package dump_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/checkpointtest"
	"github.com/graphd-dev/graphd/internal/checkpoint/dump"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
)

// line is a line of a dump.
type line struct {
	Kind       string          `json:"kind"`
	Record     map[string]any  `json:"record"`
	Checkpoint string          `json:"checkpoint"`
	Channel    string          `json:"channel"`
	Index      int             `json:"index"`
	Value      json.RawMessage `json:"value"`
}

func dumpThread(t *testing.T, s checkpoint.Store, thread string) (lines []line, text string) {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, dump.WriteThread(t.Context(), &out, s, thread))
	for text := range strings.Lines(out.String()) {
		var l line
		require.NoError(t, json.Unmarshal([]byte(text), &l), text)
		lines = append(lines, l)
	}
	return lines, out.String()
}

func openStores(t *testing.T) map[string]checkpointtest.Store {
	t.Helper()
	now := func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 1, time.UTC) }
	keys := []seal.Key{{ID: "k1", Secret: bytes.Repeat([]byte{1}, seal.KeySize)}}
	plain, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "a.db"), Now: now})
	require.NoError(t, err)
	sealed, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "a.db"), Now: now, Seal: seal.Options{Keys: keys}})
	require.NoError(t, err)
	shared, err := redis.Open(t.Context(), redis.Options{URL: redistest.Start(t).URL("")})
	require.NoError(t, err)
	stores := map[string]checkpointtest.Store{"sqlite": plain, "sqlite, sealed": sealed, "redis": shared}
	t.Cleanup(func() {
		for _, s := range stores {
			require.NoError(t, s.Close())
		}
	})
	return stores
}

// addProgress puts a task and a memo after the newest checkpoint.
func addProgress(t *testing.T, s checkpoint.Store) {
	t.Helper()
	h, err := s.Head(t.Context(), "t")
	require.NoError(t, err)
	cp, err := s.Checkpoint(t.Context(), "t", "", "")
	require.NoError(t, err)
	_, err = s.Apply(t.Context(), &checkpoint.Change{
		Thread: "t", Expect: h.Revision, LogID: h.LogID, Op: "progress", Head: h,
		Tasks: []checkpoint.Task{{ID: "task", Checkpoint: cp.ID, Node: "n", State: checkpoint.TaskDone}},
		Memos: []checkpoint.Memo{{Task: "task", Checkpoint: cp.ID, Key: "k", Value: "1"}},
	})
	require.NoError(t, err)
}

func TestAllRecordsOfAThread(t *testing.T) {
	for name, s := range openStores(t) {
		t.Run(name, func(t *testing.T) {
			checkpointtest.WriteAll(t.Context(), t, s)
			addProgress(t, s)
			lines, text := dumpThread(t, s, "t")
			counts, values := map[string]int{}, map[string][]string{}
			for _, l := range lines {
				counts[l.Kind]++
				if l.Kind == "channel" {
					values[l.Checkpoint+" "+l.Channel] = append(values[l.Checkpoint+" "+l.Channel], string(l.Value))
				}
			}
			require.Equal(t, "head", lines[0].Kind)
			require.Equal(t, "t", lines[0].Record["thread"])
			events, err := s.Events(t.Context(), "t", 2, 0)
			require.NoError(t, err)
			require.Equal(t, len(events), counts["event"], "all that were not cut off")
			require.Equal(t, 2, counts["run"])
			require.Equal(t, 2, counts["interrupt"])
			require.Equal(t, 1, counts["task"])
			require.Equal(t, 1, counts["memo"])

			list, err := s.Checkpoints(t.Context(), checkpoint.CheckpointQuery{Thread: "t", AllNamespaces: true})
			require.NoError(t, err)
			require.Equal(t, len(list), counts["checkpoint"])
			newest := list[0]
			for i := range newest.Channels {
				ch := &newest.Channels[i]
				got := values[newest.ID+" "+ch.Name]
				switch {
				case ch.List != nil:
					require.Len(t, got, len(ch.List.Items))
					require.Equal(t, string(ch.List.Items[1]), got[1])
				case len(ch.Value) > 128:
					require.Len(t, got, 1)
					require.JSONEq(t, string(ch.Value), got[0])
				default:
					require.Empty(t, got, "it stands in the checkpoint")
				}
			}
			old := 0
			for at := range values {
				if strings.HasSuffix(at, " old") {
					old++
				}
			}
			require.Equal(t, 1, old, "what checkpoints share stands there once")
			require.Contains(t, text, `"name":"small","version":4,"stored":4,"value":{"a":1.0}`)
			require.Contains(t, text, `"actor":"event.Actor"`)
			for _, field := range []string{"responder", "responder_how", "response_method", "response_time"} {
				require.Contains(t, text, `"`+field+`":"`)
			}
			for _, l := range lines {
				if l.Kind != "run" {
					continue
				}
				require.Contains(t, l.Record["started_by"], "StartedBy")
				request, ok := l.Record["request"].(map[string]any)
				require.True(t, ok)
				for _, hidden := range []string{"input", "update", "goto", "context"} {
					require.NotContains(t, request, hidden)
				}
			}
		})
	}
}

// What a terminal interprets, hides or reorders is escaped, and the JSON stays the same value.
func TestADumpIsFitForATerminal(t *testing.T) {
	const hostile = "\u009b31m\x7f\u202e\u2066\u200f\u00ad\U000e0041é"
	for name, s := range openStores(t) {
		t.Run(name, func(t *testing.T) {
			checkpointtest.WriteAll(t.Context(), t, s)
			h, err := s.Head(t.Context(), "t")
			require.NoError(t, err)
			cp, err := s.Checkpoint(t.Context(), "t", "", "")
			require.NoError(t, err)
			change := &checkpoint.Change{Thread: "t", Expect: h.Revision, LogID: h.LogID, Op: "hostile", Head: h}
			change.Head.Metadata = map[string]string{hostile: hostile}
			change.Memos = []checkpoint.Memo{{Task: "task", Checkpoint: cp.ID, Key: hostile, Value: `{"` + hostile + `":"` + hostile + `"}`}}
			_, err = s.Apply(t.Context(), change)
			require.NoError(t, err)

			lines, text := dumpThread(t, s, "t")
			for _, r := range strings.TrimSuffix(hostile, "é") {
				if r > '~' {
					require.False(t, strings.ContainsRune(text, r), "%U", r)
				}
			}
			require.Contains(t, text, `\u009b31m\u007f\u202e\u2066\u200f\u00ad\udb40\udc41é`)
			require.Equal(t, map[string]any{hostile: hostile}, lines[0].Record["metadata"])
			memos := 0
			for _, l := range lines {
				if l.Kind == "memo" {
					memos++
					require.Equal(t, hostile, l.Record["key"])
					require.Equal(t, map[string]any{hostile: hostile}, l.Record["value"])
				}
			}
			require.Equal(t, 1, memos)
		})
	}
}

func TestAThreadThatIsNotThere(t *testing.T) {
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "a.db")})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.ErrorIs(t, dump.WriteThread(t.Context(), new(bytes.Buffer), s, "none"), checkpoint.ErrThreadNotFound)
}

// A reader who goes away ends the dump.
func TestAWriterThatFails(t *testing.T) {
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "a.db")})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	checkpointtest.WriteAll(t.Context(), t, s)
	require.ErrorIs(t, dump.WriteThread(t.Context(), brokenPipe{}, s, "t"), errPipe)
}

var errPipe = errors.New("broken pipe")

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errPipe }
