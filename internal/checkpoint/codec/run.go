package codec

import "github.com/graphd-dev/graphd/internal/checkpoint"

// AppendRun appends the record of a run.
func AppendRun(b []byte, r *checkpoint.Run) []byte {
	b = append(b, begin...)
	b = str(b, "id", r.ID)
	b = str(b, "thread", r.Thread)
	b = str(b, "graph", r.Graph)
	b = str(b, "version", r.Version)
	b = str(b, "state", r.State)
	b = failure(b, "failure", r.Failure)
	b = dict(b, "metadata", r.Metadata)
	b = instant(b, "created", r.Created)
	b = instant(b, "updated", r.Updated)
	b = unum(b, "order", r.Order)
	b = instant(b, "deadline", r.Deadline)
	b = runRequest(b, "request", &r.Request)
	b = str(b, "base", r.Base)
	b = num(b, "stop", r.Stop)
	b = raw(b, "output", r.Output)
	b = str(b, "result", r.Result)
	b = unum(b, "first_event", r.FirstEvent)
	b = unum(b, "last_event", r.LastEvent)
	b = unum(b, "revision", r.Revision)
	return append(b, '}')
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

func runRequest(b []byte, name string, q *checkpoint.RunRequest) []byte {
	b = append(key(b, name), '{')
	b = raw(b, "input", q.Input)
	b = str(b, "from", q.From)
	b = str(b, "from_namespace", q.FromNamespace)
	b = raw(b, "update", q.Update)
	b = sends(b, "goto", q.Goto)
	b = raw(b, "context", q.Context)
	b = list(b, "interrupt_before", q.InterruptBefore)
	b = list(b, "interrupt_after", q.InterruptAfter)
	b = num(b, "step_limit", q.StepLimit)
	b = span(b, "timeout", q.Timeout)
	b = str(b, "expected", q.Expected)
	b = flag(b, "discard_open", q.DiscardOpen)
	b = str(b, "on_disconnect", q.OnDisconnect)
	return append(b, '}')
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

func sends(b []byte, name string, list []checkpoint.Send) []byte {
	if len(list) == 0 {
		return b
	}
	b = append(key(b, name), '[')
	for i := range list {
		b = append(comma(b), '{')
		b = str(b, "node", list[i].Node)
		b = append(raw(b, "input", list[i].Input), '}')
	}
	return append(b, ']')
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
