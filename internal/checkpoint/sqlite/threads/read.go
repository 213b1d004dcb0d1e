// Package threads reads the records of a thread from a database, and applies changes to
// the thread.
package threads

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/layout"
)

// A Reader reads durable records of a thread.
type Reader struct {
	db      *sql.DB
	queries *queries
	box     *seal.Box
	now     func() time.Time
}

var _ checkpoint.BoundedReader = (*Reader)(nil)

// NewReader makes a reader that uses connections of their own for as long as ctx lives.
// Errors wrap checkpoint.ErrUnavailable or ErrCorrupt.
func NewReader(ctx context.Context, db *sql.DB, box *seal.Box, now func() time.Time) (*Reader, error) {
	q, err := prepareQueries(ctx, db)
	if err != nil {
		return nil, err
	}
	return &Reader{db: db, queries: q, box: box, now: now}, nil
}

// Head returns the thread's head, or ErrThreadNotFound. Other errors wrap
// ErrUnavailable or ErrCorrupt.
func (r *Reader) Head(ctx context.Context, thread string) (checkpoint.Head, error) {
	row := layout.HeadRow{Thread: thread}
	err := r.queries.head.QueryRowContext(ctx, thread).Scan(&row.Revision, &row.Expires, &row.Record)
	if errors.Is(err, sql.ErrNoRows) {
		return checkpoint.Head{}, checkpoint.ErrThreadNotFound
	}
	if err != nil {
		return checkpoint.Head{}, layout.ToContractError(err)
	}
	return layout.DecodeHead(r.box, &row, r.now())
}

// Events returns events with a greater number than after, oldest first. It
// returns ErrThreadNotFound, or ErrTrimmed when some are gone; other errors wrap
// ErrUnavailable or ErrCorrupt.
func (r *Reader) Events(
	ctx context.Context, thread string, after uint64, limit int,
) (out []checkpoint.Event, err error) {
	err = r.readSnapshot(ctx, func(tx *sql.Tx) error {
		out, err = r.readEvents(ctx, tx, thread, after, limit)
		return err
	})
	return out, err
}

func (r *Reader) readEvents(
	ctx context.Context, tx *sql.Tx, thread string, after uint64, limit int,
) ([]checkpoint.Event, error) {
	var first uint64
	err := tx.StmtContext(ctx, r.queries.headFirst).QueryRowContext(ctx, thread).Scan(&first)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, checkpoint.ErrThreadNotFound
	case err != nil:
		return nil, err
	case after+1 < first:
		return nil, checkpoint.ErrTrimmed
	}
	rows, err := tx.StmtContext(ctx, r.queries.events).QueryContext(ctx, thread, layout.ClampInt64(after))
	if err != nil {
		return nil, err
	}
	var out []checkpoint.Event
	portion := checkpoint.Portion{Limit: limit}
	for !portion.Full() && rows.Next() {
		list, err := r.scanEvents(thread, rows)
		if err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		for i := range list {
			if list[i].Seq <= after {
				continue
			}
			portion.Take(list[i].Size())
			if out = append(out, list[i]); portion.Full() {
				break
			}
		}
	}
	return out, errors.Join(rows.Err(), rows.Close())
}

// scanEvents reads the events of a row.
func (r *Reader) scanEvents(thread string, rows *sql.Rows) ([]checkpoint.Event, error) {
	var last uint64
	var record string
	if err := rows.Scan(&last, &record); err != nil {
		return nil, err
	}
	list, err := layout.DecodeRecord(r.box, thread, layout.KindEvents, layout.FormatUint(last), record, codec.DecodeEvents)
	if err == nil && (len(list) == 0 || list[len(list)-1].Seq != last) {
		err = fmt.Errorf("%w: the record is of other events", checkpoint.ErrCorrupt)
	}
	return list, layout.WrapRecordError(err, "thread %q, events up to %d", thread, last)
}

// Run returns a run of a thread, or ErrRunNotFound. Other errors wrap
// ErrUnavailable or ErrCorrupt.
func (r *Reader) Run(ctx context.Context, thread, run string) (checkpoint.Run, error) {
	rows, err := r.queries.run.QueryContext(ctx, thread, run)
	return layout.ReadOne(rows, err, checkpoint.ErrRunNotFound, func() (checkpoint.Run, error) {
		return r.scanRun(rows, thread)
	})
}

// Runs lists a thread's runs, newest first. Errors wrap ErrUnavailable or
// ErrCorrupt.
func (r *Reader) Runs(
	ctx context.Context, thread string, before uint64, limit int,
) ([]checkpoint.Run, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	rows, err := r.queries.runs.QueryContext(ctx, thread, layout.ClampInt64(before), limitOrAll(limit))
	if err != nil {
		return nil, layout.ToContractError(err)
	}
	var out []checkpoint.Run
	portion := checkpoint.Portion{Limit: limit}
	for !portion.Full() && rows.Next() {
		run, err := r.scanRun(rows, thread)
		if err != nil {
			return nil, layout.ToContractError(errors.Join(err, rows.Close()))
		}
		portion.Take(run.Size())
		out = append(out, run)
	}
	return out, layout.ToContractError(errors.Join(rows.Err(), rows.Close()))
}

func (r *Reader) scanRun(rows *sql.Rows, thread string) (checkpoint.Run, error) {
	var id, record string
	var revision uint64
	if err := rows.Scan(&id, &revision, &record); err != nil {
		return checkpoint.Run{}, err
	}
	run, err := layout.DecodeRecord(r.box, thread, layout.KindRun, id, record, codec.DecodeRun)
	run.Revision = revision
	return run, layout.WrapRecordError(err, "thread %q, run %q", thread, id)
}

// Interrupt returns an interrupt of a thread, or ErrInterruptNotFound. Other
// errors wrap ErrUnavailable or ErrCorrupt.
func (r *Reader) Interrupt(ctx context.Context, thread, id string) (checkpoint.Interrupt, error) {
	rows, err := r.queries.interrupt.QueryContext(ctx, thread, id)
	return layout.ReadOne(rows, err, checkpoint.ErrInterruptNotFound, func() (checkpoint.Interrupt, error) {
		return layout.ScanInterrupt(r.box, rows)
	})
}

// Request returns a remembered request of a thread, or ErrRequestNotFound. Other
// errors wrap ErrUnavailable or ErrCorrupt.
func (r *Reader) Request(ctx context.Context, thread, id string) (checkpoint.Request, error) {
	rows, err := r.queries.request.QueryContext(ctx, thread, id)
	return layout.ReadOne(rows, err, checkpoint.ErrRequestNotFound, func() (q checkpoint.Request, err error) {
		var created int64
		if err := rows.Scan(&q.ID, &q.Digest, &q.Run, &q.Event, &created); err != nil {
			return q, err
		}
		q.Created = layout.FromUnixNanos(created)
		q.Digest, err = layout.DecodeRecord(r.box, thread, layout.KindRequest, q.ID, q.Digest, layout.KeepText)
		return q, layout.WrapRecordError(err, "thread %q, request %q", thread, q.ID)
	})
}

// readSnapshot runs reads that must belong together.
func (r *Reader) readSnapshot(ctx context.Context, read func(tx *sql.Tx) error) error {
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return layout.ToContractError(err)
	}
	err = layout.ToContractError(read(tx))
	_ = tx.Rollback() // nothing was written, and ctx may have ended it already
	return err
}

// limitOrAll returns a limit for SQL, where a negative number means none.
func limitOrAll(limit int) int {
	if limit <= 0 {
		return -1
	}
	return limit
}
