package threads

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/tags"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/writer"
)

// maxKnownThreads bounds how many threads are remembered.
const maxKnownThreads = 4096

// A Writer applies changes to threads.
type Writer struct {
	changes    *writer.Writer
	box        *seal.Box
	now        func() time.Time
	statements *statements
	tags       *tags.Writer
	labels     *tags.LabelWriter
	limits     Limits
	// lastChange is the number of the last change of any interrupt.
	lastChange uint64
	// known has the states of threads after their last changes, as the open
	// transaction sees them. No other process writes the file, so they are
	// correct.
	known map[string]threadState
}

// Limits bound one change.
type Limits struct{ MaxBytes, MaxRows int }

// NewWriter makes the writer of threads; changes makes its changes, and now is the clock that
// leases are compared with. Errors wrap checkpoint.ErrUnavailable or ErrCorrupt.
func NewWriter(ctx context.Context, changes *writer.Writer, box *seal.Box, now func() time.Time, l Limits) (*Writer, error) {
	w := &Writer{changes: changes, box: box, now: now, limits: l, known: map[string]threadState{}}
	var err error
	if w.statements, err = prepareStatements(changes.NewPreparer()); err != nil {
		return nil, err
	}
	if w.tags, err = tags.NewWriter(changes.NewPreparer()); err != nil {
		return nil, err
	}
	if w.labels, err = tags.NewLabelWriter(changes.NewPreparer()); err != nil {
		return nil, err
	}
	var last int64
	if err := w.statements.readLastChange.QueryRowContext(ctx).Scan(&last); err != nil {
		return nil, layout.ToContractError(err)
	}
	w.lastChange = uint64(last)
	changes.OnRollback(func() { clear(w.known) })
	return w, nil
}

// Apply makes one change, durable on return. It returns ErrInvalid, ErrConflict,
// or a *SizeError for a change beyond the limits; other errors are those of
// writer.RunJob.
func (w *Writer) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	if err := c.Validate(); err != nil {
		return checkpoint.Receipt{}, err
	}
	release, err := w.changes.ReserveMemory(ctx, codec.CountLargeBytes(c.Events))
	if err != nil {
		return checkpoint.Receipt{}, err
	}
	defer release()
	d := encodeChange(w.box, c)
	if err := d.checkSize(w.limits); err != nil {
		return checkpoint.Receipt{}, err
	}
	var r checkpoint.Receipt
	j := &writer.Job{Thread: c.Thread, Cost: d.bytes + writer.RowCost*d.rows, FreesSpace: c.Delete || c.DropBefore > 0}
	j.Run = func(ctx context.Context, _ *sql.Conn) (err error) {
		r, err = w.applyChange(ctx, d)
		return err
	}
	if err := w.changes.RunJob(ctx, j); err != nil {
		return checkpoint.Receipt{}, err // r may still be written to
	}
	return r, nil
}

// threadState is the part of a thread that a change needs.
type threadState struct {
	revision, seq, firstEvent, lastEvent uint64
	op, logID                            string
	applied                              int64
	leaseExpires                         sql.NullInt64
	graph, state                         string
	created                              int64
	labels                               string // see tags.Labels
	isLabelled                           bool   // false for a thread of a migrated file that can't be read
	tagged                               tags.Known
}

func (p *threadState) toReceipt() checkpoint.Receipt {
	return checkpoint.Receipt{
		Revision:     p.revision,
		LeaseExpires: layout.FromNullNanos(p.leaseExpires),
		Now:          time.Unix(0, p.applied).UTC(),
	}
}

func (w *Writer) loadThread(ctx context.Context, thread string) (p threadState, err error) {
	if p, ok := w.known[thread]; ok {
		return p, nil
	}
	err = w.statements.head.QueryRowContext(ctx, thread).
		Scan(&p.revision, &p.logID, &p.op, &p.applied, &p.leaseExpires, &p.seq, &p.firstEvent, &p.lastEvent,
			&p.graph, &p.state, &p.created, &p.labels, &p.isLabelled)
	if errors.Is(err, sql.ErrNoRows) {
		return threadState{}, nil
	}
	return p, err
}

// applyChange applies a change within the transaction of its job. A change whose
// operation was the last one applied returns the same receipt.
func (w *Writer) applyChange(ctx context.Context, d *encodedChange) (checkpoint.Receipt, error) {
	p, err := w.loadThread(ctx, d.Thread)
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
		return w.deleteThread(ctx, d, &p)
	}
	if err := d.ValidateSequence(p.lastEvent, p.seq); err != nil {
		return checkpoint.Receipt{}, err
	}
	d.tagged = p.copyTagged(d)
	for _, write := range []func(context.Context, *encodedChange) error{
		w.pruneCheckpoints, w.dropRolledBack, w.addCheckpoints, w.addProgress, w.addInterrupts, w.addRecords, w.addEvents,
	} {
		if err := write(ctx, d); err != nil {
			return checkpoint.Receipt{}, err
		}
	}
	r, err := w.putHead(ctx, d, &p)
	r.Runs = d.revisions
	return r, err
}

