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
	require.NoError(t, os.WriteFile(other, make([]byte, 4<<20), 0o600))
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
