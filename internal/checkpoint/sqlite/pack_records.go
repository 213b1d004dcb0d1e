package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/format3"
)

// recordPacker packs records that are JSON, where they stand.
type recordPacker struct {
	tx         *sql.Tx
	box        *seal.Box
	changed    int                 // threads of which records were packed
	unreadable []string            // threads with records that are damaged
	sealedWith map[string]struct{} // keys that records need and that were not given
}

// packThreads packs the records of the threads after one, up to another.
func (p *recordPacker) packThreads(ctx context.Context, after, last string) error {
	changed, unreadable := map[string]struct{}{}, map[string]struct{}{}
	for _, t := range recordTables() {
		for position := []any{after}; position != nil; {
			rows, next, err := t.readPage(ctx, p.tx, position, last)
			if err != nil {
				return err
			}
			for i := range rows {
				isPacked, err := p.packRow(ctx, &t, &rows[i])
				switch {
				case errors.Is(err, checkpoint.ErrCorrupt):
					unreadable[rows[i].thread()] = struct{}{}
				case err != nil:
					return err
				case isPacked:
					changed[rows[i].thread()] = struct{}{}
				}
			}
			position = next
		}
	}
	p.changed += len(changed)
	p.unreadable = slices.AppendSeq(p.unreadable, maps.Keys(unreadable))
	return nil
}

// A keyedRecord is a record with the primary key of its row.
type keyedRecord struct {
	keys         []any
	name, record string
}

func (r *keyedRecord) thread() string {
	thread, _ := r.keys[0].(string) // of a column of texts
	return thread
}

// readPage reads rows after a position, which is the beginning of a primary key, up to
// a thread. next is the position of the page after it, nil = there is none.
func (t *recordTable) readPage(ctx context.Context, tx *sql.Tx, position []any, last string) (page []keyedRecord, next []any, err error) {
	keys := strings.Split(t.keys, ", ")
	rows, err := tx.QueryContext(ctx, fmt.Sprintf("SELECT %s, %s, %s FROM %s WHERE (%s) > (%s) AND thread <= ? ORDER BY %s",
		t.keys, t.recordName, t.column, t.name,
		strings.Join(keys[:len(position)], ", "), placeholders(len(position)), t.keys), append(slices.Clone(position), last)...)
	if err != nil {
		return nil, nil, err
	}
	for held := 0; rows.Next(); {
		if held >= heldBytesPerPiece {
			return page, page[len(page)-1].keys, rows.Close()
		}
		r := keyedRecord{keys: make([]any, len(keys))}
		to := make([]any, 0, len(keys)+2)
		for i := range r.keys {
			to = append(to, &r.keys[i])
		}
		if err := rows.Scan(append(to, &r.name, &r.record)...); err != nil {
			return nil, nil, errors.Join(err, rows.Close())
		}
		held += len(r.record) + rowCost
		page = append(page, r)
	}
	return page, nil, errors.Join(rows.Err(), rows.Close())
}

func placeholders(n int) string { return "?" + strings.Repeat(", ?", n-1) }

// packRow writes a record anew when it is JSON. A record that is damaged stays as it is;
// so does one whose key is not given, and the key is noted.
func (p *recordPacker) packRow(ctx context.Context, t *recordTable, r *keyedRecord) (isPacked bool, err error) {
	at := seal.RecordPlace{Thread: r.thread(), Kind: t.kind, Name: r.name}
	record, err := p.box.Open(at, r.record)
	if refused, ok := errors.AsType[*seal.OpenError](err); ok {
		if p.sealedWith == nil {
			p.sealedWith = map[string]struct{}{}
		}
		p.sealedWith[refused.Key] = struct{}{}
		return false, nil
	}
	if err != nil || !format3.IsRecord(record) {
		return false, err
	}
	if record, err = format3.PackRecord(record); err != nil {
		return false, err
	}
	keys := strings.Split(t.keys, ", ")
	_, err = p.tx.ExecContext(ctx, fmt.Sprintf("UPDATE %s SET %s = ? WHERE (%s) = (%s)", t.name, t.column, t.keys, placeholders(len(keys))),
		append([]any{[]byte(p.box.SealLike(at, r.record, record))}, r.keys...)...)
	return err == nil, err
}

// sealedRecordsPrefix begins the keys of meta that name encryption keys: records which are
// sealed with one of them may be JSON still. The value is the last thread of which
// they are not.
const sealedRecordsPrefix = "format3:"

// packSealedRecords packs the records that were sealed when the file was migrated, as far
// as their keys are there now. Pieces of it are transactions; a server that dies in
// the middle goes on when it starts again.
func (s *Store) packSealedRecords(ctx context.Context, db *sql.DB, tell func(checkpoint.Migration)) error {
	after, keys, err := readSealedProgress(ctx, db, s.box.KeyIDs())
	if err != nil || len(keys) == 0 {
		return toContractError(err)
	}
	box, err := s.box.WithCompression()
	if err != nil {
		return err
	}
	m := checkpoint.Migration{From: format3.Number, To: SchemaVersion}
	if err := db.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(thread <= ?), 0) FROM threads`, after).Scan(&m.Threads, &m.Done); err != nil {
		return toContractError(err)
	}
	for n := -1; n != 0; {
		if after, n, err = packPiece(ctx, db, box, after, keys, &m); err != nil {
			return toContractError(err)
		}
		if m.Done%threadsPerReport == 0 && n != 0 && tell != nil {
			tell(m)
		}
	}
	if len(m.Unreadable) > 0 {
		s.warnings = append(s.warnings, "threads with records that are damaged: "+strings.Join(m.Unreadable, ", "))
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
	m.Done, m.Changed, m.Unreadable = m.Done+n, m.Changed+p.changed, append(m.Unreadable, p.unreadable...)
	return last, n, tx.Commit()
}
