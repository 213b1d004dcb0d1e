package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
)

// What is closed in order is one file, which may be opened, copied and moved
// without anything that lies beside it.
func TestAStoreThatIsClosedLeavesNoLog(t *testing.T) {
	dir := t.TempDir()
	path, hard := filepath.Join(dir, "a.db"), filepath.Join(dir, "hard.db")
	symbolic := filepath.Join(dir, "symbolic.db")
	require.NoError(t, os.Symlink("a.db", symbolic))
	names := []string{path, symbolic, hard, path, hard}
	for i, name := range names {
		if i == 2 {
			require.NoError(t, os.Link(path, hard))
		}
		s := openStore(t, name)
		_, err := s.Apply(t.Context(), newStep("t", uint64(i+1)))
		require.NoError(t, err)
		_, err = s.Events(t.Context(), "t", 0, 0)
		require.NoError(t, err)
		require.NoError(t, s.Close())
		for _, base := range []string{path, symbolic, hard} {
			require.NoFileExists(t, base+"-wal")
			require.NoFileExists(t, base+"-shm")
		}
	}
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	moved := filepath.Join(t.TempDir(), "copy.db")
	require.NoError(t, os.WriteFile(moved, content, 0o600))
	requireSteps(t, openStore(t, moved), "t", uint64(len(names)))
}

// requireAlone checks that a copy of the file without its log has the first n steps of a
// thread.
func requireAlone(t *testing.T, path, thread string, n uint64) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	alone := filepath.Join(t.TempDir(), "alone.db")
	require.NoError(t, os.WriteFile(alone, content, 0o600))
	requireSteps(t, openStore(t, alone), thread, n)
}

// A reader that is still open keeps SQLite from removing the log, but not a server that stops
// in order from moving it into the file.
func TestAStoreThatIsClosedBesideAReaderIsOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	var warnings []string
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: path, Warn: func(w string) { warnings = append(warnings, w) }})
	require.NoError(t, err)
	_, err = s.Apply(t.Context(), newStep("t", 1))
	require.NoError(t, err)
	r := openReader(t, path)
	requireReadable(t, r, "t")
	_, err = s.Apply(t.Context(), newStep("t", 2))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	requireAlone(t, path, "t", 2)
	require.Empty(t, warnings)
	require.NoError(t, r.Close())
	requireSteps(t, openStore(t, path), "t", 2)
}

// A migration beside a connection of another program leaves its changes in the file.
func TestAMigrationBesideAReaderIsOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	restoreFrozen(t, "sqlite-3", path)
	other := openDirectly(t, path)
	execSQL(t, other, `PRAGMA journal_mode = wal`) // as a server does
	var n int
	require.NoError(t, other.QueryRowContext(t.Context(), `SELECT count(*) FROM threads`).Scan(&n))
	m, err := migrateFile(t.Context(), path, ignoreProgress)
	require.NoError(t, err)
	require.Empty(t, m.Warnings)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	alone := filepath.Join(t.TempDir(), "alone.db")
	require.NoError(t, os.WriteFile(alone, content, 0o600))
	heads, err := openStore(t, alone).Threads(t.Context(), checkpoint.ThreadQuery{})
	require.NoError(t, err)
	require.Len(t, heads, n)
}

// Of a server that was killed the log remains, under the name by which the file was
// open. Without it the file is not all there is.
func TestAFileIsNotReadWithoutItsLog(t *testing.T) {
	dir := t.TempDir()
	path, hard, symbolic := filepath.Join(dir, "a.db"), filepath.Join(dir, "hard.db"), filepath.Join(dir, "symbolic.db")
	killOwner(t, startOwner(t, path))
	require.NoError(t, os.Link(path, hard))
	require.NoError(t, os.Symlink("hard.db", symbolic))
	refused := func(name, at string) {
		t.Helper()
		_, err := sqlite.Open(t.Context(), sqlite.Options{Path: name})
		var stray *sqlite.StrayLogError
		require.ErrorAs(t, err, &stray)
		require.Equal(t, sqlite.StrayLogError{Path: at, Last: path}, *stray)
		require.ErrorContains(t, err, "open it as "+path+", or move that log along to "+at+"-wal")
		_, err = sqlite.Migrate(t.Context(), sqlite.Options{Path: name}, false, nil)
		require.ErrorAs(t, err, &stray)
		require.NoFileExists(t, at+"-wal")
	}
	refused(hard, hard)
	refused(symbolic, hard)

	// A copy of the file alone is another file.
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	backup := filepath.Join(dir, "backup.db")
	require.NoError(t, os.WriteFile(backup, content, 0o600))
	require.NoError(t, openStore(t, backup).Close())

	moved := filepath.Join(dir, "moved.db")
	require.NoError(t, os.Rename(path, moved))
	require.NoError(t, os.Remove(hard))
	refused(moved, moved)
	require.NoError(t, os.Rename(path+"-wal", moved+"-wal"))
	requireSteps(t, openStore(t, moved), "t", 1)
}

// A store that was replaced may have a log under the same name.
func TestClosingLeavesTheLogOfAnotherStore(t *testing.T) {
	dir := t.TempDir()
	path, away := filepath.Join(dir, "a.db"), filepath.Join(dir, "away.db")
	s := openStore(t, path)
	_, err := s.Apply(t.Context(), newStep("mine", 1))
	require.NoError(t, err)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		require.NoError(t, os.Rename(path+suffix, away+suffix))
	}
	require.NoError(t, os.Remove(path+".lock"))
	killOwner(t, startOwner(t, path)) // a backup with its log
	log, err := os.ReadFile(path + "-wal")
	require.NoError(t, err)
	require.NotEmpty(t, log)
	_, err = s.Apply(t.Context(), newStep("mine", 2))
	require.ErrorIs(t, err, checkpoint.ErrStoreReplaced)
	require.NoError(t, s.Close())

	now, err := os.ReadFile(path + "-wal")
	require.NoError(t, err)
	require.Equal(t, log, now)
	requireSteps(t, openStore(t, path), "t", 1)
	requireSteps(t, openStore(t, away), "mine", 1)
}
