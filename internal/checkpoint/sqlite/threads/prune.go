package threads

import (
	"context"
	"database/sql"
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/layout"
)

// pruneCheckpoints removes the checkpoints that DropBefore names and the values
// that only they showed. It reads everything before it writes.
func (w *Writer) pruneCheckpoints(ctx context.Context, d *encodedChange) error {
	if d.DropBefore == 0 {
		return nil
	}
	all, err := w.readManifests(ctx, d.Thread)
	if err != nil {
		return err
	}
	gone, left := d.SelectPruned(all)
	if len(gone) == 0 {
		return nil
	}
	shown := codec.CollectReferences(left)
	values, err := readOrigins(ctx, w.statements.valueOrigins, d.Thread)
	if err != nil {
		return err
	}
	lists, err := readOrigins(ctx, w.statements.listOrigins, d.Thread)
	if err != nil {
		return err
	}
	for _, cp := range gone {
		for _, s := range []*sql.Stmt{w.statements.clearTasks, w.statements.clearMemos, w.statements.deleteCheckpoint} {
			if err := execStatement(ctx, s, d.Thread, cp.ID); err != nil {
				return err
			}
		}
	}
	for _, v := range values {
		if shown.HasValue(v.seq, v.channel) {
			continue
		}
		if err := execStatement(ctx, w.statements.deleteValue, d.Thread, v.seq, v.channel); err != nil {
			return err
		}
	}
	for _, l := range lists {
		if err := execStatement(ctx, w.statements.deleteItems, d.Thread, l.channel, l.seq, shown.ElementCount(l.seq, l.channel)); err != nil {
			return err
		}
	}
	return nil
}

// readManifests reads all checkpoints of a thread, without the values beside them.
func (w *Writer) readManifests(ctx context.Context, thread string) (all []*checkpoint.Checkpoint, err error) {
	rows, err := w.statements.manifests.QueryContext(ctx, thread)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id, text string
		if err := rows.Scan(&id, &text); err != nil {
			return nil, err
		}
		cp, err := layout.DecodeRecord(w.box, thread, layout.KindCheckpoint, id, text, decodeManifest)
		if err != nil {
			return nil, layout.WrapRecordError(err, "thread %q, checkpoint %q", thread, id)
		}
		all = append(all, cp)
	}
	return all, rows.Err()
}

// valueOrigin is where a value or a list of elements begins.
type valueOrigin struct {
	seq     uint64
	channel string
}

func readOrigins(ctx context.Context, query *sql.Stmt, thread string) (all []valueOrigin, err error) {
	rows, err := query.QueryContext(ctx, thread)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var o valueOrigin
		if err := rows.Scan(&o.seq, &o.channel); err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, rows.Err()
}

// decodeManifest reads a checkpoint without the values beside it.
func decodeManifest(text string) (*checkpoint.Checkpoint, error) {
	cp, _, err := codec.DecodeCheckpoint(text)
	return cp, err
}
