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
	if err := c.Check(); err != nil {
		return checkpoint.Receipt{}, err
	}
	d := s.encode(c)
	if err := d.fits(s.maxBytes, s.maxRows); err != nil {
		return checkpoint.Receipt{}, err
	}
	var r checkpoint.Receipt
	j := &job{thread: c.Thread, cost: d.bytes + rowCost*d.rows, frees: c.Delete || c.DropBefore > 0}
	j.run = func(w *writer) (err error) {
		r, err = w.apply(d)
		return err
	}
	err := s.write.doJob(ctx, j)
	if err != nil {
		return checkpoint.Receipt{}, err // r may still be written to
	}
	return r, nil
}

// present is what must be known of a thread to change it.
type present struct {
	revision, seq, firstEvent, lastEvent uint64
	op, logID                            string
	applied                              int64
	leaseExpires                         sql.NullInt64
}

func (p *present) receipt() checkpoint.Receipt {
	return checkpoint.Receipt{
		Revision:     p.revision,
		LeaseExpires: fromNanos(p.leaseExpires),
		Now:          time.Unix(0, p.applied).UTC(),
	}
}

func (w *writer) present(thread string) (p present, err error) {
	if p, ok := w.known[thread]; ok {
		return p, nil
	}
	err = w.stmt.head.QueryRowContext(w.life, thread).
		Scan(&p.revision, &p.logID, &p.op, &p.applied, &p.leaseExpires, &p.seq, &p.firstEvent, &p.lastEvent)
	if errors.Is(err, sql.ErrNoRows) {
		return present{}, nil
	}
	return p, err
}

func (w *writer) apply(d *change) (checkpoint.Receipt, error) {
	p, err := w.present(d.Thread)
	if err != nil {
		return checkpoint.Receipt{}, err
	}
	if p.revision > 0 && d.Op != "" && d.Op == p.op {
		return p.receipt(), nil
	}
	if p.revision != d.Expect || (d.Expect > 0 && d.LogID != "" && d.LogID != p.logID) {
		return checkpoint.Receipt{}, checkpoint.ErrConflict
	}
	if d.Delete {
		return w.remove(d)
	}
	if err := d.Follows(p.lastEvent, p.seq); err != nil {
		return checkpoint.Receipt{}, err
	}
	for _, write := range []func(*change) error{
		w.forget, w.rollback, w.addCheckpoints, w.addProgress, w.addInterrupts, w.addRecords, w.addEvents,
	} {
		if err := write(d); err != nil {
			return checkpoint.Receipt{}, err
		}
	}
	r, err := w.putHead(d, &p)
	r.Runs = d.revisions
	return r, err
}

func (w *writer) putHead(d *change, p *present) (checkpoint.Receipt, error) {
	now := w.now()
	h := &d.Head
	next := present{
		revision: d.Expect + 1, seq: h.Seq, lastEvent: h.LastEvent,
		firstEvent: max(p.firstEvent, min(d.TrimEvents, h.LastEvent+1)),
		op:         d.Op, logID: h.LogID, applied: nanos(now), leaseExpires: p.leaseExpires,
	}
	if d.Lease > 0 {
		next.leaseExpires = sql.NullInt64{Int64: nanos(now.Add(d.Lease)), Valid: true}
	}
	if h.Owner == "" {
		next.leaseExpires = sql.NullInt64{}
	}
	wake := next.leaseExpires
	if due := nanos(h.Due); !h.Due.IsZero() && (!wake.Valid || due < wake.Int64) {
		wake = sql.NullInt64{Int64: due, Valid: true}
	}
	err := w.exec(w.stmt.putHead, d.Thread, next.revision, h.LogID, d.Op, next.applied, h.Graph, string(h.State),
		nanos(h.Updated), h.Seq, next.firstEvent, h.LastEvent, h.Owner, next.leaseExpires, wake, d.head)
	if err != nil {
		return checkpoint.Receipt{}, err
	}
	if len(w.known) >= maxKnown {
		clear(w.known)
	}
	w.known[d.Thread] = next
	return next.receipt(), nil
}

