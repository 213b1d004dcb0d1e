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
	s     string
	i     int
	depth int
	err   error

	packed *unpacker // nil = the record is JSON
}

// record checks the version of a record and reads its fields.
func record(s, kind string, field func(sc *scanner, name string)) error {
	sc := &scanner{s: s}
	if s != "" && s[0] >= packedAs && s[0] <= maxPacked {
		sc.packed, sc.i = &unpacker{}, 1
		if v := uint64(s[0] - packedAs); v != PackedVersion {
			sc.err = &VersionError{Version: v, Packed: true}
		}
		sc.fields(true, func(name string) { field(sc, name) })
		return sc.failed(kind)
	}
	first := true
	sc.object(func(name string) {
		if first {
			first = false
			sc.version(name)
			return
		}
		field(sc, name)
	})
	sc.space()
	if sc.err == nil && first {
		sc.fail(`no "v"`)
	}
	if sc.err == nil && sc.i != len(sc.s) {
		sc.fail("text after the record")
	}
	return sc.failed(kind)
}

func (sc *scanner) failed(kind string) error {
	if sc.err != nil {
		return fmt.Errorf("%s: %w", kind, sc.err)
	}
	return nil
}

func (sc *scanner) version(name string) {
	if name != "v" {
		sc.fail(`the first field is not "v"`)
		return
	}
	switch v := sc.unum(); {
	case sc.err != nil:
	case v > Version:
		sc.err = &VersionError{Version: v}
	case v == 0:
		sc.fail("version 0")
	}
}

func (sc *scanner) fail(what string) {
	if sc.err == nil {
		sc.err = fmt.Errorf("%w: %s at byte %d", checkpoint.ErrCorrupt, what, sc.i)
	}
}

// space skips white space, which the encoder never writes but a person may.
func (sc *scanner) space() {
	for sc.i < len(sc.s) {
		switch sc.s[sc.i] {
		case ' ', '\t', '\n', '\r':
			sc.i++
		default:
			return
		}
	}
}

// peek returns the next byte that is not white space, 0 at the end.
func (sc *scanner) peek() byte {
	sc.space()
	if sc.i < len(sc.s) {
		return sc.s[sc.i]
	}
	return 0
}

func (sc *scanner) take(c byte) bool {
	if sc.err == nil && sc.peek() == c && c != 0 {
		sc.i++
		return true
	}
	return false
}

func (sc *scanner) expect(c byte) {
	if sc.err == nil && !sc.take(c) {
		sc.fail("expected " + strconv.QuoteRune(rune(c)))
	}
}

// object calls field for each field; field must read its value.
func (sc *scanner) object(field func(name string)) {
	if sc.packed != nil {
		sc.unpackObject(field)
		return
	}
	if !sc.enter('{') {
		return
	}
	for more := !sc.take('}'); more && sc.err == nil; more = sc.next('}') {
		name := sc.str()
		sc.expect(':')
		if sc.err == nil {
			field(name)
		}
	}
	sc.depth--
}

// array calls element for each element; element must read it.
func (sc *scanner) array(element func()) {
	if sc.packed != nil {
		sc.unpackArray(element)
		return
	}
	if !sc.enter('[') {
		return
	}
	for more := !sc.take(']'); more && sc.err == nil; more = sc.next(']') {
		element()
	}
	sc.depth--
}

func (sc *scanner) enter(open byte) bool {
	sc.expect(open)
	return sc.deeper()
}

func (sc *scanner) deeper() bool {
	if sc.depth++; sc.depth > maxDepth {
		sc.fail("nested too deep")
	}
	return sc.err == nil
}

func (sc *scanner) next(closing byte) bool {
	if sc.take(',') {
		return true
	}
	sc.expect(closing)
	return false
}

// raw returns a value as it stands between its neighbours.
func (sc *scanner) raw() payload.JSON {
	if sc.packed != nil {
		return sc.unpackValue()
	}
	start := sc.i
	sc.skip()
	sc.space()
	if sc.err != nil {
		return ""
	}
	return payload.JSON(sc.s[start:sc.i])
}

