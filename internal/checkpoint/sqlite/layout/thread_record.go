package layout

import (
	"database/sql"
	"fmt"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
)

// HeadRow is a row of the table of threads, as queries find it.
type HeadRow struct {
	Thread   string
	Revision uint64
	Expires  sql.NullInt64 // of the lease
	Record   string
}

// DecodeHead reads the head of a thread.
func DecodeHead(box *seal.Box, r *HeadRow, now time.Time) (checkpoint.Head, error) {
	h, err := DecodeRecord(box, r.Thread, KindHead, "", r.Record, codec.DecodeHead)
	if err != nil {
		return checkpoint.Head{}, fmt.Errorf("thread %q: %w", r.Thread, err)
	}
	h.Revision, h.LeaseExpires, h.Now = r.Revision, FromNullNanos(r.Expires), now
	return h, nil
}

// ScanInterrupt reads the present row of thread, id, change, revision and record.
func ScanInterrupt(box *seal.Box, rows *sql.Rows) (checkpoint.Interrupt, error) {
	var thread, id, record string
	var change, revision uint64
	if err := rows.Scan(&thread, &id, &change, &revision, &record); err != nil {
		return checkpoint.Interrupt{}, err
	}
	in, err := DecodeRecord(box, thread, KindInterrupt, id, record, codec.DecodeInterrupt)
	in.Change, in.Revision = change, revision
	return in, WrapRecordError(err, "thread %q, interrupt %q", thread, id)
}
