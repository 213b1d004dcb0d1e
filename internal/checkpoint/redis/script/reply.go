package script

import (
	"strconv"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
)

// Reply is the list of values that a script returned.
type Reply []any

// TextAt returns a value, "" when there is none.
func (r Reply) TextAt(i int) string {
	if i >= len(r) {
		return ""
	}
	s, _ := r[i].(string)
	return s
}

// HasValue reports whether there is a value.
func (r Reply) HasValue(i int) bool { return i < len(r) && r[i] != nil }

// ListAt returns a list, nil when there is none.
func (r Reply) ListAt(i int) Reply {
	if i >= len(r) {
		return nil
	}
	l, _ := r[i].([]any)
	return l
}

// Bytes returns the number of bytes of the texts.
func (r Reply) Bytes() int {
	n := 0
	for i := range r {
		n += len(r.TextAt(i))
	}
	return n
}

// UintAt returns a number. It returns checkpoint.ErrCorrupt when the value is none.
func (r Reply) UintAt(i int) (uint64, error) {
	n, err := strconv.ParseUint(r.TextAt(i), 10, 64)
	if err != nil {
		return 0, layout.CorruptError("%q is no number", r.TextAt(i))
	}
	return n, nil
}

// IntAt returns an integer, and reports whether the value is an integer.
func (r Reply) IntAt(i int) (n int64, ok bool) {
	if i < len(r) {
		n, ok = r[i].(int64)
	}
	return n, ok
}

// TimeAt returns a time from microseconds since 1970, "" = the zero time. It returns
// checkpoint.ErrCorrupt when the value is no number.
func (r Reply) TimeAt(i int) (time.Time, error) {
	if r.TextAt(i) == "" {
		return time.Time{}, nil
	}
	n, err := strconv.ParseInt(r.TextAt(i), 10, 64)
	if err != nil {
		return time.Time{}, layout.CorruptError("%q is no instant", r.TextAt(i))
	}
	return time.UnixMicro(n).UTC(), nil
}

// UnpackNames returns the texts of a MessagePack array. It returns an error when the text
// is no such array.
func UnpackNames(text string) (names []string, err error) {
	take := func(n int) string {
		if n > len(text) {
			err = layout.CorruptError("a list of names is too short")
			n = len(text)
		}
		head := text[:n]
		text = text[n:]
		return head
	}
	number := func(bytes int) (n int) {
		for _, c := range []byte(take(bytes)) {
			n = n<<8 | int(c)
		}
		return n
	}
	if text == "" {
		return nil, nil
	}
	var n int
	switch c := take(1)[0]; {
	case c&0xf0 == 0x90:
		n = int(c & 0x0f)
	case c == 0xdc:
		n = number(2)
	case c == 0xdd:
		n = number(4)
	default:
		return nil, layout.CorruptError("a list of names begins with %#x", c)
	}
	for i := 0; i < n && err == nil; i++ {
		length := 0
		switch c := take(1); {
		case c == "":
		case c[0]&0xe0 == 0xa0:
			length = int(c[0] & 0x1f)
		case c[0] == 0xd9:
			length = number(1)
		case c[0] == 0xda:
			length = number(2)
		case c[0] == 0xdb:
			length = number(4)
		default:
			return nil, layout.CorruptError("a name begins with %#x", c[0])
		}
		names = append(names, take(length))
	}
	return names, err
}
