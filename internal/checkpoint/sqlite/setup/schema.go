// Package setup prepares a file before a store uses it: makes its tables, checks and migrates
// those of an earlier format, and checks the keys of encrypted records.
package setup

import (
	"context"
	"database/sql"
	_ "embed" // the schema is a file that people can read
	"errors"
	"fmt"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/layout"
)

// SchemaVersion is the number of the layout of tables and records that this
// package writes. A change of what is written needs the next number and a
// migration step.
const SchemaVersion = 8

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
	if e.Version < oldestVersion {
		return fmt.Sprintf("sqlite: %s has schema version %d, which no released graphd wrote and none can migrate: choose another file",
			e.Path, e.Version)
	}
	if e.IsOlder() {
		return fmt.Sprintf("sqlite: %s has schema version %d, this graphd writes %d: it has to be migrated", e.Path, e.Version, SchemaVersion)
	}
	return fmt.Sprintf("sqlite: %s has schema version %d, this graphd knows up to %d: use a newer graphd",
		e.Path, e.Version, SchemaVersion)
}

// IsOlder reports whether Migrate can bring the file to the present version.
func (e *SchemaError) IsOlder() bool { return e.Version >= oldestVersion && e.Version < SchemaVersion }

// An EmptyError says that a file has no tables.
type EmptyError struct {
	Path string
}

// Error names the file.
func (e *EmptyError) Error() string {
	return fmt.Sprintf("sqlite: %s is empty: choose the file that a server uses", e.Path)
}

// CheckReadable refuses a file that is empty, is not one of this graphd, or does not open
// with the keys of a box. It writes nothing.
func CheckReadable(ctx context.Context, db *sql.DB, path string, box *seal.Box) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return wrapOpenError(path, err)
	}
	version, err := readVersion(ctx, tx, path)
	_ = tx.Rollback() // nothing was written
	switch {
	case err != nil:
		return wrapOpenError(path, err)
	case version == 0:
		return &EmptyError{Path: path}
	case version != SchemaVersion:
		return &SchemaError{Path: path, Version: version}
	}
	words, err := readKeyChecks(ctx, db)
	if err != nil {
		return err
	}
	_, err = box.VerifyKeys(words)
	return err
}

// PrepareSchema makes the tables in a new file and checks those of an old one.
func PrepareSchema(ctx context.Context, db *sql.DB, path string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return wrapOpenError(path, err)
	}
	if err := createTables(ctx, tx, path); err != nil {
		return errors.Join(wrapOpenError(path, err), tx.Rollback())
	}
	return wrapOpenError(path, tx.Commit())
}

func createTables(ctx context.Context, tx *sql.Tx, path string) error {
	version, err := readVersion(ctx, tx, path)
	if err != nil {
		return err
	}
	if version > 0 {
		if version != SchemaVersion {
			return &SchemaError{Path: path, Version: version}
		}
		return nil
	}
	if _, err := tx.ExecContext(ctx, schema); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx,
		`INSERT INTO meta (key, value) VALUES ('schema_version', ?), ('last_change', 0)`, SchemaVersion)
	return err
}

// readVersion reads the version of a file, 0 = it is empty.
func readVersion(ctx context.Context, tx *sql.Tx, path string) (version int64, err error) {
	var tables, meta int
	err = tx.QueryRowContext(ctx,
		`SELECT count(*), coalesce(sum(name = 'meta'), 0) FROM sqlite_schema WHERE type = 'table'`).Scan(&tables, &meta)
	if err != nil || tables == 0 {
		return 0, err
	}
	if meta == 0 {
		return 0, &SchemaError{Path: path}
	}
	err = tx.QueryRowContext(ctx, `SELECT value FROM meta WHERE key = 'schema_version'`).Scan(&version)
	if errors.Is(err, sql.ErrNoRows) || err == nil && version < 1 {
		return 0, &SchemaError{Path: path}
	}
	return version, err
}

func wrapOpenError(path string, err error) error {
	var se *SchemaError
	var space *SpaceError
	if err == nil || errors.As(err, &se) || errors.As(err, &space) {
		return err
	}
	err = layout.ToContractError(err)
	if errors.Is(err, checkpoint.ErrCorrupt) {
		return fmt.Errorf("open %s: not a database, or a damaged one: %w", path, err)
	}
	return fmt.Errorf("open %s: %w", path, err)
}
