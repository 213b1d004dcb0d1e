package sqlite_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
)

// restoreFrozen puts a frozen store at a path.
var openStates = []checkpoint.InterruptState{checkpoint.InterruptOpen}

func restoreFrozen(tb testing.TB, name, path string) {
	tb.Helper()
	data, err := os.ReadFile("../../../tests/upgrade/testdata/frozen/" + name + "/graphd.db.gz")
	require.NoError(tb, err)
	r, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(tb, err)
	file, err := io.ReadAll(r)
	require.NoError(tb, err)
	require.NoError(tb, os.WriteFile(path, file, 0o600))
}

// addThreads copies a thread's head and runs, so that a migration has more than one
// piece and its changes leave the memory of SQLite before they are committed.
func addThreads(t *testing.T, path string, n int) {
	t.Helper()
	db := openDirectly(t, path)
	execSQL(t, db, `CREATE TEMP TABLE numbers AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT i FROM n`, n)
	execSQL(t, db, `INSERT INTO threads SELECT printf('more-%06d', i), revision, log_id, op, applied, graph, state, updated, seq, first_event,
		last_event, '', NULL, NULL, json_set(head, '$.metadata', json_object('pad', printf('%4000c', 'x'))) FROM threads, numbers WHERE thread = 'again'`)
	execSQL(t, db, `INSERT INTO runs SELECT printf('more-%06d', i), id, ord, revision, state, record FROM runs, numbers WHERE thread = 'again'`)
	require.NoError(t, db.Close())
}

// listContents is every row of every table, and the schema.
func listContents(t *testing.T, path string) string {
	t.Helper()
	return strings.ReplaceAll(string(listRows(t, path)), path, "PATH")
}

func migrateFile(ctx context.Context, path string, tell func(checkpoint.Migration)) (checkpoint.Migration, error) {
	return sqlite.Migrate(ctx, sqlite.Options{Path: path}, false, tell)
}

func ignoreProgress(checkpoint.Migration) {}

// A file that was migrated is one that today's graphd could have made.
func TestAMigratedFileIsOneOfToday(t *testing.T) {
	for name, want := range map[string]checkpoint.Migration{
		"sqlite-3": {From: 3, To: sqlite.SchemaVersion, Threads: 19, Done: 19, Changed: 19},
		"sqlite-4": {From: 4, To: sqlite.SchemaVersion, Threads: 19, Done: 19},
		"sqlite-5": {From: 5, To: sqlite.SchemaVersion, Threads: 19, Done: 19},
	} {
		t.Run(name, func(t *testing.T) { requireFileOfToday(t, name, want) })
	}
}

func requireFileOfToday(t *testing.T, name string, want checkpoint.Migration) {
	t.Helper()
	dir := t.TempDir()
	migrated := filepath.Join(dir, "migrated.db")
	restoreFrozen(t, name, migrated)
	m, err := migrateFile(t.Context(), migrated, ignoreProgress)
	require.NoError(t, err)
	require.Equal(t, want, m)
	requireSchemaOfToday(t, migrated)
	db := openDirectly(t, migrated)
	for table, record := range map[string]string{"threads": "head", "tasks": "record", "memos": "record", "interrupts": "record", "runs": "record"} {
		require.Equal(t, [][]string{{"81", "blob"}},
			readRows(t, db, "SELECT DISTINCT hex(substr("+record+", 1, 1)), typeof("+record+") FROM "+table), table)
	}
	require.Equal(t, [][]string{{"0", "19"}}, readRows(t, db, `SELECT sum(created IS NOT NULL), count(*) FROM threads`))
	require.Empty(t, readRows(t, db, `SELECT key FROM meta WHERE key LIKE 'format3%'`))
	require.NoError(t, db.Close())
	s := openStore(t, migrated)
	for _, tenants := range []string{"", "default"} {
		list, err := s.Threads(t.Context(), checkpoint.ThreadQuery{Tenant: tenants})
		require.NoError(t, err)
		require.Len(t, list, 19)
		labelled := 0
		for i := range list {
			h := &list[i]
			q := checkpoint.ThreadQuery{Tenant: tenants, State: h.State, Graph: h.Graph, Metadata: h.Metadata}
			found, err := s.Threads(t.Context(), q)
			require.NoError(t, err)
			require.True(t, slices.ContainsFunc(found, func(f checkpoint.Head) bool { return f.Thread == h.Thread }), "%s is found by what it has", h.Thread)
			labelled += len(h.Metadata)
		}
		require.NotZero(t, labelled)
		questions, err := s.Interrupts(t.Context(), checkpoint.InterruptQuery{Tenant: tenants})
		require.NoError(t, err)
		require.Len(t, questions, 12)
	}
	list, err := s.Threads(t.Context(), checkpoint.ThreadQuery{Tenant: "acme"})
	require.NoError(t, err)
	require.Empty(t, list)
	requireTagged(t, s)
}

