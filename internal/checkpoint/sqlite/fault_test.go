package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
	"github.com/graphd-dev/graphd/internal/payload"
)

func payloadOf[N ~int | ~uint64](n N) payload.JSON { return payload.JSON(fmt.Sprint(n)) }

// payloadPad makes a value too large to stand in a manifest.
const payloadPad = payload.JSON("                                                                " +
	"                                                                ")

//nolint:testifylint // require ends only the test's own goroutine
func TestABrokenChangeIsUndoneAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	s := openStore(t, path)
	db := openDirectly(t, path)
	// The last thing that a change writes fails, for one thread.
	execSQL(t, db, `CREATE TRIGGER boom BEFORE INSERT ON threads WHEN NEW.thread = 'bad'
		BEGIN SELECT RAISE(ABORT, 'the disk is on fire'); END`)
	// While the file is locked the changes pile up and become one transaction.
	execSQL(t, db, `BEGIN IMMEDIATE`)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			name := fmt.Sprint("t", i)
			if i == 7 {
				name = "bad"
			}
			_, err := s.Apply(t.Context(), newStep(name, 1))
			if name == "bad" {
				assert.ErrorIs(t, err, checkpoint.ErrUnavailable)
				assert.ErrorContains(t, err, "the disk is on fire")
				return
			}
			assert.NoError(t, err)
		})
	}
	execSQL(t, db, `ROLLBACK`)
	wg.Wait()
	for i := range 16 {
		if i != 7 {
			requireSteps(t, s, fmt.Sprint("t", i), 1)
		}
	}
	for _, table := range []string{"threads", "checkpoints", "channel_values", "list_items", "events", "interrupts"} {
		var n int
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table+" WHERE thread = 'bad'").Scan(&n))
		require.Zero(t, n, table)
	}
	execSQL(t, db, `DROP TRIGGER boom`)
	_, err := s.Apply(t.Context(), newStep("bad", 1))
	require.NoError(t, err)
	requireSteps(t, s, "bad", 1)
}

