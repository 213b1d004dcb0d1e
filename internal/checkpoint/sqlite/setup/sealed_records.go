package setup

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/format3"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/layout"
)

// sealedRecordsPrefix begins the keys of meta that name encryption keys: records which are
// sealed with one of them may be JSON still. The value is the last thread of which
// they are not.
const sealedRecordsPrefix = "format3:"

// A PieceRunner runs a piece of work in a transaction of its own, which may be repeated
// after it was undone. It returns an error when the piece was not committed.
type PieceRunner func(ctx context.Context, piece func(ctx context.Context, conn *sql.Conn) error) error

// PackSealedRecords packs the records that were sealed when the file was migrated, as far
// as their keys are there now. It reads from db what there is to do, and each piece notes
// how far it is: after an error the next call goes on there. m is what was done; tell may
// be nil.
func PackSealedRecords(
	ctx context.Context, db *sql.DB, box *seal.Box, run PieceRunner, tell func(checkpoint.Migration),
) (m checkpoint.Migration, err error) {
	after, keys, err := readSealedProgress(ctx, db, box.KeyIDs())
	if err != nil || len(keys) == 0 {
		return m, layout.ToContractError(err)
	}
	if box, err = box.WithCompression(); err != nil {
		return m, err
	}
	m.From, m.To = format3.Number, SchemaVersion
	if err := db.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(thread <= ?), 0) FROM threads`, after).Scan(&m.Threads, &m.Done); err != nil {
		return m, layout.ToContractError(err)
	}
	for n := -1; n != 0; {
		var p recordPacker
		var last string
		err := run(ctx, func(ctx context.Context, conn *sql.Conn) (err error) {
			p = recordPacker{tx: conn, box: box}
			last, n, err = p.packNext(ctx, after, keys)
			return err
		})
		if err != nil {
			return m, layout.ToContractError(err)
		}
		p.addResult(&m)
		after, m.Done = last, m.Done+n
		if m.Done%threadsPerReport == 0 && n != 0 && tell != nil {
			tell(m)
		}
	}
	return m, nil
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

// packNext packs the next threads and notes that it has; n is how many they are.
func (p *recordPacker) packNext(ctx context.Context, after string, keys []string) (last string, n int, err error) {
	last, n, err = selectThreads(ctx, p.tx, "threads", after)
	note := `UPDATE meta SET value = ?2 WHERE key = ?1`
	switch {
	case err == nil && n == 0:
		note = `DELETE FROM meta WHERE key = ?1`
	case err == nil:
		err = p.packThreads(ctx, after, last)
	}
	for i := 0; i < len(keys) && err == nil; i++ {
		_, err = p.tx.ExecContext(ctx, note, sealedRecordsPrefix+keys[i], last)
	}
	return last, n, err
}
