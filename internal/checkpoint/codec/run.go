package codec

import "github.com/graphd-dev/graphd/internal/checkpoint"

// AppendRun appends the record of a run.
func AppendRun(b []byte, r *checkpoint.Run) []byte {
	w := recordWriter{buf: append(b, jsonBegin...)}
	writeRun(&w, r)
	return append(w.buf, '}')
}

// PackRun appends the packed record of a run.
func PackRun(b []byte, r *checkpoint.Run) []byte {
	w := recordWriter{buf: append(b, packedVersionByte), isPacked: true}
	writeRun(&w, r)
	return w.buf
}

func writeRun(w *recordWriter, r *checkpoint.Run) {
	writeString(w, fID, r.ID)
	writeString(w, fThread, r.Thread)
	writeString(w, fGraph, r.Graph)
	writeString(w, fVersion, r.Version)
	writeString(w, fState, r.State)
	writeFailure(w, fFailure, r.Failure)
	writeMap(w, fMetadata, r.Metadata)
	writeTime(w, fCreated, r.Created)
	writeTime(w, fUpdated, r.Updated)
	writeUint(w, fOrder, r.Order)
	writeTime(w, fDeadline, r.Deadline)
	writeRunRequest(w, fRequest, &r.Request)
	writeString(w, fBase, r.Base)
	writeInt(w, fStop, r.MaxStep)
	writeJSON(w, fOutput, r.Output)
	writeString(w, fResult, r.Result)
	writeUint(w, fFirstEvent, r.FirstEvent)
	writeUint(w, fLastEvent, r.LastEvent)
	writeUint(w, fRevision, r.Revision)
}

// DecodeRun reads a record that AppendRun wrote. An error wraps
// checkpoint.ErrCorrupt.
func DecodeRun(s string) (checkpoint.Run, error) {
	var r checkpoint.Run
	err := decodeRecord(s, "run", func(sc *scanner, name string) { sc.readRunField(&r, name) })
	if err != nil {
		return checkpoint.Run{}, err
	}
	return r, nil
}

func (sc *scanner) readRunField(r *checkpoint.Run, name string) {
	switch name {
	case "id":
		r.ID = sc.readString()
	case "thread":
		r.Thread = sc.readString()
	case "graph":
		r.Graph = sc.readString()
	case "version":
		r.Version = sc.readString()
	case "state":
		r.State = checkpoint.RunState(sc.readString())
	case "failure":
		r.Failure = sc.readFailure()
	case "metadata":
		r.Metadata = sc.readMap()
	case "created":
		r.Created = sc.readTime()
	case "updated":
		r.Updated = sc.readTime()
	case "order":
		r.Order = sc.readUint()
	case "deadline":
		r.Deadline = sc.readTime()
	case "request":
		r.Request = sc.readRunRequest()
	case "base":
		r.Base = sc.readString()
	case "stop":
		r.MaxStep = int(sc.readInt())
	case "output":
		r.Output = sc.readJSON()
	case "result":
		r.Result = sc.readString()
	case "first_event":
		r.FirstEvent = sc.readUint()
	case "last_event":
		r.LastEvent = sc.readUint()
	case "revision":
		r.Revision = sc.readUint()
	default:
		sc.skipValue()
	}
}

func writeRunRequest(w *recordWriter, name field, q *checkpoint.RunRequest) {
	w.openObject(name)
	writeJSON(w, fInput, q.Input)
	writeString(w, fFrom, q.From)
	writeString(w, fFromNamespace, q.FromNamespace)
	writeJSON(w, fUpdate, q.Update)
	writeSends(w, fGoto, q.Goto)
	writeJSON(w, fContext, q.Context)
	writeStrings(w, fInterruptBefore, q.InterruptBefore)
	writeStrings(w, fInterruptAfter, q.InterruptAfter)
	writeInt(w, fStepLimit, q.StepLimit)
	writeDuration(w, fTimeout, q.Timeout)
	writeString(w, fExpected, q.Expected)
	writeBool(w, fDiscardOpen, q.DiscardOpen)
	writeString(w, fOnDisconnect, q.OnDisconnect)
	w.closeObject()
}

func (sc *scanner) readRunRequest() checkpoint.RunRequest {
	var q checkpoint.RunRequest
	sc.readObject(func(name string) { sc.readRunRequestField(&q, name) })
	return q
}

func (sc *scanner) readRunRequestField(q *checkpoint.RunRequest, name string) {
	switch name {
	case "input":
		q.Input = sc.readJSON()
	case "from":
		q.From = sc.readString()
	case "from_namespace":
		q.FromNamespace = sc.readString()
	case "update":
		q.Update = sc.readJSON()
	case "goto":
		q.Goto = sc.readSends()
	case "context":
		q.Context = sc.readJSON()
	case "interrupt_before":
		q.InterruptBefore = sc.readStrings()
	case "interrupt_after":
		q.InterruptAfter = sc.readStrings()
	case "step_limit":
		q.StepLimit = int(sc.readInt())
	case "timeout":
		q.Timeout = sc.readDuration()
	case "expected":
		q.Expected = sc.readString()
	case "discard_open":
		q.DiscardOpen = sc.readBool()
	case "on_disconnect":
		q.OnDisconnect = sc.readString()
	default:
		sc.skipValue()
	}
}

func writeSends(w *recordWriter, name field, list []checkpoint.Send) {
	if len(list) == 0 {
		return
	}
	w.openArray(name)
	for i := range list {
		w.openElement()
		writeString(w, fNode, list[i].Node)
		writeJSON(w, fInput, list[i].Input)
		w.closeObject()
	}
	w.closeArray()
}

func (sc *scanner) readSends() []checkpoint.Send {
	var out []checkpoint.Send
	sc.readArray(func() {
		var s checkpoint.Send
		sc.readObject(func(name string) {
			switch name {
			case "node":
				s.Node = sc.readString()
			case "input":
				s.Input = sc.readJSON()
			default:
				sc.skipValue()
			}
		})
		out = append(out, s)
	})
	return out
}
