package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Apply makes one change, durable on return. A caller that gives up while its
// change is under way does not know whether it was applied.
func (s *Store) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	if err := c.Validate(); err != nil {
		return checkpoint.Receipt{}, err
	}
	d := s.encodeChange(c)
	if err := d.checkSize(s.maxBytes, s.maxRows); err != nil {
		return checkpoint.Receipt{}, err
	}
	var r checkpoint.Receipt
	j := &job{thread: c.Thread, cost: d.bytes + rowCost*d.rows, freesSpace: c.Delete || c.DropBefore > 0}
	j.run = func(w *writer) (err error) {
		r, err = w.applyChange(d)
		return err
	}
	err := s.writer.runJob(ctx, j)
	if err != nil {
		return checkpoint.Receipt{}, err // r may still be written to
	}
	return r, nil
}

// threadState is what must be known of a thread to change it.
type threadState struct {
	revision, seq, firstEvent, lastEvent uint64
	op, logID                            string
	applied                              int64
	leaseExpires                         sql.NullInt64
}

func (p *threadState) toReceipt() checkpoint.Receipt {
	return checkpoint.Receipt{
		Revision:     p.revision,
		LeaseExpires: fromNullNanos(p.leaseExpires),
		Now:          time.Unix(0, p.applied).UTC(),
	}
}

func (w *writer) loadThread(thread string) (p threadState, err error) {
	if p, ok := w.threads[thread]; ok {
		return p, nil
	}
	err = w.statements.head.QueryRowContext(w.life, thread).
		Scan(&p.revision, &p.logID, &p.op, &p.applied, &p.leaseExpires, &p.seq, &p.firstEvent, &p.lastEvent)
	if errors.Is(err, sql.ErrNoRows) {
		return threadState{}, nil
	}
	return p, err
}

func (w *writer) applyChange(d *encodedChange) (checkpoint.Receipt, error) {
	p, err := w.loadThread(d.Thread)
	if err != nil {
		return checkpoint.Receipt{}, err
	}
	if p.revision > 0 && d.Op != "" && d.Op == p.op {
		return p.toReceipt(), nil
	}
	if p.revision != d.Expect || (d.Expect > 0 && d.LogID != "" && d.LogID != p.logID) {
		return checkpoint.Receipt{}, checkpoint.ErrConflict
	}
	if d.Delete {
		return w.deleteThread(d)
	}
	if err := d.ValidateSequence(p.lastEvent, p.seq); err != nil {
		return checkpoint.Receipt{}, err
	}
	for _, write := range []func(*encodedChange) error{
		w.pruneCheckpoints, w.dropRolledBack, w.addCheckpoints, w.addProgress, w.addInterrupts, w.addRecords, w.addEvents,
	} {
		if err := write(d); err != nil {
			return checkpoint.Receipt{}, err
		}
	}
	r, err := w.putHead(d, &p)
	r.Runs = d.revisions
	return r, err
}

func (w *writer) putHead(d *encodedChange, p *threadState) (checkpoint.Receipt, error) {
	now := w.now()
	h := &d.Head
	next := threadState{
		revision: d.Expect + 1, seq: h.Seq, lastEvent: h.LastEvent,
		firstEvent: max(p.firstEvent, min(d.TrimEvents, h.LastEvent+1)),
		op:         d.Op, logID: h.LogID, applied: toUnixNanos(now), leaseExpires: p.leaseExpires,
	}
	if d.Lease > 0 {
		next.leaseExpires = sql.NullInt64{Int64: toUnixNanos(now.Add(d.Lease)), Valid: true}
	}
	if h.Owner == "" {
		next.leaseExpires = sql.NullInt64{}
	}
	wake := next.leaseExpires
	if due := toUnixNanos(h.Due); !h.Due.IsZero() && (!wake.Valid || due < wake.Int64) {
		wake = sql.NullInt64{Int64: due, Valid: true}
	}
	err := w.execStatement(w.statements.putHead, d.Thread, next.revision, h.LogID, d.Op, next.applied, h.Graph, string(h.State),
		toUnixNanos(h.Updated), h.Seq, next.firstEvent, h.LastEvent, h.Owner, next.leaseExpires, wake, d.metadata, []byte(d.head))
	if err != nil {
		return checkpoint.Receipt{}, err
	}
	if len(w.threads) >= maxKnownThreads {
		clear(w.threads)
	}
	w.threads[d.Thread] = next
	return next.toReceipt(), nil
}

