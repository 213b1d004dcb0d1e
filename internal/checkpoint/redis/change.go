package redis

import (
	"strconv"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/payload"
)

func unum(n uint64) string { return strconv.FormatUint(n, 10) }

// encode writes a change as a call of apply.lua. old is what it makes the thread
// forget, told what is told before it.
func (s *Store) encode(c *checkpoint.Change, old outdated, told string, more bool) *call {
	h := &c.Head
	a := s.newCall(s.scripts.apply, c.Thread, more)
	a.text(c.Thread)
	a.num(c.Expect)
	a.text(c.LogID)
	a.text(c.Op)
	a.text(h.LogID)
	a.flag(h.Owner != "")
	a.num(uint64(max(0, c.Lease+time.Microsecond-1) / time.Microsecond))
	record(a, kindHead, "", h, codec.PackHead)
	a.num(h.Seq)
	a.num(h.LastEvent)
	a.num(h.LastEvent - uint64(len(c.Events)))
	if len(c.Checkpoints) > 0 {
		a.num(c.Checkpoints[0].Seq)
	} else {
		a.text("")
	}
	if c.DropAfter != nil {
		a.num(min(*c.DropAfter, maxNumber))
	} else {
		a.text("")
	}
	a.num(min(c.TrimEvents, h.LastEvent+1))
	a.text(threadMember(h))
	a.text(dueAt(h.Due))
	a.text(s.origin)
	a.text(told)
	a.text(s.mark)
	a.checkpoints(c)
	a.events(c.Events)
	if !more {
		return a
	}
	a.count(len(c.ClearTasks) + len(old.ids))
	for _, id := range c.ClearTasks {
		a.text(sized(id))
	}
	for _, id := range old.ids {
		a.text(sized(id))
	}
	a.texts(old.members)
	a.texts(old.fields)
	a.progress(c)
	a.records(c)
	return a
}

// isMore reports whether a change is more than checkpoints and events, as most
// are: the script is then given all keys.
func isMore(c *checkpoint.Change, old outdated) bool {
	return c.Expect == 0 || c.DropAfter != nil || c.Request != nil ||
		len(c.ClearTasks)+len(c.Tasks)+len(c.Memos)+len(c.Interrupts)+len(c.Runs)+len(old.ids)+len(old.fields) > 0
}

// maxNumber is the greatest integer that a script counts exactly.
const maxNumber = 1 << 53

func (a *call) checkpoints(c *checkpoint.Change) {
	a.count(len(c.Checkpoints))
	if len(c.Checkpoints) == 0 {
		a.count(0)
		return
	}
	w := codec.NewWrites(c)
	from := a.by.quotable(c)
	w.Value = func(_ *checkpoint.Checkpoint, ch *checkpoint.Channel) {
		field := valueField(ch.Stored, ch.Name)
		if text, ok := from.quote(ch.Value); ok {
			a.text(field)
			a.text(text)
			return
		}
		a.value(field, ch.Value)
	}
	w.Item = func(_ *checkpoint.Checkpoint, ch *checkpoint.Channel, segment uint64, index int, v payload.JSON) {
		a.value(itemField(segment, index, ch.Name), v)
	}
	for _, cp := range c.Checkpoints {
		a.num(cp.Seq)
		a.text(checkpointMember(cp))
	}
	at := a.later()
	for _, cp := range c.Checkpoints {
		field := "c" + cp.ID
		a.text(field)
		record(a, kindValues, field, cp, codec.PackCheckpoint)
		w.Next(cp)
	}
	a.set(at, (a.len()-at-1)/2)
}

// An element of the log has the events of a change, or some of them when they
// are many: who wants one of them reads them all.
const (
	eventsTogether = 64
	eventsSize     = 8 << 10 // about, in bytes
)

func (a *call) events(list []checkpoint.Event) {
	at := a.later()
	n := 0
	for len(list) > 0 {
		some := list[:batch(list)]
		list = list[len(some):]
		a.element(some)
		n++
	}
	a.set(at, n)
}

// batch is how many events share an element.
func batch(list []checkpoint.Event) (n int) {
	size := 0
	for n < len(list) && n < eventsTogether && size < eventsSize {
		size += len(list[n].Value)
		for i := range list[n].Interrupts {
			size += len(list[n].Interrupts[i].Value)
		}
		n++
	}
	return n
}

// element appends an element of the log. The number before the record is for the
// scripts, to which records say nothing.
func (a *call) element(list []checkpoint.Event) {
	from := len(a.buf)
	a.buf = append(strconv.AppendUint(a.buf, list[0].Seq, 10), ':')
	if a.by.box.Plain() {
		a.buf = codec.PackEvents(a.buf, list)
	} else {
		a.buf = append(a.buf, a.by.write(kindEvent, "", string(codec.PackEvents(nil, list)))...)
	}
	a.end(len(a.buf) - from)
}

// unpackNames reads an array of MessagePack with texts.
func unpackNames(text string) (names []string, err error) {
	take := func(n int) string {
		if n > len(text) {
			err = corrupt("a list of names is too short")
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
		return nil, corrupt("a list of names begins with %#x", c)
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
			return nil, corrupt("a name begins with %#x", c[0])
		}
		names = append(names, take(length))
	}
	return names, err
}

func (a *call) value(field string, v payload.JSON) {
	if first := fit(len(v)); first > 0 && a.by.box.Plain() {
		a.text(field)
		a.text(divided + string(v[:first]))
		a.text(restField(field))
		a.text(string(v[first:]))
		return
	}
	a.text(field)
	a.text(a.by.write(kindValues, field, string(v)))
}

func (a *call) progress(c *checkpoint.Change) {
	a.count(len(c.Tasks))
	for i := range c.Tasks {
		t := &c.Tasks[i]
		field := sized(t.Checkpoint) + "t" + t.ID
		a.text(field)
		record(a, kindProgress, field, t, codec.PackTask)
	}
	a.count(len(c.Memos))
	for i := range c.Memos {
		m := &c.Memos[i]
		field := sized(m.Checkpoint) + "m" + sized(m.Task) + sized(m.Scope) + sized(m.Key) + strconv.Itoa(m.Index)
		a.text(field)
		record(a, kindProgress, field, m, codec.PackMemo)
	}
}

func (a *call) records(c *checkpoint.Change) {
	a.count(len(c.Interrupts))
	for i := range c.Interrupts {
		in := c.Interrupts[i]
		in.Change, in.Revision = 0, 0 // given by the script
		a.text(in.ID)
		a.text(in.Checkpoint)
		a.text(questionMember(&in))
		a.flag(in.State == checkpoint.InterruptOpen)
		record(a, kindQuestion, in.ID, &in, codec.PackInterrupt)
	}
	a.count(len(c.Runs))
	for i := range c.Runs {
		r := c.Runs[i]
		r.Revision = 0
		input := r.Request.Input
		if len(input) > codec.Inline {
			r.Request.Input = payload.JSON(quoted(r.ID, 0, len(input)))
		} else {
			input = ""
		}
		a.text(r.ID)
		a.num(min(r.Order, maxNumber))
		record(a, kindRun, r.ID, &r, codec.PackRun)
		if input != "" {
			a.text(a.by.write(kindRun, inputField(r.ID), string(input)))
		} else {
			a.text("")
		}
	}
	if c.Request == nil {
		a.count(0)
		return
	}
	a.count(1)
	a.text(c.Request.ID)
	q := *c.Request
	q.ID = ""
	record(a, kindRequest, c.Request.ID, &q, codec.PackRequest)
}
