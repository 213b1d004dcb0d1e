// Package dump writes the records of a thread as JSON, for people.
package dump

import (
	"bufio"
	"context"
	"errors"
	"io"
	"sort"
	"strconv"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/visible"
)

// How much is read of a store at a time. A store ends a page early when its records
// are large.
const (
	recordsPerPage     = 64
	checkpointsPerPage = 4
	eventsPerPage      = 256
)

// WriteThread writes the records of a thread, one JSON object a line with its kind: head,
// run, interrupt, checkpoint, channel, task, memo and event, each kind but the events
// newest first. A line of kind channel is a value, or an element of a list, that is
// stored beside checkpoints; it comes with the newest of them. It holds a page of records
// at a time. The request of a run stands there without its values, which the API does not
// show. Characters that a terminal interprets or hides are escaped. It fails with
// ErrThreadNotFound when there is no such thread.
func WriteThread(ctx context.Context, out io.Writer, s checkpoint.Reader, thread string) error {
	h, err := s.Head(ctx, thread)
	if err != nil {
		return err
	}
	d := dumper{store: s, thread: thread, out: bufio.NewWriter(out)}
	d.writeRecord("head", string(codec.PackHead(nil, &h)))
	for _, write := range []func(context.Context) error{
		d.writeRuns, d.writeInterrupts, d.writeCheckpoints,
		func(ctx context.Context) error { return d.writeEvents(ctx, &h) },
	} {
		if err := write(ctx); err != nil {
			return err
		}
		if err := d.out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// dumper writes lines. An error of a write stays in out, and Flush returns it.
type dumper struct {
	store  checkpoint.Reader
	thread string
	out    *bufio.Writer
	line   []byte
	err    error // of a record
}

// beginLine begins a line of a kind.
func (d *dumper) beginLine(kind string) {
	d.line = append(d.line[:0], `{"kind":`...)
	d.line = codec.AppendQuoted(d.line, kind)
}

func (d *dumper) endLine() {
	d.line = append(d.line, '}', '\n')
	_, _ = d.out.WriteString(visible.JSON(string(d.line))) // Flush returns the error
}

func (d *dumper) writeRecord(kind, record string) {
	d.beginLine(kind)
	d.line = append(d.line, `,"record":`...)
	line, err := codec.AppendJSON(d.line, record)
	if err != nil {
		d.err = err // a record just packed is always readable
		return
	}
	d.line = line
	d.endLine()
}

func (d *dumper) writeRuns(ctx context.Context) error {
	for before := uint64(0); ; {
		list, err := d.store.Runs(ctx, d.thread, before, recordsPerPage)
		if err != nil || len(list) == 0 {
			return err
		}
		for i := range list {
			r := list[i]
			r.Request.Input, r.Request.Update, r.Request.Goto, r.Request.Context = "", "", nil, ""
			d.writeRecord("run", string(codec.PackRun(nil, &r)))
		}
		if before = list[len(list)-1].Order; before == 0 {
			return d.err
		}
	}
}

func (d *dumper) writeInterrupts(ctx context.Context) error {
	q := checkpoint.InterruptQuery{Thread: d.thread, Limit: recordsPerPage}
	for {
		list, err := d.store.Interrupts(ctx, q)
		if err != nil || len(list) == 0 {
			return err
		}
		for i := range list {
			d.writeRecord("interrupt", string(codec.PackInterrupt(nil, &list[i])))
		}
		last := &list[len(list)-1]
		q.After = checkpoint.InterruptPosition{Created: last.Created, Thread: last.Thread, ID: last.ID}
	}
}

func (d *dumper) writeCheckpoints(ctx context.Context) error {
	// Of a copy, values are selected where they are shown first.
	values := codec.NewValueSelector(&checkpoint.Change{IsCopy: true})
	values.OnValue = func(cp *checkpoint.Checkpoint, ch *checkpoint.Channel) {
		d.beginChannel(cp, ch)
		d.endChannel(ch.Value)
	}
	values.OnItem = func(cp *checkpoint.Checkpoint, ch *checkpoint.Channel, segment uint64, index int, v payload.JSON) {
		d.beginChannel(cp, ch)
		d.line = strconv.AppendUint(append(d.line, `,"segment":`...), segment, 10)
		d.line = strconv.AppendInt(append(d.line, `,"index":`...), int64(index), 10)
		d.endChannel(v)
	}
	q := checkpoint.CheckpointQuery{Thread: d.thread, AllNamespaces: true, Limit: checkpointsPerPage}
	for {
		list, err := d.store.Checkpoints(ctx, q)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, cp := range list {
			d.writeRecord("checkpoint", string(codec.PackCheckpoint(nil, cp)))
			values.AddCheckpoint(cp)
			if err := d.writeProgress(ctx, cp.ID); err != nil {
				return err
			}
		}
		if q.Before = list[len(list)-1].Seq; q.Before <= 1 {
			return d.err
		}
	}
}

func (d *dumper) beginChannel(cp *checkpoint.Checkpoint, ch *checkpoint.Channel) {
	d.beginLine("channel")
	d.line = codec.AppendQuoted(append(d.line, `,"checkpoint":`...), cp.ID)
	d.line = codec.AppendQuoted(append(d.line, `,"channel":`...), ch.Name)
	d.line = strconv.AppendUint(append(d.line, `,"stored":`...), ch.Stored, 10)
}

func (d *dumper) endChannel(v payload.JSON) {
	d.line = codec.AppendValue(append(d.line, `,"value":`...), v)
	d.endLine()
}

// writeProgress writes the progress after a checkpoint.
func (d *dumper) writeProgress(ctx context.Context, id string) error {
	p, err := d.store.Pending(ctx, d.thread, id)
	if err != nil {
		return err
	}
	for i := range p.Tasks {
		d.writeRecord("task", string(codec.PackTask(nil, &p.Tasks[i])))
	}
	for i := range p.Memos {
		d.writeRecord("memo", string(codec.PackMemo(nil, &p.Memos[i])))
	}
	return d.err
}

func (d *dumper) writeEvents(ctx context.Context, h *checkpoint.Head) error {
	after, err := d.findFirstEvent(ctx, max(h.FirstEvent, 1)-1, h.LastEvent)
	if err != nil {
		return err
	}
	for {
		list, err := d.store.Events(ctx, d.thread, after, eventsPerPage)
		if err != nil || len(list) == 0 {
			return err
		}
		for i := range list {
			d.writeRecord("event", string(codec.PackEvent(nil, &list[i])))
		}
		after = list[len(list)-1].Seq
	}
}

// findFirstEvent finds the number after which all events are kept. It begins at the first event
// that the head names: the store may have cut it off since.
func (d *dumper) findFirstEvent(ctx context.Context, from, last uint64) (uint64, error) {
	var failed error
	skipped := sort.Search(int(last-min(from, last)), func(n int) bool {
		_, err := d.store.Events(ctx, d.thread, from+uint64(n), 1)
		if err != nil && !errors.Is(err, checkpoint.ErrTrimmed) {
			failed = err
		}
		return err == nil
	})
	return from + uint64(skipped), failed
}
