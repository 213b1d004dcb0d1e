package codec

import (
	"encoding/binary"
	"math"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/payload"
)

// unpacker is what a scanner knows of a packed record.
type unpacker struct {
	texts []string
	last  int64
	// Whether parts are copied that have less than half of the record: who holds one of
	// them does not hold all of it.
	copies bool
}

// largeRecord is from how many bytes on the events of a record are taken apart.
const largeRecord = 64 << 10

// byte takes one byte.
func (sc *scanner) byte() byte {
	if sc.err != nil || sc.i >= len(sc.s) {
		sc.fail("ends too early")
		return vEnd
	}
	c := sc.s[sc.i]
	sc.i++
	return c
}

// bytes takes n bytes.
func (sc *scanner) bytes(n uint64) string {
	if sc.err != nil || n > uint64(len(sc.s)-sc.i) {
		sc.fail("ends too early")
		return ""
	}
	from := sc.i
	sc.i += int(n)
	if sc.packed.copies && n < uint64(len(sc.s)/2) {
		return strings.Clone(sc.s[from:sc.i])
	}
	return sc.s[from:sc.i]
}

// varint takes a number.
func (sc *scanner) varint() (n uint64) {
	for shift := 0; shift < 64; shift += 7 {
		c := sc.byte()
		if sc.err != nil {
			return 0
		}
		if shift == 63 && c > 1 {
			break
		}
		n |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return n
		}
	}
	sc.fail("a number is too large")
	return 0
}

// fields calls do for each field of an object, "" for one that this version
// does not know. The outermost object ends with the record.
func (sc *scanner) fields(outermost bool, do func(name string)) {
	for sc.err == nil {
		if outermost && sc.i == len(sc.s) {
			return
		}
		f := field(sc.byte())
		if sc.err != nil || f == fEnd {
			if outermost {
				sc.fail("bytes after the record")
			}
			return
		}
		do(f.text())
	}
}

func (sc *scanner) unpackObject(do func(name string)) {
	if sc.is(vObject, "an object") && sc.deeper() {
		sc.fields(false, do)
	}
	sc.depth--
}

func (sc *scanner) unpackArray(element func()) {
	if sc.is(vArray, "an array") && sc.deeper() {
		for sc.err == nil && !sc.ends() {
			element()
		}
	}
	sc.depth--
}

// ends takes the end of an array, if it is there.
func (sc *scanner) ends() bool {
	if sc.i < len(sc.s) && sc.s[sc.i] == vEnd {
		sc.i++
		return true
	}
	if sc.i == len(sc.s) {
		sc.fail("ends too early")
	}
	return false
}

func (sc *scanner) is(kind byte, what string) bool {
	if c := sc.byte(); sc.err == nil && c != kind {
		sc.i--
		sc.fail("expected " + what)
	}
	return sc.err == nil
}

// unpack takes a text.
func (sc *scanner) unpack() string {
	c := sc.byte()
	switch {
	case sc.err != nil:
		return ""
	case c == vSmall:
		return ""
	case c >= vAgain && c < vWord:
		return sc.again(uint64(c - vAgain))
	case c == vRepeated:
		return sc.again(sc.varint())
	case c > vWord && c < vNumber:
		s := word(c - vWord)
		if s == "" {
			sc.fail("an unknown word")
		}
		return s
	}
	var s string
	switch {
	case c >= vShort && c < vAgain:
		s = sc.bytes(uint64(c - vShort))
	case c == vText:
		s = sc.bytes(sc.varint())
	case c == vHex:
		s = unpackHex(sc.bytes(uint64(sc.byte())))
	case c == vDigest:
		s = digest + unpackHex(sc.bytes(uint64(sc.byte())))
	case c == vNumbered:
		s = sc.numbered()
	case c == vBranch && (sc.i == len(sc.s) || sc.s[sc.i] != vBranch):
		s = branch + sc.unpack()
	default:
		sc.i--
		sc.fail("expected a text")
	}
	if sc.err == nil && isShared(s) && len(sc.packed.texts) < maxTexts {
		sc.packed.texts = append(sc.packed.texts, s)
	}
	return s
}