// requireSchemaOfToday requires that a file has the tables and indexes that today's graphd makes,
// and that these agree with each other.
func requireSchemaOfToday(t *testing.T, path string) {
	t.Helper()
	made := filepath.Join(t.TempDir(), "made.db")
	require.NoError(t, openStore(t, made).Close())
	const objects = `SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name`
	db := openDirectly(t, path)
	require.Equal(t, joinSpaces(readRows(t, openDirectly(t, made), objects)), joinSpaces(readRows(t, db, objects)))
	require.Equal(t, [][]string{{"ok"}}, readRows(t, db, `PRAGMA integrity_check`))
	require.NoError(t, db.Close())
}

// A file of format 7 gets other indexes: its threads are listed, counted and passed over as before.
func TestAFileOfFormat7GetsItsIndexes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "migrated.db")
	restoreFrozen(t, "sqlite-7", path)
	m, err := migrateFile(t.Context(), path, ignoreProgress)
	require.NoError(t, err)
	require.Equal(t, checkpoint.Migration{From: 7, To: sqlite.SchemaVersion, Threads: 20, Done: 20}, m)
	requireSchemaOfToday(t, path)
	s := openStore(t, path)
	for _, q := range []checkpoint.ThreadQuery{{}, {State: checkpoint.ThreadInterrupted}, {State: checkpoint.ThreadIdle}} {
		q.Tenant = "default"
		list, err := s.Threads(t.Context(), q)
		require.NoError(t, err)
		require.NotEmpty(t, list)
		n, err := s.CountSelectedThreads(t.Context(), q, 1000)
		require.NoError(t, err)
		require.Len(t, list, n)
		at, err := s.SkipThreads(t.Context(), q, n)
		require.NoError(t, err)
		require.Equal(t, q.PositionOf(&list[n-1]), at)
	}
}

// requireTagged requires that each open question is found by each of its tags.
func requireTagged(t *testing.T, s *sqlite.Store) {
	t.Helper()
	open, err := s.Interrupts(t.Context(), checkpoint.InterruptQuery{
		Tenant: "default", States: []checkpoint.InterruptState{checkpoint.InterruptOpen},
	})
	require.NoError(t, err)
	require.NotEmpty(t, open)
	byTag := map[string][]checkpoint.Interrupt{}
	for _, in := range open {
		for _, tag := range in.Tags() {
			byTag[tag] = append(byTag[tag], in)
		}
	}
	for tag, want := range byTag {
		found, err := s.Interrupts(t.Context(), checkpoint.InterruptQuery{Tenant: "default", States: openStates, Tags: []string{tag}})
		require.NoError(t, err)
		require.Equal(t, want, found, tag)
		counts, err := s.CountTags(t.Context(), "default", []string{tag})
		require.NoError(t, err)
		require.Equal(t, []int{len(want)}, counts, tag)
	}
}