func (w *writer) exec(s *sql.Stmt, args ...any) error {
	_, err := s.ExecContext(w.life, args...)
	return err
}

func (w *writer) remove(d *change) (checkpoint.Receipt, error) {
	delete(w.known, d.Thread)
	for _, s := range w.stmt.remove {
		if err := w.exec(s, d.Thread); err != nil {
			return checkpoint.Receipt{}, err
		}
	}
	return checkpoint.Receipt{Revision: d.Expect + 1, Now: w.now()}, nil
}

func (w *writer) rollback(d *change) error {
	for _, id := range d.ClearTasks {
		if err := w.exec(w.stmt.clearTasks, d.Thread, id); err != nil {
			return err
		}
		if err := w.exec(w.stmt.clearMemos, d.Thread, id); err != nil {
			return err
		}
	}
	if d.DropAfter == nil {
		return nil
	}
	for _, s := range w.stmt.drop {
		if err := w.exec(s, d.Thread, *d.DropAfter); err != nil {
			return err
		}
	}
	return nil
}

// addCheckpoints writes several rows per statement: supersteps may share a change.
func (w *writer) addCheckpoints(d *change) error {
	args := make([]any, 0, 6*min(len(d.Checkpoints), maxRows))
	records := d.checkpoints
	for list := range slices.Chunk(d.Checkpoints, maxRows) {
		args = args[:0]
		for i, cp := range list {
			args = append(args, d.Thread, cp.Seq, cp.ID, cp.Namespace, checkpoint.NodePath(cp.Namespace), []byte(records[i]))
		}
		if err := w.exec(w.stmt.checkpoints[len(list)-1], args...); err != nil {
			return err
		}
		records = records[len(list):]
	}
	for i := range d.values {
		v := &d.values[i]
		if err := w.exec(w.stmt.value, d.Thread, v.seq, v.channel, v.value); err != nil {
			return err
		}
	}
	for i := range d.items {
		it := &d.items[i]
		if err := w.exec(w.stmt.item, d.Thread, it.channel, it.segment, it.index, it.seq, it.value); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) addProgress(d *change) error {
	for i := range d.tasks {
		t := &d.tasks[i]
		if err := w.exec(w.stmt.task, d.Thread, t.checkpoint, t.id, t.record); err != nil {
			return err
		}
	}
	for i := range d.memos {
		m := &d.memos[i]
		err := w.exec(w.stmt.memo, d.Thread, m.Checkpoint, m.Task, m.Scope, m.Key, m.Index, m.record)
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) addInterrupts(d *change) error {
	for i := range d.interrupts {
		in := &d.interrupts[i]
		w.change++
		err := w.exec(w.stmt.interrupt, d.Thread, in.ID, w.change, nanos(in.Created), in.Checkpoint, in.Run,
			in.Graph, in.Node, in.Reason, string(in.State), in.record)
		if err != nil {
			return err
		}
	}
	if len(d.interrupts) == 0 {
		return nil
	}
	return w.exec(w.stmt.lastChange, w.change)
}

func (w *writer) addRecords(d *change) error {
	d.revisions = nil
	for i := range d.runs {
		var revision uint64
		r := &d.runs[i]
		err := w.stmt.run.QueryRowContext(w.life, d.Thread, r.id, r.order, r.state, r.record).Scan(&revision)
		if err != nil {
			return err
		}
		d.revisions = append(d.revisions, revision)
	}
	if r := d.Request; r != nil {
		return w.exec(w.stmt.request, d.Thread, r.ID, r.Digest, r.Run, int64(r.Event), nanos(r.Created))
	}
	return nil
}

func (w *writer) addEvents(d *change) error {
	for i := range d.events {
		if err := w.exec(w.stmt.events, d.Thread, d.events[i].last, []byte(d.events[i].record)); err != nil {
			return err
		}
	}
	if d.TrimEvents > 1 {
		return w.exec(w.stmt.trim, d.Thread, d.TrimEvents)
	}
	return nil
}
