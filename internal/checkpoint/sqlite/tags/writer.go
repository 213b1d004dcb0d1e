package tags

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/layout"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// maxStatementTags bounds the tags that a statement writes.
const maxStatementTags = 4

// Writer changes the tags of interrupts, within the transaction of a change.
type Writer struct {
	entry, entries, setEntry *sql.Stmt
	// Statements for several tags, by their number, from 1.
	add, remove, increment, decrement, removeCounts [maxStatementTags]*sql.Stmt
}

// NewWriter prepares the statements of a writer.
func NewWriter(p *layout.Preparer) (*Writer, error) {
	w := &Writer{
		entry:    p.PrepareStatement(`SELECT tags FROM interrupts WHERE thread = ? AND id = ?`),
		entries:  p.PrepareStatement(`SELECT id, tags FROM interrupts WHERE thread = ? AND tags IS NOT NULL`),
		setEntry: p.PrepareStatement(`UPDATE interrupts SET tags = ? WHERE thread = ? AND id = ?`),
	}
	for n := range maxStatementTags {
		several := func(first, more string) string { return first + strings.Repeat(", "+more, n) }
		tags := " tag IN (" + several("?", "?") + ")"
		w.add[n] = p.PrepareStatement(`INSERT INTO interrupt_tags (tenant, created, thread, id, due, tag) VALUES ` +
			several("(?1, ?2, ?3, ?4, ?5, ?)", "(?1, ?2, ?3, ?4, ?5, ?)"))
		w.remove[n] = p.PrepareStatement(`DELETE FROM interrupt_tags WHERE tenant = ? AND created = ? AND thread = ? AND id = ? AND` + tags)
		w.increment[n] = p.PrepareStatement(`INSERT INTO tag_counts (tenant, tag, open) VALUES ` + several("(?1, ?, 1)", "(?1, ?, 1)") +
			` ON CONFLICT (tenant, tag) DO UPDATE SET open = open + 1`)
		w.decrement[n] = p.PrepareStatement(`UPDATE tag_counts SET open = open - 1 WHERE tenant = ? AND` + tags + ` RETURNING open`)
		w.removeCounts[n] = p.PrepareStatement(`DELETE FROM tag_counts WHERE tenant = ? AND` + tags + ` AND open <= 0`)
	}
	return w, p.Err()
}

// Known has the entries of the interrupts of a thread that have tags, nil = they have to be read.
type Known map[string]*Entry

// maxKnown bounds the entries of a thread that are known.
const maxKnown = 64

// Note notes the entry that an interrupt has from now on. It returns nil when there are too many.
func (k Known) Note(id string, e *Entry) Known {
	switch {
	case k == nil:
		return nil
	case e == nil:
		delete(k, id)
	default:
		k[id] = e
	}
	if len(k) > maxKnown {
		return nil
	}
	return k
}

// ReplaceTags makes the rows of an interrupt those of an entry, before the row of the
// interrupt changes.
func (w *Writer) ReplaceTags(ctx context.Context, thread, id string, known Known, e *Entry) error {
	old := known[id]
	if known == nil {
		var err error
		if old, err = w.readEntry(ctx, thread, id); err != nil {
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

// readEntry reads the entry of an interrupt, nil = it has no tags.
func (w *Writer) readEntry(ctx context.Context, thread, id string) (*Entry, error) {
	var text sql.NullString
	err := w.entry.QueryRowContext(ctx, thread, id).Scan(&text)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil || !text.Valid:
		return nil, err
	}
	return parseEntry(text.String)
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
	for tags := range slices.Chunk(e.Tags, maxStatementTags) {
		_, err := w.add[len(tags)-1].ExecContext(ctx, appendTexts([]any{owner, e.Created, thread, id, e.Due}, tags)...)
		if err != nil {
			return err
		}
	}
	for tags := range slices.Chunk(e.countedTags(), maxStatementTags) {
		if _, err := w.increment[len(tags)-1].ExecContext(ctx, appendTexts([]any{owner}, tags)...); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) removeRows(ctx context.Context, thread, id string, e *Entry) error {
	if e == nil {
		return nil
	}
	owner, _ := tenant.Split(thread)
	for tags := range slices.Chunk(e.Tags, maxStatementTags) {
		if _, err := w.remove[len(tags)-1].ExecContext(ctx, appendTexts([]any{owner, e.Created, thread, id}, tags)...); err != nil {
			return err
		}
	}
	for tags := range slices.Chunk(e.countedTags(), maxStatementTags) {
		if err := w.subtractOne(ctx, appendTexts([]any{owner}, tags)); err != nil {
			return err
		}
	}
	return nil
}

// subtractOne takes one from the counts of some tags, which stand behind their tenant. A count of
// none has no row.
func (w *Writer) subtractOne(ctx context.Context, args []any) error {
	n := len(args) - 2 // as the statements are numbered
	rows, err := w.decrement[n].QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	left, err := layout.CollectRows(rows, func() (open int, err error) {
		err = rows.Scan(&open)
		return open, err
	})
	if err != nil || !slices.ContainsFunc(left, func(open int) bool { return open <= 0 }) {
		return err
	}
	_, err = w.removeCounts[n].ExecContext(ctx, args...)
	return err
}

func appendTexts(args []any, texts []string) []any {
	for _, text := range texts {
		args = append(args, text)
	}
	return args
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