func (w *writer) execStatement(s *sql.Stmt, args ...any) error {
	_, err := s.ExecContext(w.life, args...)
	return err
}

func (w *writer) deleteThread(d *encodedChange) (checkpoint.Receipt, error) {
	delete(w.threads, d.Thread)
	for _, s := range w.statements.deleteThread {
		if err := w.execStatement(s, d.Thread); err != nil {
			return checkpoint.Receipt{}, err
		}
	}
	return checkpoint.Receipt{Revision: d.Expect + 1, Now: w.now()}, nil
}

func (w *writer) dropRolledBack(d *encodedChange) error {
	for _, id := range d.ClearTasks {
		if err := w.execStatement(w.statements.clearTasks, d.Thread, id); err != nil {
			return err
		}
		if err := w.execStatement(w.statements.clearMemos, d.Thread, id); err != nil {
			return err
		}
	}
	if d.DropAfter == nil {
		return nil
	}
	for _, s := range w.statements.rollBackThread {
		if err := w.execStatement(s, d.Thread, *d.DropAfter); err != nil {
			return err
		}
	}
	return nil
}

// addCheckpoints writes several rows per statement: supersteps may share a change.
func (w *writer) addCheckpoints(d *encodedChange) error {
	args := make([]any, 0, 6*min(len(d.Checkpoints), maxRows))
	records := d.checkpoints
	for list := range slices.Chunk(d.Checkpoints, maxRows) {
		args = args[:0]
		for i, cp := range list {
			args = append(args, d.Thread, cp.Seq, cp.ID, cp.Namespace, checkpoint.NodePath(cp.Namespace), []byte(records[i]))
		}
		if err := w.execStatement(w.statements.checkpoints[len(list)-1], args...); err != nil {
			return err
		}
		records = records[len(list):]
	}
	for i := range d.values {
		v := &d.values[i]
		if err := w.execStatement(w.statements.value, d.Thread, v.seq, v.channel, v.value); err != nil {
			return err
		}
	}
	for i := range d.items {
		it := &d.items[i]
		if err := w.execStatement(w.statements.item, d.Thread, it.channel, it.segment, it.index, it.seq, it.value); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) addProgress(d *encodedChange) error {
	for i := range d.tasks {
		t := &d.tasks[i]
		if err := w.execStatement(w.statements.task, d.Thread, t.checkpoint, t.id, []byte(t.record)); err != nil {
			return err
		}
	}
	for i := range d.memos {
		m := &d.memos[i]
		err := w.execStatement(w.statements.memo, d.Thread, m.Checkpoint, m.Task, m.Scope, m.Key, m.Index, []byte(m.record))
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) addInterrupts(d *encodedChange) error {
	for i := range d.interrupts {
		in := &d.interrupts[i]
		w.lastChange++
		err := w.execStatement(w.statements.interrupt, d.Thread, in.ID, w.lastChange, toUnixNanos(in.Created), in.Checkpoint, in.Run,
			in.Graph, in.Node, in.Reason, string(in.State), in.assignees, []byte(in.record))
		if err != nil {
			return err
		}
	}
	if len(d.interrupts) == 0 {
		return nil
	}
	return w.execStatement(w.statements.lastChange, w.lastChange)
}

func (w *writer) addRecords(d *encodedChange) error {
	d.revisions = nil
	for i := range d.runs {
		var revision uint64
		r := &d.runs[i]
		err := w.statements.run.QueryRowContext(w.life, d.Thread, r.id, r.order, r.state, []byte(r.record)).Scan(&revision)
		if err != nil {
			return err
		}
		d.revisions = append(d.revisions, revision)
	}
	if r := d.Request; r != nil {
		return w.execStatement(w.statements.request, d.Thread, r.ID, r.Digest, r.Run, int64(r.Event), toUnixNanos(r.Created))
	}
	return nil
}

func (w *writer) addEvents(d *encodedChange) error {
	for i := range d.events {
		if err := w.execStatement(w.statements.events, d.Thread, d.events[i].last, []byte(d.events[i].record)); err != nil {
			return err
		}
	}
	if d.TrimEvents > 1 {
		return w.execStatement(w.statements.trimEvents, d.Thread, d.TrimEvents)
	}
	return nil
}
