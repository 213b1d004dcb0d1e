package codec

import "github.com/graphd-dev/graphd/internal/checkpoint"

// AppendRequest appends the record of a remembered request.
func AppendRequest(b []byte, r *checkpoint.Request) []byte {
	w := recordWriter{buf: append(b, jsonBegin...)}
	writeRequest(&w, r)
	return append(w.buf, '}')
}

// PackRequest appends the packed record of a remembered request.
func PackRequest(b []byte, r *checkpoint.Request) []byte {
	w := recordWriter{buf: append(b, packedVersionByte), isPacked: true}
	writeRequest(&w, r)
	return w.buf
}

func writeRequest(w *recordWriter, r *checkpoint.Request) {
	writeString(w, fID, r.ID)
	writeString(w, fDigest, r.Digest)
	writeString(w, fRun, r.Run)
	writeUint(w, fEvent, r.Event)
	writeTime(w, fCreated, r.Created)
}

// DecodeRequest reads a record that AppendRequest or PackRequest wrote. An error
// wraps checkpoint.ErrCorrupt.
func DecodeRequest(s string) (checkpoint.Request, error) {
	var r checkpoint.Request
	err := decodeRecord(s, "request", func(sc *scanner, name string) {
		switch name {
		case "id":
			r.ID = sc.readString()
		case "digest":
			r.Digest = sc.readString()
		case "run":
			r.Run = sc.readString()
		case "event":
			r.Event = sc.readUint()
		case "created":
			r.Created = sc.readTime()
		default:
			sc.skipValue()
		}
	})
	if err != nil {
		return checkpoint.Request{}, err
	}
	return r, nil
}
