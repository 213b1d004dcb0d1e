package codec

import "github.com/graphd-dev/graphd/internal/checkpoint"

// AppendRun appends the record of a run.
func AppendRun(b []byte, r *checkpoint.Run) []byte {
	w := writer{b: append(b, begin...)}
	runFields(&w, r)
	return append(w.b, '}')
}

// PackRun appends the packed record of a run.
func PackRun(b []byte, r *checkpoint.Run) []byte {
	w := writer{b: append(b, packed), packed: true}
	runFields(&w, r)
	return w.b
}

func runFields(w *writer, r *checkpoint.Run) {
	str(w, fID, r.ID)
	str(w, fThread, r.Thread)
	str(w, fGraph, r.Graph)
	str(w, fVersion, r.Version)
	str(w, fState, r.State)
	failure(w, fFailure, r.Failure)
	dict(w, fMetadata, r.Metadata)
	instant(w, fCreated, r.Created)
	instant(w, fUpdated, r.Updated)
	unum(w, fOrder, r.Order)
	instant(w, fDeadline, r.Deadline)
	runRequest(w, fRequest, &r.Request)
	str(w, fBase, r.Base)
	num(w, fStop, r.Stop)
	raw(w, fOutput, r.Output)
	str(w, fResult, r.Result)
	unum(w, fFirstEvent, r.FirstEvent)
	unum(w, fLastEvent, r.LastEvent)
	unum(w, fRevision, r.Revision)
}

// DecodeRun reads a record that AppendRun wrote. An error wraps
// checkpoint.ErrCorrupt.
func DecodeRun(s string) (checkpoint.Run, error) {
	var r checkpoint.Run
	err := record(s, "run", func(sc *scanner, name string) { sc.runField(&r, name) })
	if err != nil {
		return checkpoint.Run{}, err
	}
	return r, nil
}

func (sc *scanner) runField(r *checkpoint.Run, name string) {
	switch name {
	case "id":
		r.ID = sc.str()
	case "thread":
		r.Thread = sc.str()
	case "graph":
		r.Graph = sc.str()
	case "version":
		r.Version = sc.str()
	case "state":
		r.State = checkpoint.RunState(sc.str())
	case "failure":
		r.Failure = sc.failure()
	case "metadata":
		r.Metadata = sc.dict()
	case "created":
		r.Created = sc.instant()
	case "updated":
		r.Updated = sc.instant()
	case "order":
		r.Order = sc.unum()
	case "deadline":
		r.Deadline = sc.instant()
	case "request":
		r.Request = sc.runRequest()
	case "base":
		r.Base = sc.str()
	case "stop":
		r.Stop = int(sc.num())
	case "output":
		r.Output = sc.raw()
	case "result":
		r.Result = sc.str()
	case "first_event":
		r.FirstEvent = sc.unum()
	case "last_event":
		r.LastEvent = sc.unum()
	case "revision":
		r.Revision = sc.unum()
	default:
		sc.skip()
	}
}

func runRequest(w *writer, name field, q *checkpoint.RunRequest) {
	w.open(name)
	raw(w, fInput, q.Input)
	str(w, fFrom, q.From)
	str(w, fFromNamespace, q.FromNamespace)
	raw(w, fUpdate, q.Update)
	sends(w, fGoto, q.Goto)
	raw(w, fContext, q.Context)
	list(w, fInterruptBefore, q.InterruptBefore)
	list(w, fInterruptAfter, q.InterruptAfter)
	num(w, fStepLimit, q.StepLimit)
	span(w, fTimeout, q.Timeout)
	str(w, fExpected, q.Expected)
	flag(w, fDiscardOpen, q.DiscardOpen)
	str(w, fOnDisconnect, q.OnDisconnect)
	w.close()
}

func (sc *scanner) runRequest() checkpoint.RunRequest {
	var q checkpoint.RunRequest
	sc.object(func(name string) { sc.runRequestField(&q, name) })
	return q
}

func (sc *scanner) runRequestField(q *checkpoint.RunRequest, name string) {
	switch name {
	case "input":
		q.Input = sc.raw()
	case "from":
		q.From = sc.str()
	case "from_namespace":
		q.FromNamespace = sc.str()
	case "update":
		q.Update = sc.raw()
	case "goto":
		q.Goto = sc.sends()
	case "context":
		q.Context = sc.raw()
	case "interrupt_before":
		q.InterruptBefore = sc.list()
	case "interrupt_after":
		q.InterruptAfter = sc.list()
	case "step_limit":
		q.StepLimit = int(sc.num())
	case "timeout":
		q.Timeout = sc.span()
	case "expected":
		q.Expected = sc.str()
	case "discard_open":
		q.DiscardOpen = sc.flag()
	case "on_disconnect":
		q.OnDisconnect = sc.str()
	default:
		sc.skip()
	}
}

func sends(w *writer, name field, list []checkpoint.Send) {
	if len(list) == 0 {
		return
	}
	w.openList(name)
	for i := range list {
		w.element()
		str(w, fNode, list[i].Node)
		raw(w, fInput, list[i].Input)
		w.close()
	}
	w.closeList()
}

func (sc *scanner) sends() []checkpoint.Send {
	var out []checkpoint.Send
	sc.array(func() {
		var s checkpoint.Send
		sc.object(func(name string) {
			switch name {
			case "node":
				s.Node = sc.str()
			case "input":
				s.Input = sc.raw()
			default:
				sc.skip()
			}
		})
		out = append(out, s)
	})
	return out
}
