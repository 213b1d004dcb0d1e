package codec

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec/packed"
)

// PackRun appends the record of a run.
func PackRun(b []byte, r *checkpoint.Run) []byte {
	w := packed.NewWriter(b)
	writeRun(w, r)
	return w.Bytes()
}

func writeRun(w *packed.Writer, r *checkpoint.Run) {
	writeString(w, fID, r.ID)
	writeString(w, fThread, r.Thread)
	writeString(w, fGraph, r.Graph)
	writeString(w, fVersion, r.Version)
	writeString(w, fState, r.State)
	writeFailure(w, fFailure, r.Failure)
	w.WriteMap(fMetadata, r.Metadata)
	w.WriteTime(fCreated, r.Created)
	w.WriteTime(fUpdated, r.Updated)
	w.WriteUint(fOrder, r.Order)
	w.WriteTime(fDeadline, r.Deadline)
	w.WriteTime(fBegins, r.Begins)
	writeRunRequest(w, fRequest, &r.Request)
	writeString(w, fBase, r.Base)
	writeInt(w, fStop, r.MaxStep)
	w.WriteJSON(fOutput, r.Output)
	writeString(w, fResult, r.Result)
	w.WriteUint(fFirstEvent, r.FirstEvent)
	w.WriteUint(fLastEvent, r.LastEvent)
	w.WriteUint(fRevision, r.Revision)
	writeString(w, fStartedBy, r.StartedBy)
}

// DecodeRun reads a record that PackRun wrote. An error wraps
// checkpoint.ErrCorrupt.
func DecodeRun(s string) (checkpoint.Run, error) {
	var r checkpoint.Run
	err := packed.ReadRecord(s, "run", func(rd *packed.Reader, f packed.Field) { readRunField(rd, &r, f) })
	if err != nil {
		return checkpoint.Run{}, err
	}
	return r, nil
}

func readRunField(rd *packed.Reader, r *checkpoint.Run, f packed.Field) {
	switch f {
	case fID:
		r.ID = rd.ReadString()
	case fThread:
		r.Thread = rd.ReadString()
	case fGraph:
		r.Graph = rd.ReadString()
	case fVersion:
		r.Version = rd.ReadString()
	case fState:
		r.State = checkpoint.RunState(rd.ReadString())
	case fFailure:
		r.Failure = readFailure(rd)
	case fMetadata:
		r.Metadata = rd.ReadMap()
	case fCreated:
		r.Created = rd.ReadTime()
	case fUpdated:
		r.Updated = rd.ReadTime()
	case fOrder:
		r.Order = rd.ReadUint()
	case fDeadline:
		r.Deadline = rd.ReadTime()
	case fBegins:
		r.Begins = rd.ReadTime()
	case fRequest:
		r.Request = readRunRequest(rd)
	case fBase:
		r.Base = rd.ReadString()
	case fStop:
		r.MaxStep = int(rd.ReadInt())
	case fOutput:
		r.Output = rd.ReadJSON()
	case fResult:
		r.Result = rd.ReadString()
	case fFirstEvent:
		r.FirstEvent = rd.ReadUint()
	case fLastEvent:
		r.LastEvent = rd.ReadUint()
	case fRevision:
		r.Revision = rd.ReadUint()
	case fStartedBy:
		r.StartedBy = rd.ReadString()
	default:
		rd.SkipValue()
	}
}

func writeRunRequest(w *packed.Writer, name packed.Field, q *checkpoint.RunRequest) {
	w.OpenObject(name)
	w.WriteJSON(fInput, q.Input)
	writeString(w, fFrom, q.From)
	writeString(w, fFromNamespace, q.FromNamespace)
	w.WriteJSON(fUpdate, q.Update)
	writeSends(w, fGoto, q.Goto)
	w.WriteJSON(fContext, q.Context)
	w.WriteStrings(fInterruptBefore, q.InterruptBefore)
	w.WriteStrings(fInterruptAfter, q.InterruptAfter)
	writeInt(w, fStepLimit, q.StepLimit)
	w.WriteDuration(fTimeout, q.Timeout)
	w.WriteDuration(fDelay, q.Delay)
	writeString(w, fExpected, q.Expected)
	w.WriteBool(fDiscardOpen, q.DiscardOpen)
	writeString(w, fOnDisconnect, q.OnDisconnect)
	w.CloseObject()
}

func readRunRequest(rd *packed.Reader) checkpoint.RunRequest {
	var q checkpoint.RunRequest
	rd.ReadObject(func(f packed.Field) { readRunRequestField(rd, &q, f) })
	return q
}

func readRunRequestField(rd *packed.Reader, q *checkpoint.RunRequest, f packed.Field) {
	switch f {
	case fInput:
		q.Input = rd.ReadJSON()
	case fFrom:
		q.From = rd.ReadString()
	case fFromNamespace:
		q.FromNamespace = rd.ReadString()
	case fUpdate:
		q.Update = rd.ReadJSON()
	case fGoto:
		q.Goto = readSends(rd)
	case fContext:
		q.Context = rd.ReadJSON()
	case fInterruptBefore:
		q.InterruptBefore = rd.ReadStrings()
	case fInterruptAfter:
		q.InterruptAfter = rd.ReadStrings()
	case fStepLimit:
		q.StepLimit = int(rd.ReadInt())
	case fTimeout:
		q.Timeout = rd.ReadDuration()
	case fDelay:
		q.Delay = rd.ReadDuration()
	case fExpected:
		q.Expected = rd.ReadString()
	case fDiscardOpen:
		q.DiscardOpen = rd.ReadBool()
	case fOnDisconnect:
		q.OnDisconnect = rd.ReadString()
	default:
		rd.SkipValue()
	}
}

func writeSends(w *packed.Writer, name packed.Field, list []checkpoint.Send) {
	if len(list) == 0 {
		return
	}
	w.OpenArray(name)
	for i := range list {
		w.OpenElement()
		writeString(w, fNode, list[i].Node)
		w.WriteJSON(fInput, list[i].Input)
		w.CloseObject()
	}
	w.CloseArray()
}

func readSends(rd *packed.Reader) []checkpoint.Send {
	var out []checkpoint.Send
	rd.ReadArray(func() {
		var s checkpoint.Send
		rd.ReadObject(func(f packed.Field) {
			switch f {
			case fNode:
				s.Node = rd.ReadString()
			case fInput:
				s.Input = rd.ReadJSON()
			default:
				rd.SkipValue()
			}
		})
		out = append(out, s)
	})
	return out
}
