package sqlite_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/checkpointtest"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
)

func newKey(id string, b byte) seal.Key {
	return seal.Key{ID: id, Secret: bytes.Repeat([]byte{b}, seal.KeySize)}
}

func openSealed(t *testing.T, path string, opts seal.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: path, Seal: opts})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestContractSealed(t *testing.T) {
	opts := seal.Options{Keys: []seal.Key{newKey("k1", 1)}, Compress: true}
	checkpointtest.Run(t, func(t *testing.T, now func() time.Time) checkpointtest.Store {
		t.Helper()
		s, err := sqlite.Open(t.Context(), sqlite.Options{
			Path: filepath.Join(t.TempDir(), "a.db"), Now: now, Seal: opts, Tombstones: checkpointtest.Tombstones,
		})
		require.NoError(t, err)
		return s
	})
}

const secretText = "hush-hush"

// TestNothingIsReadable looks for a value in the files of a store.
func TestNothingIsReadable(t *testing.T) {
	for name, c := range map[string]struct {
		opts  seal.Options
		found bool
	}{
		"plain":  {seal.Options{}, true}, // so the search finds what there is
		"sealed": {seal.Options{Keys: []seal.Key{newKey("k1", 1)}, Compress: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.db")
			s := openSealed(t, path, c.opts)
			_, err := s.Apply(t.Context(), checkpointtest.ChangeWithText("t", secretText))
			require.NoError(t, err)
			require.NoError(t, s.PutGraph(t.Context(), checkpoint.GraphRecord{Name: "g", Version: "1", Source: secretText}, checkpoint.GraphCondition{}))
			graphs, err := s.GraphRecords(t.Context())
			require.NoError(t, err)
			require.Equal(t, secretText, graphs[0].Source)
			require.NoError(t, checkpointtest.ReadThread(t, s, "t"))
			list, err := s.Threads(t.Context(), checkpoint.ThreadQuery{Metadata: map[string]string{"label": secretText}})
			require.NoError(t, err)
			require.Len(t, list, 1, "labels can be asked for")
			list, err = s.Threads(t.Context(), checkpoint.ThreadQuery{Metadata: map[string]string{"label": "other"}})
			require.NoError(t, err)
			require.Empty(t, list)
			asked, err := s.Interrupts(t.Context(), checkpoint.InterruptQuery{Tags: []string{checkpoint.UserTag(secretText)}})
			require.NoError(t, err)
			require.Len(t, asked, 1)
			asked, err = s.Interrupts(t.Context(), checkpoint.InterruptQuery{Tags: []string{checkpoint.UserTag("other")}})
			require.NoError(t, err)
			require.Empty(t, asked)
			found := false
			for _, file := range []string{path, path + "-wal"} {
				content, err := os.ReadFile(file)
				require.NoError(t, err)
				found = found || bytes.Contains(content, []byte(secretText))
			}
			require.Equal(t, c.found, found)
		})
	}
}

// TestMovedRecords puts records of one thread in the places of another's.
func TestMovedRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	s := openSealed(t, path, seal.Options{Keys: []seal.Key{newKey("k1", 1)}})
	for _, thread := range []string{"good", "bad"} {
		_, err := s.Apply(t.Context(), checkpointtest.ChangeWithText(thread, secretText))
		require.NoError(t, err)
	}
	db := openDirectly(t, path)
	for _, c := range []struct{ table, column string }{
		{"threads", "head"},
		{"checkpoints", "manifest"},
		{"channel_values", "value"},
		{"list_items", "value"},
		{"tasks", "record"},
		{"memos", "record"},
		{"interrupts", "record"},
		{"runs", "record"},
		{"events", "record"},
		{"requests", "digest"},
	} {
		require.NoError(t, checkpointtest.ReadThread(t, s, "bad"))
		execSQL(t, db, `CREATE TABLE kept AS SELECT * FROM `+c.table)
		execSQL(t, db, `UPDATE `+c.table+` SET `+c.column+` = (SELECT `+c.column+` FROM `+c.table+` WHERE thread = 'good') WHERE thread = 'bad'`)
		err := checkpointtest.ReadThread(t, s, "bad")
		require.ErrorIs(t, err, checkpoint.ErrCorrupt, c.table)
		require.ErrorContains(t, err, `thread "bad"`)
		require.ErrorContains(t, err, `"k1"`)
		require.NoError(t, checkpointtest.ReadThread(t, s, "good"))
		columns := readRows(t, db, `SELECT group_concat(name) FROM pragma_table_info(?)`, c.table)[0][0] // without computed ones
		execSQL(t, db, `REPLACE INTO `+c.table+` (`+columns+`) SELECT `+columns+` FROM kept`)
		execSQL(t, db, `DROP TABLE kept`)
	}
}

func TestKeysOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	write := func(thread string, opts seal.Options) {
		s, err := sqlite.Open(t.Context(), sqlite.Options{Path: path, Seal: opts})
		require.NoError(t, err)
		_, err = s.Apply(t.Context(), checkpointtest.ChangeWithText(thread, secretText))
		require.NoError(t, err)
		require.Empty(t, s.Warnings())
		if thread == "first" {
			require.NoError(t, s.PutGraph(t.Context(), checkpoint.GraphRecord{Name: "g", Version: "1", Source: secretText}, checkpoint.GraphCondition{}))
			require.NoError(t, s.DeleteGraph(t.Context(), "g", "1", checkpoint.GraphCondition{}))
		}
		require.NoError(t, s.Close())
	}
	write("plain", seal.Options{})
	write("packed", seal.Options{Compress: true})
	write("first", seal.Options{Keys: []seal.Key{newKey("k1", 1)}})
	write("second", seal.Options{Keys: []seal.Key{newKey("k2", 2), newKey("k1", 1)}})
	for name, keys := range map[string][]seal.Key{
		"none": nil, "another": {newKey("k3", 3)}, "wrong": {newKey("k1", 1), newKey("k2", 3)},
	} {
		_, err := sqlite.Open(t.Context(), sqlite.Options{Path: path, Seal: seal.Options{Keys: keys}})
		var wrong *seal.KeyError
		require.ErrorAs(t, err, &wrong, name)
	}
	s := openSealed(t, path, seal.Options{Keys: []seal.Key{newKey("k2", 2)}})
	require.Len(t, s.Warnings(), 1)
	require.Contains(t, s.Warnings()[0], `"k1"`)
	for _, thread := range []string{"plain", "packed", "second"} {
		require.NoError(t, checkpointtest.ReadThread(t, s, thread))
	}
	err := s.PutGraph(t.Context(), checkpoint.GraphRecord{Name: "g", Version: "1", Source: "other"}, checkpoint.GraphCondition{})
	require.ErrorIs(t, err, checkpoint.ErrGraphExists)
	err = s.PutGraph(t.Context(), checkpoint.GraphRecord{Name: "g", Version: "1", Source: secretText}, checkpoint.GraphCondition{})
	require.NoError(t, err, "what is remembered of it is sealed anew")
	err = checkpointtest.ReadThread(t, s, "first")
	require.ErrorIs(t, err, checkpoint.ErrCorrupt)
	require.ErrorContains(t, err, `thread "first"`)
}
