package codec

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

// maxDepth bounds the nesting of a value, so that a damaged record can't
// exhaust the stack.
const maxDepth = 10_000

// scanner walks over one record. Its methods read one value each; the first
// error stays and turns the rest into no-ops.
type scanner struct {
	input string
	pos   int
	depth int
	err   error

	unpacker *unpacker // nil = the record is JSON
}

// decodeRecord checks the version of a record and reads its fields.
func decodeRecord(s, kind string, field func(sc *scanner, name string)) error {
	sc := &scanner{input: s}
	if s != "" && s[0] >= packedVersionBase && s[0] <= packedVersionMax {
		sc.unpacker, sc.pos = &unpacker{}, 1
		if v := uint64(s[0] - packedVersionBase); v != PackedVersion {
			sc.err = &VersionError{Version: v, Packed: true}
		}
		sc.readFields(true, func(name string) { field(sc, name) })
		return sc.wrapError(kind)
	}
	first := true
	sc.readObject(func(name string) {
		if first {
			first = false
			sc.readVersion(name)
			return
		}
		field(sc, name)
	})
	sc.skipSpace()
	if sc.err == nil && first {
		sc.setError(`no "v"`)
	}
	if sc.err == nil && sc.pos != len(sc.input) {
		sc.setError("text after the record")
	}
	return sc.wrapError(kind)
}

func (sc *scanner) wrapError(kind string) error {
	if sc.err != nil {
		return fmt.Errorf("%s: %w", kind, sc.err)
	}
	return nil
}

func (sc *scanner) readVersion(name string) {
	if name != "v" {
		sc.setError(`the first field is not "v"`)
		return
	}
	switch v := sc.readUint(); {
	case sc.err != nil:
	case v > Version:
		sc.err = &VersionError{Version: v}
	case v == 0:
		sc.setError("version 0")
	}
}

func (sc *scanner) setError(what string) {
	if sc.err == nil {
		sc.err = fmt.Errorf("%w: %s at byte %d", checkpoint.ErrCorrupt, what, sc.pos)
	}
}

// skipSpace skips white space, which the encoder never writes but a person may.
func (sc *scanner) skipSpace() {
	for sc.pos < len(sc.input) {
		switch sc.input[sc.pos] {
		case ' ', '\t', '\n', '\r':
			sc.pos++
		default:
			return
		}
	}
}

// peekByte returns the next byte that is not white space, 0 at the end.
func (sc *scanner) peekByte() byte {
	sc.skipSpace()
	if sc.pos < len(sc.input) {
		return sc.input[sc.pos]
	}
	return 0
}

func (sc *scanner) acceptByte(c byte) bool {
	if sc.err == nil && sc.peekByte() == c && c != 0 {
		sc.pos++
		return true
	}
	return false
}

func (sc *scanner) expectByte(c byte) {
	if sc.err == nil && !sc.acceptByte(c) {
		sc.setError("expected " + strconv.QuoteRune(rune(c)))
	}
}

// readObject calls field for each field; field must read its value.
func (sc *scanner) readObject(field func(name string)) {
	if sc.unpacker != nil {
		sc.unpackObject(field)
		return
	}
	if !sc.enterValue('{') {
		return
	}
	for more := !sc.acceptByte('}'); more && sc.err == nil; more = sc.nextElement('}') {
		name := sc.readString()
		sc.expectByte(':')
		if sc.err == nil {
			field(name)
		}
	}
	sc.depth--
}

// readArray calls element for each element; element must read it.
func (sc *scanner) readArray(element func()) {
	if sc.unpacker != nil {
		sc.unpackArray(element)
		return
	}
	if !sc.enterValue('[') {
		return
	}
	for more := !sc.acceptByte(']'); more && sc.err == nil; more = sc.nextElement(']') {
		element()
	}
	sc.depth--
}

func (sc *scanner) enterValue(open byte) bool {
	sc.expectByte(open)
	return sc.addDepth()
}

func (sc *scanner) addDepth() bool {
	if sc.depth++; sc.depth > maxDepth {
		sc.setError("nested too deep")
	}
	return sc.err == nil
}

func (sc *scanner) nextElement(closing byte) bool {
	if sc.acceptByte(',') {
		return true
	}
	sc.expectByte(closing)
	return false
}

// readJSON returns a value as it stands between its neighbours.
func (sc *scanner) readJSON() payload.JSON {
	if sc.unpacker != nil {
		return sc.unpackValue()
	}
	start := sc.pos
	sc.skipValue()
	sc.skipSpace()
	if sc.err != nil {
		return ""
	}
	return payload.JSON(sc.input[start:sc.pos])
}