func TestACallerThatGivesUpMayFindItsChangeApplied(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	s := openStore(t, path)
	db := openDirectly(t, path)
	execSQL(t, db, `BEGIN IMMEDIATE`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // it has begun by then
	defer cancel()
	c := newStep("t", 1)
	_, err := s.Apply(ctx, c)
	require.ErrorIs(t, err, checkpoint.ErrUnavailable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	execSQL(t, db, `ROLLBACK`)
	// What is handed in later comes later.
	_, err = s.Apply(t.Context(), newStep("u", 1))
	require.NoError(t, err)
	requireSteps(t, s, "t", 1)
	r, err := s.Apply(t.Context(), c)
	require.NoError(t, err)
	require.EqualValues(t, 1, r.Revision, "repeating it tells")
}

func TestCloseWaitsForWhatWasHandedIn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	s := openStore(t, path)
	db := openDirectly(t, path)
	execSQL(t, db, `BEGIN IMMEDIATE`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // it has begun by then
	defer cancel()
	_, err := s.Apply(ctx, newStep("t", 1))
	require.ErrorIs(t, err, checkpoint.ErrUnavailable)
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	execSQL(t, db, `ROLLBACK`)
	require.NoError(t, <-closed)
	requireSteps(t, openStore(t, path), "t", 1)
}

// openDamaged opens a store with a good and a bad thread and damages the bad one.
func openDamaged(t *testing.T, damage string) *sqlite.Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.db")
	s := openStore(t, path)
	for _, thread := range []string{"good", "bad"} {
		for n := range uint64(3) {
			c := newStep(thread, n+1)
			c.Tasks = []checkpoint.Task{{ID: "task", Checkpoint: c.Head.Checkpoint}}
			c.Memos = []checkpoint.Memo{{Task: "task", Checkpoint: c.Head.Checkpoint, Key: "memo", Value: "1"}}
			c.Runs = []checkpoint.Run{{ID: "run", Thread: thread}}
			_, err := s.Apply(t.Context(), c)
			require.NoError(t, err)
		}
	}
	execSQL(t, openDirectly(t, path), damage)
	return s
}

func TestACorruptRecordIsNamedAndStaysAlone(t *testing.T) {
	const newest = "00000003"
	for name, c := range map[string]struct {
		damage string
		read   func(ctx context.Context, s *sqlite.Store) error
		want   string
	}{
		"head": {
			`UPDATE threads SET head = x'78' WHERE thread = 'bad'`,
			func(ctx context.Context, s *sqlite.Store) error { _, err := s.Head(ctx, "bad"); return err }, `thread "bad"`,
		},
		"manifest": {
			`UPDATE checkpoints SET manifest = substr(manifest, 1, 40) WHERE thread = 'bad'`,
			func(ctx context.Context, s *sqlite.Store) error {
				_, err := s.Checkpoint(ctx, "bad", "", "")
				return err
			}, `thread "bad", checkpoint`,
		},
		"lost value": {
			`DELETE FROM channel_values WHERE thread = 'bad'`,
			func(ctx context.Context, s *sqlite.Store) error {
				_, err := s.Checkpoint(ctx, "bad", "", newest)
				return err
			}, `channel "large"`,
		},
		"short value": {
			`UPDATE channel_values SET value = '1' WHERE thread = 'bad'`,
			func(ctx context.Context, s *sqlite.Store) error {
				_, err := s.Checkpoint(ctx, "bad", "", newest)
				return err
			}, `has 1 bytes, want`,
		},
		"lost element": {
			`DELETE FROM list_items WHERE thread = 'bad'`,
			func(ctx context.Context, s *sqlite.Store) error {
				_, err := s.Checkpoint(ctx, "bad", "", newest)
				return err
			}, `segment 1 has 0 elements, want 3`,
		},
		"events": {
			`UPDATE events SET record = substr(record, 1, length(record) / 2) WHERE last = 2 AND thread = 'bad'`,
			func(ctx context.Context, s *sqlite.Store) error { _, err := s.Events(ctx, "bad", 0, 0); return err }, `thread "bad", events up to 2`,
		},
		"other events": {
			`UPDATE events SET record = (SELECT record FROM events WHERE last = 4 AND thread = 'bad') WHERE last = 2 AND thread = 'bad'`,
			func(ctx context.Context, s *sqlite.Store) error { _, err := s.Events(ctx, "bad", 0, 0); return err }, `of other events`,
		},
		"task": {
			`UPDATE tasks SET record = x'' WHERE thread = 'bad'`,
			func(ctx context.Context, s *sqlite.Store) error { _, err := s.Pending(ctx, "bad", newest); return err }, `task "task"`,
		},
		"memo": {
			`UPDATE memos SET record = x'7b7d' WHERE thread = 'bad'`,
			func(ctx context.Context, s *sqlite.Store) error { _, err := s.Pending(ctx, "bad", newest); return err }, `memo "task//memo/0"`,
		},
		"question": {
			`UPDATE interrupts SET record = x'5b5d' WHERE thread = 'bad'`,
			func(ctx context.Context, s *sqlite.Store) error { _, err := s.Interrupt(ctx, "bad", "q"); return err }, `interrupt "q"`,
		},
		"newer run": {
			`UPDATE runs SET record = x'82' WHERE thread = 'bad'`,
			func(ctx context.Context, s *sqlite.Store) error { _, err := s.Run(ctx, "bad", "run"); return err }, `run "run": run: stored record is corrupt: format version 2`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, s := t.Context(), openDamaged(t, c.damage)
			err := c.read(ctx, s)
			require.ErrorIs(t, err, checkpoint.ErrCorrupt)
			require.ErrorContains(t, err, c.want)
			require.NotErrorIs(t, err, checkpoint.ErrUnavailable)

			requireSteps(t, s, "good", 3)
			heads, err := s.Threads(ctx, checkpoint.ThreadQuery{Metadata: map[string]string{"k": "v"}})
			require.NoError(t, err)
			require.NotEmpty(t, heads)
			questions, err := s.Interrupts(ctx, checkpoint.InterruptQuery{})
			require.NoError(t, err)
			require.NotEmpty(t, questions)
			_, err = s.Interrupts(ctx, checkpoint.InterruptQuery{Tags: []string{checkpoint.UserTag("none")}, States: openStates})
			require.NoError(t, err)
		})
	}
}
