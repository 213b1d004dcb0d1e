package codec

import "github.com/graphd-dev/graphd/internal/checkpoint"

// AppendInterrupt appends the record of a question.
func AppendInterrupt(b []byte, in *checkpoint.Interrupt) []byte {
	w := writer{b: append(b, begin...)}
	interruptFields(&w, in)
	return append(w.b, '}')
}

// PackInterrupt appends the packed record of an interrupt.
func PackInterrupt(b []byte, in *checkpoint.Interrupt) []byte {
	w := writer{b: append(b, packed), packed: true}
	interruptFields(&w, in)
	return w.b
}

func interruptFields(w *writer, in *checkpoint.Interrupt) {
	str(w, fID, in.ID)
	str(w, fThread, in.Thread)
	str(w, fRun, in.Run)
	str(w, fGraph, in.Graph)
	str(w, fNamespace, in.Namespace)
	str(w, fCheckpoint, in.Checkpoint)
	str(w, fNode, in.Node)
	str(w, fTask, in.Task)
	str(w, fScope, in.Scope)
	str(w, fKey, in.Key)
	num(w, fIndex, in.Index)
	str(w, fReason, in.Reason)
	str(w, fMessage, in.Message)
	raw(w, fValue, in.Value)
	raw(w, fSchema, in.Schema)
	str(w, fState, in.State)
	instant(w, fCreated, in.Created)
	instant(w, fUpdated, in.Updated)
	instant(w, fExpires, in.Expires)
	str(w, fExpiry, in.Expiry)
	raw(w, fDefault, in.Default)
	list(w, fAssignees, in.Assignees)
	unum(w, fChange, in.Change)
	unum(w, fRevision, in.Revision)
	raw(w, fResponse, in.Response)
	flag(w, fDismissed, in.Dismissed)
	str(w, fNote, in.Note)
	str(w, fResponder, in.Responder)
	str(w, fRequest, in.Request)
	str(w, fSeen, in.Seen)
	str(w, fDrift, in.Drift)
	list(w, fDriftIgnore, in.DriftIgnore)
	num(w, fRound, in.Round)
	str(w, fReplaces, in.Replaces)
	list(w, fDiffers, in.Differs)
	list(w, fAccepted, in.Accepted)
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
		sc.interruptDrift(in, name)
	}
}

// interruptDrift reads what an interrupt keeps for the comparison at replay.
func (sc *scanner) interruptDrift(in *checkpoint.Interrupt, name string) {
	switch name {
	case "seen":
		in.Seen = sc.str()
	case "drift":
		in.Drift = checkpoint.Drift(sc.str())
	case "drift_ignore":
		in.DriftIgnore = sc.list()
	case "round":
		in.Round = int(sc.num())
	case "replaces":
		in.Replaces = sc.str()
	case "differs":
		in.Differs = sc.list()
	case "accepted":
		in.Accepted = sc.list()
	default:
		sc.skip()
	}
}

func interrupts(w *writer, name field, list []checkpoint.Interrupt) {
	if len(list) == 0 {
		return
	}
	w.openList(name)
	for i := range list {
		w.element()
		interruptFields(w, &list[i])
		w.close()
	}
	w.closeList()
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
