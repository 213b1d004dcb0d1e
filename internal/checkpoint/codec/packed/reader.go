package packed

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

// maxDepth bounds the nesting of a value, so that a damaged record can't
// exhaust the stack.
const maxDepth = 10_000

// largeRecordBytes is from how many bytes on the parts of a record are copied.
const largeRecordBytes = 64 << 10

const hexDigits = "0123456789abcdef"

// Reader reads a record. Each method reads one value. The first error stays:
// later calls do nothing.
type Reader struct {
	input    string
	pos      int
	depth    int
	err      error
	texts    []string
	lastTime int64
	copies   bool
}

// ReadRecord checks the version of a record and calls field for each of its fields;
// field must read its value. An error names the kind and wraps
// checkpoint.ErrCorrupt.
func ReadRecord(s, kind string, field func(r *Reader, f Field)) error {
	r := &Reader{input: s}
	switch {
	case s == "" || s[0] < versionBase || s[0] > versionMax:
		r.SetError("no version")
	case s[0] != versionByte:
		r.err = &VersionError{Version: uint64(s[0] - versionBase)}
	default:
		r.pos = 1
		r.readFields(true, func(f Field) { field(r, f) })
	}
	if r.err != nil {
		return fmt.Errorf("%s: %w", kind, r.err)
	}
	return nil
}

// CopyParts makes the reader copy parts of a large record that have less than half
// of it: a kept part does not keep the whole record.
func (r *Reader) CopyParts() { r.copies = len(r.input) >= largeRecordBytes }

// SetError says that the record is damaged, and where.
func (r *Reader) SetError(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s at byte %d", checkpoint.ErrCorrupt, what, r.pos)
	}
}

func (r *Reader) addDepth() bool {
	if r.depth++; r.depth > maxDepth {
		r.SetError("nested too deep")
	}
	return r.err == nil
}

// nextByte takes a byte.
func (r *Reader) nextByte() byte {
	if r.err != nil || r.pos >= len(r.input) {
		r.SetError("ends too early")
		return vEnd
	}
	c := r.input[r.pos]
	r.pos++
	return c
}

// nextBytes takes n bytes.
func (r *Reader) nextBytes(n uint64) string {
	if r.err != nil || n > uint64(len(r.input)-r.pos) {
		r.SetError("ends too early")
		return ""
	}
	from := r.pos
	r.pos += int(n)
	if r.copies && n < uint64(len(r.input)/2) {
		return strings.Clone(r.input[from:r.pos])
	}
	return r.input[from:r.pos]
}

