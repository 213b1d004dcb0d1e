package setup

import (
	"context"
	"database/sql"
	_ "embed" // as the schema
	"fmt"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/layout"
)

//go:embed migrate_to_4.sql
var beginVersion4 string

//go:embed migrate_to_4_end.sql
var endVersion4 string

// Bounds of what a migration does at a time.
const (
	threadsPerPiece   = 64      // as many as one transaction of the server packs
	heldBytesPerPiece = 1 << 20 // of records, save for one that is larger
	rowOverhead       = 256     // what a row costs beside its bytes
	threadsPerReport  = 16 * threadsPerPiece
)

// A recordTable is a table of format 3 whose records were JSON.
type recordTable struct {
	name, kind string
	column     string // of the record
	columns    string // of format 3, without the record
	keys       string // the primary key
	recordName string // in SQL, as sealing calls the record
	search     string // column of format 4 that queries look into
	field      string // of the record that it repeats
	none       string // the JSON of a field that is not there
}

func recordTables() []recordTable {
	return []recordTable{
		{
			name: "threads", kind: layout.KindHead, column: "head", keys: "thread", recordName: "''",
			columns: "thread, revision, log_id, op, applied, graph, state, updated, seq, first_event, last_event, owner, lease_expires, wake",
			search:  "metadata", field: "metadata", none: "{}",
		},
		{
			name: "tasks", kind: layout.KindTask, column: "record", keys: "thread, checkpoint, id",
			columns: "thread, checkpoint, id", recordName: "checkpoint || '/' || id",
		},
		{
			name: "memos", kind: layout.KindMemo, column: "record", keys: "thread, checkpoint, task, scope, key, idx",
			columns:    "thread, checkpoint, task, scope, key, idx",
			recordName: "checkpoint || '/' || task || '/' || scope || '/' || key || '/' || idx",
		},
		{
			name: "interrupts", kind: layout.KindInterrupt, column: "record", keys: "thread, id", recordName: "id",
			columns: "thread, id, born, change, revision, created, checkpoint, run, graph, node, reason, state",
			search:  "assignees", field: "assignees", none: "[]",
		},
		{
			name: "runs", kind: layout.KindRun, column: "record", keys: "thread, id", recordName: "id",
			columns: "thread, id, ord, revision, state",
		},
	}
}

// moveRows moves the rows of some threads from the table of format 3. Sealed records
// have nothing for the column that queries look into, as sealed stores have it.
func (t *recordTable) moveRows(ctx context.Context, tx *sql.Tx, after, last string) error {
	into, from := t.columns, t.columns
	if t.search != "" {
		into += ", " + t.search
		from += fmt.Sprintf(", CASE WHEN json_valid(%[1]s) THEN coalesce(json_extract(%[1]s, '$.%[2]s'), '%[3]s') END",
			t.column, t.field, t.none)
	}
	_, err := tx.ExecContext(ctx, fmt.Sprintf(
		"INSERT INTO %[1]s (%[2]s, %[3]s) SELECT %[4]s, CAST(%[3]s AS BLOB) FROM %[1]s_3 WHERE thread > ? AND thread <= ?",
		t.name, into, t.column, from), after, last)
	return err
}

// migrateToVersion4 moves all rows to tables whose records are blobs, and packs those
// that are JSON. Records that are sealed can't be opened without keys: the file
// notes which keys they need, and PackSealedRecords packs them.
func migrateToVersion4(ctx context.Context, tx *sql.Tx, m *checkpoint.Migration, tell func(checkpoint.Migration)) error {
	if _, err := tx.ExecContext(ctx, beginVersion4); err != nil {
		return err
	}
	box, err := seal.New(seal.Options{Compress: true})
	if err != nil {
		return err
	}
	p := recordPacker{tx: tx, box: box}
	m.Done = 0
	for after := ""; ; {
		last, n, err := selectThreads(ctx, tx, "threads_3", after)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		for _, t := range recordTables() {
			if err := t.moveRows(ctx, tx, after, last); err != nil {
				return err
			}
		}
		if err := p.packThreads(ctx, after, last); err != nil {
			return err
		}
		after = last
		if m.Done += n; m.Done%threadsPerReport == 0 {
			tell(*m)
		}
	}
	p.addResult(m)
	for key := range p.sealedWith {
		if _, err := tx.ExecContext(ctx, `INSERT INTO meta (key, value) VALUES (?, '')`, sealedRecordsPrefix+key); err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, endVersion4)
	return err
}

// selectThreads finds the threads of the next piece: the last of them, and how many
// they are.
func selectThreads(ctx context.Context, tx executor, table, after string) (last string, n int, err error) {
	err = tx.QueryRowContext(ctx, `SELECT coalesce(max(thread), ''), count(*) FROM
		(SELECT thread FROM `+table+` WHERE thread > ? ORDER BY thread LIMIT ?)`, after, threadsPerPiece).Scan(&last, &n)
	return last, n, err
}
