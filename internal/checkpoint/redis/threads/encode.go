package threads

import (
	"strconv"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
	"github.com/graphd-dev/graphd/internal/payload"
)

// changeEncoder writes a change as arguments of apply.lua.
type changeEncoder struct {
	*script.Call

	sealer layout.RecordSealer
}

// encodeChange writes a change as a call of apply.lua. old has the pruned records, ephemeral
// the messages that are published before it; more says that the script gets all keys.
func (w *Writer) encodeChange(c *checkpoint.Change, old prunedRecords, ephemeral string, more bool) *script.Call {
	h := &c.Head
	a := changeEncoder{
		script.NewCall(w.database.Scripts.Apply, w.database.Keys.ChangeKeys(c.Thread, more)), layout.NewRecordSealer(w.database.Box, c.Thread),
	}
	a.AppendText(c.Thread)
	a.AppendUint(c.Expect)
	a.AppendText(c.LogID)
	a.AppendText(c.Op)
	a.AppendText(h.LogID)
	a.AppendFlag(h.Owner != "")
	a.AppendUint(uint64(max(0, c.Lease+time.Microsecond-1) / time.Microsecond))
	appendRecord(a, layout.KindHead, "", h, codec.PackHead)
	a.AppendUint(h.Seq)
	a.AppendUint(h.LastEvent)
	a.AppendUint(h.LastEvent - uint64(len(c.Events)))
	if len(c.Checkpoints) > 0 {
		a.AppendUint(c.Checkpoints[0].Seq)
	} else {
		a.AppendText("")
	}
	if c.DropAfter != nil {
		a.AppendUint(min(*c.DropAfter, maxScriptInteger))
	} else {
		a.AppendText("")
	}
	a.AppendUint(min(c.TrimEvents, h.LastEvent+1))
	a.AppendText(layout.ThreadMember(h))
	a.AppendText(layout.FormatDue(h.Due))
	a.AppendText(w.origin)
	a.AppendText(ephemeral)
	a.AppendText(w.database.Mark)
	a.AppendText(layout.EncodeThreadTags(w.database.Box, h))
	a.AppendText(string(h.State))
	a.appendCheckpoints(c)
	a.appendEvents(c.Events)
	if !more {
		return a.Call
	}
	a.AppendCount(len(c.ClearTasks) + len(old.checkpointIDs))
	for _, id := range c.ClearTasks {
		a.AppendText(layout.AddLength(id))
	}
	for _, id := range old.checkpointIDs {
		a.AppendText(layout.AddLength(id))
	}
	a.AppendTexts(old.members)
	a.AppendTexts(old.fields)
	a.appendProgress(c)
	a.appendRecords(c)
	return a.Call
}

// appendRecord appends a record of the thread.
func appendRecord[T any](a changeEncoder, kind, name string, v *T, write func([]byte, *T) []byte) {
	if !a.sealer.IsPlain() {
		a.AppendText(a.sealer.SealRecord(kind, name, string(write(nil, v))))
		return
	}
	a.AppendWritten(func(buf []byte) []byte { return write(buf, v) })
}

// needsAllKeys reports whether a change is more than checkpoints and events, as most
// are: the script is then given all keys.
func needsAllKeys(c *checkpoint.Change, old prunedRecords) bool {
	return c.Expect == 0 || c.DropAfter != nil || c.Request != nil ||
		len(c.ClearTasks)+len(c.Tasks)+len(c.Memos)+len(c.Interrupts)+len(c.Runs)+len(old.checkpointIDs)+len(old.fields) > 0
}

// maxScriptInteger is the greatest integer that a script counts exactly.
const maxScriptInteger = 1 << 53

// appendCheckpoints appends the checkpoints of a change, and the values that are stored
// beside them. A value that is part of the input of a run refers to it.
func (ce changeEncoder) appendCheckpoints(c *checkpoint.Change) {
	ce.AppendCount(len(c.Checkpoints))
	if len(c.Checkpoints) == 0 {
		ce.AppendCount(0)
		return
	}
	w := codec.NewValueSelector(c)
	from := ce.sealer.CollectInputs(c)
	w.OnValue = func(_ *checkpoint.Checkpoint, ch *checkpoint.Channel) {
		field := layout.ValueField(ch.Stored, ch.Name)
		if text, ok := from.FindRef(ch.Value); ok {
			ce.AppendText(field)
			ce.AppendText(text)
			return
		}
		ce.appendValue(field, ch.Value)
	}
	w.OnItem = func(_ *checkpoint.Checkpoint, ch *checkpoint.Channel, segment uint64, index int, v payload.JSON) {
		ce.appendValue(layout.ItemField(segment, index, ch.Name), v)
	}
	for _, cp := range c.Checkpoints {
		ce.AppendUint(cp.Seq)
		ce.AppendText(layout.CheckpointMember(cp))
	}
	at := ce.ReserveCount()
	for _, cp := range c.Checkpoints {
		field := "c" + cp.ID
		ce.AppendText(field)
		appendRecord(ce, layout.KindValues, field, cp, codec.PackCheckpoint)
		w.AddCheckpoint(cp)
	}
	ce.FillCount(at, (ce.ArgumentCount()-at-1)/2)
}

