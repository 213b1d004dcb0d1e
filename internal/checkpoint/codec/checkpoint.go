package codec

import "github.com/graphd-dev/graphd/internal/checkpoint"

// AppendCheckpoint appends a checkpoint's manifest. Values of at most
// MaxInlineBytes stand in it, larger ones and list elements are stored beside
// it.
func AppendCheckpoint(b []byte, c *checkpoint.Checkpoint) []byte {
	w := recordWriter{buf: append(b, jsonBegin...)}
	writeCheckpoint(&w, c)
	return append(w.buf, '}')
}

// PackCheckpoint appends the packed record of a checkpoint.
func PackCheckpoint(b []byte, c *checkpoint.Checkpoint) []byte {
	w := recordWriter{buf: append(b, packedVersionByte), isPacked: true}
	writeCheckpoint(&w, c)
	return w.buf
}

func writeCheckpoint(w *recordWriter, c *checkpoint.Checkpoint) {
	writeString(w, fID, c.ID)
	writeUint(w, fSeq, c.Seq)
	writeString(w, fParent, c.Parent)
	writeString(w, fNamespace, c.Namespace)
	writeString(w, fGraph, c.Graph)
	writeString(w, fVersion, c.Version)
	writeString(w, fRun, c.Run)
	writeString(w, fSource, c.Source)
	writeInt(w, fStep, c.Step)
	writeTime(w, fTime, c.Time)
	writeMap(w, fMetadata, c.Metadata)
	writeMap(w, fParents, c.Parents)
	writeChannels(w, c)
	writeSeen(w, c.Seen)
	writeStrings(w, fUpdated, c.Updated)
	writeNextTasks(w, fNext, c.Next)
	writeUint(w, fEvent, c.Event)
}

// DecodeCheckpoint reads a manifest. beside lists the channels whose value is
// stored separately: the caller must fill in Value, or List.Items up to the
// lengths of List.Segments. An error wraps checkpoint.ErrCorrupt.
func DecodeCheckpoint(s string) (c *checkpoint.Checkpoint, beside []SeparateValue, err error) {
	c = &checkpoint.Checkpoint{}
	err = decodeRecord(s, "checkpoint", func(sc *scanner, name string) { sc.readCheckpointField(c, &beside, name) })
	if err != nil {
		return nil, nil, err
	}
	return c, beside, nil
}

func (sc *scanner) readCheckpointField(c *checkpoint.Checkpoint, beside *[]SeparateValue, name string) {
	switch name {
	case "id":
		c.ID = sc.readString()
	case "seq":
		c.Seq = sc.readUint()
	case "parent":
		c.Parent = sc.readString()
	case "namespace":
		c.Namespace = sc.readString()
	case "graph":
		c.Graph = sc.readString()
	case "version":
		c.Version = sc.readString()
	case "run":
		c.Run = sc.readString()
	case "source":
		c.Source = checkpoint.Source(sc.readString())
	case "step":
		c.Step = int(sc.readInt())
	case "time":
		c.Time = sc.readTime()
	case "metadata":
		c.Metadata = sc.readMap()
	case "parents":
		c.Parents = sc.readMap()
	case "channels":
		c.Channels = sc.readChannels(beside)
	case "seen":
		c.Seen = sc.readSeen()
	case "updated":
		c.Updated = sc.readStrings()
	case "next":
		c.Next = sc.readNextTasks()
	case "event":
		c.Event = sc.readUint()
	default:
		sc.skipValue()
	}
}
