package codec

import "github.com/graphd-dev/graphd/internal/checkpoint"

// AppendCheckpoint appends a checkpoint's manifest. Values of at most Inline
// bytes stand in it, larger ones and list elements are stored beside it.
func AppendCheckpoint(b []byte, c *checkpoint.Checkpoint) []byte {
	w := writer{b: append(b, begin...)}
	checkpointFields(&w, c)
	return append(w.b, '}')
}

// PackCheckpoint appends the packed record of a checkpoint.
func PackCheckpoint(b []byte, c *checkpoint.Checkpoint) []byte {
	w := writer{b: append(b, packed), packed: true}
	checkpointFields(&w, c)
	return w.b
}

func checkpointFields(w *writer, c *checkpoint.Checkpoint) {
	str(w, fID, c.ID)
	unum(w, fSeq, c.Seq)
	str(w, fParent, c.Parent)
	str(w, fNamespace, c.Namespace)
	str(w, fGraph, c.Graph)
	str(w, fVersion, c.Version)
	str(w, fRun, c.Run)
	str(w, fSource, c.Source)
	num(w, fStep, c.Step)
	instant(w, fTime, c.Time)
	dict(w, fMetadata, c.Metadata)
	dict(w, fParents, c.Parents)
	channels(w, c)
	seen(w, c.Seen)
	list(w, fUpdated, c.Updated)
	nextTasks(w, fNext, c.Next)
	unum(w, fEvent, c.Event)
}

// DecodeCheckpoint reads a manifest. Beside lists the channels whose value
// is stored beside it: the caller must fill in Value, or List.Items up to the
// lengths of List.Segments. An error wraps checkpoint.ErrCorrupt.
func DecodeCheckpoint(s string) (c *checkpoint.Checkpoint, beside []Beside, err error) {
	c = &checkpoint.Checkpoint{}
	err = record(s, "checkpoint", func(sc *scanner, name string) { sc.checkpointField(c, &beside, name) })
	if err != nil {
		return nil, nil, err
	}
	return c, beside, nil
}

func (sc *scanner) checkpointField(c *checkpoint.Checkpoint, beside *[]Beside, name string) {
	switch name {
	case "id":
		c.ID = sc.str()
	case "seq":
		c.Seq = sc.unum()
	case "parent":
		c.Parent = sc.str()
	case "namespace":
		c.Namespace = sc.str()
	case "graph":
		c.Graph = sc.str()
	case "version":
		c.Version = sc.str()
	case "run":
		c.Run = sc.str()
	case "source":
		c.Source = checkpoint.Source(sc.str())
	case "step":
		c.Step = int(sc.num())
	case "time":
		c.Time = sc.instant()
	case "metadata":
		c.Metadata = sc.dict()
	case "parents":
		c.Parents = sc.dict()
	case "channels":
		c.Channels = sc.channels(beside)
	case "seen":
		c.Seen = sc.seen()
	case "updated":
		c.Updated = sc.list()
	case "next":
		c.Next = sc.nextTasks()
	case "event":
		c.Event = sc.unum()
	default:
		sc.skip()
	}
}