// nextVarint takes a number.
func (r *Reader) nextVarint() (n uint64) {
	for shift := 0; shift < 64; shift += 7 {
		c := r.nextByte()
		if r.err != nil {
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
	r.SetError("a number is too large")
	return 0
}

// readFields calls do for each field of an object. The outermost object ends with the record.
func (r *Reader) readFields(outermost bool, do func(f Field)) {
	for r.err == nil {
		if outermost && r.pos == len(r.input) {
			return
		}
		f := Field(r.nextByte())
		if r.err != nil || f == endOfObject {
			if outermost {
				r.SetError("bytes after the record")
			}
			return
		}
		do(f)
	}
}

// ReadObject calls do for each field of an object; do must read its value.
func (r *Reader) ReadObject(do func(f Field)) {
	if r.expectKind(vObject, "an object") && r.addDepth() {
		r.readFields(false, do)
	}
	r.depth--
}

// ReadArray calls element for each element; element must read it.
func (r *Reader) ReadArray(element func()) {
	if r.expectKind(vArray, "an array") && r.addDepth() {
		for r.err == nil && !r.acceptArrayEnd() {
			element()
		}
	}
	r.depth--
}

// acceptArrayEnd takes the end of an array, if it is there.
func (r *Reader) acceptArrayEnd() bool {
	if r.pos < len(r.input) && r.input[r.pos] == vEnd {
		r.pos++
		return true
	}
	if r.pos == len(r.input) {
		r.SetError("ends too early")
	}
	return false
}

func (r *Reader) expectKind(kind byte, what string) bool {
	if c := r.nextByte(); r.err == nil && c != kind {
		r.pos--
		r.SetError("expected " + what)
	}
	return r.err == nil
}

// ReadString takes a text.
func (r *Reader) ReadString() string {
	c := r.nextByte()
	switch {
	case r.err != nil:
		return ""
	case c == vSmall:
		return ""
	case c >= vReference && c < vWord:
		return r.unpackReference(uint64(c - vReference))
	case c == vFarReference:
		return r.unpackReference(r.nextVarint())
	case c > vWord && c < vNumber:
		s := wordText(c - vWord)
		if s == "" {
			r.SetError("an unknown word")
		}
		return s
	}
	var s string
	switch {
	case c >= vShort && c < vReference:
		s = r.nextBytes(uint64(c - vShort))
	case c == vText:
		s = r.nextBytes(r.nextVarint())
	case c == vHex:
		s = unpackHex(r.nextBytes(uint64(r.nextByte())))
	case c == vDigest:
		s = digestPrefix + unpackHex(r.nextBytes(uint64(r.nextByte())))
	case c == vNumberedID:
		s = r.readNumberedID()
	case c == vBranch && (r.pos == len(r.input) || r.input[r.pos] != vBranch):
		s = branchPrefix + r.ReadString()
	default:
		r.pos--
		r.SetError("expected a text")
	}
	if r.err == nil && isShared(s) && len(r.texts) < maxTexts {
		r.texts = append(r.texts, s)
	}
	return s
}

func (r *Reader) unpackReference(n uint64) string {
	if r.err != nil || n >= uint64(len(r.texts)) {
		r.SetError("a text that was not there before")
		return ""
	}
	return r.texts[n]
}

func (r *Reader) readNumberedID() string {
	n := r.nextVarint()
	if n >= 1<<48 {
		r.SetError("a number is too large")
	}
	var b [21]byte
	for i := 11; i >= 0; i-- {
		b[i] = hexDigits[n&15]
		n >>= 4
	}
	b[12] = '-'
	copy(b[13:], unpackHex(r.nextBytes(4)))
	return string(b[:])
}

// ReadJSON takes a value of a user.
func (r *Reader) ReadJSON() payload.JSON {
	switch c := r.nextByte(); {
	case r.err != nil:
		return ""
	case c == vNull:
		return "null"
	case c == vJSON:
		v := r.nextBytes(r.nextVarint())
		if v == "" {
			r.SetError("an empty value")
		}
		return payload.JSON(v)
	}
	r.pos--
	r.SetError("expected a value")
	return ""
}

// ReadNumber takes a number of either sign: n, or -1-n when it is negative.
func (r *Reader) ReadNumber() (n uint64, negative bool) {
	switch c := r.nextByte(); {
	case r.err != nil:
		return 0, false
	case c < vShort:
		return uint64(c), false
	case c == vNumber:
		return r.nextVarint(), false
	case c == vNegative:
		return r.nextVarint(), true
	}
	r.pos--
	r.SetError("expected a number")
	return 0, false
}

// ReadInt takes a number of either sign.
func (r *Reader) ReadInt() int64 {
	n, negative := r.ReadNumber()
	if n > math.MaxInt64 {
		r.SetError("a number is too large")
		return 0
	}
	if negative {
		return -int64(n) - 1
	}
	return int64(n)
}

// ReadUint takes a number.
func (r *Reader) ReadUint() uint64 {
	n, negative := r.ReadNumber()
	if negative {
		r.SetError("expected a positive number")
	}
	return n
}

// ReadBool takes a flag.
func (r *Reader) ReadBool() bool {
	c := r.nextByte()
	if r.err == nil && c != vTrue && c != vFalse {
		r.pos--
		r.SetError("expected true or false")
	}
	return c == vTrue
}

// ReadTime takes a time.
func (r *Reader) ReadTime() time.Time {
	switch c := r.nextByte(); {
	case r.err != nil:
		return time.Time{}
	case c == vSmall:
		return time.Time{}
	case c == vFarTime:
		t, err := time.Parse(time.RFC3339Nano, r.nextBytes(uint64(r.nextByte())))
		if err != nil {
			r.SetError("expected a time")
		}
		return t.UTC()
	case c == vTime:
		if b := r.nextBytes(8); r.err == nil {
			r.lastTime = int64(binary.BigEndian.Uint64([]byte(b)))
		}
	case c == vTimeDelta:
		n := r.nextVarint()
		r.lastTime += int64(n>>1) ^ -int64(n&1)
	default:
		r.pos--
		r.SetError("expected a time")
	}
	return time.Unix(0, r.lastTime).UTC()
}

// ReadMap takes texts by their keys.
func (r *Reader) ReadMap() (out map[string]string) {
	r.ReadArray(func() {
		if out == nil {
			out = map[string]string{}
		}
		k := r.ReadString()
		out[k] = r.ReadString()
	})
	return out
}

// Kind is the kind of a value.
type Kind uint8

// The kinds of values.
const (
	KindText   Kind = iota
	KindNumber      // also no text and no time, where that is written
	KindValue       // of a user
	KindTime
	KindFlag
	KindObject
	KindArray
)

// NextKind returns the kind of the next value.
func (r *Reader) NextKind() Kind {
	if r.err != nil || r.pos >= len(r.input) {
		r.SetError("ends too early")
		return KindText
	}
	switch c := r.input[r.pos]; {
	case c < vShort || c == vNumber || c == vNegative:
		return KindNumber
	case c == vJSON || c == vNull:
		return KindValue
	case c == vTime || c == vTimeDelta || c == vFarTime:
		return KindTime
	case c == vTrue || c == vFalse:
		return KindFlag
	case c == vObject:
		return KindObject
	case c == vArray:
		return KindArray
	}
	return KindText
}

// SkipValue reads over a value of any kind. Texts and times in it count: others may
// refer to them.
func (r *Reader) SkipValue() {
	switch r.NextKind() {
	case KindObject:
		r.ReadObject(func(Field) { r.SkipValue() })
	case KindArray:
		r.ReadArray(r.SkipValue)
	case KindNumber:
		r.ReadNumber()
	case KindValue:
		r.ReadJSON()
	case KindTime:
		r.ReadTime()
	case KindFlag:
		r.ReadBool()
	case KindText:
		r.ReadString()
	}
}

// ReadDuration takes a duration.
func (r *Reader) ReadDuration() time.Duration { return time.Duration(r.ReadInt()) }

// ReadStrings takes a list of texts.
func (r *Reader) ReadStrings() (out []string) {
	r.ReadArray(func() { out = append(out, r.ReadString()) })
	return out
}
