package setup

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/file"
)

// restoreFrozen puts a frozen store at a path.
func restoreFrozen(t *testing.T, name, path string) {
	t.Helper()
	packed, err := os.Open("../../../../tests/upgrade/testdata/frozen/" + name + "/graphd.db.gz")
	require.NoError(t, err)
	r, err := gzip.NewReader(packed)
	require.NoError(t, err)
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, packed.Close())
	require.NoError(t, os.WriteFile(path, data, 0o600))
}

// restoreFormat3 puts a store of format 3 at a path, with more threads whose metadata, which
// is copied into a column, is most of their size.
func restoreFormat3(t *testing.T, path string, more int) {
	t.Helper()
	restoreFrozen(t, "sqlite-3", path)
	db, err := file.ConnectWriter(path)
	require.NoError(t, err)
	for _, statement := range []string{
		`CREATE TEMP TABLE numbers AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT i FROM n`,
		`INSERT INTO threads SELECT printf('more-%06d', i), revision, log_id, op, applied, graph, state, updated, seq, first_event, last_event, '', NULL,
			NULL, json_set(head, '$.metadata', json_object('pad', printf('%4000c', 'x'))) FROM threads, numbers WHERE thread = 'again'`,
		`INSERT INTO runs SELECT printf('more-%06d', i), id, ord, revision, state, record FROM runs, numbers WHERE thread = 'again'`,
	} {
		args := []any{more}
		if statement[0] == 'I' {
			args = nil
		}
		_, err := db.ExecContext(t.Context(), statement, args...)
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())
}

func readSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Size()
}

// A disk with too little space is found before anything is changed, and what is asked for is
// enough.
func TestAMigrationThatHasNoSpaceIsRefused(t *testing.T) {
	for _, more := range []int{0, 500} {
		path := filepath.Join(t.TempDir(), "a.db")
		restoreFormat3(t, path, more)
		before, err := os.ReadFile(path)
		require.NoError(t, err)
		migrate := func(dry bool, tell func(checkpoint.Migration), free int64) error {
			_, err := migrateFile(t.Context(), path, dry, tell, func(string) int64 { return free })
			return err
		}
		var short *SpaceError
		for _, dry := range []bool{true, false} {
			require.ErrorAs(t, migrate(dry, func(checkpoint.Migration) {}, 1000), &short)
			require.Equal(t, path, short.Path)
			require.EqualValues(t, 1000, short.Free)
			require.Greater(t, short.Needed, int64(minMigrationSpace))
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, before, after)
		}
		require.Error(t, migrate(false, func(checkpoint.Migration) {}, short.Needed-1))

		var log int64
		require.NoError(t, migrate(false, func(checkpoint.Migration) {
			if info, err := os.Stat(path + "-wal"); err == nil {
				log = max(log, info.Size())
			}
		}, short.Needed))
		taken := log + readSize(t, path) - int64(len(before))
		require.LessOrEqual(t, taken, short.Needed)
		t.Logf("%d threads: the file had %d bytes, it has %d, the log had %d, %d were asked for",
			more, len(before), readSize(t, path), log, short.Needed)
	}
}

// Free pages inside the file lower the space that a migration needs on the disk.
func TestAMigrationCountsFreePages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	restoreFormat3(t, path, 500)
	db, err := file.ConnectWriter(path)
	require.NoError(t, err)
	needed := func() (bytes int64) {
		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		bytes, err = measureMigration(t.Context(), tx, 3)
		require.NoError(t, err)
		require.NoError(t, tx.Rollback())
		return bytes
	}
	before := needed()
	for _, statement := range []string{
		`CREATE TABLE filler AS SELECT printf('%4000c', 'x') AS text FROM threads`,
		`DROP TABLE filler`, // its pages stay in the file
	} {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	after := needed()
	require.Less(t, after, before-500*4000)

	require.NoError(t, db.Close())
	size := readSize(t, path)
	var log int64
	_, err = migrateFile(t.Context(), path, false, func(checkpoint.Migration) {
		if info, err := os.Stat(path + "-wal"); err == nil {
			log = max(log, info.Size())
		}
	}, func(string) int64 { return after })
	require.NoError(t, err)
	require.LessOrEqual(t, log+readSize(t, path)-size, after)
}

// Migrations that make indexes anew, or write a table anew, ask for enough space, too.
func TestNewIndexesTakeTheSpaceThatIsAskedFor(t *testing.T) {
	for _, name := range []string{"sqlite-4", "sqlite-5"} {
		t.Run(name, func(t *testing.T) { requireEnoughSpace(t, name) })
	}
}

func requireEnoughSpace(t *testing.T, name string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.db")
	restoreFrozen(t, name, path)
	db, err := file.ConnectWriter(path)
	require.NoError(t, err)
	for _, statement := range []string{
		`CREATE TEMP TABLE numbers AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000) SELECT i FROM n`,
		`INSERT INTO threads SELECT printf('more-%06d', i), revision, log_id, op, applied, graph, state, updated + i, seq, first_event,
			last_event, '', NULL, NULL, metadata, head FROM threads, numbers WHERE thread = 'waiting'`,
		`INSERT INTO interrupts SELECT printf('more-%06d', i), id, born, change + 1000 + i, revision, created + i, checkpoint, run, graph, node,
			reason, state, assignees, record FROM interrupts, numbers WHERE thread = 'waiting'`,
	} {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())
	before := readSize(t, path)
	migrate := func(free int64, tell func(checkpoint.Migration)) error {
		_, err := migrateFile(t.Context(), path, false, tell, func(string) int64 { return free })
		return err
	}
	var short *SpaceError
	require.ErrorAs(t, migrate(0, func(checkpoint.Migration) {}), &short)
	require.Error(t, migrate(short.Needed-1, func(checkpoint.Migration) {}))
	var log int64
	require.NoError(t, migrate(short.Needed, func(checkpoint.Migration) {
		if info, err := os.Stat(path + "-wal"); err == nil {
			log = max(log, info.Size())
		}
	}))
	taken := log + readSize(t, path) - before
	require.LessOrEqual(t, taken, short.Needed)
	t.Logf("the file had %d bytes, it has %d, the log had %d, %d were asked for", before, readSize(t, path), log, short.Needed)
}
