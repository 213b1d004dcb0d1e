package codec

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec/packed"
)

// PackInterrupt appends the record of an interrupt.
func PackInterrupt(b []byte, in *checkpoint.Interrupt) []byte {
	w := packed.NewWriter(b)
	writeInterrupt(w, in)
	return w.Bytes()
}

func writeInterrupt(w *packed.Writer, in *checkpoint.Interrupt) {
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
	w.WriteJSON(fValue, in.Value)
	w.WriteJSON(fSchema, in.Schema)
	writeString(w, fState, in.State)
	w.WriteTime(fCreated, in.Created)
	w.WriteTime(fUpdated, in.Updated)
	w.WriteTime(fExpires, in.Expires)
	writeString(w, fExpiry, in.Expiry)
	w.WriteJSON(fDefault, in.Default)
	w.WriteStrings(fAssignees, in.Assignees)
	w.WriteUint(fChange, in.Change)
	w.WriteUint(fRevision, in.Revision)
	w.WriteJSON(fResponse, in.Response)
	w.WriteBool(fDismissed, in.Dismissed)
	writeString(w, fNote, in.Note)
	writeString(w, fResponder, in.Responder)
	writeString(w, fRequest, in.Request)
	writeString(w, fSeen, in.ShownDigest)
	writeString(w, fDrift, in.Drift)
	w.WriteStrings(fDriftIgnore, in.DriftIgnore)
	writeInt(w, fRound, in.Round)
	writeString(w, fReplaces, in.Replaces)
	w.WriteStrings(fDiffers, in.Differs)
	w.WriteStrings(fAccepted, in.Accepted)
	writeString(w, fResponderHow, in.ResponderHow)
	writeString(w, fResponseMethod, in.ResponseMethod)
	w.WriteTime(fResponseTime, in.ResponseTime)
	writePolicy(w, in.Policy)
	writeVotes(w, in.Votes)
	writeSteps(w, in)
	writeClaim(w, in)
	writeTrail(w, &in.Trail)
	w.WriteDuration(fUndo, in.Undo)
	w.WriteTime(fEffective, in.Effective)
	w.WriteBool(fNeedsAllAnswers, in.NeedsAllAnswers)
	changes := in.PropertyChanges()
	w.WriteStrings(fFormer, changes.Former)
	writeDelegations(w, changes.Delegations)
	writeHidden(w, in)
}

// DecodeInterrupt reads a record that PackInterrupt wrote. An error wraps
// checkpoint.ErrCorrupt.
func DecodeInterrupt(s string) (checkpoint.Interrupt, error) {
	var in checkpoint.Interrupt
	err := packed.ReadRecord(s, "interrupt", func(rd *packed.Reader, f packed.Field) { readInterruptField(rd, &in, f) })
	if err != nil {
		return checkpoint.Interrupt{}, err
	}
	return in, nil
}

func readInterruptField(rd *packed.Reader, in *checkpoint.Interrupt, f packed.Field) {
	switch f {
	case fID:
		in.ID = rd.ReadString()
	case fThread:
		in.Thread = rd.ReadString()
	case fRun:
		in.Run = rd.ReadString()
	case fGraph:
		in.Graph = rd.ReadString()
	case fNamespace:
		in.Namespace = rd.ReadString()
	case fCheckpoint:
		in.Checkpoint = rd.ReadString()
	case fNode:
		in.Node = rd.ReadString()
	case fTask:
		in.Task = rd.ReadString()
	case fScope:
		in.Scope = rd.ReadString()
	case fKey:
		in.Key = rd.ReadString()
	case fIndex:
		in.Index = int(rd.ReadInt())
	case fReason:
		in.Reason = rd.ReadString()
	case fMessage:
		in.Message = rd.ReadString()
	case fValue:
		in.Value = rd.ReadJSON()
	case fSchema:
		in.Schema = rd.ReadJSON()
	case fState:
		in.State = checkpoint.InterruptState(rd.ReadString())
	case fCreated:
		in.Created = rd.ReadTime()
	case fUpdated:
		in.Updated = rd.ReadTime()
	case fExpires:
		in.Expires = rd.ReadTime()
	case fExpiry:
		in.Expiry = checkpoint.ExpiryAction(rd.ReadString())
	case fDefault:
		in.Default = rd.ReadJSON()
	case fAssignees:
		in.Assignees = rd.ReadStrings()
	case fChange:
		in.Change = rd.ReadUint()
	case fRevision:
		in.Revision = rd.ReadUint()
	case fResponse:
		in.Response = rd.ReadJSON()
	case fDismissed:
		in.Dismissed = rd.ReadBool()
	case fNote:
		in.Note = rd.ReadString()
	case fResponder:
		in.Responder = rd.ReadString()
	case fRequest:
		in.Request = rd.ReadString()
	default:
		readDriftField(rd, in, f)
	}
}

// readDriftField reads a field for the comparison at replay.
func readDriftField(rd *packed.Reader, in *checkpoint.Interrupt, f packed.Field) {
	switch f {
	case fSeen:
		in.ShownDigest = rd.ReadString()
	case fDrift:
		in.Drift = checkpoint.Drift(rd.ReadString())
	case fDriftIgnore:
		in.DriftIgnore = rd.ReadStrings()
	case fRound:
		in.Round = int(rd.ReadInt())
	case fReplaces:
		in.Replaces = rd.ReadString()
	case fDiffers:
		in.Differs = rd.ReadStrings()
	case fAccepted:
		in.Accepted = rd.ReadStrings()
	case fResponderHow:
		in.ResponderHow = rd.ReadString()
	case fResponseMethod:
		in.ResponseMethod = rd.ReadString()
	case fResponseTime:
		in.ResponseTime = rd.ReadTime()
	default:
		readPeopleField(rd, in, f)
	}
}

func writeInterrupts(w *packed.Writer, name packed.Field, list []checkpoint.Interrupt) {
	if len(list) == 0 {
		return
	}
	w.OpenArray(name)
	for i := range list {
		w.OpenElement()
		writeInterrupt(w, &list[i])
		w.CloseObject()
	}
	w.CloseArray()
}

func readInterrupts(rd *packed.Reader) []checkpoint.Interrupt {
	var out []checkpoint.Interrupt
	rd.ReadArray(func() {
		var in checkpoint.Interrupt
		rd.ReadObject(func(f packed.Field) { readInterruptField(rd, &in, f) })
		out = append(out, in)
	})
	return out
}
