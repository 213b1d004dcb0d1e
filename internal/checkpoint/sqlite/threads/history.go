package threads

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/layout"
	"github.com/graphd-dev/graphd/internal/payload"
)

// Checkpoint returns a checkpoint of a namespace, the newest for an empty id. It
// returns ErrCheckpointNotFound when there is none; other errors wrap
// ErrUnavailable or ErrCorrupt.
func (r *Reader) Checkpoint(ctx context.Context, thread, namespace, id string) (*checkpoint.Checkpoint, error) {
	return r.CheckpointWithin(ctx, thread, namespace, id, 0)
}

// CheckpointWithin returns a checkpoint as Checkpoint does. With a most above 0 it
// returns a *LargeError for a larger checkpoint.
func (r *Reader) CheckpointWithin(
	ctx context.Context, thread, namespace, id string, most int,
) (cp *checkpoint.Checkpoint, err error) {
	var large *checkpoint.LargeError
	err = r.readSnapshot(ctx, func(tx *sql.Tx) error {
		stmt, args := r.queries.newest, []any{thread, checkpoint.NodePath(namespace), namespace}
		if id != "" {
			stmt, args = r.queries.checkpoint, append(args, id)
		}
		var manifest string
		err := tx.StmtContext(ctx, stmt).QueryRowContext(ctx, args...).Scan(&id, &manifest)
		if errors.Is(err, sql.ErrNoRows) {
			return checkpoint.ErrCheckpointNotFound
		}
		if err != nil {
			return err
		}
		l := r.newLoader(ctx, tx, thread)
		l.most = most
		cp, err = l.loadCheckpoint(manifest, id)
		if errors.As(err, &large) {
			return nil
		}
		return err
	})
	if large != nil {
		return nil, large
	}
	return cp, err
}

