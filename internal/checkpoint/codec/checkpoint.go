package codec

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec/packed"
)

// PackCheckpoint appends the record of a checkpoint.
func PackCheckpoint(b []byte, c *checkpoint.Checkpoint) []byte {
	w := packed.NewWriter(b)
	writeCheckpoint(w, c)
	return w.Bytes()
}

func writeCheckpoint(w *packed.Writer, c *checkpoint.Checkpoint) {
	writeString(w, fID, c.ID)
	w.WriteUint(fSeq, c.Seq)
	writeString(w, fParent, c.Parent)
	writeString(w, fNamespace, c.Namespace)
	writeString(w, fGraph, c.Graph)
	writeString(w, fVersion, c.Version)
	writeString(w, fRun, c.Run)
	writeString(w, fSource, c.Source)
	writeInt(w, fStep, c.Step)
	w.WriteTime(fTime, c.Time)
	w.WriteMap(fMetadata, c.Metadata)
	w.WriteMap(fParents, c.Parents)
	writeChannels(w, c)
	writeSeen(w, c.Seen)
	w.WriteStrings(fUpdated, c.Updated)
	writeNextTasks(w, fNext, c.Next)
	w.WriteUint(fEvent, c.Event)
}

// DecodeCheckpoint reads a manifest. beside lists the channels whose value is
// stored separately: the caller must fill in Value, or List.Items up to the
// lengths of List.Segments. An error wraps checkpoint.ErrCorrupt.
func DecodeCheckpoint(s string) (c *checkpoint.Checkpoint, beside []SeparateValue, err error) {
	c = &checkpoint.Checkpoint{}
	err = packed.ReadRecord(s, "checkpoint", func(rd *packed.Reader, f packed.Field) { readCheckpointField(rd, c, &beside, f) })
	if err != nil {
		return nil, nil, err
	}
	return c, beside, nil
}

func readCheckpointField(rd *packed.Reader, c *checkpoint.Checkpoint, beside *[]SeparateValue, f packed.Field) {
	switch f {
	case fID:
		c.ID = rd.ReadString()
	case fSeq:
		c.Seq = rd.ReadUint()
	case fParent:
		c.Parent = rd.ReadString()
	case fNamespace:
		c.Namespace = rd.ReadString()
	case fGraph:
		c.Graph = rd.ReadString()
	case fVersion:
		c.Version = rd.ReadString()
	case fRun:
		c.Run = rd.ReadString()
	case fSource:
		c.Source = checkpoint.Source(rd.ReadString())
	case fStep:
		c.Step = int(rd.ReadInt())
	case fTime:
		c.Time = rd.ReadTime()
	case fMetadata:
		c.Metadata = rd.ReadMap()
	case fParents:
		c.Parents = rd.ReadMap()
	case fChannels:
		c.Channels = readChannels(rd, beside)
	case fSeen:
		c.Seen = readSeen(rd)
	case fUpdated:
		c.Updated = rd.ReadStrings()
	case fNext:
		c.Next = readNextTasks(rd)
	case fEvent:
		c.Event = rd.ReadUint()
	default:
		rd.SkipValue()
	}
}