// joinSpaces makes the schemas of files equal that differ in spaces alone: SQLite puts a
// column that is added behind the last one, on its line.
func joinSpaces(rows [][]string) [][]string {
	for _, row := range rows {
		for i, text := range row {
			text = strings.Join(strings.Fields(text), " ")
			row[i] = strings.NewReplacer(" ,", ",", " )", ")").Replace(text)
		}
	}
	return rows
}

// What queries look into is what the records say.
func TestAMigratedFileIsSearched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	restoreFrozen(t, "sqlite-3", path)
	db := openDirectly(t, path)
	execSQL(t, db, `UPDATE threads SET head = json_set(head, '$.metadata', json('{"team":"a\"b","x":"y"}')) WHERE thread = 'again'`)
	execSQL(t, db, `UPDATE interrupts SET record = json_set(record, '$.assignees', json('["carol","dan"]')) WHERE thread = 'waiting'`)
	require.NoError(t, db.Close())
	_, err := migrateFile(t.Context(), path, ignoreProgress)
	require.NoError(t, err)
	s := openStore(t, path)
	heads, err := s.Threads(t.Context(), checkpoint.ThreadQuery{Metadata: map[string]string{"team": `a"b`}})
	require.NoError(t, err)
	require.Len(t, heads, 1)
	require.Equal(t, map[string]string{"team": `a"b`, "x": "y"}, heads[0].Metadata)
	questions, err := s.Interrupts(t.Context(), checkpoint.InterruptQuery{Tags: []string{checkpoint.UserTag("dan")}})
	require.NoError(t, err)
	require.Len(t, questions, 1)
	require.Equal(t, "waiting", questions[0].Thread)
	questions, err = s.Interrupts(t.Context(), checkpoint.InterruptQuery{Tags: []string{checkpoint.UserTag("eve")}})
	require.NoError(t, err)
	require.Empty(t, questions)
}

// A machine that stops in the middle of a migration leaves the file as it was, and the
// next migration does what one does that was left alone.
func TestAMigrationThatIsBrokenOff(t *testing.T) {
	dir := t.TempDir()
	path, whole := filepath.Join(dir, "a.db"), filepath.Join(dir, "whole.db")
	restoreFrozen(t, "sqlite-3", path)
	addThreads(t, path, 1100)
	before := listContents(t, path)
	copyFile(t, path, whole)
	_, err := migrateFile(t.Context(), whole, ignoreProgress)
	require.NoError(t, err)
	want := listContents(t, whole)

	var copies []string
	_, err = migrateFile(t.Context(), path, func(checkpoint.Migration) {
		at := filepath.Join(dir, fmt.Sprint("copy-", len(copies), ".db"))
		copyFile(t, path, at)
		copyFile(t, path+"-wal", at+"-wal")
		copies = append(copies, at)
	})
	require.NoError(t, err)
	require.Equal(t, want, listContents(t, path))
	require.Len(t, copies, 2)
	for _, at := range copies {
		info, err := os.Stat(at + "-wal")
		require.NoError(t, err)
		require.Greater(t, info.Size(), int64(100<<10), "changes lie in the log that were not committed")
		require.Equal(t, before, listContents(t, at))
		m, err := migrateFile(t.Context(), at, ignoreProgress)
		require.NoError(t, err)
		require.Equal(t, 3, m.From)
		require.Equal(t, want, listContents(t, at))
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, data, 0o600))
}

// A record that is damaged stays as it is, and the others are packed.
func TestAMigrationNamesDamagedRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	restoreFrozen(t, "sqlite-3", path)
	db := openDirectly(t, path)
	execSQL(t, db, `UPDATE runs SET record = substr(record, 1, 40) WHERE thread = 'again'`)
	require.NoError(t, db.Close())
	m, err := migrateFile(t.Context(), path, ignoreProgress)
	require.NoError(t, err)
	require.Equal(t, []string{"again"}, m.Unreadable)
	s := openStore(t, path)
	_, err = s.Runs(t.Context(), "again", 0, 0)
	require.ErrorIs(t, err, checkpoint.ErrCorrupt)
	_, err = s.Head(t.Context(), "again")
	require.NoError(t, err)
}

