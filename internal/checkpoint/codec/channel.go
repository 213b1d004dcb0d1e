package codec

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// IsSeparate reports whether the value of a channel is kept beside the manifest.
// Of these, a store writes the ones whose Stored is the checkpoint's own Seq.
func IsSeparate(ch *checkpoint.Channel) bool {
	return ch.List != nil || len(ch.Value) > MaxInlineBytes
}

// SeparateValue is a channel whose value is kept beside the manifest.
type SeparateValue struct {
	Channel int // position in Checkpoint.Channels
	Bytes   int // length of the value; 0 for a list
}

// writeChannels writes, for each channel, its value or where the value is:
// "bytes" says that a value of this length is beside the manifest, "segments"
// names lists of elements.
func writeChannels(w *recordWriter, c *checkpoint.Checkpoint) {
	if len(c.Channels) == 0 {
		return
	}
	w.openArray(fChannels)
	for i := range c.Channels {
		ch := &c.Channels[i]
		w.openElement()
		writeString(w, fName, ch.Name)
		writeUint(w, fVersion, ch.Version)
		writeUint(w, fStored, ch.Stored)
		writeBool(w, fFlag, ch.Flag)
		switch {
		case ch.List != nil:
			writeSegments(w, ch.List)
		case len(ch.Value) > MaxInlineBytes:
			writeInt(w, fBytes, len(ch.Value))
		default:
			writeJSON(w, fValue, ch.Value)
		}
		w.closeObject()
	}
	w.closeArray()
}

func writeSegments(w *recordWriter, l *checkpoint.List) {
	w.openArray(fSegments)
	for _, s := range l.Segments {
		w.openElement()
		writeUint(w, fID, s.ID)
		writeInt(w, fLen, s.Len)
		w.closeObject()
	}
	w.closeArray()
	writeInt(w, fFresh, l.Appended)
}

func (sc *scanner) readChannels(beside *[]SeparateValue) []checkpoint.Channel {
	var out []checkpoint.Channel
	*beside = nil
	sc.readArray(func() {
		var ch checkpoint.Channel
		at := SeparateValue{Channel: len(out)}
		sc.readObject(func(name string) {
			switch name {
			case "bytes":
				at.Bytes = int(sc.readInt())
			case "segments":
				ch.List = sc.readSegments(ch.List)
			case "fresh":
				ch.List = ensureList(ch.List)
				ch.List.Appended = int(sc.readInt())
			default:
				sc.readChannelField(&ch, name)
			}
		})
		if at.Bytes < 0 || (at.Bytes > 0 && ch.List != nil) {
			sc.setError("bad length")
		}
		if at.Bytes > 0 || ch.List != nil {
			*beside = append(*beside, at)
		}
		out = append(out, ch)
	})
	return out
}

func (sc *scanner) readChannelField(ch *checkpoint.Channel, name string) {
	switch name {
	case "name":
		ch.Name = sc.readString()
	case "version":
		ch.Version = sc.readUint()
	case "stored":
		ch.Stored = sc.readUint()
	case "flag":
		ch.Flag = sc.readBool()
	case "value":
		ch.Value = sc.readJSON()
	default:
		sc.skipValue()
	}
}

func ensureList(l *checkpoint.List) *checkpoint.List {
	if l == nil {
		return &checkpoint.List{}
	}
	return l
}

func (sc *scanner) readSegments(l *checkpoint.List) *checkpoint.List {
	l = ensureList(l)
	l.Segments = nil
	sc.readArray(func() {
		var s checkpoint.Segment
		sc.readObject(func(name string) {
			switch name {
			case "id":
				s.ID = sc.readUint()
			case "len":
				s.Len = int(sc.readInt())
			default:
				sc.skipValue()
			}
		})
		if s.Len < 0 {
			sc.setError("negative length")
		}
		l.Segments = append(l.Segments, s)
	})
	return l
}

func writeSeen(w *recordWriter, list []checkpoint.NodeSeen) {
	if len(list) == 0 {
		return
	}
	w.openArray(fSeen)
	for i := range list {
		w.openElement()
		writeString(w, fNode, list[i].Node)
		w.openArray(fVersions)
		for _, v := range list[i].Versions {
			w.openElement()
			writeString(w, fChannel, v.Channel)
			writeUint(w, fVersion, v.Version)
			w.closeObject()
		}
		w.closeArray()
		w.closeObject()
	}
	w.closeArray()
}

func (sc *scanner) readSeen() []checkpoint.NodeSeen {
	var out []checkpoint.NodeSeen
	sc.readArray(func() {
		var n checkpoint.NodeSeen
		sc.readObject(func(name string) {
			switch name {
			case "node":
				n.Node = sc.readString()
			case "versions":
				n.Versions = sc.readSeenVersions()
			default:
				sc.skipValue()
			}
		})
		out = append(out, n)
	})
	return out
}

func (sc *scanner) readSeenVersions() []checkpoint.SeenVersion {
	var out []checkpoint.SeenVersion
	sc.readArray(func() {
		var v checkpoint.SeenVersion
		sc.readObject(func(name string) {
			switch name {
			case "channel":
				v.Channel = sc.readString()
			case "version":
				v.Version = sc.readUint()
			default:
				sc.skipValue()
			}
		})
		out = append(out, v)
	})
	return out
}
