package codec

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec/packed"
)

// IsSeparate reports whether the value of a channel is kept beside the manifest.
// Of these values, a store writes those whose Stored is the checkpoint's own Seq.
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
func writeChannels(w *packed.Writer, c *checkpoint.Checkpoint) {
	if len(c.Channels) == 0 {
		return
	}
	w.OpenArray(fChannels)
	for i := range c.Channels {
		ch := &c.Channels[i]
		w.OpenElement()
		writeString(w, fName, ch.Name)
		w.WriteUint(fVersion, ch.Version)
		w.WriteUint(fStored, ch.Stored)
		w.WriteBool(fFlag, ch.Flag)
		switch {
		case ch.List != nil:
			writeSegments(w, ch.List)
		case len(ch.Value) > MaxInlineBytes:
			writeInt(w, fBytes, len(ch.Value))
		default:
			w.WriteJSON(fValue, ch.Value)
		}
		w.CloseObject()
	}
	w.CloseArray()
}

func writeSegments(w *packed.Writer, l *checkpoint.List) {
	w.OpenArray(fSegments)
	for _, s := range l.Segments {
		w.OpenElement()
		w.WriteUint(fID, s.ID)
		writeInt(w, fLen, s.Len)
		w.CloseObject()
	}
	w.CloseArray()
	writeInt(w, fFresh, l.Appended)
}

func readChannels(rd *packed.Reader, beside *[]SeparateValue) []checkpoint.Channel {
	var out []checkpoint.Channel
	*beside = nil
	rd.ReadArray(func() {
		var ch checkpoint.Channel
		at := SeparateValue{Channel: len(out)}
		rd.ReadObject(func(f packed.Field) {
			switch f {
			case fBytes:
				at.Bytes = int(rd.ReadInt())
			case fSegments:
				ch.List = readSegments(rd, ch.List)
			case fFresh:
				ch.List = ensureList(ch.List)
				ch.List.Appended = int(rd.ReadInt())
			default:
				readChannelField(rd, &ch, f)
			}
		})
		if at.Bytes < 0 || (at.Bytes > 0 && ch.List != nil) {
			rd.SetError("bad length")
		}
		if at.Bytes > 0 || ch.List != nil {
			*beside = append(*beside, at)
		}
		out = append(out, ch)
	})
	return out
}

func readChannelField(rd *packed.Reader, ch *checkpoint.Channel, f packed.Field) {
	switch f {
	case fName:
		ch.Name = rd.ReadString()
	case fVersion:
		ch.Version = rd.ReadUint()
	case fStored:
		ch.Stored = rd.ReadUint()
	case fFlag:
		ch.Flag = rd.ReadBool()
	case fValue:
		ch.Value = rd.ReadJSON()
	default:
		rd.SkipValue()
	}
}

func ensureList(l *checkpoint.List) *checkpoint.List {
	if l == nil {
		return &checkpoint.List{}
	}
	return l
}

func readSegments(rd *packed.Reader, l *checkpoint.List) *checkpoint.List {
	l = ensureList(l)
	l.Segments = nil
	rd.ReadArray(func() {
		var s checkpoint.Segment
		rd.ReadObject(func(f packed.Field) {
			switch f {
			case fID:
				s.ID = rd.ReadUint()
			case fLen:
				s.Len = int(rd.ReadInt())
			default:
				rd.SkipValue()
			}
		})
		if s.Len < 0 {
			rd.SetError("negative length")
		}
		l.Segments = append(l.Segments, s)
	})
	return l
}

func writeSeen(w *packed.Writer, list []checkpoint.NodeSeen) {
	if len(list) == 0 {
		return
	}
	w.OpenArray(fSeen)
	for i := range list {
		w.OpenElement()
		writeString(w, fNode, list[i].Node)
		w.OpenArray(fVersions)
		for _, v := range list[i].Versions {
			w.OpenElement()
			writeString(w, fChannel, v.Channel)
			w.WriteUint(fVersion, v.Version)
			w.CloseObject()
		}
		w.CloseArray()
		w.CloseObject()
	}
	w.CloseArray()
}

func readSeen(rd *packed.Reader) []checkpoint.NodeSeen {
	var out []checkpoint.NodeSeen
	rd.ReadArray(func() {
		var n checkpoint.NodeSeen
		rd.ReadObject(func(f packed.Field) {
			switch f {
			case fNode:
				n.Node = rd.ReadString()
			case fVersions:
				n.Versions = readSeenVersions(rd)
			default:
				rd.SkipValue()
			}
		})
		out = append(out, n)
	})
	return out
}

func readSeenVersions(rd *packed.Reader) []checkpoint.SeenVersion {
	var out []checkpoint.SeenVersion
	rd.ReadArray(func() {
		var v checkpoint.SeenVersion
		rd.ReadObject(func(f packed.Field) {
			switch f {
			case fChannel:
				v.Channel = rd.ReadString()
			case fVersion:
				v.Version = rd.ReadUint()
			default:
				rd.SkipValue()
			}
		})
		out = append(out, v)
	})
	return out
}
