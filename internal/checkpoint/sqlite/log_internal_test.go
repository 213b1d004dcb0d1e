package sqlite

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/file"
)

// Beside a query of another connection the log can't be cut off: Close says so.
func TestCloseWarnsOfALogThatIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	var warnings []string
	s, err := Open(t.Context(), Options{Path: path, Warn: func(warning string) { warnings = append(warnings, warning) }})
	require.NoError(t, err)
	require.NoError(t, s.changes.RunChange(t.Context(), func(ctx context.Context, conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, `PRAGMA busy_timeout = 0`)
		return err
	}))
	db, err := file.ConnectDatabase(path)
	require.NoError(t, err)
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	var n int
	require.NoError(t, tx.QueryRowContext(t.Context(), `SELECT count(*) FROM threads`).Scan(&n))
	_, err = s.Apply(t.Context(), newThreadOf("t", 10))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Equal(t, []string{(&file.LogLeftError{Path: path}).Error()}, warnings)
	require.NoError(t, tx.Rollback())
	require.NoError(t, db.Close())
}
