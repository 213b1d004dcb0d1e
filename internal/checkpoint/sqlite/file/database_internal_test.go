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
	d, err := OpenOwned(t.Context(), path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	require.NoError(t, os.WriteFile(path+"-wal", nil, 0o600))
	require.NoError(t, d.NoteLog())
	for _, cause := range []error{syscall.EIO, syscall.ESTALE, syscall.EACCES} {
		d.stat = func(string) (identity, error) { return identity{}, cause }
		err := d.CheckReplaced()
		require.ErrorIs(t, err, checkpoint.ErrUnavailable)
		require.ErrorIs(t, err, cause)
		require.NotErrorIs(t, err, checkpoint.ErrStoreReplaced)
	}
	d.stat = func(string) (identity, error) { return identity{}, syscall.ENOENT }
	require.ErrorIs(t, d.CheckReplaced(), checkpoint.ErrStoreReplaced)
	d.stat = identifyFile
	require.NoError(t, d.CheckReplaced())
}
