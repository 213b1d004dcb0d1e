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
	texts    []string
	lastTime int64
	// Whether parts are copied that have less than half of the record: who holds one of
	// them does not hold all of it.
	copies bool
}

// largeRecordBytes is from how many bytes on the events of a record are taken apart.
const largeRecordBytes = 64 << 10

// nextByte takes one byte.
func (sc *scanner) nextByte() byte {
	if sc.err != nil || sc.pos >= len(sc.input) {
		sc.setError("ends too early")
		return vEnd
	}
	c := sc.input[sc.pos]
	sc.pos++
	return c
}

// nextBytes takes n bytes.
func (sc *scanner) nextBytes(n uint64) string {
	if sc.err != nil || n > uint64(len(sc.input)-sc.pos) {
		sc.setError("ends too early")
		return ""
	}
	from := sc.pos
	sc.pos += int(n)
	if sc.unpacker.copies && n < uint64(len(sc.input)/2) {
		return strings.Clone(sc.input[from:sc.pos])
	}
	return sc.input[from:sc.pos]
}

// nextVarint takes a number.
func (sc *scanner) nextVarint() (n uint64) {
	for shift := 0; shift < 64; shift += 7 {
		c := sc.nextByte()
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
	sc.setError("a number is too large")
	return 0
}

// readFields calls do for each field of an object, "" for one that this version
// does not know. The outermost object ends with the record.
func (sc *scanner) readFields(outermost bool, do func(name string)) {
	for sc.err == nil {
		if outermost && sc.pos == len(sc.input) {
			return
		}
		f := field(sc.nextByte())
		if sc.err != nil || f == fEnd {
			if outermost {
				sc.setError("bytes after the record")
			}
			return
		}
		do(f.jsonName())
	}
}

func (sc *scanner) unpackObject(do func(name string)) {
	if sc.expectKind(vObject, "an object") && sc.addDepth() {
		sc.readFields(false, do)
	}
	sc.depth--
}

func (sc *scanner) unpackArray(element func()) {
	if sc.expectKind(vArray, "an array") && sc.addDepth() {
		for sc.err == nil && !sc.acceptArrayEnd() {
			element()
		}
	}
	sc.depth--
}

// acceptArrayEnd takes the end of an array, if it is there.
func (sc *scanner) acceptArrayEnd() bool {
	if sc.pos < len(sc.input) && sc.input[sc.pos] == vEnd {
		sc.pos++
		return true
	}
	if sc.pos == len(sc.input) {
		sc.setError("ends too early")
	}
	return false
}

func (sc *scanner) expectKind(kind byte, what string) bool {
	if c := sc.nextByte(); sc.err == nil && c != kind {
		sc.pos--
		sc.setError("expected " + what)
	}
	return sc.err == nil
}

// unpackString takes a text.
func (sc *scanner) unpackString() string {
	c := sc.nextByte()
	switch {
	case sc.err != nil:
		return ""
	case c == vSmall:
		return ""
	case c >= vReference && c < vWord:
		return sc.unpackReference(uint64(c - vReference))
	case c == vFarReference:
		return sc.unpackReference(sc.nextVarint())
	case c > vWord && c < vNumber:
		s := wordText(c - vWord)
		if s == "" {
			sc.setError("an unknown word")
		}
		return s
	}
	var s string
	switch {
	case c >= vShort && c < vReference:
		s = sc.nextBytes(uint64(c - vShort))
	case c == vText:
		s = sc.nextBytes(sc.nextVarint())
	case c == vHex:
		s = unpackHex(sc.nextBytes(uint64(sc.nextByte())))
	case c == vDigest:
		s = digestPrefix + unpackHex(sc.nextBytes(uint64(sc.nextByte())))
	case c == vNumberedID:
		s = sc.unpackNumberedID()
	case c == vBranch && (sc.pos == len(sc.input) || sc.input[sc.pos] != vBranch):
		s = branchPrefix + sc.unpackString()
	default:
		sc.pos--
		sc.setError("expected a text")
	}
	if sc.err == nil && isShared(s) && len(sc.unpacker.texts) < maxTexts {
		sc.unpacker.texts = append(sc.unpacker.texts, s)
	}
	return s
}

func (sc *scanner) unpackReference(n uint64) string {
	if sc.err != nil || n >= uint64(len(sc.unpacker.texts)) {
		sc.setError("a text that was not there before")
		return ""
	}
	return sc.unpacker.texts[n]
}

func (sc *scanner) unpackNumberedID() string {
	n := sc.nextVarint()
	if n >= 1<<48 {
		sc.setError("a number is too large")
	}
	var b [21]byte
	for i := 11; i >= 0; i-- {
		b[i] = hexDigits[n&15]
		n >>= 4
	}
	b[12] = '-'
	copy(b[13:], unpackHex(sc.nextBytes(4)))
	return string(b[:])
}

func (sc *scanner) unpackValue() payload.JSON {
	switch c := sc.nextByte(); {
	case sc.err != nil:
		return ""
	case c == vNull:
		return "null"
	case c == vJSON:
		v := sc.nextBytes(sc.nextVarint())
		if v == "" {
			sc.setError("an empty value")
		}
		return payload.JSON(v)
	}
	sc.pos--
	sc.setError("expected a value")
	return ""
}

// unpackNumber takes a number and whether it is -1-n.
func (sc *scanner) unpackNumber() (n uint64, negative bool) {
	switch c := sc.nextByte(); {
	case sc.err != nil:
		return 0, false
	case c < vShort:
		return uint64(c), false
	case c == vNumber:
		return sc.nextVarint(), false
	case c == vNegative:
		return sc.nextVarint(), true
	}
	sc.pos--
	sc.setError("expected a number")
	return 0, false
}

func (sc *scanner) unpackInt() int64 {
	n, negative := sc.unpackNumber()
	if n > math.MaxInt64 {
		sc.setError("a number is too large")
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
		sc.setError("expected a positive number")
	}
	return n
}

func (sc *scanner) unpackFlag() bool {
	c := sc.nextByte()
	if sc.err == nil && c != vTrue && c != vFalse {
		sc.pos--
		sc.setError("expected true or false")
	}
	return c == vTrue
}

func (sc *scanner) unpackTime() time.Time {
	switch c := sc.nextByte(); {
	case sc.err != nil:
		return time.Time{}
	case c == vSmall:
		return time.Time{}
	case c == vFarTime:
		t, err := time.Parse(time.RFC3339Nano, sc.nextBytes(uint64(sc.nextByte())))
		if err != nil {
			sc.setError("expected a time")
		}
		return t.UTC()
	case c == vTime:
		if b := sc.nextBytes(8); sc.err == nil {
			sc.unpacker.lastTime = int64(binary.BigEndian.Uint64([]byte(b)))
		}
	case c == vTimeDelta:
		n := sc.nextVarint()
		sc.unpacker.lastTime += int64(n>>1) ^ -int64(n&1)
	default:
		sc.pos--
		sc.setError("expected a time")
	}
	return time.Unix(0, sc.unpacker.lastTime).UTC()
}

func (sc *scanner) unpackDict() (out map[string]string) {
	sc.unpackArray(func() {
		if out == nil {
			out = map[string]string{}
		}
		k := sc.unpackString()
		out[k] = sc.unpackString()
	})
	return out
}

// skipPacked reads over one value of any kind. Texts and times in it count: others may
// refer to them.
func (sc *scanner) skipPacked() {
	if sc.err != nil || sc.pos >= len(sc.input) {
		sc.setError("ends too early")
		return
	}
	switch c := sc.input[sc.pos]; {
	case c == vObject:
		sc.unpackObject(func(string) { sc.skipPacked() })
	case c == vArray:
		sc.unpackArray(sc.skipPacked)
	case c < vShort || c == vNumber || c == vNegative:
		sc.unpackNumber()
	case c == vJSON || c == vNull:
		sc.unpackValue()
	case c == vTime || c == vTimeDelta || c == vFarTime:
		sc.unpackTime()
	case c == vTrue || c == vFalse:
		sc.pos++
	default:
		sc.unpackString()
	}
}
