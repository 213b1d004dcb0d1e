package codec

import "github.com/graphd-dev/graphd/internal/checkpoint"

// AppendEvent appends the record of an event.
func AppendEvent(b []byte, e *checkpoint.Event) []byte {
	w := writer{b: append(b, begin...)}
	unum(&w, fSeq, e.Seq)
	eventFields(&w, e, &checkpoint.Event{})
	return append(w.b, '}')
}

// PackEvents appends the packed record of events that follow one another. What
// they have in common stands in it once: an event without a time, run, namespace
// or step has that of the one before it.
func PackEvents(b []byte, list []checkpoint.Event) []byte {
	w := writer{b: append(b, packed), packed: true}
	if len(list) > 0 {
		unum(&w, fSeq, list[0].Seq)
	}
	w.openList(fEvents)
	before := &checkpoint.Event{}
	for i := range list {
		w.element()
		eventFields(&w, &list[i], before)
		before = &list[i]
		w.close()
	}
	w.closeList()
	return w.b
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
	if err = record(s, "events", d.field); err == nil && d.apart {
		d = eventsReader{apart: true}
		err = record(s, "events", d.field)
	}
	if err != nil {
		return nil, err
	}
	return d.out, nil
}

// eventsReader reads events that stand in one record.
type eventsReader struct {
	first uint64
	out   []checkpoint.Event
	apart bool // no event has anything of the one before it
}

func (d *eventsReader) field(sc *scanner, name string) {
	if sc.packed != nil {
		sc.packed.copies = len(sc.s) >= largeRecord
	}
	switch name {
	case "seq":
		d.first = sc.unum()
	case "events":
		sc.array(func() { d.event(sc) })
	default:
		sc.skip()
	}
}

func (d *eventsReader) event(sc *scanner) {
	e := checkpoint.Event{Seq: d.first + uint64(len(d.out))}
	var before *checkpoint.Event
	if n := len(d.out); n > 0 && !d.apart {
		before = &d.out[n-1]
		e.Time, e.Run, e.Namespace, e.Step = before.Time, before.Run, before.Namespace, before.Step
	}
	sc.object(func(name string) {
		sc.eventField(&e, name)
		if name == "time" && before != nil && e.Time.Equal(before.Time) {
			d.apart = true
		}
	})
	d.out = append(d.out, e)
}

// eventFields writes what an event does not have in common with the one before.
func eventFields(w *writer, e, before *checkpoint.Event) {
	if !e.Time.Equal(before.Time) {
		instant(w, fTime, e.Time)
		w.nothing(fTime, e.Time.IsZero())
	}
	str(w, fKind, e.Kind)
	if e.Run != before.Run {
		str(w, fRun, e.Run)
		w.nothing(fRun, e.Run == "")
	}
	if e.Namespace != before.Namespace {
		str(w, fNamespace, e.Namespace)
		w.nothing(fNamespace, e.Namespace == "")
	}
	if e.Step != before.Step {
		num(w, fStep, e.Step)
		w.nothing(fStep, e.Step == 0)
	}
	str(w, fNode, e.Node)
	str(w, fTask, e.Task)
	num(w, fAttempt, e.Attempt)
	str(w, fState, e.State)
	str(w, fPhase, e.Phase)
	failure(w, fFailure, e.Failure)
	span(w, fDelay, e.Delay)
	str(w, fName, e.Name)
	raw(w, fValue, e.Value)
	flag(w, fCached, e.Cached)
	str(w, fCheckpoint, e.Checkpoint)
	str(w, fParent, e.Parent)
	str(w, fSource, e.Source)
	nextTasks(w, fNext, e.Next)
	interrupts(w, fInterrupts, e.Interrupts)
	list(w, fTriggers, e.Triggers)
}

// DecodeEvent reads a record that AppendEvent wrote. An error wraps
// checkpoint.ErrCorrupt.
func DecodeEvent(s string) (checkpoint.Event, error) {
	var e checkpoint.Event
	err := record(s, "event", func(sc *scanner, name string) { sc.eventField(&e, name) })
	if err != nil {
		return checkpoint.Event{}, err
	}
	return e, nil
}

func (sc *scanner) eventField(e *checkpoint.Event, name string) {
	switch name {
	case "seq":
		e.Seq = sc.unum()
	case "time":
		e.Time = sc.instant()
	case "kind":
		e.Kind = checkpoint.EventKind(sc.str())
	case "run":
		e.Run = sc.str()
	case "namespace":
		e.Namespace = sc.str()
	case "step":
		e.Step = int(sc.num())
	case "node":
		e.Node = sc.str()
	case "task":
		e.Task = sc.str()
	case "attempt":
		e.Attempt = int(sc.num())
	case "state":
		e.State = checkpoint.RunState(sc.str())
	case "phase":
		e.Phase = checkpoint.Phase(sc.str())
	case "failure":
		e.Failure = sc.failure()
	case "delay":
		e.Delay = sc.span()
	case "name":
		e.Name = sc.str()
	case "value":
		e.Value = sc.raw()
	case "cached":
		e.Cached = sc.flag()
	case "checkpoint":
		e.Checkpoint = sc.str()
	case "parent":
		e.Parent = sc.str()
	case "source":
		e.Source = checkpoint.Source(sc.str())
	case "next":
		e.Next = sc.nextTasks()
	case "interrupts":
		e.Interrupts = sc.interrupts()
	case "triggers":
		e.Triggers = sc.list()
	default:
		sc.skip()
	}
}

func nextTasks(w *writer, name field, list []checkpoint.NextTask) {
	if len(list) == 0 {
		return
	}
	w.openList(name)
	for i := range list {
		w.element()
		str(w, fID, list[i].ID)
		str(w, fNode, list[i].Node)
		w.close()
	}
	w.closeList()
}

func (sc *scanner) nextTasks() []checkpoint.NextTask {
	var out []checkpoint.NextTask
	sc.array(func() {
		var n checkpoint.NextTask
		sc.object(func(name string) {
			switch name {
			case "id":
				n.ID = sc.str()
			case "node":
				n.Node = sc.str()
			default:
				sc.skip()
			}
		})
		out = append(out, n)
	})
	return out
}