// A record that is neither JSON nor packed is damaged, too, whatever it begins with.
func TestAMigrationNamesRecordsOfNoForm(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	restoreFrozen(t, "sqlite-3", path)
	db := openDirectly(t, path)
	id := readRows(t, db, `SELECT id FROM runs WHERE thread = 'again' ORDER BY id`)[0][0]
	question := readRows(t, db, `SELECT id FROM interrupts WHERE thread = 'waiting'`)[0][0]
	execSQL(t, db, `UPDATE runs SET record = 'x' || record WHERE thread = 'again' AND id = ?`, id)
	execSQL(t, db, `UPDATE interrupts SET record = '' WHERE thread = 'waiting'`)
	execSQL(t, db, `UPDATE threads SET head = char(127) || head WHERE thread = 'copied'`)
	require.NoError(t, db.Close())
	m, err := migrateFile(t.Context(), path, ignoreProgress)
	require.NoError(t, err)
	require.Equal(t, []string{"again", "copied", "waiting"}, m.Unreadable)
	require.Len(t, m.UnreadableRecords, 3)
	require.Contains(t, m.UnreadableRecords[0], `thread "copied", head "": record: stored record is corrupt: `)
	require.Contains(t, m.UnreadableRecords[1], fmt.Sprintf(`thread "waiting", question %q: record: stored record is corrupt: `, question))
	require.Contains(t, m.UnreadableRecords[2], fmt.Sprintf(`thread "again", run %q: record: stored record is corrupt: `, id))
}

// A record that its key does not open is damaged; one whose key is not given waits for it.
func TestSealedRecordsThatDoNotOpenAreNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	restoreFrozen(t, "sqlite-3", path)
	k1, k2 := newKey("k1", 1), newKey("k2", 2)
	sealThreads(t, path, 3, k1, k2)
	db := openDirectly(t, path)
	execSQL(t, db, `UPDATE threads SET head = (SELECT head FROM threads WHERE thread = 'k1-000000') WHERE thread = 'k1-000001'`)
	require.NoError(t, db.Close())
	m, err := migrateFile(t.Context(), path, ignoreProgress)
	require.NoError(t, err)
	require.Empty(t, m.Unreadable, "no key is given")
	s := openSealed(t, path, seal.Options{Keys: []seal.Key{k1}})
	warnings := strings.Join(s.Warnings(), "\n")
	require.Contains(t, warnings, `1 threads have records that can't be read and were left as they are: thread "k1-000001", head "": `+
		`stored record is corrupt: it does not open with the key "k1"`)
	require.NotContains(t, warnings, `thread "k2`)
	require.NoError(t, s.Close())
	require.Equal(t, [][]string{{"format3:k2", ""}}, listSealedProgress(t, path))
}

// sealThreads makes heads of format 3 that are sealed with each of some keys, and says
// which threads they are of.
func sealThreads(t *testing.T, path string, n int, keys ...seal.Key) (threads []string) {
	t.Helper()
	db := openDirectly(t, path)
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	for _, key := range keys {
		box, err := seal.New(seal.Options{Keys: []seal.Key{key}, Compress: key.ID == "k2"})
		require.NoError(t, err)
		_, err = tx.ExecContext(t.Context(), `INSERT INTO meta (key, value) VALUES (?, ?)`, "key:"+key.ID, box.ActiveKeyCheck())
		require.NoError(t, err)
		for i := range n {
			name := fmt.Sprintf("%s-%06d", key.ID, i)
			head := fmt.Sprintf(`{"v":1,"thread":%q,"metadata":{"label":%q}}`, name, strings.Repeat("x", 600)+name)
			_, err = tx.ExecContext(t.Context(), `INSERT INTO threads SELECT ?1, revision, log_id, op, applied, graph, state, updated, seq, first_event,
				last_event, owner, lease_expires, wake, ?2 FROM threads WHERE thread = 'again'`,
				name, box.Seal(seal.RecordPlace{Thread: name, Kind: "head"}, head))
			require.NoError(t, err)
			threads = append(threads, name)
		}
	}
	require.NoError(t, tx.Commit())
	require.NoError(t, db.Close())
	return threads
}

