package codec

import "github.com/graphd-dev/graphd/internal/checkpoint"

// AppendRequest appends the record of a remembered request.
func AppendRequest(b []byte, r *checkpoint.Request) []byte {
	w := writer{b: append(b, begin...)}
	requestFields(&w, r)
	return append(w.b, '}')
}

// PackRequest appends the packed record of a remembered request.
func PackRequest(b []byte, r *checkpoint.Request) []byte {
	w := writer{b: append(b, packed), packed: true}
	requestFields(&w, r)
	return w.b
}

func requestFields(w *writer, r *checkpoint.Request) {
	str(w, fID, r.ID)
	str(w, fDigest, r.Digest)
	str(w, fRun, r.Run)
	unum(w, fEvent, r.Event)
	instant(w, fCreated, r.Created)
}

// DecodeRequest reads a record that AppendRequest or PackRequest wrote. An error
// wraps checkpoint.ErrCorrupt.
func DecodeRequest(s string) (checkpoint.Request, error) {
	var r checkpoint.Request
	err := record(s, "request", func(sc *scanner, name string) {
		switch name {
		case "id":
			r.ID = sc.str()
		case "digest":
			r.Digest = sc.str()
		case "run":
			r.Run = sc.str()
		case "event":
			r.Event = sc.unum()
		case "created":
			r.Created = sc.instant()
		default:
			sc.skip()
		}
	})
	if err != nil {
		return checkpoint.Request{}, err
	}
	return r, nil
}
