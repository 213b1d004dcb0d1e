package sqlite_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
)

// No migration begins while a server has the file open, by whatever name it is
// migrated.
func TestAServerKeepsAMigrationOutUnderAllNames(t *testing.T) {
	dir := t.TempDir()
	path, sub := filepath.Join(dir, "a.db"), filepath.Join(dir, "sub")
	s := openStore(t, path)
	require.NoError(t, os.Mkdir(sub, 0o700))
	symbolic, hard, folder := filepath.Join(sub, "symbolic.db"), filepath.Join(sub, "hard.db"), filepath.Join(dir, "folder")
	require.NoError(t, os.Symlink("../a.db", symbolic))
	require.NoError(t, os.Link(path, hard))
	require.NoError(t, os.Symlink(dir, folder))
	all := []string{path, symbolic, hard, filepath.Join(folder, "a.db")}
	migrate := func(name string, dry bool) (checkpoint.Migration, error) {
		return sqlite.Migrate(t.Context(), sqlite.Options{Path: name}, dry, func(checkpoint.Migration) {})
	}
	for _, name := range all {
		for _, dry := range []bool{true, false} {
			_, err := migrate(name, dry)
			var busy *sqlite.InUseError
			require.ErrorAs(t, err, &busy, name)
		}
	}
	_, err := s.Apply(t.Context(), newStep("t", 1))
	require.NoError(t, err, "the owner is not disturbed")
	require.NoError(t, s.Close())

	for _, name := range []string{path, symbolic, filepath.Join(folder, "a.db")} {
		db := openDirectly(t, path)
		execSQL(t, db, `UPDATE meta SET value = 2 WHERE key = 'schema_version'`)
		for _, table := range []string{"graph_tombstones", "interrupt_tags", "tag_counts", "thread_labels"} {
			execSQL(t, db, `DROP TABLE `+table)
		}
		require.NoError(t, db.Close())
		m, err := migrate(name, false)
		require.NoError(t, err, name)
		require.Equal(t, []int{2, sqlite.SchemaVersion}, []int{m.From, m.To}, name)
	}
	s = openStore(t, path)
	requireSteps(t, s, "t", 1)
	require.NoError(t, s.PutGraph(t.Context(), checkpoint.GraphRecord{Name: "g", Version: "1", Source: "{}"}, checkpoint.GraphCondition{}))
	require.NoError(t, s.DeleteGraph(t.Context(), "g", "1", checkpoint.GraphCondition{}))
}

// A migration that only says what there is to do leaves the file as it is, and
// makes none.
func TestADryMigrationChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	_, err := sqlite.Migrate(t.Context(), sqlite.Options{Path: path}, true, nil)
	require.NoError(t, err)
	require.NoFileExists(t, path)
	require.NoError(t, openStore(t, path).Close())
	require.NoError(t, os.Chmod(path, 0o644))
	_, err = sqlite.Migrate(t.Context(), sqlite.Options{Path: path}, true, nil)
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o644), info.Mode().Perm())
}
