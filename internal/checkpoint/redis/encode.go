package redis

import (
	"strconv"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/payload"
)

// encodeChange writes a change as a call of apply.lua. old is what it prunes,
// told the messages that are published before it.
func (s *Store) encodeChange(c *checkpoint.Change, old prunedRecords, ephemeral string, more bool) *scriptCall {
	h := &c.Head
	a := s.newScriptCall(s.scripts.apply, c.Thread, more)
	a.appendText(c.Thread)
	a.appendUint(c.Expect)
	a.appendText(c.LogID)
	a.appendText(c.Op)
	a.appendText(h.LogID)
	a.appendFlag(h.Owner != "")
	a.appendUint(uint64(max(0, c.Lease+time.Microsecond-1) / time.Microsecond))
	appendRecord(a, layout.KindHead, "", h, codec.PackHead)
	a.appendUint(h.Seq)
	a.appendUint(h.LastEvent)
	a.appendUint(h.LastEvent - uint64(len(c.Events)))
	if len(c.Checkpoints) > 0 {
		a.appendUint(c.Checkpoints[0].Seq)
	} else {
		a.appendText("")
	}
	if c.DropAfter != nil {
		a.appendUint(min(*c.DropAfter, maxScriptInteger))
	} else {
		a.appendText("")
	}
	a.appendUint(min(c.TrimEvents, h.LastEvent+1))
	a.appendText(layout.ThreadMember(h))
	a.appendText(layout.FormatDue(h.Due))
	a.appendText(s.origin)
	a.appendText(ephemeral)
	a.appendText(s.mark)
	a.appendCheckpoints(c)
	a.appendEvents(c.Events)
	if !more {
		return a
	}
	a.appendCount(len(c.ClearTasks) + len(old.checkpointIDs))
	for _, id := range c.ClearTasks {
		a.appendText(layout.AddLength(id))
	}
	for _, id := range old.checkpointIDs {
		a.appendText(layout.AddLength(id))
	}
	a.appendTexts(old.members)
	a.appendTexts(old.fields)
	a.appendProgress(c)
	a.appendRecords(c)
	return a
}

// needsAllKeys reports whether a change is more than checkpoints and events, as most
// are: the script is then given all keys.
func needsAllKeys(c *checkpoint.Change, old prunedRecords) bool {
	return c.Expect == 0 || c.DropAfter != nil || c.Request != nil ||
		len(c.ClearTasks)+len(c.Tasks)+len(c.Memos)+len(c.Interrupts)+len(c.Runs)+len(old.checkpointIDs)+len(old.fields) > 0
}

// maxScriptInteger is the greatest integer that a script counts exactly.
const maxScriptInteger = 1 << 53

func (a *scriptCall) appendCheckpoints(c *checkpoint.Change) {
	a.appendCount(len(c.Checkpoints))
	if len(c.Checkpoints) == 0 {
		a.appendCount(0)
		return
	}
	w := codec.NewValueSelector(c)
	from := a.sealer.CollectInputs(c)
	w.OnValue = func(_ *checkpoint.Checkpoint, ch *checkpoint.Channel) {
		field := layout.ValueField(ch.Stored, ch.Name)
		if text, ok := from.FindRef(ch.Value); ok {
			a.appendText(field)
			a.appendText(text)
			return
		}
		a.appendValue(field, ch.Value)
	}
	w.OnItem = func(_ *checkpoint.Checkpoint, ch *checkpoint.Channel, segment uint64, index int, v payload.JSON) {
		a.appendValue(layout.ItemField(segment, index, ch.Name), v)
	}
	for _, cp := range c.Checkpoints {
		a.appendUint(cp.Seq)
		a.appendText(layout.CheckpointMember(cp))
	}
	at := a.reserveCount()
	for _, cp := range c.Checkpoints {
		field := "c" + cp.ID
		a.appendText(field)
		appendRecord(a, layout.KindValues, field, cp, codec.PackCheckpoint)
		w.AddCheckpoint(cp)
	}
	a.fillCount(at, (a.argumentCount()-at-1)/2)
}

// An element of the log has the events of a change, or some of them when they
// are many: a reader of one event reads the whole element.
const (
	maxElementEvents = 64
	maxElementBytes  = 8 << 10 // about, in bytes
)

