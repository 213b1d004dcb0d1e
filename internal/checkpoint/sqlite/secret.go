package sqlite

import (
	"context"
	"database/sql"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

var _ checkpoint.Secrets = (*Store)(nil)

const secretPrefix = "secret:"

// Secret returns the secret of a name.
func (s *Store) Secret(ctx context.Context, name, offer string) (string, error) {
	var secret string
	err := s.changes.RunChange(ctx, func(ctx context.Context, conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, `INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)`, secretPrefix+name, offer)
		if err != nil {
			return err
		}
		return conn.QueryRowContext(ctx, `SELECT value FROM meta WHERE key = ?`, secretPrefix+name).Scan(&secret)
	})
	return secret, err
}
