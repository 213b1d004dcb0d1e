package codec

import "github.com/graphd-dev/graphd/internal/checkpoint"

// AppendTask appends the record of a task.
func AppendTask(b []byte, t *checkpoint.Task) []byte {
	b = append(b, begin...)
	b = str(b, "id", t.ID)
	b = str(b, "namespace", t.Namespace)
	b = str(b, "checkpoint", t.Checkpoint)
	b = str(b, "node", t.Node)
	b = str(b, "state", t.State)
	b = writes(b, "writes", t.Writes)
	b = failure(b, "failure", t.Failure)
	b = list(b, "waiting", t.Waiting)
	b = num(b, "attempt", t.Attempt)
	b = raw(b, "update", t.Update)
	b = sends(b, "goto", t.Goto)
	return append(b, '}')
}

// DecodeTask reads a record that AppendTask wrote. An error wraps
// checkpoint.ErrCorrupt.
func DecodeTask(s string) (checkpoint.Task, error) {
	var t checkpoint.Task
	err := record(s, "task", func(sc *scanner, name string) { sc.taskField(&t, name) })
	if err != nil {
		return checkpoint.Task{}, err
	}
	return t, nil
}

func (sc *scanner) taskField(t *checkpoint.Task, name string) {
	switch name {
	case "id":
		t.ID = sc.str()
	case "namespace":
		t.Namespace = sc.str()
	case "checkpoint":
		t.Checkpoint = sc.str()
	case "node":
		t.Node = sc.str()
	case "state":
		t.State = checkpoint.TaskState(sc.str())
	case "writes":
		t.Writes = sc.writes()
	case "failure":
		t.Failure = sc.failure()
	case "waiting":
		t.Waiting = sc.list()
	case "attempt":
		t.Attempt = int(sc.num())
	case "update":
		t.Update = sc.raw()
	case "goto":
		t.Goto = sc.sends()
	default:
		sc.skip()
	}
}

func failure(b []byte, name string, f *checkpoint.Failure) []byte {
	if f == nil {
		return b
	}
	b = append(key(b, name), '{')
	b = str(b, "reason", f.Reason)
	b = str(b, "message", f.Message)
	b = str(b, "node", f.Node)
	b = str(b, "type", f.Type)
	b = str(b, "stack", f.Stack)
	b = num(b, "attempt", f.Attempt)
	b = dict(b, "details", f.Details)
	return append(b, '}')
}

func (sc *scanner) failure() *checkpoint.Failure {
	f := &checkpoint.Failure{}
	sc.object(func(name string) {
		switch name {
		case "reason":
			f.Reason = sc.str()
		case "message":
			f.Message = sc.str()
		case "node":
			f.Node = sc.str()
		case "type":
			f.Type = sc.str()
		case "stack":
			f.Stack = sc.str()
		case "attempt":
			f.Attempt = int(sc.num())
		case "details":
			f.Details = sc.dict()
		default:
			sc.skip()
		}
	})
	return f
}

func writes(b []byte, name string, list []checkpoint.Write) []byte {
	if len(list) == 0 {
		return b
	}
	b = append(key(b, name), '[')
	for i := range list {
		b = append(comma(b), '{')
		b = str(b, "channel", list[i].Channel)
		b = raw(b, "value", list[i].Value)
		b = append(flag(b, "overwrite", list[i].Overwrite), '}')
	}
	return append(b, ']')
}

func (sc *scanner) writes() []checkpoint.Write {
	var out []checkpoint.Write
	sc.array(func() {
		var w checkpoint.Write
		sc.object(func(name string) {
			switch name {
			case "channel":
				w.Channel = sc.str()
			case "value":
				w.Value = sc.raw()
			case "overwrite":
				w.Overwrite = sc.flag()
			default:
				sc.skip()
			}
		})
		out = append(out, w)
	})
	return out
}

// AppendMemo appends the record of a memo.
func AppendMemo(b []byte, m *checkpoint.Memo) []byte {
	b = append(b, begin...)
	b = str(b, "task", m.Task)
	b = str(b, "checkpoint", m.Checkpoint)
	b = str(b, "scope", m.Scope)
	b = str(b, "key", m.Key)
	b = num(b, "index", m.Index)
	b = raw(b, "value", m.Value)
	return append(b, '}')
}

// DecodeMemo reads a record that AppendMemo wrote. An error wraps
// checkpoint.ErrCorrupt.
func DecodeMemo(s string) (checkpoint.Memo, error) {
	var m checkpoint.Memo
	err := record(s, "memo", func(sc *scanner, name string) { sc.memoField(&m, name) })
	if err != nil {
		return checkpoint.Memo{}, err
	}
	return m, nil
}

func (sc *scanner) memoField(m *checkpoint.Memo, name string) {
	switch name {
	case "task":
		m.Task = sc.str()
	case "checkpoint":
		m.Checkpoint = sc.str()
	case "scope":
		m.Scope = sc.str()
	case "key":
		m.Key = sc.str()
	case "index":
		m.Index = int(sc.num())
	case "value":
		m.Value = sc.raw()
	default:
		sc.skip()
	}
}
