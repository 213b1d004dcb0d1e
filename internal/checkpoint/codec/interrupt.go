package codec

import "github.com/graphd-dev/graphd/internal/checkpoint"

// AppendInterrupt appends the record of an interrupt.
func AppendInterrupt(b []byte, in *checkpoint.Interrupt) []byte {
	w := recordWriter{buf: append(b, jsonBegin...)}
	writeInterrupt(&w, in)
	return append(w.buf, '}')
}

// PackInterrupt appends the packed record of an interrupt.
func PackInterrupt(b []byte, in *checkpoint.Interrupt) []byte {
	w := recordWriter{buf: append(b, packedVersionByte), isPacked: true}
	writeInterrupt(&w, in)
	return w.buf
}

func writeInterrupt(w *recordWriter, in *checkpoint.Interrupt) {
	writeString(w, fID, in.ID)
	writeString(w, fThread, in.Thread)
	writeString(w, fRun, in.Run)
	writeString(w, fGraph, in.Graph)
	writeString(w, fNamespace, in.Namespace)
	writeString(w, fCheckpoint, in.Checkpoint)
	writeString(w, fNode, in.Node)
	writeString(w, fTask, in.Task)
	writeString(w, fScope, in.Scope)
	writeString(w, fKey, in.Key)
	writeInt(w, fIndex, in.Index)
	writeString(w, fReason, in.Reason)
	writeString(w, fMessage, in.Message)
	writeJSON(w, fValue, in.Value)
	writeJSON(w, fSchema, in.Schema)
	writeString(w, fState, in.State)
	writeTime(w, fCreated, in.Created)
	writeTime(w, fUpdated, in.Updated)
	writeTime(w, fExpires, in.Expires)
	writeString(w, fExpiry, in.Expiry)
	writeJSON(w, fDefault, in.Default)
	writeStrings(w, fAssignees, in.Assignees)
	writeUint(w, fChange, in.Change)
	writeUint(w, fRevision, in.Revision)
	writeJSON(w, fResponse, in.Response)
	writeBool(w, fDismissed, in.Dismissed)
	writeString(w, fNote, in.Note)
	writeString(w, fResponder, in.Responder)
	writeString(w, fRequest, in.Request)
	writeString(w, fSeen, in.ShownDigest)
	writeString(w, fDrift, in.Drift)
	writeStrings(w, fDriftIgnore, in.DriftIgnore)
	writeInt(w, fRound, in.Round)
	writeString(w, fReplaces, in.Replaces)
	writeStrings(w, fDiffers, in.Differs)
	writeStrings(w, fAccepted, in.Accepted)
}

// DecodeInterrupt reads a record that AppendInterrupt wrote. An error wraps
// checkpoint.ErrCorrupt.
func DecodeInterrupt(s string) (checkpoint.Interrupt, error) {
	var in checkpoint.Interrupt
	err := decodeRecord(s, "interrupt", func(sc *scanner, name string) { sc.readInterruptField(&in, name) })
	if err != nil {
		return checkpoint.Interrupt{}, err
	}
	return in, nil
}

func (sc *scanner) readInterruptField(in *checkpoint.Interrupt, name string) {
	switch name {
	case "id":
		in.ID = sc.readString()
	case "thread":
		in.Thread = sc.readString()
	case "run":
		in.Run = sc.readString()
	case "graph":
		in.Graph = sc.readString()
	case "namespace":
		in.Namespace = sc.readString()
	case "checkpoint":
		in.Checkpoint = sc.readString()
	case "node":
		in.Node = sc.readString()
	case "task":
		in.Task = sc.readString()
	case "scope":
		in.Scope = sc.readString()
	case "key":
		in.Key = sc.readString()
	case "index":
		in.Index = int(sc.readInt())
	case "reason":
		in.Reason = sc.readString()
	case "message":
		in.Message = sc.readString()
	case "value":
		in.Value = sc.readJSON()
	case "schema":
		in.Schema = sc.readJSON()
	case "state":
		in.State = checkpoint.InterruptState(sc.readString())
	case "created":
		in.Created = sc.readTime()
	case "updated":
		in.Updated = sc.readTime()
	case "expires":
		in.Expires = sc.readTime()
	case "expiry":
		in.Expiry = checkpoint.ExpiryAction(sc.readString())
	case "default":
		in.Default = sc.readJSON()
	case "assignees":
		in.Assignees = sc.readStrings()
	case "change":
		in.Change = sc.readUint()
	case "revision":
		in.Revision = sc.readUint()
	case "response":
		in.Response = sc.readJSON()
	case "dismissed":
		in.Dismissed = sc.readBool()
	case "note":
		in.Note = sc.readString()
	case "responder":
		in.Responder = sc.readString()
	case "request":
		in.Request = sc.readString()
	default:
		sc.readDriftField(in, name)
	}
}

// readDriftField reads what an interrupt keeps for the comparison at replay.
func (sc *scanner) readDriftField(in *checkpoint.Interrupt, name string) {
	switch name {
	case "seen":
		in.ShownDigest = sc.readString()
	case "drift":
		in.Drift = checkpoint.Drift(sc.readString())
	case "drift_ignore":
		in.DriftIgnore = sc.readStrings()
	case "round":
		in.Round = int(sc.readInt())
	case "replaces":
		in.Replaces = sc.readString()
	case "differs":
		in.Differs = sc.readStrings()
	case "accepted":
		in.Accepted = sc.readStrings()
	default:
		sc.skipValue()
	}
}

func writeInterrupts(w *recordWriter, name field, list []checkpoint.Interrupt) {
	if len(list) == 0 {
		return
	}
	w.openArray(name)
	for i := range list {
		w.openElement()
		writeInterrupt(w, &list[i])
		w.closeObject()
	}
	w.closeArray()
}

func (sc *scanner) readInterrupts() []checkpoint.Interrupt {
	var out []checkpoint.Interrupt
	sc.readArray(func() {
		var in checkpoint.Interrupt
		sc.readObject(func(name string) { sc.readInterruptField(&in, name) })
		out = append(out, in)
	})
	return out
}
