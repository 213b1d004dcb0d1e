package codec

import "github.com/graphd-dev/graphd/internal/checkpoint"

// AppendCheckpoint appends a checkpoint's manifest. Values of at most Inline
// bytes stand in it, larger ones and list elements are stored beside it.
func AppendCheckpoint(b []byte, c *checkpoint.Checkpoint) []byte {
	b = append(b, begin...)
	b = str(b, "id", c.ID)
	b = unum(b, "seq", c.Seq)
	b = str(b, "parent", c.Parent)
	b = str(b, "namespace", c.Namespace)
	b = str(b, "graph", c.Graph)
	b = str(b, "version", c.Version)
	b = str(b, "run", c.Run)
	b = str(b, "source", c.Source)
	b = num(b, "step", c.Step)
	b = instant(b, "time", c.Time)
	b = dict(b, "metadata", c.Metadata)
	b = dict(b, "parents", c.Parents)
	b = channels(b, c)
	b = seen(b, c.Seen)
	b = list(b, "updated", c.Updated)
	b = nextTasks(b, "next", c.Next)
	b = unum(b, "event", c.Event)
	return append(b, '}')
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
