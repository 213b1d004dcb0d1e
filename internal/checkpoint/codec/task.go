package codec

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec/packed"
)

// PackTask appends the record of a task.
func PackTask(b []byte, t *checkpoint.Task) []byte {
	w := packed.NewWriter(b)
	writeTask(w, t)
	return w.Bytes()
}

func writeTask(w *packed.Writer, t *checkpoint.Task) {
	writeString(w, fID, t.ID)
	writeString(w, fNamespace, t.Namespace)
	writeString(w, fCheckpoint, t.Checkpoint)
	writeString(w, fNode, t.Node)
	writeString(w, fState, t.State)
	writeWrites(w, fWrites, t.Writes)
	writeFailure(w, fFailure, t.Failure)
	w.WriteStrings(fWaiting, t.Waiting)
	writeInt(w, fAttempt, t.Attempt)
	w.WriteJSON(fUpdate, t.Update)
	writeSends(w, fGoto, t.Goto)
}

// DecodeTask reads a record that PackTask wrote. An error wraps
// checkpoint.ErrCorrupt.
func DecodeTask(s string) (checkpoint.Task, error) {
	var t checkpoint.Task
	err := packed.ReadRecord(s, "task", func(rd *packed.Reader, f packed.Field) { readTaskField(rd, &t, f) })
	if err != nil {
		return checkpoint.Task{}, err
	}
	return t, nil
}

func readTaskField(rd *packed.Reader, t *checkpoint.Task, f packed.Field) {
	switch f {
	case fID:
		t.ID = rd.ReadString()
	case fNamespace:
		t.Namespace = rd.ReadString()
	case fCheckpoint:
		t.Checkpoint = rd.ReadString()
	case fNode:
		t.Node = rd.ReadString()
	case fState:
		t.State = checkpoint.TaskState(rd.ReadString())
	case fWrites:
		t.Writes = readWrites(rd)
	case fFailure:
		t.Failure = readFailure(rd)
	case fWaiting:
		t.Waiting = rd.ReadStrings()
	case fAttempt:
		t.Attempt = int(rd.ReadInt())
	case fUpdate:
		t.Update = rd.ReadJSON()
	case fGoto:
		t.Goto = readSends(rd)
	default:
		rd.SkipValue()
	}
}

func writeFailure(w *packed.Writer, name packed.Field, f *checkpoint.Failure) {
	if f == nil {
		return
	}
	w.OpenObject(name)
	writeString(w, fReason, f.Reason)
	writeString(w, fMessage, f.Message)
	writeString(w, fNode, f.Node)
	writeString(w, fType, f.Type)
	writeString(w, fStack, f.Stack)
	writeInt(w, fAttempt, f.Attempt)
	w.WriteMap(fDetails, f.Details)
	w.CloseObject()
}

func readFailure(rd *packed.Reader) *checkpoint.Failure {
	failure := &checkpoint.Failure{}
	rd.ReadObject(func(f packed.Field) {
		switch f {
		case fReason:
			failure.Reason = rd.ReadString()
		case fMessage:
			failure.Message = rd.ReadString()
		case fNode:
			failure.Node = rd.ReadString()
		case fType:
			failure.Type = rd.ReadString()
		case fStack:
			failure.Stack = rd.ReadString()
		case fAttempt:
			failure.Attempt = int(rd.ReadInt())
		case fDetails:
			failure.Details = rd.ReadMap()
		default:
			rd.SkipValue()
		}
	})
	return failure
}

func writeWrites(w *packed.Writer, name packed.Field, list []checkpoint.Write) {
	if len(list) == 0 {
		return
	}
	w.OpenArray(name)
	for i := range list {
		w.OpenElement()
		writeString(w, fChannel, list[i].Channel)
		w.WriteJSON(fValue, list[i].Value)
		w.WriteBool(fOverwrite, list[i].Overwrite)
		w.CloseObject()
	}
	w.CloseArray()
}

func readWrites(rd *packed.Reader) []checkpoint.Write {
	var out []checkpoint.Write
	rd.ReadArray(func() {
		var w checkpoint.Write
		rd.ReadObject(func(f packed.Field) {
			switch f {
			case fChannel:
				w.Channel = rd.ReadString()
			case fValue:
				w.Value = rd.ReadJSON()
			case fOverwrite:
				w.Overwrite = rd.ReadBool()
			default:
				rd.SkipValue()
			}
		})
		out = append(out, w)
	})
	return out
}

// PackMemo appends the record of a memo.
func PackMemo(b []byte, m *checkpoint.Memo) []byte {
	w := packed.NewWriter(b)
	writeMemo(w, m)
	return w.Bytes()
}

func writeMemo(w *packed.Writer, m *checkpoint.Memo) {
	writeString(w, fTask, m.Task)
	writeString(w, fCheckpoint, m.Checkpoint)
	writeString(w, fScope, m.Scope)
	writeString(w, fKey, m.Key)
	writeInt(w, fIndex, m.Index)
	w.WriteJSON(fValue, m.Value)
}

// DecodeMemo reads a record that PackMemo wrote. An error wraps
// checkpoint.ErrCorrupt.
func DecodeMemo(s string) (checkpoint.Memo, error) {
	var m checkpoint.Memo
	err := packed.ReadRecord(s, "memo", func(rd *packed.Reader, f packed.Field) { readMemoField(rd, &m, f) })
	if err != nil {
		return checkpoint.Memo{}, err
	}
	return m, nil
}

func readMemoField(rd *packed.Reader, m *checkpoint.Memo, f packed.Field) {
	switch f {
	case fTask:
		m.Task = rd.ReadString()
	case fCheckpoint:
		m.Checkpoint = rd.ReadString()
	case fScope:
		m.Scope = rd.ReadString()
	case fKey:
		m.Key = rd.ReadString()
	case fIndex:
		m.Index = int(rd.ReadInt())
	case fValue:
		m.Value = rd.ReadJSON()
	default:
		rd.SkipValue()
	}
}