func (sc *scanner) again(n uint64) string {
	if sc.err != nil || n >= uint64(len(sc.packed.texts)) {
		sc.fail("a text that was not there before")
		return ""
	}
	return sc.packed.texts[n]
}

func (sc *scanner) numbered() string {
	n := sc.varint()
	if n >= 1<<48 {
		sc.fail("a number is too large")
	}
	var b [21]byte
	for i := 11; i >= 0; i-- {
		b[i] = digits[n&15]
		n >>= 4
	}
	b[12] = '-'
	copy(b[13:], unpackHex(sc.bytes(4)))
	return string(b[:])
}

func (sc *scanner) unpackValue() payload.JSON {
	switch c := sc.byte(); {
	case sc.err != nil:
		return ""
	case c == vNull:
		return "null"
	case c == vJSON:
		v := sc.bytes(sc.varint())
		if v == "" {
			sc.fail("an empty value")
		}
		return payload.JSON(v)
	}
	sc.i--
	sc.fail("expected a value")
	return ""
}

// unpackNumber takes a number and whether it is -1-n.
func (sc *scanner) unpackNumber() (n uint64, negative bool) {
	switch c := sc.byte(); {
	case sc.err != nil:
		return 0, false
	case c < vShort:
		return uint64(c), false
	case c == vNumber:
		return sc.varint(), false
	case c == vNegative:
		return sc.varint(), true
	}
	sc.i--
	sc.fail("expected a number")
	return 0, false
}

func (sc *scanner) unpackInt() int64 {
	n, negative := sc.unpackNumber()
	if n > math.MaxInt64 {
		sc.fail("a number is too large")
		return 0
	}
	if negative {
		return -int64(n) - 1
	}
	return int64(n)
}

func (sc *scanner) unpackUint() uint64 {
	n, negative := sc.unpackNumber()
	if negative {
		sc.fail("expected a positive number")
	}
	return n
}

func (sc *scanner) unpackFlag() bool {
	c := sc.byte()
	if sc.err == nil && c != vTrue && c != vFalse {
		sc.i--
		sc.fail("expected true or false")
	}
	return c == vTrue
}

func (sc *scanner) unpackTime() time.Time {
	switch c := sc.byte(); {
	case sc.err != nil:
		return time.Time{}
	case c == vSmall:
		return time.Time{}
	case c == vFarTime:
		t, err := time.Parse(time.RFC3339Nano, sc.bytes(uint64(sc.byte())))
		if err != nil {
			sc.fail("expected a time")
		}
		return t.UTC()
	case c == vTime:
		if b := sc.bytes(8); sc.err == nil {
			sc.packed.last = int64(binary.BigEndian.Uint64([]byte(b)))
		}
	case c == vLater:
		n := sc.varint()
		sc.packed.last += int64(n>>1) ^ -int64(n&1)
	default:
		sc.i--
		sc.fail("expected a time")
	}
	return time.Unix(0, sc.packed.last).UTC()
}

func (sc *scanner) unpackDict() (out map[string]string) {
	sc.unpackArray(func() {
		if out == nil {
			out = map[string]string{}
		}
		k := sc.unpack()
		out[k] = sc.unpack()
	})
	return out
}

// pass reads over one value of any kind. Texts and times in it count: others may
// refer to them.
func (sc *scanner) pass() {
	if sc.err != nil || sc.i >= len(sc.s) {
		sc.fail("ends too early")
		return
	}
	switch c := sc.s[sc.i]; {
	case c == vObject:
		sc.unpackObject(func(string) { sc.pass() })
	case c == vArray:
		sc.unpackArray(sc.pass)
	case c < vShort || c == vNumber || c == vNegative:
		sc.unpackNumber()
	case c == vJSON || c == vNull:
		sc.unpackValue()
	case c == vTime || c == vLater || c == vFarTime:
		sc.unpackTime()
	case c == vTrue || c == vFalse:
		sc.i++
	default:
		sc.unpack()
	}
}
