package codec

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec/packed"
)

// PackRequest appends the record of a remembered request.
func PackRequest(b []byte, r *checkpoint.Request) []byte {
	w := packed.NewWriter(b)
	writeRequest(w, r)
	return w.Bytes()
}

func writeRequest(w *packed.Writer, r *checkpoint.Request) {
	writeString(w, fID, r.ID)
	writeString(w, fDigest, r.Digest)
	writeString(w, fRun, r.Run)
	w.WriteUint(fEvent, r.Event)
	w.WriteTime(fCreated, r.Created)
}

// DecodeRequest reads a record that PackRequest wrote. An error wraps
// checkpoint.ErrCorrupt.
func DecodeRequest(s string) (checkpoint.Request, error) {
	var r checkpoint.Request
	err := packed.ReadRecord(s, "request", func(rd *packed.Reader, f packed.Field) {
		switch f {
		case fID:
			r.ID = rd.ReadString()
		case fDigest:
			r.Digest = rd.ReadString()
		case fRun:
			r.Run = rd.ReadString()
		case fEvent:
			r.Event = rd.ReadUint()
		case fCreated:
			r.Created = rd.ReadTime()
		default:
			rd.SkipValue()
		}
	})
	if err != nil {
		return checkpoint.Request{}, err
	}
	return r, nil
}
