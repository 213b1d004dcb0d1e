package limit

import (
	"context"
	"database/sql"
	"fmt"

	_ "modernc.org/sqlite" // the driver that graphd has, too
)

// sqlite makes each commit alone and syncs it in full.
type sqlite struct {
	db   *sql.DB
	conn chan *sql.Conn
}

func openSQLite(ctx context.Context, path string) (store, error) {
	db, err := sql.Open("sqlite", "file:"+path+
		"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=wal_autocheckpoint(8000)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	s := &sqlite{db: db, conn: make(chan *sql.Conn, 1)}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("limit: %w", err)
	}
	if _, err := conn.ExecContext(ctx, `CREATE TABLE head (thread TEXT PRIMARY KEY, rev INTEGER, body BLOB) WITHOUT ROWID;
		CREATE TABLE log (thread TEXT, rev INTEGER, body BLOB, PRIMARY KEY (thread, rev)) WITHOUT ROWID`); err != nil {
		return nil, fmt.Errorf("limit: %w", err)
	}
	s.conn <- conn
	return s, nil
}

func (s *sqlite) commit(ctx context.Context, thread string, revision int, body []byte) error {
	conn := <-s.conn
	defer func() { s.conn <- conn }()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := write(ctx, tx, thread, revision, body); err != nil {
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

func write(ctx context.Context, tx *sql.Tx, thread string, revision int, body []byte) error {
	half := len(body) / 2
	done, err := tx.ExecContext(ctx, `INSERT INTO head VALUES (?1, ?2 + 1, ?3)
		ON CONFLICT (thread) DO UPDATE SET rev = ?2 + 1, body = ?3 WHERE rev = ?2`, thread, revision, body[:half])
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n != 1 {
		return ErrConflict
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO log VALUES (?, ?, ?)`, thread, revision, body[half:])
	return err
}

func (s *sqlite) close() error { return s.db.Close() }
