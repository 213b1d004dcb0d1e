package setup

import (
	"context"
	"database/sql"
	"fmt"
)

// A SpaceError says that a file can't be migrated since its disk has too little space. The
// file is as it was.
type SpaceError struct {
	Path   string
	Needed int64 // bytes that must be free on the disk, beside the file
	Free   int64 // bytes that are
}

// Error names the file and both numbers.
func (e *SpaceError) Error() string {
	return fmt.Sprintf("sqlite: to migrate %s may take %d bytes of its disk beside the file, and %d are free: nothing was changed",
		e.Path, e.Needed, e.Free)
}

// minMigrationSpace is needed for a file of any size.
const minMigrationSpace = 1 << 20

// measureMigration returns how many bytes a migration may take of the disk beside the file.
func measureMigration(ctx context.Context, tx *sql.Tx, version int64) (int64, error) {
	total := int64(minMigrationSpace)
	add := func(measure func(context.Context, *sql.Tx) (int64, error)) error {
		bytes, err := measure(ctx, tx)
		total += bytes
		return err
	}
	parts := []func(context.Context, *sql.Tx) (int64, error){measureThreadIndexes}
	if version < taggedVersion {
		parts = append(parts, measureInterrupts)
	}
	switch {
	case version < packedVersion:
		parts = append(parts, measureTables)
	case version < indexedVersion:
		parts = append(parts, measureIndexes)
	}
	for _, part := range parts {
		if err := add(part); err != nil {
			return 0, err
		}
	}
	return total, nil
}

// threadIndexOverhead is about what an entry of an index of threads has besides the id, the state
// and the graph: the name of its tenant, a time and their lengths.
const threadIndexOverhead = 48

// measureThreadIndexes measures the migration to format 8: three indexes of threads are made in
// the log, and then in the file. The pages of those that they replace are used again, but maybe
// not all.
func measureThreadIndexes(ctx context.Context, tx *sql.Tx) (bytes int64, err error) {
	err = tx.QueryRowContext(ctx, `SELECT coalesce(sum(3 * (length(thread) + ?) + length(state) + 2 * length(graph)), 0) FROM threads`,
		threadIndexOverhead).Scan(&bytes)
	return 2 * (bytes * 3 / 2), err
}

// measureInterrupts measures the migration to format 7: a column is taken from the table of
// interrupts, which is written anew, in the log and then in the file.
func measureInterrupts(ctx context.Context, tx *sql.Tx) (int64, error) {
	var table int64
	err := tx.QueryRowContext(ctx, `SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE aggregate = TRUE AND name = 'interrupts'`).Scan(&table)
	return 2 * table, err
}

// measureIndexes measures the migration to format 5: indexes with the name of the tenant in
// each entry are made in the log, and then in the file.
func measureIndexes(ctx context.Context, tx *sql.Tx) (int64, error) {
	var indexes int64
	err := tx.QueryRowContext(ctx, `SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE aggregate = TRUE AND name IN
		('threads_updated', 'interrupts_change', 'interrupts_created', 'interrupts_state')`).Scan(&indexes)
	if err != nil {
		return 0, err
	}
	tenants, err := measureTenants(ctx, tx)
	written := (indexes + tenants) * 3 / 2
	return 2 * written, err
}

// tenantOverhead is what the name of the tenant default adds to an entry of an index.
const tenantOverhead = 16

// measureTenants returns how many bytes the names of tenants add to indexes.
func measureTenants(ctx context.Context, tx *sql.Tx) (bytes int64, err error) {
	err = tx.QueryRowContext(ctx, `SELECT ? * ((SELECT count(*) FROM threads) + 3 * (SELECT count(*) FROM interrupts))`,
		tenantOverhead).Scan(&bytes)
	return bytes, err
}

// measureTables measures the migration to format 4: rows stand in the old and the new tables
// until the end, and the new rows also in the log, which moves into the file when all is
// done.
func measureTables(ctx context.Context, tx *sql.Tx) (int64, error) {
	var tables, copied int64
	err := tx.QueryRowContext(ctx, `SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE aggregate = TRUE AND name IN
		(SELECT name FROM sqlite_schema WHERE tbl_name IN ('threads', 'tasks', 'memos', 'interrupts', 'runs'))`).Scan(&tables)
	if err != nil {
		return 0, err
	}
	// What queries look into is copied out of records.
	err = tx.QueryRowContext(ctx, `SELECT (SELECT coalesce(sum(length(head)), 0) FROM threads) +
		(SELECT coalesce(sum(length(record)), 0) FROM interrupts)`).Scan(&copied)
	if err != nil {
		return 0, err
	}
	tenants, err := measureTenants(ctx, tx)
	if err != nil {
		return 0, err
	}
	var unused int64 // bytes of pages in the file that new tables take first
	err = tx.QueryRowContext(ctx, `SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size`).Scan(&unused)
	if err != nil {
		return 0, err
	}
	// Pages of new tables are less full than those of tables that were put in order.
	written := (tables + copied + tenants) * 3 / 2
	return written + max(0, written-unused), nil
}

// checkSpace returns a SpaceError when the disk has not what a migration may take.
func checkSpace(ctx context.Context, tx *sql.Tx, version int64, path string, free int64) error {
	needed, err := measureMigration(ctx, tx, version)
	if err == nil && free < needed {
		err = &SpaceError{Path: path, Needed: needed, Free: free}
	}
	return err
}
