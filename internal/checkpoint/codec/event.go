package codec

import "github.com/graphd-dev/graphd/internal/checkpoint"

// AppendEvent appends the record of an event.
func AppendEvent(b []byte, e *checkpoint.Event) []byte {
	b = append(b, begin...)
	b = unum(b, "seq", e.Seq)
	b = instant(b, "time", e.Time)
	b = str(b, "kind", e.Kind)
	b = str(b, "run", e.Run)
	b = str(b, "namespace", e.Namespace)
	b = num(b, "step", e.Step)
	b = str(b, "node", e.Node)
	b = str(b, "task", e.Task)
	b = num(b, "attempt", e.Attempt)
	b = str(b, "state", e.State)
	b = str(b, "phase", e.Phase)
	b = failure(b, "failure", e.Failure)
	b = span(b, "delay", e.Delay)
	b = str(b, "name", e.Name)
	b = raw(b, "value", e.Value)
	b = flag(b, "cached", e.Cached)
	b = str(b, "checkpoint", e.Checkpoint)
	b = str(b, "parent", e.Parent)
	b = str(b, "source", e.Source)
	b = nextTasks(b, "next", e.Next)
	b = interrupts(b, "interrupts", e.Interrupts)
	b = list(b, "triggers", e.Triggers)
	return append(b, '}')
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

func nextTasks(b []byte, name string, list []checkpoint.NextTask) []byte {
	if len(list) == 0 {
		return b
	}
	b = append(key(b, name), '[')
	for i := range list {
		b = append(comma(b), '{')
		b = str(b, "id", list[i].ID)
		b = append(str(b, "node", list[i].Node), '}')
	}
	return append(b, ']')
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