// Checkpoints lists the checkpoints of a namespace, newest first. Errors wrap
// ErrUnavailable or ErrCorrupt.
func (r *Reader) Checkpoints(
	ctx context.Context, q checkpoint.CheckpointQuery,
) (out []*checkpoint.Checkpoint, err error) {
	err = r.readSnapshot(ctx, func(tx *sql.Tx) error {
		rows, err := r.listManifests(ctx, tx, &q)
		if err != nil {
			return err
		}
		out, err = r.newLoader(ctx, tx, q.Thread).loadAll(rows, q.Limit)
		return errors.Join(err, rows.Close())
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// listManifests finds checkpoints, as id and manifest of each.
func (r *Reader) listManifests(ctx context.Context, tx *sql.Tx, q *checkpoint.CheckpointQuery) (*sql.Rows, error) {
	before := layout.ClampInt64(q.Before)
	if q.Before == 0 {
		before = math.MaxInt64
	}
	path := checkpoint.NodePath(q.Namespace)
	stmt, args := r.queries.checkpoints, []any{q.Thread, path, q.Namespace, before, limitOrAll(q.Limit)}
	switch {
	case q.AllNamespaces:
		stmt, args = r.queries.checkpointsAll, []any{q.Thread, before, limitOrAll(q.Limit)}
	case q.AnyTask:
		stmt, args = r.queries.checkpointsPath, []any{q.Thread, path, before, limitOrAll(q.Limit)}
	}
	return tx.StmtContext(ctx, stmt).QueryContext(ctx, args...)
}

// checkpointLoader adds the values that are kept beside manifests. Checkpoints that are
// read together share equal parts.
type checkpointLoader struct {
	ctx         context.Context // of the read it is made for
	box         *seal.Box
	valueStmt   *sql.Stmt
	itemsStmt   *sql.Stmt
	thread      string
	valuesByKey map[valueKey]payload.JSON
	listsByKey  map[valueKey][]payload.JSON
	most        int // bytes that a checkpoint may hold, 0 = any number
	held        int // by the present checkpoint; counted with a most
}

// valueKey is where a value or a segment is stored.
type valueKey struct {
	channel string
	seq     uint64
}

func (r *Reader) newLoader(ctx context.Context, tx *sql.Tx, thread string) *checkpointLoader {
	return &checkpointLoader{
		ctx: ctx, box: r.box, thread: thread,
		valueStmt: tx.StmtContext(ctx, r.queries.value), itemsStmt: tx.StmtContext(ctx, r.queries.items),
		valuesByKey: map[valueKey]payload.JSON{}, listsByKey: map[valueKey][]payload.JSON{},
	}
}

// loadAll loads checkpoints in order until there are enough.
func (l *checkpointLoader) loadAll(rows *sql.Rows, limit int) (out []*checkpoint.Checkpoint, err error) {
	portion := checkpoint.Portion{Limit: limit}
	for !portion.Full() && rows.Next() {
		var id, manifest string
		if err := rows.Scan(&id, &manifest); err != nil {
			return nil, err
		}
		cp, err := l.loadCheckpoint(manifest, id)
		if err != nil {
			return nil, err
		}
		portion.Take(cp.Size())
		out = append(out, cp)
	}
	return out, rows.Err()
}

func (l *checkpointLoader) loadCheckpoint(text, id string) (*checkpoint.Checkpoint, error) {
	text, err := layout.DecodeRecord(l.box, l.thread, layout.KindCheckpoint, id, text, layout.KeepText)
	if err != nil {
		return nil, layout.WrapRecordError(err, "thread %q, checkpoint %q", l.thread, id)
	}
	cp, beside, err := codec.DecodeCheckpoint(text)
	if err != nil {
		return nil, layout.WrapRecordError(err, "thread %q, checkpoint %q", l.thread, id)
	}
	if err := l.checkSize(cp, beside); err != nil {
		return nil, err
	}
	for _, b := range beside {
		ch := &cp.Channels[b.Channel]
		if ch.List != nil {
			if err = l.fillList(ch); errors.Is(err, errLarge) {
				return nil, &checkpoint.LargeError{Seq: cp.Seq}
			}
		} else {
			ch.Value, err = l.readValue(valueKey{ch.Name, ch.Stored}, b.Bytes)
		}
		if err != nil {
			return nil, layout.WrapRecordError(err, "thread %q, checkpoint %q, channel %q", l.thread, cp.ID, ch.Name)
		}
	}
	if l.most > 0 {
		if size := cp.Size(); size > l.most {
			return nil, &checkpoint.LargeError{Bytes: size, Seq: cp.Seq}
		}
	}
	return cp, nil
}

// errLarge says that the elements of a list are more than may be read.
var errLarge = errors.New("the list is large")

// checkSize finds out whether a checkpoint is large, as far as its manifest tells: that has
// the sizes of values, and not those of the elements of lists.
func (l *checkpointLoader) checkSize(cp *checkpoint.Checkpoint, beside []codec.SeparateValue) error {
	if l.most <= 0 {
		return nil
	}
	l.held = cp.Size()
	lists := false
	for _, b := range beside {
		l.held += b.Bytes
		lists = lists || cp.Channels[b.Channel].List != nil
	}
	switch {
	case l.held <= l.most:
		return nil
	case lists:
		return &checkpoint.LargeError{Seq: cp.Seq}
	}
	return &checkpoint.LargeError{Bytes: l.held, Seq: cp.Seq}
}

func (l *checkpointLoader) readValue(at valueKey, size int) (payload.JSON, error) {
	if v, ok := l.valuesByKey[at]; ok {
		return v, nil
	}
	var v string
	err := l.valueStmt.QueryRowContext(l.ctx, l.thread, at.seq, at.channel).Scan(&v)
	if errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("%w: value of checkpoint %d is missing", checkpoint.ErrCorrupt, at.seq)
	}
	if err == nil {
		v, err = layout.DecodeRecord(l.box, l.thread, layout.KindValue, layout.ValueName(at.seq, at.channel), v, layout.KeepText)
	}
	if err != nil {
		return "", err
	}
	if len(v) != size {
		return "", fmt.Errorf("%w: value of checkpoint %d has %d bytes, want %d", checkpoint.ErrCorrupt, at.seq, len(v), size)
	}
	l.valuesByKey[at] = payload.JSON(v)
	return payload.JSON(v), nil
}

func (l *checkpointLoader) fillList(ch *checkpoint.Channel) error {
	for i, seg := range ch.List.Segments {
		items, err := l.readSegment(valueKey{ch.Name, seg.ID}, seg.Len)
		if err != nil {
			return err
		}
		if i == 0 {
			ch.List.Items = items[:seg.Len:seg.Len] // shared; an append makes a copy
			continue
		}
		ch.List.Items = append(ch.List.Items, items[:seg.Len]...)
	}
	return nil
}

// readSegment returns at least the first n elements of a segment.
func (l *checkpointLoader) readSegment(at valueKey, n int) ([]payload.JSON, error) {
	if items, ok := l.listsByKey[at]; ok && len(items) >= n {
		return items, nil
	}
	rows, err := l.itemsStmt.QueryContext(l.ctx, l.thread, at.channel, at.seq, n)
	if err != nil {
		return nil, err
	}
	index := -1
	items, err := layout.CollectRows(rows, func() (payload.JSON, error) {
		var v string
		if err := rows.Scan(&v); err != nil {
			return "", err
		}
		index++
		v, err := layout.DecodeRecord(l.box, l.thread, layout.KindItem, layout.ItemName(at.seq, index, at.channel), v, layout.KeepText)
		if l.held += len(v); err == nil && l.most > 0 && l.held > l.most {
			err = errLarge
		}
		return payload.JSON(v), err
	})
	if err != nil {
		return nil, err
	}
	if len(items) < n {
		return nil, fmt.Errorf("%w: segment %d has %d elements, want %d", checkpoint.ErrCorrupt, at.seq, len(items), n)
	}
	l.listsByKey[at] = items
	return items, nil
}

// Pending returns the progress after a checkpoint. Errors wrap ErrUnavailable or
// ErrCorrupt.
func (r *Reader) Pending(ctx context.Context, thread, id string) (checkpoint.Pending, error) {
	return r.PendingWithin(ctx, thread, id, 0)
}

// PendingWithin returns progress as Pending does. With a most above 0 it returns a *LargeError for
// larger progress.
func (r *Reader) PendingWithin(ctx context.Context, thread, id string, most int) (checkpoint.Pending, error) {
	bounded := checkpoint.BoundedPending{Most: most}
	err := r.readSnapshot(ctx, func(tx *sql.Tx) error { return r.readPending(ctx, tx, thread, id, &bounded) })
	if err != nil {
		return checkpoint.Pending{}, err
	}
	return bounded.BuildPending()
}

// readPending reads the progress after a checkpoint, one record at a time.
func (r *Reader) readPending(ctx context.Context, tx *sql.Tx, thread, id string, bounded *checkpoint.BoundedPending) error {
	eachRow := func(stmt *sql.Stmt, add func(rows *sql.Rows) error) error {
		rows, err := tx.StmtContext(ctx, stmt).QueryContext(ctx, thread, id)
		if err != nil {
			return err
		}
		for rows.Next() {
			if err := add(rows); err != nil {
				return errors.Join(err, rows.Close())
			}
		}
		return rows.Err()
	}
	err := eachRow(r.queries.tasks, func(rows *sql.Rows) error {
		t, err := scanRecord(rows, func(name, record string) (checkpoint.Task, error) {
			return layout.DecodeRecord(r.box, thread, layout.KindTask, id+"/"+name, record, codec.DecodeTask)
		}, "thread %q, task %q", thread)
		bounded.AddTask(&t)
		return err
	})
	if err != nil {
		return err
	}
	err = eachRow(r.queries.memos, func(rows *sql.Rows) error {
		m, err := scanRecord(rows, func(name, record string) (checkpoint.Memo, error) {
			return layout.DecodeRecord(r.box, thread, layout.KindMemo, id+"/"+name, record, codec.DecodeMemo)
		}, "thread %q, memo %q", thread)
		bounded.AddMemo(&m)
		return err
	})
	if err != nil {
		return err
	}
	return eachRow(r.queries.pendingInterrupts, func(rows *sql.Rows) error {
		q, err := layout.ScanInterrupt(r.box, rows)
		bounded.AddInterrupt(&q)
		return err
	})
}

// scanRecord reads a key and a record; what is the text of errors.
func scanRecord[T any](
	rows *sql.Rows, decode func(name, record string) (T, error), what, thread string,
) (v T, err error) {
	var id, record string
	if err := rows.Scan(&id, &record); err != nil {
		return v, err
	}
	v, err = decode(id, record)
	return v, layout.WrapRecordError(err, what, thread, id)
}