func (a *scriptCall) appendEvents(list []checkpoint.Event) {
	at := a.reserveCount()
	n := 0
	for len(list) > 0 {
		some := list[:countElementEvents(list)]
		list = list[len(some):]
		a.appendElement(some)
		n++
	}
	a.fillCount(at, n)
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
func (a *scriptCall) appendElement(list []checkpoint.Event) {
	from := len(a.buf)
	a.buf = append(strconv.AppendUint(a.buf, list[0].Seq, 10), ':')
	if a.sealer.IsPlain() {
		a.buf = codec.PackEvents(a.buf, list)
	} else {
		a.buf = append(a.buf, a.sealer.SealRecord(layout.KindEvent, "", string(codec.PackEvents(nil, list)))...)
	}
	a.endArgument(len(a.buf) - from)
}

// unpackNames reads an array of MessagePack with texts.
func unpackNames(text string) (names []string, err error) {
	take := func(n int) string {
		if n > len(text) {
			err = layout.CorruptError("a list of names is too short")
			n = len(text)
		}
		head := text[:n]
		text = text[n:]
		return head
	}
	number := func(bytes int) (n int) {
		for _, c := range []byte(take(bytes)) {
			n = n<<8 | int(c)
		}
		return n
	}
	if text == "" {
		return nil, nil
	}
	var n int
	switch c := take(1)[0]; {
	case c&0xf0 == 0x90:
		n = int(c & 0x0f)
	case c == 0xdc:
		n = number(2)
	case c == 0xdd:
		n = number(4)
	default:
		return nil, layout.CorruptError("a list of names begins with %#x", c)
	}
	for i := 0; i < n && err == nil; i++ {
		length := 0
		switch c := take(1); {
		case c == "":
		case c[0]&0xe0 == 0xa0:
			length = int(c[0] & 0x1f)
		case c[0] == 0xd9:
			length = number(1)
		case c[0] == 0xda:
			length = number(2)
		case c[0] == 0xdb:
			length = number(4)
		default:
			return nil, layout.CorruptError("a name begins with %#x", c[0])
		}
		names = append(names, take(length))
	}
	return names, err
}

func (a *scriptCall) appendValue(field string, v payload.JSON) {
	if first := layout.SplitOffset(len(v)); first > 0 && a.sealer.IsPlain() {
		a.appendText(field)
		a.appendText(layout.SplitMark + string(v[:first]))
		a.appendText(layout.RestField(field))
		a.appendText(string(v[first:]))
		return
	}
	a.appendText(field)
	a.appendText(a.sealer.SealRecord(layout.KindValues, field, string(v)))
}

func (a *scriptCall) appendProgress(c *checkpoint.Change) {
	a.appendCount(len(c.Tasks))
	for i := range c.Tasks {
		t := &c.Tasks[i]
		field := layout.AddLength(t.Checkpoint) + "t" + t.ID
		a.appendText(field)
		appendRecord(a, layout.KindProgress, field, t, codec.PackTask)
	}
	a.appendCount(len(c.Memos))
	for i := range c.Memos {
		m := &c.Memos[i]
		field := layout.AddLength(m.Checkpoint) + "m" + layout.AddLength(m.Task) + layout.AddLength(m.Scope) + layout.AddLength(m.Key) + strconv.Itoa(m.Index)
		a.appendText(field)
		appendRecord(a, layout.KindProgress, field, m, codec.PackMemo)
	}
}

func (a *scriptCall) appendRecords(c *checkpoint.Change) {
	a.appendCount(len(c.Interrupts))
	for i := range c.Interrupts {
		in := c.Interrupts[i]
		in.Change, in.Revision = 0, 0 // given by the script
		a.appendText(in.ID)
		a.appendText(in.Checkpoint)
		a.appendText(layout.InterruptMember(&in))
		a.appendFlag(in.State == checkpoint.InterruptOpen)
		appendRecord(a, layout.KindInterrupt, in.ID, &in, codec.PackInterrupt)
	}
	a.appendCount(len(c.Runs))
	for i := range c.Runs {
		r := c.Runs[i]
		r.Revision = 0
		input := r.Request.Input
		if len(input) > codec.MaxInlineBytes {
			r.Request.Input = payload.JSON(layout.FormatInputRef(r.ID, 0, len(input)))
		} else {
			input = ""
		}
		a.appendText(r.ID)
		a.appendUint(min(r.Order, maxScriptInteger))
		appendRecord(a, layout.KindRun, r.ID, &r, codec.PackRun)
		if input != "" {
			a.appendText(a.sealer.SealRecord(layout.KindRun, layout.InputField(r.ID), string(input)))
		} else {
			a.appendText("")
		}
	}
	if c.Request == nil {
		a.appendCount(0)
		return
	}
	a.appendCount(1)
	a.appendText(c.Request.ID)
	q := *c.Request
	q.ID = ""
	appendRecord(a, layout.KindRequest, c.Request.ID, &q, codec.PackRequest)
}
