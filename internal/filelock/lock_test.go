package filelock_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/filelock"
)

// A lock keeps other processes from locking the file until it is closed. They may read it.
func TestTryLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		require.NoError(t, err)
		return f
	}
	first, second := open(), open()
	defer second.Close()
	isTaken, err := filelock.TryLock(first)
	require.NoError(t, err)
	require.False(t, isTaken)
	isTaken, err = filelock.TryLock(second)
	require.NoError(t, err)
	require.True(t, isTaken)

	_, err = first.WriteString("text")
	require.NoError(t, err)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "text", string(text))

	require.NoError(t, first.Close())
	isTaken, err = filelock.TryLock(second)
	require.NoError(t, err)
	require.False(t, isTaken)

	_, err = filelock.TryLock(first)
	require.Error(t, err, "a file that is closed can't be locked")
}
