package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/payload"
)

// newThreadOf makes a thread with a value of n bytes.
func newThreadOf(thread string, n int) *checkpoint.Change {
	return &checkpoint.Change{
		Thread: thread, Op: "1", Head: checkpoint.Head{Thread: thread, Seq: 1, Checkpoint: "1"},
		Checkpoints: []*checkpoint.Checkpoint{{ID: "1", Seq: 1, Channels: []checkpoint.Channel{
			{Name: "v", Version: 1, Stored: 1, Value: payload.Quote(strings.Repeat("x", n))},
		}}},
	}
}

// limitedStores are ways to have a store whose space ends: a limit of pages
// everywhere, and a small disk where this account may mount one.
func limitedStores(t *testing.T) map[string]func(t *testing.T) *Store {
	t.Helper()
	all := map[string]func(t *testing.T) *Store{
		"a limit of pages": func(t *testing.T) *Store {
			t.Helper()
			s := openStoreAt(t, t.TempDir())
			require.NoError(t, s.changes.RunChange(t.Context(), func(ctx context.Context, conn *sql.Conn) error {
				var n int64
				return conn.QueryRowContext(ctx, "PRAGMA max_page_count = 1500").Scan(&n)
			}))
			return s
		},
	}
	if dir := t.TempDir(); mountSmallDisk(dir) == nil {
		require.NoError(t, exec.Command("umount", "-l", dir).Run())
		all["a disk of 12 MiB"] = func(t *testing.T) *Store {
			t.Helper()
			dir := t.TempDir()
			require.NoError(t, mountSmallDisk(dir))
			t.Cleanup(func() { require.NoError(t, exec.Command("umount", "-l", dir).Run()) })
			return openStoreAt(t, dir)
		}
	}
	return all
}

func mountSmallDisk(dir string) error {
	return exec.Command("mount", "-t", "tmpfs", "-o", "size=12m", "graphd-test", dir).Run()
}

func openStoreAt(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{Path: filepath.Join(dir, "a.db"), Reserve: 2 << 20})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// fillStore makes threads until the store is full, and says how many there are.
func fillStore(t *testing.T, s *Store, from int) (threads int) {
	t.Helper()
	for n := from; ; n++ {
		_, err := s.Apply(t.Context(), newThreadOf(fmt.Sprint("t", n), 100_000))
		if errors.Is(err, checkpoint.ErrStoreFull) {
			return n
		}
		require.NoError(t, err)
		require.Less(t, n, 10_000, "it is never full")
	}
}

// A store without space says so, can be read, lets threads be deleted, and goes on
// when that has freed space.
func TestAFullDiskLetsThreadsBeDeleted(t *testing.T) {
	for name, fresh := range limitedStores(t) {
		t.Run(name, func(t *testing.T) {
			s := fresh(t)
			made, gone := fillStore(t, s, 0), 0
			require.Greater(t, made, 10)
			for range 3 { // more than once: what was deleted must be of use
				_, err := s.Apply(t.Context(), newThreadOf("small", 10))
				require.ErrorIs(t, err, checkpoint.ErrStoreFull)
				require.ErrorIs(t, err, checkpoint.ErrUnavailable)
				require.ErrorContains(t, err, "is full: make room on it, or delete threads")
				require.ErrorIs(t, s.CheckWritable(t.Context()), checkpoint.ErrStoreFull)
				_, err = s.Head(t.Context(), "small")
				require.ErrorIs(t, err, checkpoint.ErrThreadNotFound)

				for s.CheckWritable(t.Context()) != nil {
					require.Less(t, gone, made, "all threads are deleted, and there is no room")
					thread := fmt.Sprint("t", gone)
					_, err := s.Checkpoint(t.Context(), thread, "", "")
					require.NoError(t, err)
					_, err = s.Apply(t.Context(), &checkpoint.Change{Thread: thread, Expect: 1, Delete: true})
					require.NoError(t, err, thread)
					gone++
				}
				before := made
				made = fillStore(t, s, made)
				require.Greater(t, made, before, "it was said to have room")
			}
			require.FileExists(t, s.file.RealPath+"-reserve")
			require.Less(t, gone, made)
		})
	}
}

// Space that is freed elsewhere is found, also when no client tries.
func TestRoomOnADiskIsFound(t *testing.T) {
	fresh, ok := limitedStores(t)["a disk of 12 MiB"]
	if !ok {
		t.Log("this account may not mount a disk: only the limit of pages is tried")
		return
	}
	s := fresh(t)
	other := filepath.Join(filepath.Dir(s.file.RealPath), "other")
	_ = os.WriteFile(other, make([]byte, 4<<20), 0o600) // as much as there is
	fillStore(t, s, 0)
	require.NoError(t, os.Remove(other))
	require.Eventually(t, func() bool { return s.CheckWritable(t.Context()) == nil }, time.Minute, 50*time.Millisecond)
	_, err := s.Apply(t.Context(), newThreadOf("small", 10))
	require.NoError(t, err)
}