// skipValue reads over one value of any kind.
func (sc *scanner) skipValue() {
	if sc.err != nil {
		return
	}
	if sc.unpacker != nil {
		sc.skipPacked()
		return
	}
	switch c := sc.peekByte(); c {
	case '{':
		sc.readObject(func(string) { sc.skipValue() })
	case '[':
		sc.readArray(sc.skipValue)
	case '"':
		sc.scanText()
	case 't':
		sc.expectWord("true")
	case 'f':
		sc.expectWord("false")
	case 'n':
		sc.expectWord("null")
	default:
		sc.scanNumber()
	}
}

func (sc *scanner) expectWord(w string) {
	if !strings.HasPrefix(sc.input[sc.pos:], w) {
		sc.setError("expected " + w)
		return
	}
	sc.pos += len(w)
}

// scanNumber reads over a number and returns its text.
func (sc *scanner) scanNumber() string {
	sc.skipSpace()
	start := sc.pos
	for sc.pos < len(sc.input) && strings.IndexByte("+-.0123456789eE", sc.input[sc.pos]) >= 0 {
		sc.pos++
	}
	n := sc.input[start:sc.pos]
	if sc.err == nil && !json.Valid([]byte(n)) {
		sc.pos = start
		sc.setError("expected a value")
	}
	return n
}

// scanText reads over a string and returns it with its quotes.
func (sc *scanner) scanText() string {
	sc.expectByte('"')
	if sc.err != nil {
		return ""
	}
	start := sc.pos - 1
	for sc.pos < len(sc.input) {
		switch c := sc.input[sc.pos]; {
		case c == '"':
			sc.pos++
			return sc.input[start:sc.pos]
		case c == '\\':
			sc.scanEscape()
			if sc.err != nil {
				return ""
			}
		case c < 0x20:
			sc.setError("control character in a string")
			return ""
		default:
			sc.pos++
		}
	}
	sc.setError("string without end")
	return ""
}

func (sc *scanner) scanEscape() {
	rest := sc.input[sc.pos:]
	size := 2
	if len(rest) > 1 && rest[1] == 'u' {
		size = 6
	}
	if len(rest) < size || !json.Valid([]byte(`"`+rest[:size]+`"`)) {
		sc.setError("bad escape")
		return
	}
	sc.pos += size
}

func (sc *scanner) readString() string {
	if sc.unpacker != nil {
		return sc.unpackString()
	}
	t := sc.scanText()
	if sc.err != nil {
		return ""
	}
	if strings.IndexByte(t, '\\') < 0 {
		return t[1 : len(t)-1]
	}
	var s string
	if err := json.Unmarshal([]byte(t), &s); err != nil {
		sc.setError("bad string")
	}
	return s
}

func (sc *scanner) readBool() bool {
	if sc.unpacker != nil {
		return sc.unpackFlag()
	}
	if sc.err == nil && sc.peekByte() == 't' {
		sc.expectWord("true")
		return sc.err == nil
	}
	sc.expectWord("false")
	return false
}

func (sc *scanner) readInt() int64 {
	if sc.unpacker != nil {
		return sc.unpackInt()
	}
	if sc.err != nil {
		return 0
	}
	n, err := strconv.ParseInt(sc.scanNumber(), 10, 64)
	if err != nil {
		sc.setError("expected an integer")
	}
	return n
}

func (sc *scanner) readUint() uint64 {
	if sc.unpacker != nil {
		return sc.unpackUint()
	}
	if sc.err != nil {
		return 0
	}
	n, err := strconv.ParseUint(sc.scanNumber(), 10, 64)
	if err != nil {
		sc.setError("expected a positive integer")
	}
	return n
}

func (sc *scanner) readTime() time.Time {
	if sc.unpacker != nil {
		return sc.unpackTime()
	}
	s := sc.readString()
	if sc.err != nil {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		sc.setError("expected a time")
		return time.Time{}
	}
	return t.UTC()
}

func (sc *scanner) readDuration() time.Duration {
	if sc.unpacker != nil {
		return time.Duration(sc.unpackInt())
	}
	s := sc.readString()
	if sc.err != nil {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		sc.setError("expected a duration")
	}
	return d
}

func (sc *scanner) readStrings() []string {
	var out []string
	sc.readArray(func() { out = append(out, sc.readString()) })
	return out
}

func (sc *scanner) readMap() map[string]string {
	if sc.unpacker != nil {
		return sc.unpackDict()
	}
	var out map[string]string
	sc.readObject(func(name string) {
		if out == nil {
			out = map[string]string{}
		}
		out[name] = sc.readString()
	})
	return out
}
