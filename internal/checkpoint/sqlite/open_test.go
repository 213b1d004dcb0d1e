package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
)

func openStore(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// openDirectly opens the file past the store, as a person with a tool would.
func openDirectly(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func execSQL(t *testing.T, db *sql.DB, query string, args ...any) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), query, args...)
	require.NoError(t, err)
}

// newStep returns the n-th change of a thread: a checkpoint with a large value
// and a growing list, two events, an interrupt and the lease.
func newStep(thread string, n uint64) *checkpoint.Change {
	items := &checkpoint.List{Segments: []checkpoint.Segment{{ID: 1, Len: int(n)}}, Appended: 1}
	for i := range n {
		items.Items = append(items.Items, payloadOf(i))
	}
	id := fmt.Sprintf("%08d", n)
	return &checkpoint.Change{
		Thread: thread, Expect: n - 1, Op: id, Lease: time.Minute,
		Head: checkpoint.Head{
			Thread: thread, Seq: n, Checkpoint: id, LastEvent: 2 * n, Owner: "somebody",
			Metadata: map[string]string{"k": "v"}, Updated: time.Unix(int64(n), 0).UTC(),
		},
		Checkpoints: []*checkpoint.Checkpoint{{ID: id, Seq: n, Channels: []checkpoint.Channel{
			{Name: "large", Version: n, Stored: n, Value: payloadOf(n) + "                " + payloadPad},
			{Name: "items", Version: n, Stored: n, List: items},
		}}},
		Events: []checkpoint.Event{
			{Seq: 2*n - 1, Kind: checkpoint.EventUpdate, Value: payloadOf(n)}, {Seq: 2 * n, Kind: checkpoint.EventCheckpoint},
		},
		Interrupts: []checkpoint.Interrupt{{ID: "q", Thread: thread, Checkpoint: id, State: checkpoint.InterruptOpen}},
	}
}

// requireSteps checks that exactly the first n steps of a thread are there.
func requireSteps(t *testing.T, s checkpoint.Store, thread string, n uint64) {
	t.Helper()
	h, err := s.Head(t.Context(), thread)
	require.NoError(t, err)
	require.Equal(t, n, h.Revision)
	cps, err := s.Checkpoints(t.Context(), checkpoint.CheckpointQuery{Thread: thread})
	require.NoError(t, err)
	require.Len(t, cps, int(n))
	for i, cp := range cps {
		require.Equal(t, newStep(thread, n-uint64(i)).Checkpoints[0].Channels[1].List.Items, cp.Channels[1].List.Items)
		require.Equal(t, newStep(thread, n-uint64(i)).Checkpoints[0].Channels[0], cp.Channels[0])
	}
	events, err := s.Events(t.Context(), thread, 0, 0)
	require.NoError(t, err)
	require.Len(t, events, int(2*n))
	for i := range events {
		require.EqualValues(t, i+1, events[i].Seq)
	}
	q, err := s.Interrupt(t.Context(), thread, "q")
	require.NoError(t, err)
	require.Equal(t, n, q.Revision)
}

func TestEverythingIsThereAfterReopening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	s := openStore(t, path)
	for n := range uint64(5) {
		r, err := s.Apply(t.Context(), newStep("t", n+1))
		require.NoError(t, err)
		require.Equal(t, n+1, r.Revision)
	}
	require.NoError(t, s.PutGraph(t.Context(), checkpoint.GraphRecord{Name: "g", Version: "1", Source: "{}"}, checkpoint.GraphCondition{}))
	before, err := s.Interrupt(t.Context(), "t", "q")
	require.NoError(t, err)
	require.NoError(t, s.Close())

	s = openStore(t, path)
	requireSteps(t, s, "t", 5)
	r, err := s.Apply(t.Context(), newStep("t", 5))
	require.NoError(t, err, "a repeated op is known after a restart")
	require.EqualValues(t, 5, r.Revision)
	_, err = s.Apply(t.Context(), &checkpoint.Change{Thread: "t", Expect: 5, Delete: true})
	require.NoError(t, err)
	_, err = s.Apply(t.Context(), newStep("u", 1))
	require.NoError(t, err)
	after, err := s.Interrupt(t.Context(), "u", "q")
	require.NoError(t, err)
	require.Greater(t, after.Change, before.Change, "numbers grow on, whatever was deleted")
	graphs, err := s.GraphRecords(t.Context())
	require.NoError(t, err)
	require.Len(t, graphs, 1)
}

func TestNumbersOfQuestionsOutliveTheirThread(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	s := openStore(t, path)
	_, err := s.Apply(t.Context(), newStep("t", 1))
	require.NoError(t, err)
	before, err := s.Interrupt(t.Context(), "t", "q")
	require.NoError(t, err)
	_, err = s.Apply(t.Context(), &checkpoint.Change{Thread: "t", Expect: 1, Delete: true})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	s = openStore(t, path)
	_, err = s.Apply(t.Context(), newStep("t", 1))
	require.NoError(t, err)
	after, err := s.Interrupt(t.Context(), "t", "q")
	require.NoError(t, err)
	require.Greater(t, after.Change, before.Change)
}

