package codec

import "github.com/graphd-dev/graphd/internal/checkpoint"

// AppendHead appends the record of the head of a thread. Revision,
// LeaseExpires and Now are not in it: a store keeps them beside it.
func AppendHead(b []byte, h *checkpoint.Head) []byte {
	w := recordWriter{buf: append(b, jsonBegin...)}
	writeHead(&w, h)
	return append(w.buf, '}')
}

// PackHead appends the packed record of a head.
func PackHead(b []byte, h *checkpoint.Head) []byte {
	w := recordWriter{buf: append(b, packedVersionByte), isPacked: true}
	writeHead(&w, h)
	return w.buf
}

func writeHead(w *recordWriter, h *checkpoint.Head) {
	writeString(w, fThread, h.Thread)
	writeString(w, fLogID, h.LogID)
	writeString(w, fGraph, h.Graph)
	writeString(w, fVersion, h.Version)
	writeMap(w, fMetadata, h.Metadata)
	writeTime(w, fCreated, h.Created)
	writeTime(w, fUpdated, h.Updated)
	writeDuration(w, fTTL, h.TTL)
	writeTime(w, fExpires, h.Expires)
	writeInt(w, fKeep, h.Keep)
	writeString(w, fState, h.State)
	writeString(w, fCheckpoint, h.Checkpoint)
	writeBool(w, fBranched, h.Branched)
	writeUint(w, fSeq, h.Seq)
	writeUint(w, fFirstSeq, h.FirstSeq)
	writeUint(w, fLastEvent, h.LastEvent)
	writeUint(w, fFirstEvent, h.FirstEvent)
	writeString(w, fRun, h.Run)
	writeStrings(w, fQueue, h.Queue)
	writeInt(w, fOpen, h.Open)
	writeInt(w, fAnswered, h.Answered)
	writeBool(w, fNeedsAllAnswers, h.NeedsAllAnswers)
	writeCancel(w, fCancel, h.Cancel)
	writeUint(w, fFence, h.Fence)
	writeString(w, fOwner, h.Owner)
	writeString(w, fPreferredOwner, h.PreferredOwner)
	writeTime(w, fPreferredUntil, h.PreferredUntil)
	writeInt(w, fHandoffs, h.Handoffs)
	writeTime(w, fDue, h.Due)
	writeInt(w, fFaults, h.Faults)
	writeTime(w, fRetryAt, h.RetryAt)
	writeStrings(w, fRemoteTasks, h.RemoteTasks)
}

// DecodeHead reads a record that AppendHead wrote. An error wraps
// checkpoint.ErrCorrupt.
func DecodeHead(s string) (checkpoint.Head, error) {
	var h checkpoint.Head
	err := decodeRecord(s, "head", func(sc *scanner, name string) { sc.readHeadField(&h, name) })
	if err != nil {
		return checkpoint.Head{}, err
	}
	return h, nil
}

func (sc *scanner) readHeadField(h *checkpoint.Head, name string) {
	switch name {
	case "thread":
		h.Thread = sc.readString()
	case "log_id":
		h.LogID = sc.readString()
	case "graph":
		h.Graph = sc.readString()
	case "version":
		h.Version = sc.readString()
	case "metadata":
		h.Metadata = sc.readMap()
	case "created":
		h.Created = sc.readTime()
	case "updated":
		h.Updated = sc.readTime()
	case "ttl":
		h.TTL = sc.readDuration()
	case "expires":
		h.Expires = sc.readTime()
	case "keep":
		h.Keep = int(sc.readInt())
	case "state":
		h.State = checkpoint.ThreadState(sc.readString())
	case "branched":
		h.Branched = sc.readBool()
	case "checkpoint":
		h.Checkpoint = sc.readString()
	case "seq":
		h.Seq = sc.readUint()
	case "last_event":
		h.LastEvent = sc.readUint()
	case "first_seq":
		h.FirstSeq = sc.readUint()
	case "first_event":
		h.FirstEvent = sc.readUint()
	case "run":
		h.Run = sc.readString()
	case "queue":
		h.Queue = sc.readStrings()
	case "open":
		h.Open = int(sc.readInt())
	case "answered":
		h.Answered = int(sc.readInt())
	case "hold":
		h.NeedsAllAnswers = sc.readBool()
	case "cancel":
		h.Cancel = sc.readCancel()
	case "fence":
		h.Fence = sc.readUint()
	case "owner":
		h.Owner = sc.readString()
	case "wish":
		h.PreferredOwner = sc.readString()
	case "wish_until":
		h.PreferredUntil = sc.readTime()
	case "moves":
		h.Handoffs = int(sc.readInt())
	case "due":
		h.Due = sc.readTime()
	case "faults":
		h.Faults = int(sc.readInt())
	case "retry_at":
		h.RetryAt = sc.readTime()
	case "lent":
		h.RemoteTasks = sc.readStrings()
	default:
		sc.skipValue()
	}
}

func writeCancel(w *recordWriter, name field, c *checkpoint.Cancel) {
	if c == nil {
		return
	}
	w.openObject(name)
	writeString(w, fRun, c.Run)
	writeBool(w, fRollback, c.Rollback)
	writeString(w, fReason, c.Reason)
	writeDuration(w, fGrace, c.Grace)
	writeString(w, fBy, c.By)
	w.closeObject()
}

func (sc *scanner) readCancel() *checkpoint.Cancel {
	c := &checkpoint.Cancel{}
	sc.readObject(func(name string) {
		switch name {
		case "run":
			c.Run = sc.readString()
		case "rollback":
			c.Rollback = sc.readBool()
		case "reason":
			c.Reason = sc.readString()
		case "grace":
			c.Grace = sc.readDuration()
		case "by":
			c.By = sc.readString()
		default:
			sc.skipValue()
		}
	})
	return c
}
