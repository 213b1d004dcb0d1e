package tags

import (
	"context"
	"database/sql"
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/layout"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// Writer changes the tags of interrupts, within the transaction of a change.
type Writer struct {
	entry, entries        *sql.Stmt
	add, remove           *sql.Stmt
	increment, decrement  *sql.Stmt
	removeCount, setEntry *sql.Stmt
}

// NewWriter prepares the statements of a writer.
func NewWriter(p *layout.Preparer) (*Writer, error) {
	w := &Writer{
		entry:   p.PrepareStatement(`SELECT tags FROM interrupts WHERE thread = ? AND id = ?`),
		entries: p.PrepareStatement(`SELECT id, tags FROM interrupts WHERE thread = ? AND tags IS NOT NULL`),
		add:     p.PrepareStatement(`INSERT INTO interrupt_tags (tenant, tag, created, thread, id, due) VALUES (?, ?, ?, ?, ?, ?)`),
		remove:  p.PrepareStatement(`DELETE FROM interrupt_tags WHERE tenant = ? AND tag = ? AND created = ? AND thread = ? AND id = ?`),
		increment: p.PrepareStatement(`INSERT INTO tag_counts (tenant, tag, open) VALUES (?, ?, 1)
			ON CONFLICT (tenant, tag) DO UPDATE SET open = open + 1`),
		decrement:   p.PrepareStatement(`UPDATE tag_counts SET open = open - 1 WHERE tenant = ? AND tag = ?`),
		removeCount: p.PrepareStatement(`DELETE FROM tag_counts WHERE tenant = ? AND tag = ? AND open <= 0`),
		setEntry:    p.PrepareStatement(`UPDATE interrupts SET tags = ? WHERE thread = ? AND id = ?`),
	}
	return w, p.Err()
}

// ReplaceTags makes the rows of an interrupt those of an entry, before the row of the
// interrupt changes.
func (w *Writer) ReplaceTags(ctx context.Context, thread, id string, e *Entry) error {
	var text sql.NullString
	err := w.entry.QueryRowContext(ctx, thread, id).Scan(&text)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	var old *Entry
	if text.Valid {
		if old, err = parseEntry(text.String); err != nil {
			return err
		}
	}
	if old.hasSameRows(e) {
		return nil
	}
	if err := w.removeRows(ctx, thread, id, old); err != nil {
		return err
	}
	return w.addRows(ctx, thread, id, e)
}

// RemoveThread removes the rows of all interrupts of a thread.
func (w *Writer) RemoveThread(ctx context.Context, thread string) error {
	type row struct {
		id   string
		text string
	}
	rows, err := w.entries.QueryContext(ctx, thread)
	if err != nil {
		return err
	}
	list, err := layout.CollectRows(rows, func() (r row, err error) {
		err = rows.Scan(&r.id, &r.text)
		return r, err
	})
	if err != nil {
		return err
	}
	for _, r := range list {
		e, err := parseEntry(r.text)
		if err != nil {
			continue // a damaged text must not keep the thread; lists leave out what its rows name
		}
		if err := w.removeRows(ctx, thread, r.id, e); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) addRows(ctx context.Context, thread, id string, e *Entry) error {
	if e == nil {
		return nil
	}
	owner, _ := tenant.Split(thread)
	for _, tag := range e.Tags {
		if _, err := w.add.ExecContext(ctx, owner, tag, e.Created, thread, id, e.Due); err != nil {
			return err
		}
		if _, err := w.increment.ExecContext(ctx, owner, tag); err != nil {
			return err
		}
	}
	_, err := w.increment.ExecContext(ctx, owner, checkpoint.OpenTag)
	return err
}

func (w *Writer) removeRows(ctx context.Context, thread, id string, e *Entry) error {
	if e == nil {
		return nil
	}
	owner, _ := tenant.Split(thread)
	for _, tag := range e.Tags {
		if _, err := w.remove.ExecContext(ctx, owner, tag, e.Created, thread, id); err != nil {
			return err
		}
		if err := w.subtractOne(ctx, owner, tag); err != nil {
			return err
		}
	}
	return w.subtractOne(ctx, owner, checkpoint.OpenTag)
}

// subtractOne takes one from the count of a tag. A count of none has no row.
func (w *Writer) subtractOne(ctx context.Context, owner, tag string) error {
	for _, s := range []*sql.Stmt{w.decrement, w.removeCount} {
		if _, err := s.ExecContext(ctx, owner, tag); err != nil {
			return err
		}
	}
	return nil
}

// maxPieceRows and maxPieceBytes bound the interrupts of a piece of TagNext.
const (
	maxPieceRows  = 500
	maxPieceBytes = 4 << 20
)

// Piece is what TagNext has done.
type Piece struct {
	Last       checkpoint.InterruptPosition // up to which it has looked
	Read       int
	Unreadable int // that stay without tags
	IsEnd      bool
}

// TagNext tags the next open interrupts without tags after a place: those of a file that was
// migrated.
func (w *Writer) TagNext(ctx context.Context, conn *sql.Conn, box *seal.Box, after checkpoint.InterruptPosition) (Piece, error) {
	p := Piece{Last: after}
	list, isEnd, err := readUntagged(ctx, conn, after)
	if err != nil {
		return p, err
	}
	p.IsEnd = isEnd
	for _, r := range list {
		p.Last = checkpoint.InterruptPosition{Thread: r.thread, ID: r.id}
		p.Read++
		in, err := layout.DecodeRecord(box, r.thread, layout.KindInterrupt, r.id, r.record, codec.DecodeInterrupt)
		if errors.Is(err, checkpoint.ErrCorrupt) {
			p.Unreadable++
			continue
		}
		if err != nil {
			return p, err
		}
		e := NewEntry(box, &in)
		if err := w.addRows(ctx, r.thread, r.id, e); err != nil {
			return p, err
		}
		if _, err := w.setEntry.ExecContext(ctx, e.Text(), r.thread, r.id); err != nil {
			return p, err
		}
	}
	return p, nil
}

type untaggedRow struct{ thread, id, record string }

// readUntagged reads interrupts without tags, and reports whether there are no more.
func readUntagged(ctx context.Context, conn *sql.Conn, after checkpoint.InterruptPosition) (list []untaggedRow, isEnd bool, err error) {
	rows, err := conn.QueryContext(ctx, `SELECT thread, id, record FROM interrupts
		WHERE state = 'open' AND tags IS NULL AND (thread, id) > (?, ?) ORDER BY thread, id LIMIT ?`, after.Thread, after.ID, maxPieceRows)
	if err != nil {
		return nil, false, err
	}
	bytes := 0
	for isEnd = true; rows.Next(); {
		var r untaggedRow
		if err := rows.Scan(&r.thread, &r.id, &r.record); err != nil {
			return nil, false, errors.Join(err, rows.Close())
		}
		list = append(list, r)
		if bytes += len(r.record); bytes >= maxPieceBytes || len(list) == maxPieceRows {
			isEnd = false
			break
		}
	}
	return list, isEnd, errors.Join(rows.Err(), rows.Close())
}
