package sqlite

import (
	"context"
	"database/sql"
	_ "embed" // the schema is a file that people can read
	"errors"
	"fmt"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// SchemaVersion is the layout of the tables that this package knows.
const SchemaVersion = 2

//go:embed schema.sql
var schema string

// SchemaError says that the file is not one this graphd can use.
type SchemaError struct {
	Path    string
	Version int64 // layout of the file; 0 = the file is not graphd's
}

// Error names the file and says what to do.
func (e *SchemaError) Error() string {
	if e.Version == 0 {
		return fmt.Sprintf("sqlite: %s is a database, but not of graphd: choose another file", e.Path)
	}
	if e.Version < SchemaVersion {
		return fmt.Sprintf("sqlite: %s has schema version %d, this graphd reads %d: it is of an older graphd; "+
			"use that one, or begin with another file", e.Path, e.Version, SchemaVersion)
	}
	return fmt.Sprintf("sqlite: %s has schema version %d, this graphd knows up to %d: use a newer graphd",
		e.Path, e.Version, SchemaVersion)
}

// migrate makes the tables in a new file and checks those of an old one.
func migrate(ctx context.Context, db *sql.DB, path string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return opening(path, err)
	}
	if err := layOut(ctx, tx, path); err != nil {
		return errors.Join(opening(path, err), tx.Rollback())
	}
	return opening(path, tx.Commit())
}

func layOut(ctx context.Context, tx *sql.Tx, path string) error {
	var tables, meta int
	err := tx.QueryRowContext(ctx,
		`SELECT count(*), coalesce(sum(name = 'meta'), 0) FROM sqlite_schema WHERE type = 'table'`).Scan(&tables, &meta)
	switch {
	case err != nil:
		return err
	case tables > 0 && meta == 0:
		return &SchemaError{Path: path}
	case tables > 0:
		return checkVersion(ctx, tx, path)
	}
	if _, err := tx.ExecContext(ctx, schema); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx,
		`INSERT INTO meta (key, value) VALUES ('schema_version', ?), ('last_change', 0)`, SchemaVersion)
	return err
}

func checkVersion(ctx context.Context, tx *sql.Tx, path string) error {
	var v int64
	err := tx.QueryRowContext(ctx, `SELECT value FROM meta WHERE key = 'schema_version'`).Scan(&v)
	if errors.Is(err, sql.ErrNoRows) {
		return &SchemaError{Path: path}
	}
	if err == nil && v != SchemaVersion {
		return &SchemaError{Path: path, Version: v}
	}
	return err
}

func opening(path string, err error) error {
	var se *SchemaError
	if err == nil || errors.As(err, &se) {
		return err
	}
	err = failed(err)
	if errors.Is(err, checkpoint.ErrCorrupt) {
		return fmt.Errorf("open %s: not a database, or a damaged one: %w", path, err)
	}
	return fmt.Errorf("open %s: %w", path, err)
}
