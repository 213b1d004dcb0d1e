package setup

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/format3"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/layout"
)

// sealedRecordsPrefix begins the keys of meta that name encryption keys: records which are
// sealed with one of them may be JSON still. The value is the last thread of which
// they are not.
const sealedRecordsPrefix = "format3:"

// packRecords packs the records that were sealed when the file was migrated, as far
// as their keys are there now. Pieces of it are transactions; a server that dies in
// the middle goes on when it starts again.
func (r *sealedRecords) packRecords(ctx context.Context, tell func(checkpoint.Migration)) error {
	after, keys, err := readSealedProgress(ctx, r.db, r.box.KeyIDs())
	if err != nil || len(keys) == 0 {
		return layout.ToContractError(err)
	}
	box, err := r.box.WithCompression()
	if err != nil {
		return err
	}
	m := checkpoint.Migration{From: format3.Number, To: SchemaVersion}
	if err := r.db.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(thread <= ?), 0) FROM threads`, after).Scan(&m.Threads, &m.Done); err != nil {
		return layout.ToContractError(err)
	}
	for n := -1; n != 0; {
		if after, n, err = packPiece(ctx, r.db, box, after, keys, &m); err != nil {
			return layout.ToContractError(err)
		}
		if m.Done%threadsPerReport == 0 && n != 0 && tell != nil {
			tell(m)
		}
	}
	if n := len(m.Unreadable); n > 0 {
		r.warnings = append(r.warnings, fmt.Sprintf("%d threads have records that can't be read and were left as they are: %s",
			n, strings.Join(m.UnreadableRecords, "; ")))
	}
	return nil
}

// readSealedProgress finds out which of the keys given open records that may be JSON
// still, and up to which thread they are packed.
func readSealedProgress(ctx context.Context, db *sql.DB, given []string) (after string, keys []string, err error) {
	rows, err := db.QueryContext(ctx, `SELECT substr(key, ?), value FROM meta WHERE key LIKE ? ORDER BY value DESC`,
		len(sealedRecordsPrefix)+1, sealedRecordsPrefix+"%")
	if err != nil {
		return "", nil, err
	}
	for rows.Next() {
		var key, done string
		if err := rows.Scan(&key, &done); err != nil {
			return "", nil, errors.Join(err, rows.Close())
		}
		if slices.Contains(given, key) {
			after, keys = done, append(keys, key) // the least comes last
		}
	}
	return after, keys, errors.Join(rows.Err(), rows.Close())
}

// packPiece packs the next threads in a transaction, which notes that it has; n is how
// many they are.
func packPiece(
	ctx context.Context, db *sql.DB, box *seal.Box, after string, keys []string, m *checkpoint.Migration,
) (last string, n int, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return "", 0, err
	}
	p := recordPacker{tx: tx, box: box}
	last, n, err = selectThreads(ctx, tx, "threads", after)
	note := `UPDATE meta SET value = ?2 WHERE key = ?1`
	switch {
	case err == nil && n == 0:
		note = `DELETE FROM meta WHERE key = ?1`
	case err == nil:
		err = p.packThreads(ctx, after, last)
	}
	for i := 0; i < len(keys) && err == nil; i++ {
		_, err = tx.ExecContext(ctx, note, sealedRecordsPrefix+keys[i], last)
	}
	if err != nil {
		return "", 0, errors.Join(err, tx.Rollback())
	}
	m.Done += n
	p.addResult(m)
	return last, n, tx.Commit()
}
