package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
)

// Head returns the thread's head.
func (s *Store) Head(ctx context.Context, thread string) (checkpoint.Head, error) {
	var revision uint64
	var expires sql.NullInt64
	var record string
	err := s.queries.head.QueryRowContext(ctx, thread).Scan(&revision, &expires, &record)
	if errors.Is(err, sql.ErrNoRows) {
		return checkpoint.Head{}, checkpoint.ErrThreadNotFound
	}
	if err != nil {
		return checkpoint.Head{}, toContractError(err)
	}
	return s.decodeHead(thread, revision, expires, record)
}

func (s *Store) decodeHead(
	thread string, revision uint64, expires sql.NullInt64, record string,
) (checkpoint.Head, error) {
	h, err := decodeRecord(s, thread, kindHead, "", record, codec.DecodeHead)
	if err != nil {
		return checkpoint.Head{}, fmt.Errorf("thread %q: %w", thread, err)
	}
	h.Revision, h.LeaseExpires, h.Now = revision, fromNullNanos(expires), s.currentTime()
	return h, nil
}

// Events returns events with a greater number than after, oldest first.
func (s *Store) Events(
	ctx context.Context, thread string, after uint64, limit int,
) (out []checkpoint.Event, err error) {
	err = s.readSnapshot(ctx, func(tx *sql.Tx) error {
		out, err = s.readEvents(ctx, tx, thread, after, limit)
		return err
	})
	return out, err
}

func (s *Store) readEvents(
	ctx context.Context, tx *sql.Tx, thread string, after uint64, limit int,
) ([]checkpoint.Event, error) {
	var first uint64
	err := tx.StmtContext(ctx, s.queries.headFirst).QueryRowContext(ctx, thread).Scan(&first)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, checkpoint.ErrThreadNotFound
	case err != nil:
		return nil, err
	case after+1 < first:
		return nil, checkpoint.ErrTrimmed
	}
	rows, err := tx.StmtContext(ctx, s.queries.events).QueryContext(ctx, thread, clampInt64(after))
	if err != nil {
		return nil, err
	}
	var out []checkpoint.Event
	portion := checkpoint.Portion{Limit: limit}
	for !portion.Full() && rows.Next() {
		list, err := s.scanEvents(thread, rows)
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
func (s *Store) scanEvents(thread string, rows *sql.Rows) ([]checkpoint.Event, error) {
	var last uint64
	var record string
	if err := rows.Scan(&last, &record); err != nil {
		return nil, err
	}
	list, err := decodeRecord(s, thread, kindEvents, formatUint(last), record, codec.DecodeEvents)
	if err == nil && (len(list) == 0 || list[len(list)-1].Seq != last) {
		err = fmt.Errorf("%w: the record is of other events", checkpoint.ErrCorrupt)
	}
	return list, wrapRecordError(err, "thread %q, events up to %d", thread, last)
}

// Run returns one run of a thread.
func (s *Store) Run(ctx context.Context, thread, run string) (checkpoint.Run, error) {
	rows, err := s.queries.run.QueryContext(ctx, thread, run)
	return readOne(rows, err, checkpoint.ErrRunNotFound, func() (checkpoint.Run, error) {
		return s.scanRun(rows, thread)
	})
}

// Runs lists a thread's runs, newest first.
func (s *Store) Runs(
	ctx context.Context, thread string, before uint64, limit int,
) ([]checkpoint.Run, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	rows, err := s.queries.runs.QueryContext(ctx, thread, clampInt64(before), limitOrAll(limit))
	if err != nil {
		return nil, toContractError(err)
	}
	var out []checkpoint.Run
	portion := checkpoint.Portion{Limit: limit}
	for !portion.Full() && rows.Next() {
		r, err := s.scanRun(rows, thread)
		if err != nil {
			return nil, toContractError(errors.Join(err, rows.Close()))
		}
		portion.Take(r.Size())
		out = append(out, r)
	}
	return out, toContractError(errors.Join(rows.Err(), rows.Close()))
}

func (s *Store) scanRun(rows *sql.Rows, thread string) (checkpoint.Run, error) {
	var id, record string
	var revision uint64
	if err := rows.Scan(&id, &revision, &record); err != nil {
		return checkpoint.Run{}, err
	}
	r, err := decodeRecord(s, thread, kindRun, id, record, codec.DecodeRun)
	r.Revision = revision
	return r, wrapRecordError(err, "thread %q, run %q", thread, id)
}

// Interrupt returns one interrupt of a thread.
func (s *Store) Interrupt(ctx context.Context, thread, id string) (checkpoint.Interrupt, error) {
	rows, err := s.queries.interrupt.QueryContext(ctx, thread, id)
	return readOne(rows, err, checkpoint.ErrInterruptNotFound, func() (checkpoint.Interrupt, error) {
		return s.scanInterrupt(rows)
	})
}

func (s *Store) scanInterrupt(rows *sql.Rows) (checkpoint.Interrupt, error) {
	var thread, id, record string
	var change, revision uint64
	if err := rows.Scan(&thread, &id, &change, &revision, &record); err != nil {
		return checkpoint.Interrupt{}, err
	}
	in, err := decodeRecord(s, thread, kindInterrupt, id, record, codec.DecodeInterrupt)
	in.Change, in.Revision = change, revision
	return in, wrapRecordError(err, "thread %q, interrupt %q", thread, id)
}

// Request returns a remembered request of a thread.
func (s *Store) Request(ctx context.Context, thread, id string) (checkpoint.Request, error) {
	rows, err := s.queries.request.QueryContext(ctx, thread, id)
	return readOne(rows, err, checkpoint.ErrRequestNotFound, func() (r checkpoint.Request, err error) {
		var created int64
		if err := rows.Scan(&r.ID, &r.Digest, &r.Run, &r.Event, &created); err != nil {
			return r, err
		}
		r.Created = fromUnixNanos(created)
		r.Digest, err = decodeRecord(s, thread, kindRequest, r.ID, r.Digest, keepText)
		return r, wrapRecordError(err, "thread %q, request %q", thread, r.ID)
	})
}

// readSnapshot runs reads that must belong together.
func (s *Store) readSnapshot(ctx context.Context, read func(tx *sql.Tx) error) error {
	tx, err := s.readDB.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return toContractError(err)
	}
	err = toContractError(read(tx))
	_ = tx.Rollback() // nothing was written, and ctx may have ended it already
	return err
}

// collectRows reads rows to their end; scan reads the present one.
func collectRows[T any](rows *sql.Rows, scan func() (T, error)) ([]T, error) {
	var out []T
	for rows.Next() {
		v, err := scan()
		if err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// readOne reads the only row, or returns missing when there is none.
func readOne[T any](rows *sql.Rows, err, missing error, scan func() (T, error)) (T, error) {
	var zero T
	if err != nil {
		return zero, toContractError(err)
	}
	list, err := collectRows(rows, scan)
	switch {
	case err != nil:
		return zero, toContractError(err)
	case len(list) == 0:
		return zero, missing
	}
	return list[0], nil
}

// wrapRecordError says which record an error is about.
func wrapRecordError(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}

// limitOrAll is a limit for SQL, where a negative one means none.
func limitOrAll(limit int) int {
	if limit <= 0 {
		return -1
	}
	return limit
}

// clampInt64 fits a number into SQLite's integers. No stored number is greater.
func clampInt64(n uint64) int64 {
	if n > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(n)
}
