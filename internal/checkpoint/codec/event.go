package codec

import (
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec/packed"
)

// PackEvents appends the record of consecutive events. Equal parts stand in it
// once: an event without a time, run, namespace or step has that of the event
// before it.
func PackEvents(b []byte, list []checkpoint.Event) []byte {
	w := packed.NewWriter(slices.Grow(b, CountLargeBytes(list)))
	if len(list) > 0 {
		w.WriteUint(fSeq, list[0].Seq)
	}
	w.OpenArray(fEvents)
	before := &checkpoint.Event{}
	for i := range list {
		w.OpenElement()
		writeEvent(w, &list[i], before)
		before = &list[i]
		w.CloseObject()
	}
	w.CloseArray()
	return w.Bytes()
}

// Records with more bytes of values than this get their memory at once; what else an
// event has takes some tens of bytes.
const (
	largeValueBytes = 4 << 10
	eventRestBytes  = 256
)

// CountLargeBytes is how many bytes a record of events with large values will have, and 0
// for others: a record that grows as it is written copies itself again and again.
func CountLargeBytes(list []checkpoint.Event) (n int) {
	for i := range list {
		n += len(list[i].Value)
		for j := range list[i].Interrupts {
			n += len(list[i].Interrupts[j].Value)
		}
	}
	if n <= largeValueBytes {
		return 0
	}
	return n + len(list)*eventRestBytes
}

// PackEvent appends the record of a single event to b. The record can be read
// without any other record.
func PackEvent(b []byte, e *checkpoint.Event) []byte {
	w := packed.NewWriter(b)
	w.WriteUint(fSeq, e.Seq)
	writeEvent(w, e, &checkpoint.Event{})
	return w.Bytes()
}

// DecodeEvents reads a record that PackEvents wrote. An error wraps
// checkpoint.ErrCorrupt.
//
// The first builds that packed events wrote each of them apart: with its own
// time, run, namespace and step, without empty fields. Such a record is known by
// a time that is written although it is that of the event before.
func DecodeEvents(s string) (out []checkpoint.Event, err error) {
	d := eventsReader{}
	if err = packed.ReadRecord(s, "events", d.readField); err == nil && d.isStandalone {
		d = eventsReader{isStandalone: true}
		err = packed.ReadRecord(s, "events", d.readField)
	}
	if err != nil {
		return nil, err
	}
	return d.out, nil
}

// eventsReader reads the events of a record.
type eventsReader struct {
	first        uint64
	out          []checkpoint.Event
	isStandalone bool // no event has anything of the event before it
}

func (er *eventsReader) readField(rd *packed.Reader, f packed.Field) {
	rd.CopyParts()
	switch f {
	case fSeq:
		er.first = rd.ReadUint()
	case fEvents:
		rd.ReadArray(func() { er.readEvent(rd) })
	default:
		rd.SkipValue()
	}
}

func (er *eventsReader) readEvent(rd *packed.Reader) {
	e := checkpoint.Event{Seq: er.first + uint64(len(er.out))}
	var before *checkpoint.Event
	if n := len(er.out); n > 0 && !er.isStandalone {
		before = &er.out[n-1]
		e.Time, e.Run, e.Namespace, e.Step = before.Time, before.Run, before.Namespace, before.Step
	}
	rd.ReadObject(func(f packed.Field) {
		readEventField(rd, &e, f)
		if f == fTime && before != nil && e.Time.Equal(before.Time) {
			er.isStandalone = true
		}
	})
	er.out = append(er.out, e)
}

// writeEvent writes the differences of an event from the event before.
func writeEvent(w *packed.Writer, e, before *checkpoint.Event) {
	if !e.Time.Equal(before.Time) {
		w.WriteTime(fTime, e.Time)
		w.WriteEmpty(fTime, e.Time.IsZero())
	}
	writeString(w, fKind, e.Kind)
	if e.Run != before.Run {
		writeString(w, fRun, e.Run)
		w.WriteEmpty(fRun, e.Run == "")
	}
	if e.Namespace != before.Namespace {
		writeString(w, fNamespace, e.Namespace)
		w.WriteEmpty(fNamespace, e.Namespace == "")
	}
	if e.Step != before.Step {
		writeInt(w, fStep, e.Step)
		w.WriteEmpty(fStep, e.Step == 0)
	}
	writeString(w, fNode, e.Node)
	writeString(w, fTask, e.Task)
	writeInt(w, fAttempt, e.Attempt)
	writeString(w, fState, e.State)
	writeString(w, fPhase, e.Phase)
	writeFailure(w, fFailure, e.Failure)
	w.WriteDuration(fDelay, e.Delay)
	writeString(w, fName, e.Name)
	w.WriteJSON(fValue, e.Value)
	w.WriteBool(fCached, e.Cached)
	writeString(w, fCheckpoint, e.Checkpoint)
	writeString(w, fParent, e.Parent)
	writeString(w, fSource, e.Source)
	writeNextTasks(w, fNext, e.Next)
	writeInterrupts(w, fInterrupts, e.Interrupts)
	w.WriteStrings(fTriggers, e.Triggers)
	writeString(w, fActor, e.Actor)
}

func readEventField(rd *packed.Reader, e *checkpoint.Event, f packed.Field) {
	switch f {
	case fSeq:
		e.Seq = rd.ReadUint()
	case fTime:
		e.Time = rd.ReadTime()
	case fKind:
		e.Kind = checkpoint.EventKind(rd.ReadString())
	case fRun:
		e.Run = rd.ReadString()
	case fNamespace:
		e.Namespace = rd.ReadString()
	case fStep:
		e.Step = int(rd.ReadInt())
	case fNode:
		e.Node = rd.ReadString()
	case fTask:
		e.Task = rd.ReadString()
	case fAttempt:
		e.Attempt = int(rd.ReadInt())
	case fState:
		e.State = checkpoint.RunState(rd.ReadString())
	case fPhase:
		e.Phase = checkpoint.Phase(rd.ReadString())
	case fFailure:
		e.Failure = readFailure(rd)
	case fDelay:
		e.Delay = rd.ReadDuration()
	case fName:
		e.Name = rd.ReadString()
	case fValue:
		e.Value = rd.ReadJSON()
	case fCached:
		e.Cached = rd.ReadBool()
	case fCheckpoint:
		e.Checkpoint = rd.ReadString()
	case fParent:
		e.Parent = rd.ReadString()
	case fSource:
		e.Source = checkpoint.Source(rd.ReadString())
	case fNext:
		e.Next = readNextTasks(rd)
	case fInterrupts:
		e.Interrupts = readInterrupts(rd)
	case fTriggers:
		e.Triggers = rd.ReadStrings()
	case fActor:
		e.Actor = rd.ReadString()
	default:
		rd.SkipValue()
	}
}

func writeNextTasks(w *packed.Writer, name packed.Field, list []checkpoint.NextTask) {
	if len(list) == 0 {
		return
	}
	w.OpenArray(name)
	for i := range list {
		w.OpenElement()
		writeString(w, fID, list[i].ID)
		writeString(w, fNode, list[i].Node)
		w.CloseObject()
	}
	w.CloseArray()
}

func readNextTasks(rd *packed.Reader) []checkpoint.NextTask {
	var out []checkpoint.NextTask
	rd.ReadArray(func() {
		var n checkpoint.NextTask
		rd.ReadObject(func(f packed.Field) {
			switch f {
			case fID:
				n.ID = rd.ReadString()
			case fNode:
				n.Node = rd.ReadString()
			default:
				rd.SkipValue()
			}
		})
		out = append(out, n)
	})
	return out
}
