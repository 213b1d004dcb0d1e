package codec

import "github.com/graphd-dev/graphd/internal/checkpoint"

// AppendEvent appends the record of an event.
func AppendEvent(b []byte, e *checkpoint.Event) []byte {
	w := recordWriter{buf: append(b, jsonBegin...)}
	writeUint(&w, fSeq, e.Seq)
	writeEvent(&w, e, &checkpoint.Event{})
	return append(w.buf, '}')
}

// PackEvents appends the packed record of events that follow one another. What
// they have in common stands in it once: an event without a time, run, namespace
// or step has that of the one before it.
func PackEvents(b []byte, list []checkpoint.Event) []byte {
	w := recordWriter{buf: append(b, packedVersionByte), isPacked: true}
	if len(list) > 0 {
		writeUint(&w, fSeq, list[0].Seq)
	}
	w.openArray(fEvents)
	before := &checkpoint.Event{}
	for i := range list {
		w.openElement()
		writeEvent(&w, &list[i], before)
		before = &list[i]
		w.closeObject()
	}
	w.closeArray()
	return w.buf
}

// DecodeEvents reads a record that PackEvents wrote. An error wraps
// checkpoint.ErrCorrupt.
//
// The first builds that packed events wrote each of them apart: with its own
// time, run, namespace and step, of which it left out what is empty. Such a
// record is known by a time that is written although it is that of the event
// before.
func DecodeEvents(s string) (out []checkpoint.Event, err error) {
	d := eventsReader{}
	if err = decodeRecord(s, "events", d.readField); err == nil && d.isStandalone {
		d = eventsReader{isStandalone: true}
		err = decodeRecord(s, "events", d.readField)
	}
	if err != nil {
		return nil, err
	}
	return d.out, nil
}

// eventsReader reads events that stand in one record.
type eventsReader struct {
	first        uint64
	out          []checkpoint.Event
	isStandalone bool // no event has anything of the one before it
}

func (d *eventsReader) readField(sc *scanner, name string) {
	if sc.unpacker != nil {
		sc.unpacker.copies = len(sc.input) >= largeRecordBytes
	}
	switch name {
	case "seq":
		d.first = sc.readUint()
	case "events":
		sc.readArray(func() { d.readEvent(sc) })
	default:
		sc.skipValue()
	}
}

func (d *eventsReader) readEvent(sc *scanner) {
	e := checkpoint.Event{Seq: d.first + uint64(len(d.out))}
	var before *checkpoint.Event
	if n := len(d.out); n > 0 && !d.isStandalone {
		before = &d.out[n-1]
		e.Time, e.Run, e.Namespace, e.Step = before.Time, before.Run, before.Namespace, before.Step
	}
	sc.readObject(func(name string) {
		sc.readEventField(&e, name)
		if name == "time" && before != nil && e.Time.Equal(before.Time) {
			d.isStandalone = true
		}
	})
	d.out = append(d.out, e)
}

// writeEvent writes what an event does not have in common with the one before.
func writeEvent(w *recordWriter, e, before *checkpoint.Event) {
	if !e.Time.Equal(before.Time) {
		writeTime(w, fTime, e.Time)
		w.packEmpty(fTime, e.Time.IsZero())
	}
	writeString(w, fKind, e.Kind)
	if e.Run != before.Run {
		writeString(w, fRun, e.Run)
		w.packEmpty(fRun, e.Run == "")
	}
	if e.Namespace != before.Namespace {
		writeString(w, fNamespace, e.Namespace)
		w.packEmpty(fNamespace, e.Namespace == "")
	}
	if e.Step != before.Step {
		writeInt(w, fStep, e.Step)
		w.packEmpty(fStep, e.Step == 0)
	}
	writeString(w, fNode, e.Node)
	writeString(w, fTask, e.Task)
	writeInt(w, fAttempt, e.Attempt)
	writeString(w, fState, e.State)
	writeString(w, fPhase, e.Phase)
	writeFailure(w, fFailure, e.Failure)
	writeDuration(w, fDelay, e.Delay)
	writeString(w, fName, e.Name)
	writeJSON(w, fValue, e.Value)
	writeBool(w, fCached, e.Cached)
	writeString(w, fCheckpoint, e.Checkpoint)
	writeString(w, fParent, e.Parent)
	writeString(w, fSource, e.Source)
	writeNextTasks(w, fNext, e.Next)
	writeInterrupts(w, fInterrupts, e.Interrupts)
	writeStrings(w, fTriggers, e.Triggers)
}

// DecodeEvent reads a record that AppendEvent wrote. An error wraps
// checkpoint.ErrCorrupt.
func DecodeEvent(s string) (checkpoint.Event, error) {
	var e checkpoint.Event
	err := decodeRecord(s, "event", func(sc *scanner, name string) { sc.readEventField(&e, name) })
	if err != nil {
		return checkpoint.Event{}, err
	}
	return e, nil
}

func (sc *scanner) readEventField(e *checkpoint.Event, name string) {
	switch name {
	case "seq":
		e.Seq = sc.readUint()
	case "time":
		e.Time = sc.readTime()
	case "kind":
		e.Kind = checkpoint.EventKind(sc.readString())
	case "run":
		e.Run = sc.readString()
	case "namespace":
		e.Namespace = sc.readString()
	case "step":
		e.Step = int(sc.readInt())
	case "node":
		e.Node = sc.readString()
	case "task":
		e.Task = sc.readString()
	case "attempt":
		e.Attempt = int(sc.readInt())
	case "state":
		e.State = checkpoint.RunState(sc.readString())
	case "phase":
		e.Phase = checkpoint.Phase(sc.readString())
	case "failure":
		e.Failure = sc.readFailure()
	case "delay":
		e.Delay = sc.readDuration()
	case "name":
		e.Name = sc.readString()
	case "value":
		e.Value = sc.readJSON()
	case "cached":
		e.Cached = sc.readBool()
	case "checkpoint":
		e.Checkpoint = sc.readString()
	case "parent":
		e.Parent = sc.readString()
	case "source":
		e.Source = checkpoint.Source(sc.readString())
	case "next":
		e.Next = sc.readNextTasks()
	case "interrupts":
		e.Interrupts = sc.readInterrupts()
	case "triggers":
		e.Triggers = sc.readStrings()
	default:
		sc.skipValue()
	}
}

func writeNextTasks(w *recordWriter, name field, list []checkpoint.NextTask) {
	if len(list) == 0 {
		return
	}
	w.openArray(name)
	for i := range list {
		w.openElement()
		writeString(w, fID, list[i].ID)
		writeString(w, fNode, list[i].Node)
		w.closeObject()
	}
	w.closeArray()
}

func (sc *scanner) readNextTasks() []checkpoint.NextTask {
	var out []checkpoint.NextTask
	sc.readArray(func() {
		var n checkpoint.NextTask
		sc.readObject(func(name string) {
			switch name {
			case "id":
				n.ID = sc.readString()
			case "node":
				n.Node = sc.readString()
			default:
				sc.skipValue()
			}
		})
		out = append(out, n)
	})
	return out
}
