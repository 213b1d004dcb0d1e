package redis

import (
	"encoding/binary"
	"encoding/json"
	"strconv"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/payload"
)

// arguments are what a script is given.
type arguments []any

func (a *arguments) add(args ...any) { *a = append(*a, args...) }

// size is how many bytes they have, about.
func (a arguments) size() (n int) {
	for _, arg := range a {
		if s, ok := arg.(string); ok {
			n += len(s)
		}
	}
	return n
}

func unum(n uint64) string { return strconv.FormatUint(n, 10) }

func (a *arguments) texts(list []string) {
	a.add(len(list))
	for _, s := range list {
		a.add(s)
	}
}

// encode writes a change as the arguments of apply.lua. old is what it makes
// the thread forget.
func (s *Store) encode(c *checkpoint.Change, old outdated) arguments {
	h := &c.Head
	by := writer{s.box, c.Thread}
	var first, drop string
	if len(c.Checkpoints) > 0 {
		first = unum(c.Checkpoints[0].Seq)
	}
	if c.DropAfter != nil {
		drop = unum(min(*c.DropAfter, maxNumber))
	}
	owned := "0"
	if h.Owner != "" {
		owned = "1"
	}
	lease := max(0, c.Lease+time.Microsecond-1) / time.Microsecond
	buf := codec.AppendHead(make([]byte, 0, 1024), h)
	a := make(arguments, 0, 64)
	a.add(c.Thread, unum(c.Expect), c.LogID, c.Op, unum(c.Expect+1), h.LogID, owned, int64(lease),
		by.write(kindHead, "", string(buf)), unum(h.Seq), unum(h.LastEvent), unum(h.LastEvent-uint64(len(c.Events))), first, drop,
		unum(min(c.TrimEvents, h.LastEvent+1)), threadMember(h), dueAt(h.Due))
	a.add(len(c.ClearTasks) + len(old.ids))
	for _, id := range c.ClearTasks {
		a.add(sized(id))
	}
	for _, id := range old.ids {
		a.add(sized(id))
	}
	a.texts(old.members)
	a.texts(old.fields)
	buf = a.checkpoints(buf, by, c)
	buf = a.progress(buf, by, c)
	buf = a.records(buf, by, c)
	a.add(len(c.Events))
	for i := range c.Events {
		buf = codec.AppendEvent(buf[:0], &c.Events[i])
		a.add(by.write(kindEvent, "", string(buf)))
	}
	return a
}

// maxNumber is the greatest integer that a script counts exactly.
const maxNumber = 1 << 53

func (a *arguments) checkpoints(buf []byte, by writer, c *checkpoint.Change) []byte {
	a.add(len(c.Checkpoints))
	if len(c.Checkpoints) == 0 {
		return buf
	}
	w := codec.NewWrites(c)
	w.Value = func(_ *checkpoint.Checkpoint, ch *checkpoint.Channel) {
		field := valueField(ch.Stored, ch.Name)
		a.add(field, by.write(kindValues, field, string(ch.Value)))
	}
	w.Item = func(_ *checkpoint.Checkpoint, ch *checkpoint.Channel, segment uint64, index int, v payload.JSON) {
		field := itemField(segment, index, ch.Name)
		a.add(field, by.write(kindValues, field, string(v)))
	}
	for _, cp := range c.Checkpoints {
		buf = codec.AppendCheckpoint(buf[:0], cp)
		a.add(unum(cp.Seq), checkpointMember(cp))
		at := len(*a)
		a.add(0, "c"+cp.ID, by.write(kindValues, "c"+cp.ID, string(buf)))
		w.Next(cp)
		if first := at + 3; len(*a) > first { // what it wrote besides, for a rollback
			a.add("w"+cp.ID, packNames((*a)[first:]))
		}
		(*a)[at] = (len(*a) - at) / 2
	}
	return buf
}

// packNames writes the names of fields in the way that the script reads: as an
// array of MessagePack.
func packNames(fields arguments) string {
	n := len(fields) / 2
	b := make([]byte, 0, 5+32*n)
	b = binary.BigEndian.AppendUint32(append(b, 0xdd), uint32(n))
	for i := 0; i < len(fields); i += 2 {
		name, _ := fields[i].(string)
		b = binary.BigEndian.AppendUint32(append(b, 0xdb), uint32(len(name)))
		b = append(b, name...)
	}
	return string(b)
}

func (a *arguments) progress(buf []byte, by writer, c *checkpoint.Change) []byte {
	a.add(len(c.Tasks))
	for i := range c.Tasks {
		t := &c.Tasks[i]
		buf = codec.AppendTask(buf[:0], t)
		field := sized(t.Checkpoint) + "t" + t.ID
		a.add(field, by.write(kindProgress, field, string(buf)))
	}
	a.add(len(c.Memos))
	for i := range c.Memos {
		m := &c.Memos[i]
		buf = codec.AppendMemo(buf[:0], m)
		field := sized(m.Checkpoint) + "m" + sized(m.Task) + sized(m.Scope) + sized(m.Key) + strconv.Itoa(m.Index)
		a.add(field, by.write(kindProgress, field, string(buf)))
	}
	return buf
}

func (a *arguments) records(buf []byte, by writer, c *checkpoint.Change) []byte {
	a.add(len(c.Interrupts))
	for i := range c.Interrupts {
		in := c.Interrupts[i]
		in.Change, in.Revision = 0, 0 // given by the script
		buf = codec.AppendInterrupt(buf[:0], &in)
		open := "0"
		if in.State == checkpoint.InterruptOpen {
			open = "1"
		}
		a.add(in.ID, in.Checkpoint, questionMember(&in), open, by.write(kindQuestion, in.ID, string(buf)))
	}
	a.add(len(c.Runs))
	for i := range c.Runs {
		r := c.Runs[i]
		r.Revision = 0
		buf = codec.AppendRun(buf[:0], &r)
		a.add(r.ID, unum(min(r.Order, maxNumber)), by.write(kindRun, r.ID, string(buf)))
	}
	if c.Request == nil {
		a.add(0)
		return buf
	}
	a.add(1, c.Request.ID, by.write(kindRequest, c.Request.ID, encodeRequest(c.Request)))
	return buf
}

// request is how a remembered request is stored.
type request struct {
	Format  int    `json:"v"`
	Digest  string `json:"digest"`
	Run     string `json:"run"`
	Event   uint64 `json:"event"`
	Created int64  `json:"created"` // nanoseconds since 1970
}

func encodeRequest(r *checkpoint.Request) string {
	// No field of it can fail to be written.
	b, _ := json.Marshal(request{
		Format: format, Digest: r.Digest, Run: r.Run, Event: r.Event, Created: nanos(r.Created),
	})
	return string(b)
}

func decodeRequest(record string) (checkpoint.Request, error) {
	var r request
	if err := json.Unmarshal([]byte(record), &r); err != nil || r.Format != format {
		return checkpoint.Request{}, corrupt("is no remembered request of format %d", format)
	}
	return checkpoint.Request{Digest: r.Digest, Run: r.Run, Event: r.Event, Created: instant(r.Created)}, nil
}
