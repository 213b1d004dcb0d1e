package codec

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec/packed"
)

// PackHead appends the record of a head.
func PackHead(b []byte, h *checkpoint.Head) []byte {
	w := packed.NewWriter(b)
	writeHead(w, h)
	return w.Bytes()
}

func writeHead(w *packed.Writer, h *checkpoint.Head) {
	writeString(w, fThread, h.Thread)
	writeString(w, fLogID, h.LogID)
	writeString(w, fGraph, h.Graph)
	writeString(w, fVersion, h.Version)
	w.WriteMap(fMetadata, h.Metadata)
	w.WriteTime(fCreated, h.Created)
	w.WriteTime(fUpdated, h.Updated)
	w.WriteDuration(fTTL, h.TTL)
	w.WriteTime(fExpires, h.Expires)
	writeInt(w, fKeep, h.Keep)
	writeString(w, fState, h.State)
	writeString(w, fCheckpoint, h.Checkpoint)
	w.WriteBool(fBranched, h.Branched)
	w.WriteUint(fSeq, h.Seq)
	w.WriteUint(fFirstSeq, h.FirstSeq)
	w.WriteUint(fLastEvent, h.LastEvent)
	w.WriteUint(fFirstEvent, h.FirstEvent)
	writeString(w, fRun, h.Run)
	w.WriteStrings(fQueue, h.Queue)
	writeLaterRuns(w, fLater, h.Later)
	writeInt(w, fOpen, h.Open)
	writeInt(w, fAnswered, h.Answered)
	writeInt(w, fRetractable, h.Retractable)
	w.WriteStrings(fEditors, h.Editors)
	w.WriteBool(fNeedsAllAnswers, h.NeedsAllAnswers)
	writeCancel(w, fCancel, h.Cancel)
	w.WriteUint(fFence, h.Fence)
	writeString(w, fOwner, h.Owner)
	writeString(w, fPreferredOwner, h.PreferredOwner)
	w.WriteTime(fPreferredUntil, h.PreferredUntil)
	writeInt(w, fHandoffs, h.Handoffs)
	w.WriteTime(fDue, h.Due)
	writeInt(w, fFaults, h.Faults)
	w.WriteTime(fRetryAt, h.RetryAt)
	w.WriteStrings(fRemoteTasks, h.RemoteTasks)
}

// DecodeHead reads a record that PackHead wrote. An error wraps
// checkpoint.ErrCorrupt.
func DecodeHead(s string) (checkpoint.Head, error) {
	var h checkpoint.Head
	err := packed.ReadRecord(s, "head", func(rd *packed.Reader, f packed.Field) { readHeadField(rd, &h, f) })
	if err != nil {
		return checkpoint.Head{}, err
	}
	return h, nil
}

func readHeadField(rd *packed.Reader, h *checkpoint.Head, f packed.Field) {
	switch f {
	case fThread:
		h.Thread = rd.ReadString()
	case fLogID:
		h.LogID = rd.ReadString()
	case fGraph:
		h.Graph = rd.ReadString()
	case fVersion:
		h.Version = rd.ReadString()
	case fMetadata:
		h.Metadata = rd.ReadMap()
	case fCreated:
		h.Created = rd.ReadTime()
	case fUpdated:
		h.Updated = rd.ReadTime()
	case fTTL:
		h.TTL = rd.ReadDuration()
	case fExpires:
		h.Expires = rd.ReadTime()
	case fKeep:
		h.Keep = int(rd.ReadInt())
	case fState:
		h.State = checkpoint.ThreadState(rd.ReadString())
	case fBranched:
		h.Branched = rd.ReadBool()
	case fCheckpoint:
		h.Checkpoint = rd.ReadString()
	case fSeq:
		h.Seq = rd.ReadUint()
	case fLastEvent:
		h.LastEvent = rd.ReadUint()
	case fFirstSeq:
		h.FirstSeq = rd.ReadUint()
	case fFirstEvent:
		h.FirstEvent = rd.ReadUint()
	case fRun:
		h.Run = rd.ReadString()
	case fQueue:
		h.Queue = rd.ReadStrings()
	case fLater:
		h.Later = readLaterRuns(rd)
	case fOpen:
		h.Open = int(rd.ReadInt())
	case fEditors:
		h.Editors = rd.ReadStrings()
	case fRetractable:
		h.Retractable = int(rd.ReadInt())
	case fAnswered:
		h.Answered = int(rd.ReadInt())
	case fNeedsAllAnswers:
		h.NeedsAllAnswers = rd.ReadBool()
	case fCancel:
		h.Cancel = readCancel(rd)
	case fFence:
		h.Fence = rd.ReadUint()
	case fOwner:
		h.Owner = rd.ReadString()
	case fPreferredOwner:
		h.PreferredOwner = rd.ReadString()
	case fPreferredUntil:
		h.PreferredUntil = rd.ReadTime()
	case fHandoffs:
		h.Handoffs = int(rd.ReadInt())
	case fDue:
		h.Due = rd.ReadTime()
	case fFaults:
		h.Faults = int(rd.ReadInt())
	case fRetryAt:
		h.RetryAt = rd.ReadTime()
	case fRemoteTasks:
		h.RemoteTasks = rd.ReadStrings()
	default:
		rd.SkipValue()
	}
}

func writeLaterRuns(w *packed.Writer, name packed.Field, runs []checkpoint.LaterRun) {
	if len(runs) == 0 {
		return
	}
	w.OpenArray(name)
	for i := range runs {
		w.OpenElement()
		writeString(w, fRun, runs[i].Run)
		w.WriteTime(fBegins, runs[i].Begins)
		w.CloseObject()
	}
	w.CloseArray()
}

func readLaterRuns(rd *packed.Reader) (runs []checkpoint.LaterRun) {
	rd.ReadArray(func() {
		var r checkpoint.LaterRun
		rd.ReadObject(func(f packed.Field) {
			switch f {
			case fRun:
				r.Run = rd.ReadString()
			case fBegins:
				r.Begins = rd.ReadTime()
			default:
				rd.SkipValue()
			}
		})
		runs = append(runs, r)
	})
	return runs
}

func writeCancel(w *packed.Writer, name packed.Field, c *checkpoint.Cancel) {
	if c == nil {
		return
	}
	w.OpenObject(name)
	writeString(w, fRun, c.Run)
	w.WriteBool(fRollback, c.Rollback)
	writeString(w, fReason, c.Reason)
	w.WriteDuration(fGrace, c.Grace)
	writeString(w, fBy, c.By)
	w.CloseObject()
}

func readCancel(rd *packed.Reader) *checkpoint.Cancel {
	c := &checkpoint.Cancel{}
	rd.ReadObject(func(f packed.Field) {
		switch f {
		case fRun:
			c.Run = rd.ReadString()
		case fRollback:
			c.Rollback = rd.ReadBool()
		case fReason:
			c.Reason = rd.ReadString()
		case fGrace:
			c.Grace = rd.ReadDuration()
		case fBy:
			c.By = rd.ReadString()
		default:
			rd.SkipValue()
		}
	})
	return c
}