// requireHeads sees that heads are read.
func requireHeads(t *testing.T, s *sqlite.Store, threads []string) {
	t.Helper()
	for _, name := range threads {
		h, err := s.Head(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, map[string]string{"label": strings.Repeat("x", 600) + name}, h.Metadata)
	}
}

func listSealedProgress(t *testing.T, path string) [][]string {
	t.Helper()
	db := openDirectly(t, path)
	defer func() { require.NoError(t, db.Close()) }()
	return readRows(t, db, `SELECT key, value FROM meta WHERE key LIKE 'format3%' ORDER BY key`)
}

// Sealed records are packed by the first server that has their keys. One that is
// killed in the middle leaves the rest to the next.
func TestSealedRecordsArePackedWhenTheyOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	restoreFrozen(t, "sqlite-3", path)
	k1, k2 := newKey("k1", 1), newKey("k2", 2)
	threads := sealThreads(t, path, 1100, k1, k2)
	m, err := migrateFile(t.Context(), path, ignoreProgress)
	require.NoError(t, err)
	require.Equal(t, checkpoint.Migration{From: 3, To: sqlite.SchemaVersion, Threads: 2219, Done: 2219, Changed: 19}, m)
	require.Equal(t, [][]string{{"format3:k1", ""}, {"format3:k2", ""}}, listSealedProgress(t, path))

	// The key of the second half alone, and the server ends after its first report.
	ctx, stop := context.WithCancel(t.Context())
	opts := sqlite.Options{Path: path, Seal: seal.Options{Keys: []seal.Key{k2}}, Progress: func(m checkpoint.Migration) {
		require.Less(t, m.Done, m.Threads)
		stop()
	}}
	_, err = sqlite.Open(ctx, opts)
	require.ErrorIs(t, err, context.Canceled)
	progress := listSealedProgress(t, path)
	require.Equal(t, []string{"format3:k1", ""}, progress[0])
	require.NotEmpty(t, progress[1][1])

	done := 0
	opts.Progress = func(m checkpoint.Migration) { done = m.Done }
	s, err := sqlite.Open(t.Context(), opts)
	require.NoError(t, err)
	require.Greater(t, done, 1024, "it goes on where the other has ended")
	requireHeads(t, s, threads[1100:])
	_, err = s.Head(t.Context(), threads[0])
	require.ErrorContains(t, err, `key "k1"`)
	require.NoError(t, s.Close())
	require.Equal(t, [][]string{{"format3:k1", ""}}, listSealedProgress(t, path))

	s = openSealed(t, path, seal.Options{Keys: []seal.Key{k2, k1}})
	requireHeads(t, s, threads)
	list, err := s.Threads(t.Context(), checkpoint.ThreadQuery{Metadata: map[string]string{"label": strings.Repeat("x", 600) + threads[7]}})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.NoError(t, s.Close())
	require.Empty(t, listSealedProgress(t, path))
	db := openDirectly(t, path)
	require.Equal(t, [][]string{{"2200"}}, readRows(t, db, `SELECT count(*) FROM threads WHERE hex(substr(head, 1, 4)) IN ('02026B32', '03026B32')`),
		"all are sealed with the first key")
	require.Equal(t, sql.NullString{}, readNull(t, db, `SELECT max(labels) FROM threads WHERE thread LIKE 'k%' AND labels LIKE '%label%'`), "nothing of them is open")
}

func readNull(t *testing.T, db *sql.DB, query string) (v sql.NullString) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&v))
	return v
}