// An element of the log has the events of a change, or some of them when they
// are many: a reader of one event reads the whole element.
const (
	maxElementEvents = 64
	maxElementBytes  = 8 << 10 // about, in bytes
)

func (ce changeEncoder) appendEvents(list []checkpoint.Event) {
	at := ce.ReserveCount()
	n := 0
	for len(list) > 0 {
		some := list[:countElementEvents(list)]
		list = list[len(some):]
		ce.appendElement(some)
		n++
	}
	ce.FillCount(at, n)
}

// countElementEvents is how many events share an element.
func countElementEvents(list []checkpoint.Event) (n int) {
	size := 0
	for n < len(list) && n < maxElementEvents && size < maxElementBytes {
		size += len(list[n].Value)
		for i := range list[n].Interrupts {
			size += len(list[n].Interrupts[i].Value)
		}
		n++
	}
	return n
}

// appendElement appends an element of the log. The number before the record is for the
// scripts, to which records say nothing.
func (ce changeEncoder) appendElement(list []checkpoint.Event) {
	ce.AppendWritten(func(buf []byte) []byte {
		buf = append(strconv.AppendUint(buf, list[0].Seq, 10), ':')
		if ce.sealer.IsPlain() {
			return codec.PackEvents(buf, list)
		}
		return append(buf, ce.sealer.SealRecord(layout.KindEvent, "", string(codec.PackEvents(nil, list)))...)
	})
}

func (ce changeEncoder) appendValue(field string, v payload.JSON) {
	if first := layout.SplitOffset(len(v)); first > 0 && ce.sealer.IsPlain() {
		ce.AppendText(field)
		ce.AppendText(layout.SplitMark + string(v[:first]))
		ce.AppendText(layout.RestField(field))
		ce.AppendText(string(v[first:]))
		return
	}
	ce.AppendText(field)
	ce.AppendText(ce.sealer.SealRecord(layout.KindValues, field, string(v)))
}

func (ce changeEncoder) appendProgress(c *checkpoint.Change) {
	ce.AppendCount(len(c.Tasks))
	for i := range c.Tasks {
		t := &c.Tasks[i]
		field := layout.AddLength(t.Checkpoint) + "t" + t.ID
		ce.AppendText(field)
		appendRecord(ce, layout.KindProgress, field, t, codec.PackTask)
	}
	ce.AppendCount(len(c.Memos))
	for i := range c.Memos {
		m := &c.Memos[i]
		field := layout.AddLength(m.Checkpoint) + "m" + layout.AddLength(m.Task) + layout.AddLength(m.Scope) + layout.AddLength(m.Key) + strconv.Itoa(m.Index)
		ce.AppendText(field)
		appendRecord(ce, layout.KindProgress, field, m, codec.PackMemo)
	}
}

// appendRecords appends the interrupts, the runs and the request of a change. A long
// input of a run is a value of its own.
func (ce changeEncoder) appendRecords(c *checkpoint.Change) {
	ce.AppendCount(len(c.Interrupts))
	for i := range c.Interrupts {
		in := c.Interrupts[i]
		in.Change, in.Revision = 0, 0 // given by the script
		ce.AppendText(in.ID)
		ce.AppendText(in.Checkpoint)
		ce.AppendText(layout.InterruptMember(&in))
		ce.AppendFlag(in.State == checkpoint.InterruptOpen)
		appendRecord(ce, layout.KindInterrupt, in.ID, &in, codec.PackInterrupt)
		ce.AppendText(layout.EncodeTags(ce.sealer.Box(), &in))
	}
	ce.AppendCount(len(c.Runs))
	for i := range c.Runs {
		r := c.Runs[i]
		r.Revision = 0
		input := r.Request.Input
		if len(input) > codec.MaxInlineBytes {
			r.Request.Input = payload.JSON(layout.FormatInputRef(r.ID, 0, len(input)))
		} else {
			input = ""
		}
		ce.AppendText(r.ID)
		ce.AppendUint(min(r.Order, maxScriptInteger))
		appendRecord(ce, layout.KindRun, r.ID, &r, codec.PackRun)
		if input != "" {
			ce.AppendText(ce.sealer.SealRecord(layout.KindRun, layout.InputField(r.ID), string(input)))
		} else {
			ce.AppendText("")
		}
	}
	if c.Request == nil {
		ce.AppendCount(0)
		return
	}
	ce.AppendCount(1)
	ce.AppendText(c.Request.ID)
	q := *c.Request
	q.ID = ""
	appendRecord(ce, layout.KindRequest, c.Request.ID, &q, codec.PackRequest)
}
