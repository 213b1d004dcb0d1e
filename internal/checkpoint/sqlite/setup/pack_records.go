package setup

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

// An executor is a transaction, or a connection that is in one.
type executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// recordPacker packs records that are JSON, where they stand.
type recordPacker struct {
	tx         executor
	box        *seal.Box
	changed    int                 // threads of which records were packed
	unreadable []string            // threads with records that are damaged
	records    []string            // which of their records are, and why, up to mostNamedRecords
	sealedWith map[string]struct{} // keys that records need and that were not given
}

// mostNamedRecords is how many damaged records are named.
const mostNamedRecords = 100

// noteDamaged notes which record is damaged.
func (p *recordPacker) noteDamaged(t *recordTable, r *keyedRecord, err error) {
	if len(p.records) < mostNamedRecords {
		p.records = append(p.records, fmt.Sprintf("thread %q, %s %q: %v", r.threadID(), t.kind, r.name, err))
	}
}

// addResult counts in m what was done.
func (p *recordPacker) addResult(m *checkpoint.Migration) {
	m.Changed += p.changed
	m.Unreadable = append(m.Unreadable, p.unreadable...)
	free := max(0, mostNamedRecords-len(m.UnreadableRecords))
	m.UnreadableRecords = append(m.UnreadableRecords, p.records[:min(free, len(p.records))]...)
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
					unreadable[rows[i].threadID()] = struct{}{}
					p.noteDamaged(&t, &rows[i], err)
				case err != nil:
					return err
				case isPacked:
					changed[rows[i].threadID()] = struct{}{}
				}
			}
			position = next
		}
	}
	p.changed += len(changed)
	p.unreadable = append(p.unreadable, slices.Sorted(maps.Keys(unreadable))...)
	return nil
}

// A keyedRecord is a record with the primary key of its row.
type keyedRecord struct {
	keys         []any
	name, record string
}

func (r *keyedRecord) threadID() string {
	thread, _ := r.keys[0].(string) // of a column of texts
	return thread
}

// readPage reads rows after a position, which is the beginning of a primary key, up to
// a thread. next is the position of the page after it, nil = there is none.
func (t *recordTable) readPage(ctx context.Context, tx executor, position []any, last string) (page []keyedRecord, next []any, err error) {
	keys := strings.Split(t.keys, ", ")
	rows, err := tx.QueryContext(ctx, fmt.Sprintf("SELECT %s, %s, %s FROM %s WHERE (%s) > (%s) AND thread <= ? ORDER BY %s",
		t.keys, t.recordName, t.column, t.name,
		strings.Join(keys[:len(position)], ", "), joinPlaceholders(len(position)), t.keys), append(slices.Clone(position), last)...)
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
		held += len(r.record) + rowOverhead
		page = append(page, r)
	}
	return page, nil, errors.Join(rows.Err(), rows.Close())
}

func joinPlaceholders(n int) string { return "?" + strings.Repeat(", ?", n-1) }

// packRow writes a record anew when it is JSON. A record that is damaged stays as it is, and
// the error wraps checkpoint.ErrCorrupt. One whose key is not given stays, too, and the key
// is noted.
func (p *recordPacker) packRow(ctx context.Context, t *recordTable, r *keyedRecord) (isPacked bool, err error) {
	at := seal.RecordPlace{Thread: r.threadID(), Kind: t.kind, Name: r.name}
	record, err := p.box.Open(at, r.record)
	if refused, ok := errors.AsType[*seal.OpenError](err); ok && refused.IsUnknownKey {
		if p.sealedWith == nil {
			p.sealedWith = map[string]struct{}{}
		}
		p.sealedWith[refused.Key] = struct{}{}
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !format3.IsRecord(record) {
		return false, format3.CheckPacked(record)
	}
	if record, err = format3.PackRecord(record); err != nil {
		return false, err
	}
	keys := strings.Split(t.keys, ", ")
	_, err = p.tx.ExecContext(ctx, fmt.Sprintf("UPDATE %s SET %s = ? WHERE (%s) = (%s)", t.name, t.column, t.keys, joinPlaceholders(len(keys))),
		append([]any{[]byte(p.box.SealLike(at, r.record, record))}, r.keys...)...)
	return err == nil, err
}
