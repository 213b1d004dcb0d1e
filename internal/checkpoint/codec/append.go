package codec

import (
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/graphd-dev/graphd/internal/payload"
)

// The functions here append one field to an object that has been begun. A
// field that says nothing is left out.

const begin = `{"v":1`

func key(b []byte, name string) []byte {
	b = comma(b)
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

// comma separates from the element before, if there is one. The byte before
// is always ours: no user value ends in an opening bracket.
func comma(b []byte) []byte {
	if c := b[len(b)-1]; c == '{' || c == '[' {
		return b
	}
	return append(b, ',')
}

func str[S ~string](b []byte, name string, v S) []byte {
	if v == "" {
		return b
	}
	return quote(key(b, name), string(v))
}

func raw(b []byte, name string, v payload.JSON) []byte {
	if v == "" {
		return b
	}
	return append(key(b, name), v...)
}

func num[N ~int | ~int64](b []byte, name string, v N) []byte {
	if v == 0 {
		return b
	}
	return strconv.AppendInt(key(b, name), int64(v), 10)
}

func unum(b []byte, name string, v uint64) []byte {
	if v == 0 {
		return b
	}
	return strconv.AppendUint(key(b, name), v, 10)
}

func flag(b []byte, name string, v bool) []byte {
	if !v {
		return b
	}
	return append(key(b, name), "true"...)
}

func instant(b []byte, name string, v time.Time) []byte {
	if v.IsZero() {
		return b
	}
	b = append(key(b, name), '"')
	b = v.UTC().AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}

func span(b []byte, name string, v time.Duration) []byte {
	if v == 0 {
		return b
	}
	return quote(key(b, name), v.String())
}

func list(b []byte, name string, v []string) []byte {
	if len(v) == 0 {
		return b
	}
	b = append(key(b, name), '[')
	for _, s := range v {
		b = quote(comma(b), s)
	}
	return append(b, ']')
}

// dict writes the keys in order, so that equal records are equal bytes.
func dict(b []byte, name string, v map[string]string) []byte {
	if len(v) == 0 {
		return b
	}
	b = append(key(b, name), '{')
	for _, k := range slices.Sorted(maps.Keys(v)) {
		b = quote(comma(b), k)
		b = quote(append(b, ':'), v[k])
	}
	return append(b, '}')
}

const hex = "0123456789abcdef"

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
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}
