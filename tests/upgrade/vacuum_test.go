//go:build freeze

package upgrade_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver
)

// vacuumCopy returns a database as one file, with what stands in its journal.
func vacuumCopy(t *testing.T, file string) []byte {
	db, err := sql.Open("sqlite", file)
	require.NoError(t, err)
	out := filepath.Join(t.TempDir(), "whole.db")
	_, err = db.ExecContext(t.Context(), "VACUUM INTO ?", out)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	data, err := os.ReadFile(out)
	require.NoError(t, err)
	return data
}
