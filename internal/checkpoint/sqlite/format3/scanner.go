package format3

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/payload"
)

// maxDepth bounds the nesting of a value, so that a damaged record can't
// exhaust the stack.
const maxDepth = 10_000

// scanner walks over the JSON of one record. Each method reads one value. The
// first error stays: later calls do nothing.
type scanner struct {
	input string
	pos   int
	depth int
	err   error
}

func (sc *scanner) setError(what string) {
	if sc.err == nil {
		sc.err = fmt.Errorf("%s at byte %d", what, sc.pos)
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
	start := sc.pos
	sc.skipValue()
	sc.skipSpace()
	if sc.err != nil {
		return ""
	}
	return payload.JSON(sc.input[start:sc.pos])
}

// skipValue reads over a value of any kind.
func (sc *scanner) skipValue() {
	if sc.err != nil {
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
		sc.readNumber()
	}
}

func (sc *scanner) expectWord(w string) {
	if !strings.HasPrefix(sc.input[sc.pos:], w) {
		sc.setError("expected " + w)
		return
	}
	sc.pos += len(w)
}

// readNumber reads over a number and returns its text.
func (sc *scanner) readNumber() string {
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
	if sc.err == nil && sc.peekByte() == 't' {
		sc.expectWord("true")
		return sc.err == nil
	}
	sc.expectWord("false")
	return false
}
