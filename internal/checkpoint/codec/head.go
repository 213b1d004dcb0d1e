package codec

import "github.com/graphd-dev/graphd/internal/checkpoint"

// AppendHead appends the record of the head of a thread. Revision,
// LeaseExpires and Now are not in it: a store keeps them beside it.
func AppendHead(b []byte, h *checkpoint.Head) []byte {
	b = append(b, begin...)
	b = str(b, "thread", h.Thread)
	b = str(b, "log_id", h.LogID)
	b = str(b, "graph", h.Graph)
	b = str(b, "version", h.Version)
	b = dict(b, "metadata", h.Metadata)
	b = instant(b, "created", h.Created)
	b = instant(b, "updated", h.Updated)
	b = span(b, "ttl", h.TTL)
	b = instant(b, "expires", h.Expires)
	b = num(b, "keep", h.Keep)
	b = str(b, "state", h.State)
	b = str(b, "checkpoint", h.Checkpoint)
	b = flag(b, "branched", h.Branched)
	b = unum(b, "seq", h.Seq)
	b = unum(b, "first_seq", h.FirstSeq)
	b = unum(b, "last_event", h.LastEvent)
	b = unum(b, "first_event", h.FirstEvent)
	b = str(b, "run", h.Run)
	b = list(b, "queue", h.Queue)
	b = num(b, "open", h.Open)
	b = num(b, "answered", h.Answered)
	b = flag(b, "hold", h.Hold)
	b = cancel(b, "cancel", h.Cancel)
	b = unum(b, "fence", h.Fence)
	b = str(b, "owner", h.Owner)
	b = str(b, "wish", h.Wish)
	b = instant(b, "wish_until", h.WishUntil)
	b = num(b, "moves", h.Moves)
	b = instant(b, "due", h.Due)
	return append(b, '}')
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
	default:
		sc.skip()
	}
}

func cancel(b []byte, name string, c *checkpoint.Cancel) []byte {
	if c == nil {
		return b
	}
	b = append(key(b, name), '{')
	b = str(b, "run", c.Run)
	b = flag(b, "rollback", c.Rollback)
	b = str(b, "reason", c.Reason)
	b = span(b, "grace", c.Grace)
	b = str(b, "by", c.By)
	return append(b, '}')
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
