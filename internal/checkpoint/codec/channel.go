package codec

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Stored reports whether the value of a channel is kept beside the manifest.
// Of these, a store writes the ones whose Stored is the checkpoint's own Seq.
func Stored(ch *checkpoint.Channel) bool {
	return ch.List != nil || len(ch.Value) > Inline
}

// Beside is a channel whose value is kept beside the manifest.
type Beside struct {
	Channel int // position in Checkpoint.Channels
	Bytes   int // length of the value; 0 for a list
}

// channels writes, for each channel, its value or where the value is:
// "bytes" says that a value of this length is beside the manifest, "segments"
// names lists of elements.
func channels(b []byte, c *checkpoint.Checkpoint) []byte {
	if len(c.Channels) == 0 {
		return b
	}
	b = append(key(b, "channels"), '[')
	for i := range c.Channels {
		ch := &c.Channels[i]
		b = append(comma(b), '{')
		b = str(b, "name", ch.Name)
		b = unum(b, "version", ch.Version)
		b = unum(b, "stored", ch.Stored)
		b = flag(b, "flag", ch.Flag)
		switch {
		case ch.List != nil:
			b = segments(b, ch.List)
		case len(ch.Value) > Inline:
			b = num(b, "bytes", len(ch.Value))
		default:
			b = raw(b, "value", ch.Value)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

func segments(b []byte, l *checkpoint.List) []byte {
	b = append(key(b, "segments"), '[')
	for _, s := range l.Segments {
		b = append(comma(b), '{')
		b = unum(b, "id", s.ID)
		b = append(num(b, "len", s.Len), '}')
	}
	return num(append(b, ']'), "fresh", l.Fresh)
}

func (sc *scanner) channels(beside *[]Beside) []checkpoint.Channel {
	var out []checkpoint.Channel
	*beside = nil
	sc.array(func() {
		var ch checkpoint.Channel
		at := Beside{Channel: len(out)}
		sc.object(func(name string) {
			switch name {
			case "bytes":
				at.Bytes = int(sc.num())
			case "segments":
				ch.List = sc.segments(ch.List)
			case "fresh":
				ch.List = listOf(ch.List)
				ch.List.Fresh = int(sc.num())
			default:
				sc.channelField(&ch, name)
			}
		})
		if at.Bytes < 0 || (at.Bytes > 0 && ch.List != nil) {
			sc.fail("bad length")
		}
		if at.Bytes > 0 || ch.List != nil {
			*beside = append(*beside, at)
		}
		out = append(out, ch)
	})
	return out
}

func (sc *scanner) channelField(ch *checkpoint.Channel, name string) {
	switch name {
	case "name":
		ch.Name = sc.str()
	case "version":
		ch.Version = sc.unum()
	case "stored":
		ch.Stored = sc.unum()
	case "flag":
		ch.Flag = sc.flag()
	case "value":
		ch.Value = sc.raw()
	default:
		sc.skip()
	}
}

func listOf(l *checkpoint.List) *checkpoint.List {
	if l == nil {
		return &checkpoint.List{}
	}
	return l
}

func (sc *scanner) segments(l *checkpoint.List) *checkpoint.List {
	l = listOf(l)
	l.Segments = nil
	sc.array(func() {
		var s checkpoint.Segment
		sc.object(func(name string) {
			switch name {
			case "id":
				s.ID = sc.unum()
			case "len":
				s.Len = int(sc.num())
			default:
				sc.skip()
			}
		})
		if s.Len < 0 {
			sc.fail("negative length")
		}
		l.Segments = append(l.Segments, s)
	})
	return l
}

func seen(b []byte, list []checkpoint.NodeSeen) []byte {
	if len(list) == 0 {
		return b
	}
	b = append(key(b, "seen"), '[')
	for i := range list {
		b = append(comma(b), '{')
		b = str(b, "node", list[i].Node)
		b = append(key(b, "versions"), '[')
		for _, v := range list[i].Versions {
			b = append(comma(b), '{')
			b = str(b, "channel", v.Channel)
			b = append(unum(b, "version", v.Version), '}')
		}
		b = append(b, ']', '}')
	}
	return append(b, ']')
}

func (sc *scanner) seen() []checkpoint.NodeSeen {
	var out []checkpoint.NodeSeen
	sc.array(func() {
		var n checkpoint.NodeSeen
		sc.object(func(name string) {
			switch name {
			case "node":
				n.Node = sc.str()
			case "versions":
				n.Versions = sc.versions()
			default:
				sc.skip()
			}
		})
		out = append(out, n)
	})
	return out
}

func (sc *scanner) versions() []checkpoint.SeenVersion {
	var out []checkpoint.SeenVersion
	sc.array(func() {
		var v checkpoint.SeenVersion
		sc.object(func(name string) {
			switch name {
			case "channel":
				v.Channel = sc.str()
			case "version":
				v.Version = sc.unum()
			default:
				sc.skip()
			}
		})
		out = append(out, v)
	})
	return out
}