// skip reads over one value of any kind.
func (sc *scanner) skip() {
	if sc.err != nil {
		return
	}
	if sc.packed != nil {
		sc.pass()
		return
	}
	switch c := sc.peek(); c {
	case '{':
		sc.object(func(string) { sc.skip() })
	case '[':
		sc.array(sc.skip)
	case '"':
		sc.text()
	case 't':
		sc.word("true")
	case 'f':
		sc.word("false")
	case 'n':
		sc.word("null")
	default:
		sc.number()
	}
}

func (sc *scanner) word(w string) {
	if !strings.HasPrefix(sc.s[sc.i:], w) {
		sc.fail("expected " + w)
		return
	}
	sc.i += len(w)
}

// number reads over a number and returns its text.
func (sc *scanner) number() string {
	sc.space()
	start := sc.i
	for sc.i < len(sc.s) && strings.IndexByte("+-.0123456789eE", sc.s[sc.i]) >= 0 {
		sc.i++
	}
	n := sc.s[start:sc.i]
	if sc.err == nil && !json.Valid([]byte(n)) {
		sc.i = start
		sc.fail("expected a value")
	}
	return n
}

// text reads over a string and returns it with its quotes.
func (sc *scanner) text() string {
	sc.expect('"')
	if sc.err != nil {
		return ""
	}
	start := sc.i - 1
	for sc.i < len(sc.s) {
		switch c := sc.s[sc.i]; {
		case c == '"':
			sc.i++
			return sc.s[start:sc.i]
		case c == '\\':
			sc.escape()
			if sc.err != nil {
				return ""
			}
		case c < 0x20:
			sc.fail("control character in a string")
			return ""
		default:
			sc.i++
		}
	}
	sc.fail("string without end")
	return ""
}

func (sc *scanner) escape() {
	rest := sc.s[sc.i:]
	size := 2
	if len(rest) > 1 && rest[1] == 'u' {
		size = 6
	}
	if len(rest) < size || !json.Valid([]byte(`"`+rest[:size]+`"`)) {
		sc.fail("bad escape")
		return
	}
	sc.i += size
}

func (sc *scanner) str() string {
	if sc.packed != nil {
		return sc.unpack()
	}
	t := sc.text()
	if sc.err != nil {
		return ""
	}
	if strings.IndexByte(t, '\\') < 0 {
		return t[1 : len(t)-1]
	}
	var s string
	if err := json.Unmarshal([]byte(t), &s); err != nil {
		sc.fail("bad string")
	}
	return s
}

func (sc *scanner) flag() bool {
	if sc.packed != nil {
		return sc.unpackFlag()
	}
	if sc.err == nil && sc.peek() == 't' {
		sc.word("true")
		return sc.err == nil
	}
	sc.word("false")
	return false
}

func (sc *scanner) num() int64 {
	if sc.packed != nil {
		return sc.unpackInt()
	}
	if sc.err != nil {
		return 0
	}
	n, err := strconv.ParseInt(sc.number(), 10, 64)
	if err != nil {
		sc.fail("expected an integer")
	}
	return n
}

func (sc *scanner) unum() uint64 {
	if sc.packed != nil {
		return sc.unpackUint()
	}
	if sc.err != nil {
		return 0
	}
	n, err := strconv.ParseUint(sc.number(), 10, 64)
	if err != nil {
		sc.fail("expected a positive integer")
	}
	return n
}

func (sc *scanner) instant() time.Time {
	if sc.packed != nil {
		return sc.unpackTime()
	}
	s := sc.str()
	if sc.err != nil {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		sc.fail("expected a time")
		return time.Time{}
	}
	return t.UTC()
}

func (sc *scanner) span() time.Duration {
	if sc.packed != nil {
		return time.Duration(sc.unpackInt())
	}
	s := sc.str()
	if sc.err != nil {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		sc.fail("expected a duration")
	}
	return d
}

func (sc *scanner) list() []string {
	var out []string
	sc.array(func() { out = append(out, sc.str()) })
	return out
}

func (sc *scanner) dict() map[string]string {
	if sc.packed != nil {
		return sc.unpackDict()
	}
	var out map[string]string
	sc.object(func(name string) {
		if out == nil {
			out = map[string]string{}
		}
		out[name] = sc.str()
	})
	return out
}