// copyTagged returns what is known of the tags of a thread, for a change of it. A new thread has none.
func (p *threadState) copyTagged(d *encodedChange) tags.Known {
	switch {
	case p.revision == 0:
		return tags.Known{}
	case len(d.interrupts) == 0:
		return p.tagged
	}
	return maps.Clone(p.tagged)
}

func (w *Writer) putHead(ctx context.Context, d *encodedChange, p *threadState) (checkpoint.Receipt, error) {
	now := w.now()
	h := &d.Head
	next := threadState{
		revision: d.Expect + 1, seq: h.Seq, lastEvent: h.LastEvent,
		firstEvent: max(p.firstEvent, min(d.TrimEvents, h.LastEvent+1)),
		op:         d.Op, logID: h.LogID, applied: layout.ToUnixNanos(now), leaseExpires: p.leaseExpires,
		graph: h.Graph, state: string(h.State), created: d.labels.Created, labels: d.labels.Text(), isLabelled: true, tagged: d.tagged,
	}
	if d.Lease > 0 {
		next.leaseExpires = sql.NullInt64{Int64: layout.ToUnixNanos(now.Add(d.Lease)), Valid: true}
	}
	if h.Owner == "" {
		next.leaseExpires = sql.NullInt64{}
	}
	wake := next.leaseExpires
	if due := layout.ToUnixNanos(h.Due); !h.Due.IsZero() && (!wake.Valid || due < wake.Int64) {
		wake = sql.NullInt64{Int64: due, Valid: true}
	}
	if err := w.putRow(ctx, d, p, &next, wake); err != nil {
		return checkpoint.Receipt{}, err
	}
	if len(w.known) >= maxKnownThreads {
		clear(w.known)
	}
	w.known[d.Thread] = next
	return next.toReceipt(), nil
}

// putRow writes the row of a thread, and what the indexes have of it when that is another.
func (w *Writer) putRow(ctx context.Context, d *encodedChange, p, next *threadState, wake sql.NullInt64) error {
	h := &d.Head
	if p.revision > 0 && p.hasSameLabels(next) {
		args := []any{
			next.revision, h.LogID, d.Op, next.applied, layout.ToUnixNanos(h.Updated), h.Seq, next.firstEvent, h.LastEvent, h.Owner,
			next.leaseExpires, wake, []byte(d.head),
		}
		if p.state == next.state {
			return execStatement(ctx, w.statements.updateHead, append(args, d.Thread)...)
		}
		return execStatement(ctx, w.statements.updateState, append(args, next.state, d.Thread)...)
	}
	old, err := tags.ParseLabels(p.created, p.labels)
	if err != nil {
		return err
	}
	if err := w.labels.ReplaceLabels(ctx, d.Thread, old, d.labels); err != nil {
		return err
	}
	return execStatement(ctx, w.statements.putHead, d.Thread, next.revision, h.LogID, d.Op, next.applied, h.Graph, string(h.State),
		layout.ToUnixNanos(h.Updated), h.Seq, next.firstEvent, h.LastEvent, h.Owner, next.leaseExpires, wake,
		next.created, d.labels.Column(), []byte(d.head))
}

// hasSameLabels reports whether the indexes have the same of a thread twice, save its state.
func (p *threadState) hasSameLabels(next *threadState) bool {
	return p.isLabelled && p.graph == next.graph && p.created == next.created && p.labels == next.labels
}

func execStatement(ctx context.Context, s *sql.Stmt, args ...any) error {
	_, err := s.ExecContext(ctx, args...)
	return err
}

func (w *Writer) deleteThread(ctx context.Context, d *encodedChange, p *threadState) (checkpoint.Receipt, error) {
	delete(w.known, d.Thread)
	old, err := tags.ParseLabels(p.created, p.labels)
	if err == nil { // damaged labels must not keep the thread; lists leave out what they name
		err = w.labels.ReplaceLabels(ctx, d.Thread, old, tags.Labels{})
	}
	if err != nil && !errors.Is(err, checkpoint.ErrCorrupt) {
		return checkpoint.Receipt{}, err
	}
	if err := w.tags.RemoveThread(ctx, d.Thread); err != nil {
		return checkpoint.Receipt{}, err
	}
	for _, s := range w.statements.deleteThread {
		if err := execStatement(ctx, s, d.Thread); err != nil {
			return checkpoint.Receipt{}, err
		}
	}
	return checkpoint.Receipt{Revision: d.Expect + 1, Now: w.now()}, nil
}

