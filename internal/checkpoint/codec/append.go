package codec

import (
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/graphd-dev/graphd/internal/payload"
)

// writer appends fields to a record. A field that says nothing is left out.
type writer struct {
	b      []byte
	packed bool
	packer packer
}

const begin = `{"v":1`

// key begins a field of a JSON object.
func (w *writer) key(name field) {
	w.comma()
	w.b = append(w.b, '"')
	w.b = append(w.b, name.text()...)
	w.b = append(w.b, '"', ':')
}

// comma separates from the element before, if there is one. The byte before
// is always ours: no user value ends in an opening bracket.
func (w *writer) comma() {
	if c := w.b[len(w.b)-1]; c != '{' && c != '[' {
		w.b = append(w.b, ',')
	}
}

// open begins an object, close ends it.
func (w *writer) open(name field) {
	if w.packed {
		w.b = append(w.b, byte(name), vObject)
		return
	}
	w.key(name)
	w.b = append(w.b, '{')
}

func (w *writer) close() {
	if w.packed {
		w.b = append(w.b, byte(fEnd))
		return
	}
	w.b = append(w.b, '}')
}

// openList begins an array, closeList ends it, element begins an object in it.
func (w *writer) openList(name field) {
	if w.packed {
		w.b = append(w.b, byte(name), vArray)
		return
	}
	w.key(name)
	w.b = append(w.b, '[')
}

func (w *writer) closeList() {
	if w.packed {
		w.b = append(w.b, vEnd)
		return
	}
	w.b = append(w.b, ']')
}

func (w *writer) element() {
	if w.packed {
		w.b = append(w.b, vObject)
		return
	}
	w.comma()
	w.b = append(w.b, '{')
}

func str[S ~string](w *writer, name field, v S) {
	switch {
	case v == "":
	case w.packed:
		w.b = append(w.b, byte(name))
		w.pack(string(v))
	default:
		w.key(name)
		w.b = quote(w.b, string(v))
	}
}

func raw(w *writer, name field, v payload.JSON) {
	switch {
	case v == "":
	case w.packed:
		w.b = packValue(append(w.b, byte(name)), v)
	default:
		w.key(name)
		w.b = append(w.b, v...)
	}
}

func num[N ~int | ~int64](w *writer, name field, v N) {
	switch {
	case v == 0:
	case w.packed && v < 0:
		w.b = packNumber(append(w.b, byte(name)), vNegative, uint64(-(v + 1)))
	case w.packed:
		w.b = packNumber(append(w.b, byte(name)), vNumber, uint64(v))
	default:
		w.key(name)
		w.b = strconv.AppendInt(w.b, int64(v), 10)
	}
}

func unum(w *writer, name field, v uint64) {
	switch {
	case v == 0:
	case w.packed:
		w.b = packNumber(append(w.b, byte(name)), vNumber, v)
	default:
		w.key(name)
		w.b = strconv.AppendUint(w.b, v, 10)
	}
}

func flag(w *writer, name field, v bool) {
	switch {
	case !v:
	case w.packed:
		w.b = append(w.b, byte(name), vTrue)
	default:
		w.key(name)
		w.b = append(w.b, "true"...)
	}
}

func instant(w *writer, name field, v time.Time) {
	switch {
	case v.IsZero():
	case w.packed:
		w.b = append(w.b, byte(name))
		w.packTime(v)
	default:
		w.key(name)
		w.b = append(w.b, '"')
		w.b = v.UTC().AppendFormat(w.b, time.RFC3339Nano)
		w.b = append(w.b, '"')
	}
}

func span(w *writer, name field, v time.Duration) {
	switch {
	case v == 0:
	case w.packed:
		num(w, name, v)
	default:
		w.key(name)
		w.b = quote(w.b, v.String())
	}
}

func list(w *writer, name field, v []string) {
	if len(v) == 0 {
		return
	}
	w.openList(name)
	for _, s := range v {
		if w.packed {
			w.pack(s)
			continue
		}
		w.comma()
		w.b = quote(w.b, s)
	}
	w.closeList()
}

// dict writes the keys in order, so that equal records are equal bytes.
func dict(w *writer, name field, v map[string]string) {
	if len(v) == 0 {
		return
	}
	keys := slices.Sorted(maps.Keys(v))
	if w.packed {
		w.b = append(w.b, byte(name), vArray)
		for _, k := range keys {
			w.pack(k)
			w.pack(v[k])
		}
		w.b = append(w.b, vEnd)
		return
	}
	w.key(name)
	w.b = append(w.b, '{')
	for _, k := range keys {
		w.comma()
		w.b = quote(w.b, k)
		w.b = quote(append(w.b, ':'), v[k])
	}
	w.b = append(w.b, '}')
}

const digits = "0123456789abcdef"

// quote appends a JSON string. Bytes that are not UTF-8 become U+FFFD, the
// only thing a JSON text can say about them.
func quote(b []byte, s string) []byte {
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
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}
