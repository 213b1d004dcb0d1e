package codec

import (
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/graphd-dev/graphd/internal/payload"
)

// recordWriter appends fields to a record. A field that says nothing is left out.
type recordWriter struct {
	buf      []byte
	isPacked bool
	packer   packer
}

const jsonBegin = `{"v":1`

// writeKey begins a field of a JSON object.
func (w *recordWriter) writeKey(name field) {
	w.writeComma()
	w.buf = append(w.buf, '"')
	w.buf = append(w.buf, name.jsonName()...)
	w.buf = append(w.buf, '"', ':')
}

// writeComma separates from the element before, if there is one. The byte before
// is always ours: no user value ends in an opening bracket.
func (w *recordWriter) writeComma() {
	if c := w.buf[len(w.buf)-1]; c != '{' && c != '[' {
		w.buf = append(w.buf, ',')
	}
}

// openObject begins an object, close ends it.
func (w *recordWriter) openObject(name field) {
	if w.isPacked {
		w.buf = append(w.buf, byte(name), vObject)
		return
	}
	w.writeKey(name)
	w.buf = append(w.buf, '{')
}

func (w *recordWriter) closeObject() {
	if w.isPacked {
		w.buf = append(w.buf, byte(fEnd))
		return
	}
	w.buf = append(w.buf, '}')
}

// openArray begins an array, closeArray ends it, element begins an object in it.
func (w *recordWriter) openArray(name field) {
	if w.isPacked {
		w.buf = append(w.buf, byte(name), vArray)
		return
	}
	w.writeKey(name)
	w.buf = append(w.buf, '[')
}

func (w *recordWriter) closeArray() {
	if w.isPacked {
		w.buf = append(w.buf, vEnd)
		return
	}
	w.buf = append(w.buf, ']')
}

func (w *recordWriter) openElement() {
	if w.isPacked {
		w.buf = append(w.buf, vObject)
		return
	}
	w.writeComma()
	w.buf = append(w.buf, '{')
}

func writeString[S ~string](w *recordWriter, name field, v S) {
	switch {
	case v == "":
	case w.isPacked:
		w.buf = append(w.buf, byte(name))
		w.packString(string(v))
	default:
		w.writeKey(name)
		w.buf = appendQuoted(w.buf, string(v))
	}
}

func writeJSON(w *recordWriter, name field, v payload.JSON) {
	switch {
	case v == "":
	case w.isPacked:
		w.buf = packValue(append(w.buf, byte(name)), v)
	default:
		w.writeKey(name)
		w.buf = append(w.buf, v...)
	}
}

func writeInt[N ~int | ~int64](w *recordWriter, name field, v N) {
	switch {
	case v == 0:
	case w.isPacked && v < 0:
		w.buf = packNumber(append(w.buf, byte(name)), vNegative, uint64(-(v + 1)))
	case w.isPacked:
		w.buf = packNumber(append(w.buf, byte(name)), vNumber, uint64(v))
	default:
		w.writeKey(name)
		w.buf = strconv.AppendInt(w.buf, int64(v), 10)
	}
}

func writeUint(w *recordWriter, name field, v uint64) {
	switch {
	case v == 0:
	case w.isPacked:
		w.buf = packNumber(append(w.buf, byte(name)), vNumber, v)
	default:
		w.writeKey(name)
		w.buf = strconv.AppendUint(w.buf, v, 10)
	}
}

func writeBool(w *recordWriter, name field, v bool) {
	switch {
	case !v:
	case w.isPacked:
		w.buf = append(w.buf, byte(name), vTrue)
	default:
		w.writeKey(name)
		w.buf = append(w.buf, "true"...)
	}
}

func writeTime(w *recordWriter, name field, v time.Time) {
	switch {
	case v.IsZero():
	case w.isPacked:
		w.buf = append(w.buf, byte(name))
		w.packTime(v)
	default:
		w.writeKey(name)
		w.buf = append(w.buf, '"')
		w.buf = v.UTC().AppendFormat(w.buf, time.RFC3339Nano)
		w.buf = append(w.buf, '"')
	}
}

func writeDuration(w *recordWriter, name field, v time.Duration) {
	switch {
	case v == 0:
	case w.isPacked:
		writeInt(w, name, v)
	default:
		w.writeKey(name)
		w.buf = appendQuoted(w.buf, v.String())
	}
}

func writeStrings(w *recordWriter, name field, v []string) {
	if len(v) == 0 {
		return
	}
	w.openArray(name)
	for _, s := range v {
		if w.isPacked {
			w.packString(s)
			continue
		}
		w.writeComma()
		w.buf = appendQuoted(w.buf, s)
	}
	w.closeArray()
}

// writeMap writes the keys in order, so that equal records are equal bytes.
func writeMap(w *recordWriter, name field, v map[string]string) {
	if len(v) == 0 {
		return
	}
	keys := slices.Sorted(maps.Keys(v))
	if w.isPacked {
		w.buf = append(w.buf, byte(name), vArray)
		for _, k := range keys {
			w.packString(k)
			w.packString(v[k])
		}
		w.buf = append(w.buf, vEnd)
		return
	}
	w.writeKey(name)
	w.buf = append(w.buf, '{')
	for _, k := range keys {
		w.writeComma()
		w.buf = appendQuoted(w.buf, k)
		w.buf = appendQuoted(append(w.buf, ':'), v[k])
	}
	w.buf = append(w.buf, '}')
}

const hexDigits = "0123456789abcdef"

// appendQuoted appends a JSON string. Bytes that are not UTF-8 become U+FFFD, the
// only thing a JSON text can say about them.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(append(b, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += size
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\t':
			b = append(b, '\\', 't')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}
