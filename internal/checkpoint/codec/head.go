package codec

import "github.com/graphd-dev/graphd/internal/checkpoint"

// AppendHead appends the record of the head of a thread. Revision,
// LeaseExpires and Now are not in it: a store keeps them beside it.
func AppendHead(b []byte, h *checkpoint.Head) []byte {
	w := writer{b: append(b, begin...)}
	headFields(&w, h)
	return append(w.b, '}')
}

// PackHead appends the packed record of a head.
func PackHead(b []byte, h *checkpoint.Head) []byte {
	w := writer{b: append(b, packed), packed: true}
	headFields(&w, h)
	return w.b
}

func headFields(w *writer, h *checkpoint.Head) {
	str(w, fThread, h.Thread)
	str(w, fLogID, h.LogID)
	str(w, fGraph, h.Graph)
	str(w, fVersion, h.Version)
	dict(w, fMetadata, h.Metadata)
	instant(w, fCreated, h.Created)
	instant(w, fUpdated, h.Updated)
	span(w, fTTL, h.TTL)
	instant(w, fExpires, h.Expires)
	num(w, fKeep, h.Keep)
	str(w, fState, h.State)
	str(w, fCheckpoint, h.Checkpoint)
	flag(w, fBranched, h.Branched)
	unum(w, fSeq, h.Seq)
	unum(w, fFirstSeq, h.FirstSeq)
	unum(w, fLastEvent, h.LastEvent)
	unum(w, fFirstEvent, h.FirstEvent)
	str(w, fRun, h.Run)
	list(w, fQueue, h.Queue)
	num(w, fOpen, h.Open)
	num(w, fAnswered, h.Answered)
	flag(w, fHold, h.Hold)
	cancel(w, fCancel, h.Cancel)
	unum(w, fFence, h.Fence)
	str(w, fOwner, h.Owner)
	str(w, fWish, h.Wish)
	instant(w, fWishUntil, h.WishUntil)
	num(w, fMoves, h.Moves)
	instant(w, fDue, h.Due)
	num(w, fFaults, h.Faults)
	instant(w, fRetryAt, h.RetryAt)
	list(w, fLent, h.Lent)
}

// DecodeHead reads a record that AppendHead wrote. An error wraps
// checkpoint.ErrCorrupt.
func DecodeHead(s string) (checkpoint.Head, error) {
	var h checkpoint.Head
	err := record(s, "head", func(sc *scanner, name string) { sc.headField(&h, name) })
	if err != nil {
		return checkpoint.Head{}, err
	}
	return h, nil
}

func (sc *scanner) headField(h *checkpoint.Head, name string) {
	switch name {
	case "thread":
		h.Thread = sc.str()
	case "log_id":
		h.LogID = sc.str()
	case "graph":
		h.Graph = sc.str()
	case "version":
		h.Version = sc.str()
	case "metadata":
		h.Metadata = sc.dict()
	case "created":
		h.Created = sc.instant()
	case "updated":
		h.Updated = sc.instant()
	case "ttl":
		h.TTL = sc.span()
	case "expires":
		h.Expires = sc.instant()
	case "keep":
		h.Keep = int(sc.num())
	case "state":
		h.State = checkpoint.ThreadState(sc.str())
	case "branched":
		h.Branched = sc.flag()
	case "checkpoint":
		h.Checkpoint = sc.str()
	case "seq":
		h.Seq = sc.unum()
	case "last_event":
		h.LastEvent = sc.unum()
	case "first_seq":
		h.FirstSeq = sc.unum()
	case "first_event":
		h.FirstEvent = sc.unum()
	case "run":
		h.Run = sc.str()
	case "queue":
		h.Queue = sc.list()
	case "open":
		h.Open = int(sc.num())
	case "answered":
		h.Answered = int(sc.num())
	case "hold":
		h.Hold = sc.flag()
	case "cancel":
		h.Cancel = sc.cancel()
	case "fence":
		h.Fence = sc.unum()
	case "owner":
		h.Owner = sc.str()
	case "wish":
		h.Wish = sc.str()
	case "wish_until":
		h.WishUntil = sc.instant()
	case "moves":
		h.Moves = int(sc.num())
	case "due":
		h.Due = sc.instant()
	case "faults":
		h.Faults = int(sc.num())
	case "retry_at":
		h.RetryAt = sc.instant()
	case "lent":
		h.Lent = sc.list()
	default:
		sc.skip()
	}
}

func cancel(w *writer, name field, c *checkpoint.Cancel) {
	if c == nil {
		return
	}
	w.open(name)
	str(w, fRun, c.Run)
	flag(w, fRollback, c.Rollback)
	str(w, fReason, c.Reason)
	span(w, fGrace, c.Grace)
	str(w, fBy, c.By)
	w.close()
}

func (sc *scanner) cancel() *checkpoint.Cancel {
	c := &checkpoint.Cancel{}
	sc.object(func(name string) {
		switch name {
		case "run":
			c.Run = sc.str()
		case "rollback":
			c.Rollback = sc.flag()
		case "reason":
			c.Reason = sc.str()
		case "grace":
			c.Grace = sc.span()
		case "by":
			c.By = sc.str()
		default:
			sc.skip()
		}
	})
	return c
}
