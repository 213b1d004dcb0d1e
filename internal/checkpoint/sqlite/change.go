package sqlite

import (
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
)

// change is a checkpoint.Change as rows. It is made before it is handed to the
// writer: the work is done in parallel, and a caller that gives up may reuse
// what it gave.
type change struct {
	checkpoint.Change // the lists that became rows are only counted

	head        string
	checkpoints []string
	values      []valueRow
	items       []itemRow
	tasks       []recordRow
	memos       []memoRow
	interrupts  []interruptRow
	runs        []runRow
	events      []recordRow
}

type recordRow struct {
	checkpoint, id, record string
	seq                    uint64
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
	record string
}

type runRow struct {
	id, state, record string
	order             uint64
}

func encode(c *checkpoint.Change) *change {
	d := &change{Change: *c}
	if c.Delete {
		return d
	}
	d.Checkpoints = slices.Clone(c.Checkpoints)
	d.ClearTasks, d.Spare = slices.Clone(c.ClearTasks), slices.Clone(c.Spare)
	if c.DropAfter != nil {
		after := *c.DropAfter
		d.DropAfter = &after
	}
	if c.Request != nil {
		r := *c.Request
		d.Request = &r
	}
	buf := codec.AppendHead(make([]byte, 0, 1024), &c.Head)
	d.head = string(buf)
	buf = d.encodeCheckpoints(buf)
	buf = d.encodeProgress(buf)
	buf = d.encodeRecords(buf)
	for i := range c.Events {
		e := &c.Events[i]
		buf = codec.AppendEvent(buf[:0], e)
		d.events = append(d.events, recordRow{seq: e.Seq, id: string(e.Kind), record: string(buf)})
	}
	return d
}

func (d *change) encodeCheckpoints(buf []byte) []byte {
	for _, cp := range d.Checkpoints {
		buf = codec.AppendCheckpoint(buf[:0], cp)
		d.checkpoints = append(d.checkpoints, string(buf))
		for i := range cp.Channels {
			// What an earlier checkpoint wrote is there already.
			if ch := &cp.Channels[i]; ch.Stored == cp.Seq && codec.Stored(ch) {
				d.encodeChannel(ch)
			}
		}
	}
	return buf
}

func (d *change) encodeChannel(ch *checkpoint.Channel) {
	if ch.List == nil {
		d.values = append(d.values, valueRow{seq: ch.Stored, channel: ch.Name, value: string(ch.Value)})
		return
	}
	l := ch.List
	if len(l.Segments) == 0 {
		return
	}
	last := l.Segments[len(l.Segments)-1]
	fresh := l.Items[len(l.Items)-l.Fresh:]
	for i, v := range fresh {
		d.items = append(d.items, itemRow{
			channel: ch.Name, segment: last.ID, seq: ch.Stored,
			index: last.Len - len(fresh) + i, value: string(v),
		})
	}
}

func (d *change) encodeProgress(buf []byte) []byte {
	for i := range d.Tasks {
		t := &d.Tasks[i]
		buf = codec.AppendTask(buf[:0], t)
		d.tasks = append(d.tasks, recordRow{checkpoint: t.Checkpoint, id: t.ID, record: string(buf)})
	}
	for i := range d.Memos {
		buf = codec.AppendMemo(buf[:0], &d.Memos[i])
		d.memos = append(d.memos, memoRow{Memo: d.Memos[i], record: string(buf)})
	}
	return buf
}

func (d *change) encodeRecords(buf []byte) []byte {
	for i := range d.Interrupts {
		in := d.Interrupts[i]
		in.Change, in.Revision = 0, 0 // columns, given by the writer
		buf = codec.AppendInterrupt(buf[:0], &in)
		d.interrupts = append(d.interrupts, interruptRow{Interrupt: in, record: string(buf)})
	}
	for i := range d.Runs {
		r := d.Runs[i]
		r.Revision = 0
		buf = codec.AppendRun(buf[:0], &r)
		d.runs = append(d.runs, runRow{id: r.ID, state: string(r.State), order: r.Order, record: string(buf)})
	}
	return buf
}