// A server starts on a full disk, so that threads can be deleted.
func TestAStoreOpensOnAFullDisk(t *testing.T) {
	fresh, ok := limitedStores(t)["a disk of 12 MiB"]
	if !ok {
		t.Log("this account may not mount a disk: only the limit of pages is tried")
		return
	}
	s := fresh(t)
	made := fillStore(t, s, 0)
	dir := filepath.Dir(s.file.RealPath)
	require.NoError(t, s.Close())
	rest := filepath.Join(dir, "rest")
	_ = os.WriteFile(rest, make([]byte, 12<<20), 0o600) // as much as there is

	s = openStoreAt(t, dir)
	_, err := s.Apply(t.Context(), newThreadOf("large", 1_000_000))
	require.ErrorIs(t, err, checkpoint.ErrStoreFull)
	for i := range made {
		_, err := s.Apply(t.Context(), &checkpoint.Change{Thread: fmt.Sprint("t", i), Expect: 1, Delete: true})
		require.NoError(t, err, i)
	}
	require.NoError(t, os.Remove(rest))
	require.Eventually(t, func() bool { return s.CheckWritable(t.Context()) == nil }, time.Minute, 50*time.Millisecond)
	_, err = s.Apply(t.Context(), newThreadOf("large", 100_000))
	require.NoError(t, err)
}

// addSealedFormat3 has a store hold heads as a migration leaves them that had no key.
func addSealedFormat3(t *testing.T, s *Store, box *seal.Box, n int) {
	t.Helper()
	for i := range n {
		c := newThreadOf(fmt.Sprintf("sealed-%06d", i), 10)
		_, err := s.Apply(t.Context(), c)
		require.NoError(t, err)
	}
	require.NoError(t, s.changes.RunChange(t.Context(), func(ctx context.Context, conn *sql.Conn) error {
		for i := range n {
			name := fmt.Sprintf("sealed-%06d", i)
			head := fmt.Sprintf(`{"v":1,"thread":%q,"metadata":{"label":%q}}`, name, strings.Repeat("x", 4000))
			text := box.Seal(seal.RecordPlace{Thread: name, Kind: "head"}, head)
			if _, err := conn.ExecContext(ctx, `UPDATE threads SET head = ? WHERE thread = ?`, []byte(text), name); err != nil {
				return err
			}
		}
		_, err := conn.ExecContext(ctx, `INSERT INTO meta (key, value) VALUES ('format3:k1', ''), ('key:k1', ?)`, box.ActiveKeyCheck())
		return err
	}))
}

// requireSealedHeads sees that all heads are read.
func requireSealedHeads(t *testing.T, s *Store, n int) {
	t.Helper()
	for i := range n {
		h, err := s.Head(t.Context(), fmt.Sprintf("sealed-%06d", i))
		require.NoError(t, err)
		require.Len(t, h.Metadata["label"], 4000)
	}
}

func countUnpacked(t *testing.T, s *Store) (n int) {
	t.Helper()
	require.NoError(t, s.readDB.QueryRowContext(t.Context(), `SELECT count(*) FROM meta WHERE key = 'format3:k1'`).Scan(&n))
	return n
}

// A full disk stops the packing of records that were sealed when the file was migrated, not
// the server, which reads them as they are. The next start goes on.
func TestAStoreOpensOnAFullDiskWithRecordsToPack(t *testing.T) {
	const threads = 200
	options := seal.Options{Keys: []seal.Key{{ID: "k1", Secret: []byte(strings.Repeat("k", seal.KeySize))}}}
	box, err := seal.New(options)
	require.NoError(t, err)
	open := func(t *testing.T, dir string) *Store {
		t.Helper()
		s, err := Open(t.Context(), Options{Path: filepath.Join(dir, "a.db"), Reserve: 2 << 20, Seal: options})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	for name, fresh := range limitedStores(t) {
		t.Run(name, func(t *testing.T) {
			s := fresh(t)
			dir := filepath.Dir(s.file.RealPath)
			addSealedFormat3(t, s, box, threads)
			rest, other := filepath.Join(dir, "rest"), filepath.Join(dir, "other")
			_ = os.WriteFile(other, make([]byte, 4<<20), 0o600) // as much as there is
			fillStore(t, s, 0)
			require.NoError(t, s.Close())
			if strings.Contains(name, "disk") {
				_ = os.WriteFile(rest, make([]byte, 12<<20), 0o600) // as much as there is
				s = open(t, dir)
				require.Contains(t, strings.Join(s.Warnings(), "\n"), "and the next start goes on, since there is no space")
				require.Equal(t, 1, countUnpacked(t, s))
				requireSealedHeads(t, s, threads)
				_, err := s.Apply(t.Context(), &checkpoint.Change{Thread: "t0", Expect: 1, Delete: true})
				require.NoError(t, err)
				require.NoError(t, s.Close())
				require.NoError(t, os.Remove(rest))
				require.NoError(t, os.Remove(other))
			}
			s = open(t, dir)
			require.Zero(t, countUnpacked(t, s))
			requireSealedHeads(t, s, threads)
			info, err := os.Stat(s.file.RealPath + "-wal")
			require.NoError(t, err)
			require.Less(t, info.Size(), int64(64<<10), "the log is cut off after each piece")
		})
	}
}

// A store that became full while it was open takes no more of the pieces.
func TestAFullStoreStopsPacking(t *testing.T) {
	options := seal.Options{Keys: []seal.Key{{ID: "k1", Secret: []byte(strings.Repeat("k", seal.KeySize))}}}
	box, err := seal.New(options)
	require.NoError(t, err)
	for name, fresh := range limitedStores(t) {
		t.Run(name, func(t *testing.T) {
			s := fresh(t)
			addSealedFormat3(t, s, box, 10)
			fillStore(t, s, 0)
			require.NoError(t, s.packSealedRecords(t.Context(), box, nil))
			require.Contains(t, strings.Join(s.Warnings(), "\n"), "for 0 of ")
			require.Equal(t, 1, countUnpacked(t, s))
			require.ErrorIs(t, s.CheckWritable(t.Context()), checkpoint.ErrStoreFull)
		})
	}
}
