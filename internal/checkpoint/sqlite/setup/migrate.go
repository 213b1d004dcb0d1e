package setup

import (
	"context"
	"database/sql"
	_ "embed" // as the schema
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/file"
)

// oldestVersion is the first layout that a file can be migrated from. Nothing
// was released that wrote an earlier one.
const oldestVersion = 2

// packedVersion is the first layout whose records are packed: a file of an earlier one is
// written anew. indexedVersion is the first whose indexes are by tenant: those of an
// earlier one are made anew. taggedVersion is the first whose questions have tags.
const (
	packedVersion  = 4
	indexedVersion = 5
	taggedVersion  = 7
)

// migrationStep brings a file from one version to the next, within the transaction of
// the migration. It counts in m what it does, and tells of it now and then.
type migrationStep func(ctx context.Context, tx *sql.Tx, m *checkpoint.Migration, tell func(checkpoint.Migration)) error

// migrationSteps are those of all versions that a file can be migrated from.
func migrationSteps() map[int64]migrationStep {
	return map[int64]migrationStep{
		2: migrateToVersion3, 3: migrateToVersion4, 4: migrateToVersion5, 5: migrateToVersion6, 6: migrateToVersion7, 7: migrateToVersion8,
	}
}

// migrateToVersion3 adds what version 2 has not. Records of version 3 have fields that
// those of version 2 lack, which an earlier graphd would drop when it writes a
// record anew; no record is changed.
func migrateToVersion3(ctx context.Context, tx *sql.Tx, _ *checkpoint.Migration, _ func(checkpoint.Migration)) error {
	_, err := tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS graph_tombstones (
		number  INTEGER PRIMARY KEY,
		name    TEXT    NOT NULL,
		version TEXT    NOT NULL,
		deleted INTEGER NOT NULL,
		digest  TEXT    NOT NULL,
		UNIQUE (name, version)
	) STRICT`)
	return err
}

//go:embed migrate_to_5.sql
var toVersion5 string

// migrateToVersion5 makes the indexes of lists anew, by tenant. No row is changed.
func migrateToVersion5(ctx context.Context, tx *sql.Tx, _ *checkpoint.Migration, _ func(checkpoint.Migration)) error {
	_, err := tx.ExecContext(ctx, toVersion5)
	return err
}

// migrateToVersion6 changes nothing but the number. Records of version 6 have fields for
// who did something, which an earlier graphd would drop when it writes a record anew.
// Records without them are read as before.
func migrateToVersion6(context.Context, *sql.Tx, *checkpoint.Migration, func(checkpoint.Migration)) error {
	return nil
}

//go:embed migrate_to_7.sql
var toVersion7 string

// migrateToVersion7 makes the tables of tags. Records of interrupts of version 7 have fields for
// who may answer, and votes. Records without them are read as before.
func migrateToVersion7(ctx context.Context, tx *sql.Tx, _ *checkpoint.Migration, _ func(checkpoint.Migration)) error {
	_, err := tx.ExecContext(ctx, toVersion7)
	return err
}

//go:embed migrate_to_8.sql
var toVersion8 string

// migrateToVersion8 makes the indexes of threads anew, with all that a count or a page after an
// offset needs. No row is changed.
func migrateToVersion8(ctx context.Context, tx *sql.Tx, _ *checkpoint.Migration, _ func(checkpoint.Migration)) error {
	_, err := tx.ExecContext(ctx, toVersion8)
	return err
}

// Migrate brings the file at a path to the present version. A file that has
// it, or that is not there yet, is left alone. All of it is one transaction: a
// process that dies in the middle leaves the file as it was. With dry it only
// says what there is to do. It fails with a file.InUseError when a server uses the
// file, and with a SpaceError when the disk has too little space. Records that are sealed
// are packed later, by the server that has their keys.
func Migrate(ctx context.Context, path string, dry bool, tell func(checkpoint.Migration)) (checkpoint.Migration, error) {
	return migrateFile(ctx, path, dry, tell, file.FreeBytes)
}

// migrateFile migrates a file; free says how many bytes the disk of a file has.
func migrateFile(
	ctx context.Context, path string, dry bool, tell func(checkpoint.Migration), free func(path string) int64,
) (m checkpoint.Migration, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return m, fmt.Errorf("sqlite: %w", err)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	f, err := file.OpenLocked(ctx, path)
	if err != nil {
		return m, err
	}
	db, err := file.ConnectWriter(f.RealPath)
	if err != nil {
		return m, errors.Join(err, f.Close())
	}
	tx, err := db.BeginTx(ctx, nil)
	if err == nil {
		m, err = migrateToCurrent(ctx, tx, &migrationFile{path: path, free: free(f.RealPath)}, dry, tell)
		if err == nil && !dry && m.From != m.To {
			tell(m)
			if err = tx.Commit(); err == nil {
				m.Warnings = moveLog(ctx, f.RealPath, db)
			}
		} else {
			err = errors.Join(err, tx.Rollback())
		}
	}
	return m, errors.Join(wrapOpenError(path, err), db.Close(), f.Close())
}

// moveLog moves the log into a file that was migrated, and returns a warning when it could
// not: the migration is made either way.
func moveLog(ctx context.Context, path string, db *sql.DB) (warnings []string) {
	if err := file.MoveLog(context.WithoutCancel(ctx), path, db); err != nil {
		warnings = append(warnings, err.Error())
	}
	return warnings
}

// A migrationFile is the file that is migrated.
type migrationFile struct {
	path string // as the operator named it
	free int64  // bytes of its disk
}

// migrateToCurrent takes every step up to the present version, or only says how much there
// is to do.
func migrateToCurrent(
	ctx context.Context, tx *sql.Tx, f *migrationFile, dry bool, tell func(checkpoint.Migration),
) (m checkpoint.Migration, err error) {
	version, err := readVersion(ctx, tx, f.path)
	if err != nil || version == 0 {
		return m, err
	}
	m.From, m.To = int(version), SchemaVersion
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM threads`).Scan(&m.Threads); err != nil {
		return m, err
	}
	m.Done = m.Threads
	if version >= oldestVersion && version < SchemaVersion {
		if err := checkSpace(ctx, tx, version, f.path, f.free); err != nil {
			return m, err
		}
	}
	if dry && version >= oldestVersion && version < SchemaVersion {
		if version < packedVersion {
			m.Changed = m.Threads // all heads are written anew
		}
		return m, nil
	}
	for ; version < SchemaVersion; version++ {
		do := migrationSteps()[version]
		if do == nil {
			return m, &SchemaError{Path: f.path, Version: version}
		}
		if err := do(ctx, tx, &m, tell); err != nil {
			return m, err
		}
	}
	if version > SchemaVersion {
		return m, &SchemaError{Path: f.path, Version: version}
	}
	_, err = tx.ExecContext(ctx, `UPDATE meta SET value = ? WHERE key = 'schema_version'`, SchemaVersion)
	return m, err
}
