package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver that graphd has, too
)

// sqliteCommands reads a table of its own, of as many questions: graphd lets nobody else open
// its file. A page is a single range of rows that have the records.
type sqliteCommands struct {
	db     *sql.DB
	middle int // the number of a question
}

// newSQLiteCommands makes the table. Records are as long as a question is as a message.
func newSQLiteCommands(ctx context.Context, dir string, count, recordBytes int) (*sqliteCommands, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "limit.db")+"?_pragma=journal_mode(wal)")
	if err != nil {
		return nil, err
	}
	c := &sqliteCommands{db: db, middle: count / 2}
	if err := c.fill(ctx, count, recordBytes); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("limit: %w", err)
	}
	return c, nil
}

func (c *sqliteCommands) fill(ctx context.Context, count, recordBytes int) error {
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, `CREATE TABLE questions (tag TEXT, created INTEGER, record BLOB, PRIMARY KEY (tag, created)) WITHOUT ROWID;
		CREATE TABLE counts (tag TEXT PRIMARY KEY, open INTEGER) WITHOUT ROWID; INSERT INTO counts VALUES ('leads', 1)`); err != nil {
		return err
	}
	add, err := tx.PrepareContext(ctx, `INSERT INTO questions VALUES (?, ?, ?)`)
	if err != nil {
		return err
	}
	defer func() { _ = add.Close() }()
	record := bytes.Repeat([]byte("r"), recordBytes)
	for n := range count {
		tag := "other"
		if n%ofLeads == 1 {
			tag = leads
		}
		if _, err := add.ExecContext(ctx, tag, n, record); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (c *sqliteCommands) page(ctx context.Context) (int, error) {
	return c.rows(ctx, `SELECT record FROM questions WHERE tag = ? ORDER BY created LIMIT ?`, leads, pageSize)
}

func (c *sqliteCommands) nothing(ctx context.Context) error {
	_, err := c.rows(ctx, `SELECT record FROM questions WHERE tag = ? ORDER BY created LIMIT ?`, "nobody", pageSize)
	return err
}

func (c *sqliteCommands) count(ctx context.Context) error {
	for range counted {
		if _, err := c.rows(ctx, `SELECT open FROM counts WHERE tag = ?`, leads); err != nil {
			return err
		}
	}
	return nil
}

func (c *sqliteCommands) record(ctx context.Context) error {
	_, err := c.rows(ctx, `SELECT record FROM questions WHERE tag = 'other' AND created >= ? ORDER BY created LIMIT 1`, c.middle)
	return err
}

// rows reads the one column of a query and returns how many rows there were.
func (c *sqliteCommands) rows(ctx context.Context, query string, arguments ...any) (int, error) {
	rows, err := c.db.QueryContext(ctx, query, arguments...)
	if err != nil {
		return 0, err
	}
	defer func() { _ = rows.Close() }()
	found := 0
	for rows.Next() {
		var value sql.RawBytes
		if err := rows.Scan(&value); err != nil {
			return 0, err
		}
		found++
	}
	return found, rows.Err()
}

func (c *sqliteCommands) close() error { return c.db.Close() }
