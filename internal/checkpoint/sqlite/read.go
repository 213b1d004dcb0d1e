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
	err := s.query.head.QueryRowContext(ctx, thread).Scan(&revision, &expires, &record)
	if errors.Is(err, sql.ErrNoRows) {
		return checkpoint.Head{}, checkpoint.ErrThreadNotFound
	}
	if err != nil {
		return checkpoint.Head{}, failed(err)
	}
	return s.decodeHead(thread, revision, expires, record)
}

func (s *Store) decodeHead(
	thread string, revision uint64, expires sql.NullInt64, record string,
) (checkpoint.Head, error) {
	h, err := decode(s, thread, kindHead, "", record, codec.DecodeHead)
	if err != nil {
		return checkpoint.Head{}, fmt.Errorf("thread %q: %w", thread, err)
	}
	h.Revision, h.LeaseExpires, h.Now = revision, fromNanos(expires), s.clock()
	return h, nil
}

// Events returns events with a greater number than after, oldest first.
func (s *Store) Events(
	ctx context.Context, thread string, after uint64, limit int,
) (out []checkpoint.Event, err error) {
	err = s.snapshot(ctx, func(tx *sql.Tx) error {
		out, err = s.events(ctx, tx, thread, after, limit)
		return err
	})
	return out, err
}

func (s *Store) events(
	ctx context.Context, tx *sql.Tx, thread string, after uint64, limit int,
) ([]checkpoint.Event, error) {
	var first uint64
	err := tx.StmtContext(ctx, s.query.headFirst).QueryRowContext(ctx, thread).Scan(&first)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, checkpoint.ErrThreadNotFound
	case err != nil:
		return nil, err
	case after+1 < first:
		return nil, checkpoint.ErrTrimmed
	}
	rows, err := tx.StmtContext(ctx, s.query.events).QueryContext(ctx, thread, signed(after))
	if err != nil {
		return nil, err
	}
	var out []checkpoint.Event
	portion := checkpoint.Portion{Limit: limit}
	for !portion.Full() && rows.Next() {
		list, err := s.eventsOf(thread, rows)
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

// eventsOf reads the events of a row.
func (s *Store) eventsOf(thread string, rows *sql.Rows) ([]checkpoint.Event, error) {
	var last uint64
	var record string
	if err := rows.Scan(&last, &record); err != nil {
		return nil, err
	}
	list, err := decode(s, thread, kindEvents, unum(last), record, codec.DecodeEvents)
	if err == nil && (len(list) == 0 || list[len(list)-1].Seq != last) {
		err = fmt.Errorf("%w: the record is of other events", checkpoint.ErrCorrupt)
	}
	return list, of(err, "thread %q, events up to %d", thread, last)
}

// Run returns one run of a thread.
func (s *Store) Run(ctx context.Context, thread, run string) (checkpoint.Run, error) {
	rows, err := s.query.run.QueryContext(ctx, thread, run)
	return one(rows, err, checkpoint.ErrRunNotFound, func() (checkpoint.Run, error) {
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
	rows, err := s.query.runs.QueryContext(ctx, thread, signed(before), all(limit))
	if err != nil {
		return nil, failed(err)
	}
	var out []checkpoint.Run
	portion := checkpoint.Portion{Limit: limit}
	for !portion.Full() && rows.Next() {
		r, err := s.scanRun(rows, thread)
		if err != nil {
			return nil, failed(errors.Join(err, rows.Close()))
		}
		portion.Take(r.Size())
		out = append(out, r)
	}
	return out, failed(errors.Join(rows.Err(), rows.Close()))
}

func (s *Store) scanRun(rows *sql.Rows, thread string) (checkpoint.Run, error) {
	var id, record string
	var revision uint64
	if err := rows.Scan(&id, &revision, &record); err != nil {
		return checkpoint.Run{}, err
	}
	r, err := decode(s, thread, kindRun, id, record, codec.DecodeRun)
	r.Revision = revision
	return r, of(err, "thread %q, run %q", thread, id)
}

// Interrupt returns one question of a thread.
func (s *Store) Interrupt(ctx context.Context, thread, id string) (checkpoint.Interrupt, error) {
	rows, err := s.query.interrupt.QueryContext(ctx, thread, id)
	return one(rows, err, checkpoint.ErrInterruptNotFound, func() (checkpoint.Interrupt, error) {
		return s.scanInterrupt(rows)
	})
}

func (s *Store) scanInterrupt(rows *sql.Rows) (checkpoint.Interrupt, error) {
	var thread, id, record string
	var change, revision uint64
	if err := rows.Scan(&thread, &id, &change, &revision, &record); err != nil {
		return checkpoint.Interrupt{}, err
	}
	in, err := decode(s, thread, kindQuestion, id, record, codec.DecodeInterrupt)
	in.Change, in.Revision = change, revision
	return in, of(err, "thread %q, interrupt %q", thread, id)
}

// Request returns a remembered request of a thread.
func (s *Store) Request(ctx context.Context, thread, id string) (checkpoint.Request, error) {
	rows, err := s.query.request.QueryContext(ctx, thread, id)
	return one(rows, err, checkpoint.ErrRequestNotFound, func() (r checkpoint.Request, err error) {
		var created int64
		if err := rows.Scan(&r.ID, &r.Digest, &r.Run, &r.Event, &created); err != nil {
			return r, err
		}
		r.Created = instant(created)
		r.Digest, err = decode(s, thread, kindRequest, r.ID, r.Digest, asItIs)
		return r, of(err, "thread %q, request %q", thread, r.ID)
	})
}

// snapshot runs reads that must belong together.
func (s *Store) snapshot(ctx context.Context, read func(tx *sql.Tx) error) error {
	tx, err := s.reads.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return failed(err)
	}
	err = failed(read(tx))
	_ = tx.Rollback() // nothing was written, and ctx may have ended it already
	return err
}

// collect reads rows to their end; scan reads the present one.
func collect[T any](rows *sql.Rows, scan func() (T, error)) ([]T, error) {
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

// one reads the only row, or returns missing when there is none.
func one[T any](rows *sql.Rows, err, missing error, scan func() (T, error)) (T, error) {
	var zero T
	if err != nil {
		return zero, failed(err)
	}
	list, err := collect(rows, scan)
	switch {
	case err != nil:
		return zero, failed(err)
	case len(list) == 0:
		return zero, missing
	}
	return list[0], nil
}

// of says which record an error is about.
func of(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}

// all is a limit for SQL, where a negative one means none.
func all(limit int) int {
	if limit <= 0 {
		return -1
	}
	return limit
}

// signed fits a number into SQLite's integers. No stored number is greater.
func signed(n uint64) int64 {
	if n > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(n)
}
