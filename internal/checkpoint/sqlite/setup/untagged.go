package setup

import (
	"context"
	"database/sql"

	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/layout"
)

// HasUntagged reports whether a migration has left open interrupts without tags.
func HasUntagged(ctx context.Context, db *sql.DB) (has bool, err error) {
	err = db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM meta WHERE key = 'untagged')`).Scan(&has)
	if err != nil {
		return false, layout.ToContractError(err)
	}
	return has, nil
}

// RemoveUntaggedMark notes that all open interrupts have their tags.
func RemoveUntaggedMark(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, `DELETE FROM meta WHERE key = 'untagged'`)
	return err
}
