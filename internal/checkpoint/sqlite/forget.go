package sqlite

import (
	"database/sql"
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
)

// forget removes the checkpoints that DropBefore names and what only they
// showed. It reads everything before it writes.
func (w *writer) forget(d *change) error {
	if d.DropBefore == 0 {
		return nil
	}
	all, err := w.manifests(d.Thread)
	if err != nil {
		return err
	}
	gone, left := d.Outdated(all)
	if len(gone) == 0 {
		return nil
	}
	shown := codec.ShownBy(left)
	values, err := w.places(w.stmt.valuePlaces, d.Thread)
	if err != nil {
		return err
	}
	lists, err := w.places(w.stmt.lists, d.Thread)
	if err != nil {
		return err
	}
	for _, cp := range gone {
		for _, s := range []*sql.Stmt{w.stmt.clearTasks, w.stmt.clearMemos, w.stmt.forget} {
			if err := w.exec(s, d.Thread, cp.ID); err != nil {
				return err
			}
		}
	}
	for _, v := range values {
		if shown.Value(v.seq, v.channel) {
			continue
		}
		if err := w.exec(w.stmt.forgetValue, d.Thread, v.seq, v.channel); err != nil {
			return err
		}
	}
	for _, l := range lists {
		if err := w.exec(w.stmt.forgetItems, d.Thread, l.channel, l.seq, shown.Elements(l.seq, l.channel)); err != nil {
			return err
		}
	}
	return nil
}

// manifests reads all checkpoints of a thread, without what is kept beside them.
func (w *writer) manifests(thread string) (all []*checkpoint.Checkpoint, err error) {
	rows, err := w.stmt.manifests.QueryContext(w.life, thread)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id, text string
		if err := rows.Scan(&id, &text); err != nil {
			return nil, err
		}
		cp, err := decode(w.store, thread, kindCheckpoint, id, text, manifestOnly)
		if err != nil {
			return nil, of(err, "thread %q, checkpoint %q", thread, id)
		}
		all = append(all, cp)
	}
	return all, rows.Err()
}

// origin is where a value or a list of elements begins.
type origin struct {
	seq     uint64
	channel string
}

func (w *writer) places(query *sql.Stmt, thread string) (all []origin, err error) {
	rows, err := query.QueryContext(w.life, thread)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var o origin
		if err := rows.Scan(&o.seq, &o.channel); err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, rows.Err()
}