func TestLeasesOfADeadOwnerEndOnOpening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	s := openStore(t, path)
	_, err := s.Apply(t.Context(), newStep("t", 1))
	require.NoError(t, err)
	due, _, err := s.Due(t.Context(), 0)
	require.NoError(t, err)
	require.Empty(t, due)
	require.NoError(t, s.Close())

	s = openStore(t, path)
	h, err := s.Head(t.Context(), "t")
	require.NoError(t, err)
	require.False(t, h.Leased())
	require.EqualValues(t, 1, h.Revision)
	due, _, err = s.Due(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, []string{"t"}, due)
}

// copyDatabase copies the file set as a crash would leave it.
func copyDatabase(t *testing.T, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy.db")
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + suffix)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to+suffix, data, 0o600))
	}
	return to
}

func TestAcknowledgedChangesSurviveAKill(t *testing.T) {
	const writers = 8
	path := filepath.Join(t.TempDir(), "a.db")
	s := openStore(t, path)
	var acknowledged [writers]atomic.Uint64
	var stop atomic.Bool
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for n := uint64(1); !stop.Load(); n++ {
				if _, err := s.Apply(t.Context(), newStep(fmt.Sprint("t", i), n)); err != nil {
					t.Errorf("apply: %v", err)
					return
				}
				acknowledged[i].Store(n)
			}
		})
	}
	for range 4 {
		var seen [writers]uint64
		for at := acknowledged[0].Load(); acknowledged[0].Load() < at+3 && !t.Failed(); {
			runtime.Gosched()
		}
		for i := range seen {
			seen[i] = acknowledged[i].Load()
		}
		survivor := openStore(t, copyDatabase(t, path))
		for i, n := range seen {
			h, err := survivor.Head(t.Context(), fmt.Sprint("t", i))
			if n == 0 && errors.Is(err, checkpoint.ErrThreadNotFound) {
				continue
			}
			require.NoError(t, err)
			require.GreaterOrEqual(t, h.Revision, n)
			requireSteps(t, survivor, h.Thread, h.Revision)
		}
	}
	stop.Store(true)
	wg.Wait()
}

func TestOnlyOneProcessOwnsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	s := openStore(t, path)
	_, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	var busy *sqlite.InUseError
	require.ErrorAs(t, err, &busy)
	require.Equal(t, os.Getpid(), busy.PID)
	require.ErrorContains(t, err, path+" is in use by pid")
	_, err = s.Apply(t.Context(), newStep("t", 1))
	require.NoError(t, err, "the owner is not disturbed")
	require.NoError(t, s.Close())
	openStore(t, path)
}

// TestMain lets this binary also be the process that owns a file.
func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Arg(0) == "own" {
		os.Exit(runOwner(flag.Arg(1)))
	}
	os.Exit(m.Run())
}

// runOwner opens a file, changes it, says so and waits to be killed.
func runOwner(path string) int {
	s, err := sqlite.Open(context.Background(), sqlite.Options{Path: path})
	if err == nil {
		_, err = s.Apply(context.Background(), newStep("t", 1))
	}
	if err != nil {
		return 1
	}
	if _, err := os.Stdout.WriteString("ready\n"); err != nil {
		return 1
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return 1
	}
	return 0
}

func TestAKilledOwnerReleasesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	cmd := startOwner(t, path)

	_, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	var busy *sqlite.InUseError
	require.ErrorAs(t, err, &busy)
	require.Equal(t, cmd.Process.Pid, busy.PID)

	killOwner(t, cmd)
	s := openStore(t, path)
	requireSteps(t, s, "t", 1)
}

func TestFilesThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	newer := filepath.Join(dir, "newer.db")
	require.NoError(t, openStore(t, newer).Close())
	execSQL(t, openDirectly(t, newer), `UPDATE meta SET value = 99 WHERE key = 'schema_version'`)
	older := filepath.Join(dir, "older.db")
	require.NoError(t, openStore(t, older).Close())
	execSQL(t, openDirectly(t, older), `UPDATE meta SET value = 1 WHERE key = 'schema_version'`)
	foreign := filepath.Join(dir, "foreign.db")
	execSQL(t, openDirectly(t, foreign), `CREATE TABLE mine (x)`)
	text := filepath.Join(dir, "text.db")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("not a database\n", 100)), 0o600))

	for path, want := range map[string]string{
		newer:                           "has schema version 99, this graphd knows up to 8",
		older:                           "has schema version 1, which no released graphd wrote and none can migrate",
		foreign:                         "not of graphd",
		text:                            "not a database",
		"":                              "no path given",
		filepath.Join(dir, "no", "dir"): "no such file or directory",
		dir:                             "open ",
	} {
		_, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
		require.ErrorContains(t, err, want, path)
	}
	var schema *sqlite.SchemaError
	_, err := sqlite.Open(t.Context(), sqlite.Options{Path: newer})
	require.ErrorAs(t, err, &schema)
	require.EqualValues(t, 99, schema.Version)
	_, err = sqlite.Open(t.Context(), sqlite.Options{Path: text})
	require.ErrorIs(t, err, checkpoint.ErrCorrupt)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(dir, "fresh.db")})
	require.ErrorIs(t, err, context.Canceled)
	openStore(t, filepath.Join(dir, "fresh.db"))
}
