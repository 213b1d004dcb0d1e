package sqlite

import (
	"context"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

var _ checkpoint.Secrets = (*Store)(nil)

const secretPrefix = "secret:"

// Secret returns the secret of a name.
func (s *Store) Secret(ctx context.Context, name, offer string) (string, error) {
	var secret string
	err := s.writer.runChange(ctx, func(w *writer) error {
		_, err := w.conn.ExecContext(w.life, `INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)`, secretPrefix+name, offer)
		if err != nil {
			return err
		}
		return w.conn.QueryRowContext(w.life, `SELECT value FROM meta WHERE key = ?`, secretPrefix+name).Scan(&secret)
	})
	return secret, err
}
