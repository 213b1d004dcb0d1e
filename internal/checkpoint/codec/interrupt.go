package codec

import "github.com/graphd-dev/graphd/internal/checkpoint"

// AppendInterrupt appends the record of a question.
func AppendInterrupt(b []byte, in *checkpoint.Interrupt) []byte {
	b = append(b, begin...)
	return append(interruptFields(b, in), '}')
}

func interruptFields(b []byte, in *checkpoint.Interrupt) []byte {
	b = str(b, "id", in.ID)
	b = str(b, "thread", in.Thread)
	b = str(b, "run", in.Run)
	b = str(b, "graph", in.Graph)
	b = str(b, "namespace", in.Namespace)
	b = str(b, "checkpoint", in.Checkpoint)
	b = str(b, "node", in.Node)
	b = str(b, "task", in.Task)
	b = str(b, "scope", in.Scope)
	b = str(b, "key", in.Key)
	b = num(b, "index", in.Index)
	b = str(b, "reason", in.Reason)
	b = str(b, "message", in.Message)
	b = raw(b, "value", in.Value)
	b = raw(b, "schema", in.Schema)
	b = str(b, "state", in.State)
	b = instant(b, "created", in.Created)
	b = instant(b, "updated", in.Updated)
	b = instant(b, "expires", in.Expires)
	b = str(b, "expiry", in.Expiry)
	b = raw(b, "default", in.Default)
	b = list(b, "assignees", in.Assignees)
	b = unum(b, "change", in.Change)
	b = unum(b, "revision", in.Revision)
	b = raw(b, "response", in.Response)
	b = flag(b, "dismissed", in.Dismissed)
	b = str(b, "note", in.Note)
	b = str(b, "responder", in.Responder)
	b = str(b, "request", in.Request)
	return b
}

// DecodeInterrupt reads a record that AppendInterrupt wrote. An error wraps
// checkpoint.ErrCorrupt.
func DecodeInterrupt(s string) (checkpoint.Interrupt, error) {
	var in checkpoint.Interrupt
	err := record(s, "interrupt", func(sc *scanner, name string) { sc.interruptField(&in, name) })
	if err != nil {
		return checkpoint.Interrupt{}, err
	}
	return in, nil
}

func (sc *scanner) interruptField(in *checkpoint.Interrupt, name string) {
	switch name {
	case "id":
		in.ID = sc.str()
	case "thread":
		in.Thread = sc.str()
	case "run":
		in.Run = sc.str()
	case "graph":
		in.Graph = sc.str()
	case "namespace":
		in.Namespace = sc.str()
	case "checkpoint":
		in.Checkpoint = sc.str()
	case "node":
		in.Node = sc.str()
	case "task":
		in.Task = sc.str()
	case "scope":
		in.Scope = sc.str()
	case "key":
		in.Key = sc.str()
	case "index":
		in.Index = int(sc.num())
	case "reason":
		in.Reason = sc.str()
	case "message":
		in.Message = sc.str()
	case "value":
		in.Value = sc.raw()
	case "schema":
		in.Schema = sc.raw()
	case "state":
		in.State = checkpoint.InterruptState(sc.str())
	case "created":
		in.Created = sc.instant()
	case "updated":
		in.Updated = sc.instant()
	case "expires":
		in.Expires = sc.instant()
	case "expiry":
		in.Expiry = checkpoint.ExpiryAction(sc.str())
	case "default":
		in.Default = sc.raw()
	case "assignees":
		in.Assignees = sc.list()
	case "change":
		in.Change = sc.unum()
	case "revision":
		in.Revision = sc.unum()
	case "response":
		in.Response = sc.raw()
	case "dismissed":
		in.Dismissed = sc.flag()
	case "note":
		in.Note = sc.str()
	case "responder":
		in.Responder = sc.str()
	case "request":
		in.Request = sc.str()
	default:
		sc.skip()
	}
}

func interrupts(b []byte, name string, list []checkpoint.Interrupt) []byte {
	if len(list) == 0 {
		return b
	}
	b = append(key(b, name), '[')
	for i := range list {
		b = append(comma(b), '{')
		b = append(interruptFields(b, &list[i]), '}')
	}
	return append(b, ']')
}

func (sc *scanner) interrupts() []checkpoint.Interrupt {
	var out []checkpoint.Interrupt
	sc.array(func() {
		var in checkpoint.Interrupt
		sc.object(func(name string) { sc.interruptField(&in, name) })
		out = append(out, in)
	})
	return out
}
