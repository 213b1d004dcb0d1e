package codec

import "github.com/graphd-dev/graphd/internal/checkpoint"

// AppendTask appends the record of a task.
func AppendTask(b []byte, t *checkpoint.Task) []byte {
	w := writer{b: append(b, begin...)}
	taskFields(&w, t)
	return append(w.b, '}')
}

// PackTask appends the packed record of a task.
func PackTask(b []byte, t *checkpoint.Task) []byte {
	w := writer{b: append(b, packed), packed: true}
	taskFields(&w, t)
	return w.b
}

func taskFields(w *writer, t *checkpoint.Task) {
	str(w, fID, t.ID)
	str(w, fNamespace, t.Namespace)
	str(w, fCheckpoint, t.Checkpoint)
	str(w, fNode, t.Node)
	str(w, fState, t.State)
	writes(w, fWrites, t.Writes)
	failure(w, fFailure, t.Failure)
	list(w, fWaiting, t.Waiting)
	num(w, fAttempt, t.Attempt)
	raw(w, fUpdate, t.Update)
	sends(w, fGoto, t.Goto)
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

func failure(w *writer, name field, f *checkpoint.Failure) {
	if f == nil {
		return
	}
	w.open(name)
	str(w, fReason, f.Reason)
	str(w, fMessage, f.Message)
	str(w, fNode, f.Node)
	str(w, fType, f.Type)
	str(w, fStack, f.Stack)
	num(w, fAttempt, f.Attempt)
	dict(w, fDetails, f.Details)
	w.close()
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

func writes(w *writer, name field, list []checkpoint.Write) {
	if len(list) == 0 {
		return
	}
	w.openList(name)
	for i := range list {
		w.element()
		str(w, fChannel, list[i].Channel)
		raw(w, fValue, list[i].Value)
		flag(w, fOverwrite, list[i].Overwrite)
		w.close()
	}
	w.closeList()
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
	w := writer{b: append(b, begin...)}
	memoFields(&w, m)
	return append(w.b, '}')
}

// PackMemo appends the packed record of a memo.
func PackMemo(b []byte, m *checkpoint.Memo) []byte {
	w := writer{b: append(b, packed), packed: true}
	memoFields(&w, m)
	return w.b
}

func memoFields(w *writer, m *checkpoint.Memo) {
	str(w, fTask, m.Task)
	str(w, fCheckpoint, m.Checkpoint)
	str(w, fScope, m.Scope)
	str(w, fKey, m.Key)
	num(w, fIndex, m.Index)
	raw(w, fValue, m.Value)
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
