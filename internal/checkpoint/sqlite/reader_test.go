package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/checkpointtest"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
)

// readFiles returns what stands in the files of a folder, but in the index of a log, which
// holds nothing that is not in the log.
func readFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	all := map[string]string{}
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".db-shm" {
			all[e.Name()] = ""
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		all[e.Name()] = string(data)
	}
	return all
}

func openReader(t *testing.T, path string, keys ...seal.Key) *sqlite.Reader {
	t.Helper()
	r, err := sqlite.OpenReader(t.Context(), sqlite.Options{Path: path, Seal: seal.Options{Keys: keys}})
	require.NoError(t, err)
	return r
}

// requireReadable makes each kind of call once.
func requireReadable(t *testing.T, r checkpoint.Reader, thread string) {
	t.Helper()
	h, err := r.Head(t.Context(), thread)
	require.NoError(t, err)
	require.Equal(t, thread, h.Thread)
	_, err = r.Events(t.Context(), thread, h.LastEvent-1, 0)
	require.NoError(t, err)
	_, err = r.Runs(t.Context(), thread, 0, 0)
	require.NoError(t, err)
	_, err = r.Interrupts(t.Context(), checkpoint.InterruptQuery{Thread: thread})
	require.NoError(t, err)
	list, err := r.Checkpoints(t.Context(), checkpoint.CheckpointQuery{Thread: thread, AllNamespaces: true})
	require.NoError(t, err)
	require.NotEmpty(t, list)
	_, err = r.Pending(t.Context(), thread, list[0].ID)
	require.NoError(t, err)
}

// A reader of a file that no server uses leaves the folder as it was: with keys that the
// file does not need, and with leases that the next server ends.
func TestAReaderWritesNothing(t *testing.T) {
	k1, k2 := newKey("k1", 1), newKey("k2", 2)
	for name, c := range map[string]struct{ stored, given []seal.Key }{
		"plain":                  {},
		"plain, keys not needed": {given: []seal.Key{k1}},
		"sealed":                 {stored: []seal.Key{k1}, given: []seal.Key{k1}},
		"sealed, another order":  {stored: []seal.Key{k1}, given: []seal.Key{k2, k1}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "a.db")
			s := openSealed(t, path, seal.Options{Keys: c.stored})
			checkpointtest.WriteAll(t.Context(), t, s)
			_, err := s.Apply(t.Context(), newStep("leased", 1))
			require.NoError(t, err)
			require.NoError(t, s.PutGraph(t.Context(), checkpoint.GraphRecord{Name: "g", Version: "1", Source: "nodes: {}"}, checkpoint.GraphCondition{}))
			require.NoError(t, s.Close())
			before := readFiles(t, dir)

			r := openReader(t, path, c.given...)
			requireReadable(t, r, "t")
			h, err := r.Head(t.Context(), "leased")
			require.NoError(t, err)
			require.True(t, h.Leased())
			require.NoError(t, r.Close())
			_, err = r.Head(t.Context(), "t")
			require.ErrorIs(t, err, checkpoint.ErrUnavailable)
			require.Equal(t, before, readFiles(t, dir))
			openSealed(t, path, seal.Options{Keys: c.stored})
		})
	}
}

// A reader reads beside a server of another process, which goes on, and what that one leaves
// behind when it is killed.
func TestAReaderReadsBesideAServer(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.db")
	cmd := startOwner(t, path)
	for _, isKilled := range []bool{false, true} {
		if isKilled {
			killOwner(t, cmd)
		}
		before := readFiles(t, dir)
		require.NotEmpty(t, before["a.db-wal"])
		r := openReader(t, path)
		requireReadable(t, r, "t")
		h, err := r.Head(t.Context(), "t")
		require.NoError(t, err)
		require.True(t, h.Leased())
		require.NoError(t, r.Close())
		require.Equal(t, before, readFiles(t, dir))
	}
	hard := filepath.Join(dir, "hard.db")
	require.NoError(t, os.Link(path, hard))
	_, err := sqlite.OpenReader(t.Context(), sqlite.Options{Path: hard})
	var stray *sqlite.StrayLogError
	require.ErrorAs(t, err, &stray)
	require.NoError(t, os.Remove(hard))
	requireSteps(t, openStore(t, path), "t", 1)
}

// A reader makes the index of a log that lacks it, and changes nothing else.
func TestAReaderMakesTheIndexOfALog(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.db")
	killOwner(t, startOwner(t, path))
	before := readFiles(t, dir)
	require.NoError(t, os.Remove(path+"-shm"))
	r := openReader(t, path)
	requireReadable(t, r, "t")
	require.FileExists(t, path+"-shm")
	require.NoError(t, r.Close())
	require.NoError(t, os.Remove(path+"-shm"))
	delete(before, "a.db-shm")
	require.Equal(t, before, readFiles(t, dir))
}

// A server that reads and writes a file keeps doing so while readers come and go, and each
// reader sees what was acknowledged.
func TestAServerGoesOnBesideReaders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	s := openStore(t, path)
	for n := range uint64(3) {
		_, err := s.Apply(t.Context(), newStep("t", n+1))
		require.NoError(t, err)
		r := openReader(t, path)
		h, err := r.Head(t.Context(), "t")
		require.NoError(t, err)
		require.Equal(t, n+1, h.Revision)
		require.NoError(t, s.CheckWritable(t.Context()))
		require.NoError(t, r.Close())
	}
	require.NoError(t, s.Close())
	requireSteps(t, openStore(t, path), "t", 3)
}

// A file that is read as it stands and that a server then writes to may have been read
// wrong: the reader says so.
func TestAReaderNoticesAServerThatBegins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	require.NoError(t, openStore(t, path).Close())
	r := openReader(t, path)
	s := openStore(t, path)
	_, err := s.Apply(t.Context(), newStep("t", 1))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	var changed *sqlite.ChangedError
	require.ErrorAs(t, r.Close(), &changed)
	require.Equal(t, path, changed.Path)
}

func TestAReaderRefusesWhatAServerRefuses(t *testing.T) {
	dir := t.TempDir()
	open := func(name string, keys ...seal.Key) error {
		_, err := sqlite.OpenReader(t.Context(), sqlite.Options{Path: name, Seal: seal.Options{Keys: keys}})
		return err
	}
	require.ErrorContains(t, open(""), "no path given")
	require.ErrorIs(t, open(filepath.Join(dir, "none.db")), os.ErrNotExist)

	empty, older, sealed := filepath.Join(dir, "empty.db"), filepath.Join(dir, "older.db"), filepath.Join(dir, "sealed.db")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	restoreFrozen(t, "sqlite-3", older)
	require.NoError(t, openSealed(t, sealed, seal.Options{Keys: []seal.Key{newKey("k1", 1)}}).Close())
	before := readFiles(t, dir)

	var nothing *sqlite.EmptyError
	require.ErrorAs(t, open(empty), &nothing)
	var schema *sqlite.SchemaError
	require.ErrorAs(t, open(older), &schema)
	require.True(t, schema.IsOlder())
	require.EqualValues(t, 3, schema.Version)
	for _, keys := range [][]seal.Key{nil, {newKey("k2", 2)}, {newKey("k1", 3)}} {
		var wrong *seal.KeyError
		require.ErrorAs(t, open(sealed, keys...), &wrong)
	}
	require.Equal(t, before, readFiles(t, dir))
}
