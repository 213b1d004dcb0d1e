package file

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// A file that can't be looked at may be there still: that it was replaced is not said.
func TestAFileThatCannotBeLookedAt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	f, err := OpenOwned(t.Context(), path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	require.NoError(t, os.WriteFile(path+"-wal", nil, 0o600))
	require.NoError(t, f.NoteLog())
	for _, cause := range []error{syscall.EIO, syscall.ESTALE, syscall.EACCES} {
		f.stat = func(string) (identity, error) { return identity{}, cause }
		err := f.CheckReplaced()
		require.ErrorIs(t, err, checkpoint.ErrUnavailable)
		require.ErrorIs(t, err, cause)
		require.NotErrorIs(t, err, checkpoint.ErrStoreReplaced)
	}
	f.stat = func(string) (identity, error) { return identity{}, syscall.ENOENT }
	require.ErrorIs(t, f.CheckReplaced(), checkpoint.ErrStoreReplaced)
	f.stat = identifyFile
	require.NoError(t, f.CheckReplaced())
}
