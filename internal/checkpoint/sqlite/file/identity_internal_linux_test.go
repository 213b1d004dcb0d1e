package file

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestIdentityIsTheSameByName identifies a file by its name, by a link, open, and in the
// way of kernels without statx.
func TestIdentityIsTheSameByName(t *testing.T) {
	dir := t.TempDir()
	name, link, other := filepath.Join(dir, "a"), filepath.Join(dir, "link"), filepath.Join(dir, "b")
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	require.NoError(t, os.Symlink(name, link))
	open, err := os.Open(name)
	require.NoError(t, err)
	defer func() { _ = open.Close() }()

	first, err := identifyFile(name)
	require.NoError(t, err)
	for how, identify := range map[string]func() (identity, error){
		"link":         func() (identity, error) { return identifyFile(link) },
		"open":         func() (identity, error) { return identifyOpen(open) },
		"stat":         func() (identity, error) { return identifyByStat(unix.AT_FDCWD, name, 0) },
		"stat of open": func() (identity, error) { return identifyByStat(int(open.Fd()), "", unix.AT_EMPTY_PATH) },
	} {
		found, err := identify()
		require.NoError(t, err, how)
		require.True(t, first.isSame(found), how)
	}
	second, err := identifyFile(other)
	require.NoError(t, err)
	require.False(t, first.isSame(second))
	require.NoError(t, os.Remove(name))
	_, err = identifyFile(name)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = identifyByStat(unix.AT_FDCWD, name, 0)
	require.ErrorIs(t, err, fs.ErrNotExist)
}
