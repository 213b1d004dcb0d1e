package codec

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec/packed"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/redact"
)

// writeHidden writes which parts of an interrupt are secret, and what they are.
func writeHidden(w *packed.Writer, in *checkpoint.Interrupt) {
	w.WriteStrings(fSecret, in.Secret)
	if in.Hidden == (checkpoint.Hidden{}) {
		return
	}
	w.OpenObject(fHidden)
	writeParts(w, fValue, in.Hidden.Value)
	writeParts(w, fDefault, in.Hidden.Default)
	writeParts(w, fResponse, in.Hidden.Response)
	w.CloseObject()
}

func readHidden(rd *packed.Reader) (h checkpoint.Hidden) {
	rd.ReadObject(func(f packed.Field) {
		switch f {
		case fValue:
			h.Value = readParts(rd)
		case fDefault:
			h.Default = readParts(rd)
		case fResponse:
			h.Response = readParts(rd)
		default:
			rd.SkipValue()
		}
	})
	return h
}

func writeParts(w *packed.Writer, name packed.Field, parts redact.Parts) {
	if parts.IsEmpty() {
		return
	}
	w.OpenArray(name)
	parts.ExposeEach(func(pointer string, value payload.JSON) {
		w.OpenElement()
		writeString(w, fPointer, pointer)
		w.WriteJSON(fValue, value)
		w.CloseObject()
	})
	w.CloseArray()
}

func readParts(rd *packed.Reader) redact.Parts {
	var b redact.Builder
	rd.ReadArray(func() {
		var pointer string
		var value payload.JSON
		rd.ReadObject(func(f packed.Field) {
			switch f {
			case fPointer:
				pointer = rd.ReadString()
			case fValue:
				value = rd.ReadJSON()
			default:
				rd.SkipValue()
			}
		})
		b.Add(pointer, value)
	})
	return b.Parts()
}
