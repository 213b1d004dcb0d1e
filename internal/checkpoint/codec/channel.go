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
func channels(w *writer, c *checkpoint.Checkpoint) {
	if len(c.Channels) == 0 {
		return
	}
	w.openList(fChannels)
	for i := range c.Channels {
		ch := &c.Channels[i]
		w.element()
		str(w, fName, ch.Name)
		unum(w, fVersion, ch.Version)
		unum(w, fStored, ch.Stored)
		flag(w, fFlag, ch.Flag)
		switch {
		case ch.List != nil:
			segments(w, ch.List)
		case len(ch.Value) > Inline:
			num(w, fBytes, len(ch.Value))
		default:
			raw(w, fValue, ch.Value)
		}
		w.close()
	}
	w.closeList()
}

func segments(w *writer, l *checkpoint.List) {
	w.openList(fSegments)
	for _, s := range l.Segments {
		w.element()
		unum(w, fID, s.ID)
		num(w, fLen, s.Len)
		w.close()
	}
	w.closeList()
	num(w, fFresh, l.Fresh)
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

func seen(w *writer, list []checkpoint.NodeSeen) {
	if len(list) == 0 {
		return
	}
	w.openList(fSeen)
	for i := range list {
		w.element()
		str(w, fNode, list[i].Node)
		w.openList(fVersions)
		for _, v := range list[i].Versions {
			w.element()
			str(w, fChannel, v.Channel)
			unum(w, fVersion, v.Version)
			w.close()
		}
		w.closeList()
		w.close()
	}
	w.closeList()
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
