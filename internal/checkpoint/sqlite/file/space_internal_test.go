//go:build linux || darwin

package file

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// What the system says when there is no space has more than one name.
func TestWhatMeansNoRoom(t *testing.T) {
	for errno, want := range map[unix.Errno]bool{
		unix.ENOSPC: true, unix.EDQUOT: true, unix.EFBIG: true, unix.EIO: false, unix.EACCES: false, unix.EROFS: false,
	} {
		err := fmt.Errorf("writing: %w", &fs.PathError{Op: "write", Path: "a.db", Err: errno})
		require.Equal(t, want, isOutOfSpace(err), errno)
	}
	require.False(t, isOutOfSpace(nil))
}

// Asking a disk leaves nothing behind.
func TestADiskIsAsked(t *testing.T) {
	dir := t.TempDir()
	room := NewReserve(filepath.Join(dir, "a.db"), 0)
	require.False(t, room.IsDiskFull())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	gone := NewReserve(filepath.Join(dir, "gone", "a.db"), 0)
	require.False(t, gone.IsDiskFull(), "a folder that is missing is not full")
}
