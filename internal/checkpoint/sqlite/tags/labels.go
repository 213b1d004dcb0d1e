package tags

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/layout"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// Labels is what the table of labels has of a thread: a row for each.
type Labels struct {
	Created int64
	List    []string // as they are stored
}

// NewLabels returns the labels of a thread.
func NewLabels(box *seal.Box, h *checkpoint.Head) Labels {
	l := Labels{Created: layout.ToUnixNanos(h.Created)}
	for _, tag := range h.LabelTags() {
		l.List = append(l.List, box.TagForm(tag))
	}
	return l
}

// Text returns the list as JSON, "" = there are none.
func (l *Labels) Text() string {
	if len(l.List) == 0 {
		return ""
	}
	text, err := json.Marshal(l.List)
	if err != nil {
		return "" // can't be: they are texts
	}
	return string(text)
}

// Column returns the text as the row of the thread has it.
func (l *Labels) Column() any {
	if text := l.Text(); text != "" {
		return text
	}
	return nil
}

// ParseLabels is the inverse of Text.
func ParseLabels(created int64, text string) (Labels, error) {
	l := Labels{Created: created}
	if text == "" {
		return l, nil
	}
	if err := json.Unmarshal([]byte(text), &l.List); err != nil {
		return l, fmt.Errorf("%w: its labels can't be read: %w", checkpoint.ErrCorrupt, err)
	}
	return l, nil
}

// LabelWriter changes the labels of threads, within the transaction of a change.
type LabelWriter struct {
	add, remove, set *sql.Stmt
}

// NewLabelWriter prepares the statements of a writer.
func NewLabelWriter(p *layout.Preparer) (*LabelWriter, error) {
	w := &LabelWriter{
		add:    p.PrepareStatement(`INSERT OR IGNORE INTO thread_labels (tenant, label, created, thread) VALUES (?, ?, ?, ?)`),
		remove: p.PrepareStatement(`DELETE FROM thread_labels WHERE tenant = ? AND label = ? AND created = ? AND thread = ?`),
		set:    p.PrepareStatement(`UPDATE threads SET created = ?, labels = ? WHERE thread = ?`),
	}
	return w, p.Err()
}

// ReplaceLabels makes the rows of a thread those of the next labels.
func (w *LabelWriter) ReplaceLabels(ctx context.Context, thread string, old, next Labels) error {
	isMoved := old.Created != next.Created
	owner, _ := tenant.Split(thread)
	for _, label := range old.List {
		if !isMoved && slices.Contains(next.List, label) {
			continue
		}
		if _, err := w.remove.ExecContext(ctx, owner, label, old.Created, thread); err != nil {
			return err
		}
	}
	for _, label := range next.List {
		if !isMoved && slices.Contains(old.List, label) {
			continue
		}
		if _, err := w.add.ExecContext(ctx, owner, label, next.Created, thread); err != nil {
			return err
		}
	}
	return nil
}

// LabelNext gives the next threads after one their labels: those of a file that was migrated. Of
// the piece, Last.Thread is the last thread.
func (w *LabelWriter) LabelNext(ctx context.Context, conn *sql.Conn, box *seal.Box, after checkpoint.InterruptPosition) (Piece, error) {
	p := Piece{Last: after}
	list, isEnd, err := readUnlabelled(ctx, conn, after.Thread)
	if err != nil {
		return p, err
	}
	p.IsEnd = isEnd
	for _, r := range list {
		p.Last = checkpoint.InterruptPosition{Thread: r.thread}
		p.Read++
		h, err := layout.DecodeRecord(box, r.thread, layout.KindHead, "", r.record, codec.DecodeHead)
		if errors.Is(err, checkpoint.ErrCorrupt) {
			p.Unreadable++
			continue
		}
		if err != nil {
			return p, err
		}
		l := NewLabels(box, &h)
		if err := w.ReplaceLabels(ctx, r.thread, Labels{}, l); err != nil {
			return p, err
		}
		if _, err := w.set.ExecContext(ctx, l.Created, l.Column(), r.thread); err != nil {
			return p, err
		}
	}
	return p, nil
}

// readUnlabelled reads threads without labels, and reports whether there are no more.
func readUnlabelled(ctx context.Context, conn *sql.Conn, after string) (list []untaggedRow, isEnd bool, err error) {
	rows, err := conn.QueryContext(ctx, `SELECT thread, head FROM threads WHERE thread > ? AND created IS NULL ORDER BY thread LIMIT ?`,
		after, maxPieceRows)
	if err != nil {
		return nil, false, err
	}
	bytes := 0
	for isEnd = true; rows.Next(); {
		var r untaggedRow
		if err := rows.Scan(&r.thread, &r.record); err != nil {
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
