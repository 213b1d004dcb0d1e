package threads

import (
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/tags"
	"github.com/graphd-dev/graphd/internal/payload"
)

// encodedChange is a checkpoint.Change as rows. It is made before it is handed to the
// writer: the work is done in parallel, and a caller that gives up may reuse its
// Change.
type encodedChange struct {
	checkpoint.Change // the lists that became rows are only counted
	box               *seal.Box
	bytes, rows       int // of its records

	head        string
	labels      tags.Labels
	checkpoints []string
	values      []valueRow
	items       []itemRow
	tasks       []recordRow
	memos       []memoRow
	interrupts  []interruptRow
	runs        []runRow
	revisions   []uint64 // that the runs got
	tagged      tags.Known
	events      []eventsRow
}

type recordRow struct {
	checkpoint, id, record string
}

type eventsRow struct {
	last   uint64
	record string
}

type valueRow struct {
	seq            uint64
	channel, value string
}

type itemRow struct {
	channel      string
	segment, seq uint64
	index        int
	value        string
}

type memoRow struct {
	checkpoint.Memo
	record string
}

type interruptRow struct {
	checkpoint.Interrupt
	tags   *tags.Entry
	record string
}

type runRow struct {
	id, state, record string
	order             uint64
}

func encodeChange(box *seal.Box, c *checkpoint.Change) *encodedChange {
	d := &encodedChange{Change: *c, box: box}
	if c.Delete {
		return d
	}
	d.Checkpoints = slices.Clone(c.Checkpoints)
	d.ClearTasks, d.KeepCheckpoints = slices.Clone(c.ClearTasks), slices.Clone(c.KeepCheckpoints)
	if c.DropAfter != nil {
		after := *c.DropAfter
		d.DropAfter = &after
	}
	if c.Request != nil {
		r := *c.Request
		r.Digest = d.sealRecord(layout.KindRequest, r.ID, r.Digest)
		d.Request = &r
	}
	buf := codec.PackHead(make([]byte, 0, 1024), &c.Head)
	d.head = d.sealRecord(layout.KindHead, "", string(buf))
	d.labels = tags.NewLabels(box, &c.Head)
	d.rows += len(d.labels.List)
	buf = d.encodeCheckpoints(buf)
	buf = d.encodeProgress(buf)
	buf = d.encodeRecords(buf)
	d.encodeEvents(buf)
	return d
}

// The limits, as the options of the server that set them.
const (
	limitBytes = "max-change-bytes"
	limitRows  = "max-change-rows"
)

// checkSize refuses a change that would keep all others waiting.
func (d *encodedChange) checkSize(l Limits) error {
	switch {
	case d.bytes > l.MaxBytes:
		return &checkpoint.SizeError{Limit: limitBytes, Unit: "bytes", Max: l.MaxBytes, Actual: d.bytes}
	case d.rows > l.MaxRows:
		return &checkpoint.SizeError{Limit: limitRows, Unit: "rows", Max: l.MaxRows, Actual: d.rows}
	}
	return nil
}

// maxRowEvents bounds the events of a row: a reader of one event reads the whole
// row.
const maxRowEvents = 256

func (d *encodedChange) encodeEvents(buf []byte) {
	for events := range slices.Chunk(d.Events, maxRowEvents) {
		last := events[len(events)-1].Seq
		buf = codec.PackEvents(buf[:0], events)
		d.events = append(d.events, eventsRow{last: last, record: d.sealRecord(layout.KindEvents, layout.FormatUint(last), string(buf))})
	}
}

func (d *encodedChange) encodeCheckpoints(buf []byte) []byte {
	w := codec.NewValueSelector(&d.Change)
	w.OnValue, w.OnItem = d.encodeValue, d.encodeItem
	for _, cp := range d.Checkpoints {
		buf = codec.PackCheckpoint(buf[:0], cp)
		d.checkpoints = append(d.checkpoints, d.sealRecord(layout.KindCheckpoint, cp.ID, string(buf)))
		w.AddCheckpoint(cp)
	}
	return buf
}

func (d *encodedChange) encodeValue(_ *checkpoint.Checkpoint, ch *checkpoint.Channel) {
	d.values = append(d.values, valueRow{
		seq: ch.Stored, channel: ch.Name,
		value: d.sealRecord(layout.KindValue, layout.ValueName(ch.Stored, ch.Name), string(ch.Value)),
	})
}

func (d *encodedChange) encodeItem(
	cp *checkpoint.Checkpoint, ch *checkpoint.Channel, segment uint64, index int, v payload.JSON,
) {
	d.items = append(d.items, itemRow{
		channel: ch.Name, segment: segment, seq: cp.Seq, index: index,
		value: d.sealRecord(layout.KindItem, layout.ItemName(segment, index, ch.Name), string(v)),
	})
}

func (d *encodedChange) encodeProgress(buf []byte) []byte {
	for i := range d.Tasks {
		t := &d.Tasks[i]
		buf = codec.PackTask(buf[:0], t)
		d.tasks = append(d.tasks, recordRow{
			checkpoint: t.Checkpoint, id: t.ID, record: d.sealRecord(layout.KindTask, t.Checkpoint+"/"+t.ID, string(buf)),
		})
	}
	for i := range d.Memos {
		m := &d.Memos[i]
		buf = codec.PackMemo(buf[:0], m)
		name := m.Checkpoint + "/" + layout.MemoName(m)
		d.memos = append(d.memos, memoRow{Memo: *m, record: d.sealRecord(layout.KindMemo, name, string(buf))})
	}
	return buf
}

func (d *encodedChange) encodeRecords(buf []byte) []byte {
	for i := range d.Interrupts {
		in := d.Interrupts[i]
		in.Change, in.Revision = 0, 0 // columns, given by the writer
		buf = codec.PackInterrupt(buf[:0], &in)
		entry := tags.NewEntry(d.box, &in)
		d.rows += entry.CountRows()
		d.interrupts = append(d.interrupts, interruptRow{
			Interrupt: in, record: d.sealRecord(layout.KindInterrupt, in.ID, string(buf)), tags: entry,
		})
	}
	for i := range d.Runs {
		r := d.Runs[i]
		r.Revision = 0
		buf = codec.PackRun(buf[:0], &r)
		d.runs = append(d.runs, runRow{
			id: r.ID, state: string(r.State), order: r.Order, record: d.sealRecord(layout.KindRun, r.ID, string(buf)),
		})
	}
	return buf
}

// sealRecord returns the stored text of a record of the change's thread.
func (d *encodedChange) sealRecord(kind, name, record string) string {
	written := d.box.Seal(seal.RecordPlace{Thread: d.Thread, Kind: kind, Name: name}, record)
	d.bytes += len(written)
	d.rows++
	return written
}