func (w *Writer) dropRolledBack(ctx context.Context, d *encodedChange) error {
	for _, id := range d.ClearTasks {
		if err := execStatement(ctx, w.statements.clearTasks, d.Thread, id); err != nil {
			return err
		}
		if err := execStatement(ctx, w.statements.clearMemos, d.Thread, id); err != nil {
			return err
		}
	}
	if d.DropAfter == nil {
		return nil
	}
	for _, s := range w.statements.rollBackThread {
		if err := execStatement(ctx, s, d.Thread, *d.DropAfter); err != nil {
			return err
		}
	}
	return nil
}

// addCheckpoints writes several rows per statement: supersteps may share a change.
func (w *Writer) addCheckpoints(ctx context.Context, d *encodedChange) error {
	args := make([]any, 0, 6*min(len(d.Checkpoints), maxStatementRows))
	records := d.checkpoints
	for list := range slices.Chunk(d.Checkpoints, maxStatementRows) {
		args = args[:0]
		for i, cp := range list {
			args = append(args, d.Thread, cp.Seq, cp.ID, cp.Namespace, checkpoint.NodePath(cp.Namespace), []byte(records[i]))
		}
		if err := execStatement(ctx, w.statements.checkpoints[len(list)-1], args...); err != nil {
			return err
		}
		records = records[len(list):]
	}
	for i := range d.values {
		v := &d.values[i]
		if err := execStatement(ctx, w.statements.value, d.Thread, v.seq, v.channel, v.value); err != nil {
			return err
		}
	}
	for i := range d.items {
		it := &d.items[i]
		if err := execStatement(ctx, w.statements.item, d.Thread, it.channel, it.segment, it.index, it.seq, it.value); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) addProgress(ctx context.Context, d *encodedChange) error {
	for i := range d.tasks {
		t := &d.tasks[i]
		if err := execStatement(ctx, w.statements.task, d.Thread, t.checkpoint, t.id, []byte(t.record)); err != nil {
			return err
		}
	}
	for i := range d.memos {
		m := &d.memos[i]
		err := execStatement(ctx, w.statements.memo, d.Thread, m.Checkpoint, m.Task, m.Scope, m.Key, m.Index, []byte(m.record))
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) addInterrupts(ctx context.Context, d *encodedChange) error {
	for i := range d.interrupts {
		in := &d.interrupts[i]
		w.lastChange++
		if err := w.tags.ReplaceTags(ctx, d.Thread, in.ID, d.tagged, in.tags); err != nil {
			return err
		}
		d.tagged = d.tagged.Note(in.ID, in.tags)
		err := execStatement(ctx, w.statements.interrupt, d.Thread, in.ID, w.lastChange, layout.ToUnixNanos(in.Created), in.Checkpoint, in.Run,
			in.Graph, in.Node, in.Reason, string(in.State), []byte(in.record), in.tags.Text())
		if err != nil {
			return err
		}
	}
	if len(d.interrupts) == 0 {
		return nil
	}
	return execStatement(ctx, w.statements.lastChange, w.lastChange)
}

// TagNext is that of tags.Writer.
func (w *Writer) TagNext(ctx context.Context, conn *sql.Conn, box *seal.Box, after checkpoint.InterruptPosition) (tags.Piece, error) {
	return w.tags.TagNext(ctx, conn, box, after)
}

// LabelNext is that of tags.LabelWriter.
func (w *Writer) LabelNext(ctx context.Context, conn *sql.Conn, box *seal.Box, after checkpoint.InterruptPosition) (tags.Piece, error) {
	return w.labels.LabelNext(ctx, conn, box, after)
}

func (w *Writer) addRecords(ctx context.Context, d *encodedChange) error {
	d.revisions = nil
	for i := range d.runs {
		var revision uint64
		r := &d.runs[i]
		err := w.statements.run.QueryRowContext(ctx, d.Thread, r.id, r.order, r.state, []byte(r.record)).Scan(&revision)
		if err != nil {
			return err
		}
		d.revisions = append(d.revisions, revision)
	}
	if r := d.Request; r != nil {
		return execStatement(ctx, w.statements.request, d.Thread, r.ID, r.Digest, r.Run, int64(r.Event), layout.ToUnixNanos(r.Created))
	}
	return nil
}

func (w *Writer) addEvents(ctx context.Context, d *encodedChange) error {
	for i := range d.events {
		if err := execStatement(ctx, w.statements.events, d.Thread, d.events[i].last, []byte(d.events[i].record)); err != nil {
			return err
		}
	}
	if d.TrimEvents > 1 {
		return execStatement(ctx, w.statements.trimEvents, d.Thread, d.TrimEvents)
	}
	return nil
}
