package codec

import "github.com/graphd-dev/graphd/internal/checkpoint"

// AppendTask appends the record of a task.
func AppendTask(b []byte, t *checkpoint.Task) []byte {
	w := recordWriter{buf: append(b, jsonBegin...)}
	writeTask(&w, t)
	return append(w.buf, '}')
}

// PackTask appends the packed record of a task.
func PackTask(b []byte, t *checkpoint.Task) []byte {
	w := recordWriter{buf: append(b, packedVersionByte), isPacked: true}
	writeTask(&w, t)
	return w.buf
}

func writeTask(w *recordWriter, t *checkpoint.Task) {
	writeString(w, fID, t.ID)
	writeString(w, fNamespace, t.Namespace)
	writeString(w, fCheckpoint, t.Checkpoint)
	writeString(w, fNode, t.Node)
	writeString(w, fState, t.State)
	writeWrites(w, fWrites, t.Writes)
	writeFailure(w, fFailure, t.Failure)
	writeStrings(w, fWaiting, t.Waiting)
	writeInt(w, fAttempt, t.Attempt)
	writeJSON(w, fUpdate, t.Update)
	writeSends(w, fGoto, t.Goto)
}

// DecodeTask reads a record that AppendTask wrote. An error wraps
// checkpoint.ErrCorrupt.
func DecodeTask(s string) (checkpoint.Task, error) {
	var t checkpoint.Task
	err := decodeRecord(s, "task", func(sc *scanner, name string) { sc.readTaskField(&t, name) })
	if err != nil {
		return checkpoint.Task{}, err
	}
	return t, nil
}

func (sc *scanner) readTaskField(t *checkpoint.Task, name string) {
	switch name {
	case "id":
		t.ID = sc.readString()
	case "namespace":
		t.Namespace = sc.readString()
	case "checkpoint":
		t.Checkpoint = sc.readString()
	case "node":
		t.Node = sc.readString()
	case "state":
		t.State = checkpoint.TaskState(sc.readString())
	case "writes":
		t.Writes = sc.readWrites()
	case "failure":
		t.Failure = sc.readFailure()
	case "waiting":
		t.Waiting = sc.readStrings()
	case "attempt":
		t.Attempt = int(sc.readInt())
	case "update":
		t.Update = sc.readJSON()
	case "goto":
		t.Goto = sc.readSends()
	default:
		sc.skipValue()
	}
}

func writeFailure(w *recordWriter, name field, f *checkpoint.Failure) {
	if f == nil {
		return
	}
	w.openObject(name)
	writeString(w, fReason, f.Reason)
	writeString(w, fMessage, f.Message)
	writeString(w, fNode, f.Node)
	writeString(w, fType, f.Type)
	writeString(w, fStack, f.Stack)
	writeInt(w, fAttempt, f.Attempt)
	writeMap(w, fDetails, f.Details)
	w.closeObject()
}

func (sc *scanner) readFailure() *checkpoint.Failure {
	f := &checkpoint.Failure{}
	sc.readObject(func(name string) {
		switch name {
		case "reason":
			f.Reason = sc.readString()
		case "message":
			f.Message = sc.readString()
		case "node":
			f.Node = sc.readString()
		case "type":
			f.Type = sc.readString()
		case "stack":
			f.Stack = sc.readString()
		case "attempt":
			f.Attempt = int(sc.readInt())
		case "details":
			f.Details = sc.readMap()
		default:
			sc.skipValue()
		}
	})
	return f
}

func writeWrites(w *recordWriter, name field, list []checkpoint.Write) {
	if len(list) == 0 {
		return
	}
	w.openArray(name)
	for i := range list {
		w.openElement()
		writeString(w, fChannel, list[i].Channel)
		writeJSON(w, fValue, list[i].Value)
		writeBool(w, fOverwrite, list[i].Overwrite)
		w.closeObject()
	}
	w.closeArray()
}

func (sc *scanner) readWrites() []checkpoint.Write {
	var out []checkpoint.Write
	sc.readArray(func() {
		var w checkpoint.Write
		sc.readObject(func(name string) {
			switch name {
			case "channel":
				w.Channel = sc.readString()
			case "value":
				w.Value = sc.readJSON()
			case "overwrite":
				w.Overwrite = sc.readBool()
			default:
				sc.skipValue()
			}
		})
		out = append(out, w)
	})
	return out
}

// AppendMemo appends the record of a memo.
func AppendMemo(b []byte, m *checkpoint.Memo) []byte {
	w := recordWriter{buf: append(b, jsonBegin...)}
	writeMemo(&w, m)
	return append(w.buf, '}')
}

// PackMemo appends the packed record of a memo.
func PackMemo(b []byte, m *checkpoint.Memo) []byte {
	w := recordWriter{buf: append(b, packedVersionByte), isPacked: true}
	writeMemo(&w, m)
	return w.buf
}

func writeMemo(w *recordWriter, m *checkpoint.Memo) {
	writeString(w, fTask, m.Task)
	writeString(w, fCheckpoint, m.Checkpoint)
	writeString(w, fScope, m.Scope)
	writeString(w, fKey, m.Key)
	writeInt(w, fIndex, m.Index)
	writeJSON(w, fValue, m.Value)
}

// DecodeMemo reads a record that AppendMemo wrote. An error wraps
// checkpoint.ErrCorrupt.
func DecodeMemo(s string) (checkpoint.Memo, error) {
	var m checkpoint.Memo
	err := decodeRecord(s, "memo", func(sc *scanner, name string) { sc.readMemoField(&m, name) })
	if err != nil {
		return checkpoint.Memo{}, err
	}
	return m, nil
}

func (sc *scanner) readMemoField(m *checkpoint.Memo, name string) {
	switch name {
	case "task":
		m.Task = sc.readString()
	case "checkpoint":
		m.Checkpoint = sc.readString()
	case "scope":
		m.Scope = sc.readString()
	case "key":
		m.Key = sc.readString()
	case "index":
		m.Index = int(sc.readInt())
	case "value":
		m.Value = sc.readJSON()
	default:
		sc.skipValue()
	}
}
