package payload

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits bounds what Validate accepts.
type Limits struct {
	MaxBytes int // size of the text; 0 = any
	MaxDepth int // nesting of objects and arrays; 0 = 10000
	// Repeats lets objects name a key twice, for who looks for that by itself.
	Repeats bool
}

// SyntaxError says where text stops being JSON.
type SyntaxError struct {
	Offset  int    // byte of the text, from 0
	Problem string // what is wrong there
}

// Error tells the problem and the byte.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("not JSON: %s (at byte %d)", e.Problem, e.Offset)
}

// LimitError says that text is JSON beyond a limit.
type LimitError struct {
	Limit  string // "bytes" or "depth"
	Max    int    // what is allowed
	Got    int    // bytes: the size of the text
	Offset int    // depth: where the text gets too deep
}

// Error tells the limit and by what it was passed.
func (e *LimitError) Error() string {
	if e.Limit == "bytes" {
		return fmt.Sprintf("JSON of %d bytes is larger than the limit of %d bytes", e.Got, e.Max)
	}
	return fmt.Sprintf("JSON is nested deeper than the limit of %d levels (at byte %d)", e.Max, e.Offset)
}

// Validate checks that text is one JSON value in UTF-8 within the limits, with
// nothing after it, and that no object names a key twice. The error is a
// *SyntaxError or a *LimitError. It allocates nothing for text that passes,
// unless objects have many keys, or keys escapes.
func Validate(text string, limits Limits) error {
	if limits.MaxBytes > 0 && len(text) > limits.MaxBytes {
		return &LimitError{Limit: "bytes", Max: limits.MaxBytes, Got: len(text)}
	}
	if !utf8.ValidString(text) {
		return &SyntaxError{Offset: firstInvalid(text), Problem: "invalid UTF-8"}
	}
	s := newScanner(text)
	if limits.MaxDepth > 0 {
		s.deepest = min(limits.MaxDepth, hardDepth)
	}
	if limits.Repeats {
		if !s.value() || !s.end() {
			return s.err()
		}
		return nil
	}
	v := validator{scanner: s}
	if !v.value() || !v.end() {
		return v.err()
	}
	return nil
}

func firstInvalid(text string) int {
	for i, r := range text {
		if r != utf8.RuneError {
			continue
		}
		if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
			return i
		}
	}
	return len(text)
}

// fewKeys is how many keys are compared one by one before a map pays off.
const fewKeys = 32

// validator is a scanner that refuses a second use of a key in an object.
type validator struct {
	scanner

	keys    [2 * fewKeys]string // of the objects that are open
	used    int
	twice   bool   // a key appears twice
	pointer string // to that key
}

func (v *validator) err() error {
	if strings.Count(v.pointer, "/") > 1 {
		v.problem += ", at " + v.pointer
	}
	return v.scanner.err()
}

// value skips one value of any kind.
func (v *validator) value() bool {
	switch v.peek() {
	case '{':
		return v.object()
	case '[':
		return v.array()
	}
	return v.scanner.value()
}

func (v *validator) array() bool {
	if !v.open() {
		return true
	}
	if v.tooDeep {
		return false
	}
	for n := 0; ; n++ {
		if !v.value() {
			if v.twice {
				v.within(strconv.Itoa(n))
			}
			return false
		}
		if more, ok := v.next(']'); !ok || !more {
			return ok
		}
	}
}

func (v *validator) object() bool {
	if !v.open() {
		return true
	}
	if v.tooDeep {
		return false
	}
	base := v.used
	var marks uint64 // of the keys that came: most are told apart by theirs
	var many map[string]struct{}
	for {
		v.space()
		start := v.at
		quoted, ok := v.key()
		if !ok {
			return false
		}
		key := unescape(quoted)
		if many == nil && (v.used-base == fewKeys || v.used == len(v.keys)) {
			many = v.gather(base)
		}
		mark := markOf(key)
		if marks&mark != 0 && v.known(base, many, key) {
			v.at, v.twice = start, true
			v.within(key)
			return v.fail("key " + shortened(quoted) + " appears twice")
		}
		marks |= mark
		if many != nil {
			many[key] = struct{}{}
		} else {
			v.keys[v.used] = key
			v.used++
		}
		if !v.value() {
			v.within(key)
			return false
		}
		if more, ok := v.next('}'); !ok || !more {
			v.used = base
			return ok
		}
	}
}

// gather moves the keys of the object that is open into a map.
func (v *validator) gather(base int) map[string]struct{} {
	const few = 8
	many := make(map[string]struct{}, v.used-base+few)
	for _, k := range v.keys[base:v.used] {
		many[k] = struct{}{}
	}
	v.used = base
	return many
}

// markOf is one of 64 bits.
func markOf(key string) uint64 {
	n := len(key)
	if n == 0 {
		return 1
	}
	return 1 << ((n*5 + int(key[0]) + int(key[n-1])*3 + int(key[n/2])*7) & 63)
}

// known reports whether a key is among those of the object that is open.
func (v *validator) known(base int, many map[string]struct{}, key string) bool {
	if many != nil {
		_, known := many[key]
		return known
	}
	return slices.Contains(v.keys[base:v.used], key)
}

// within puts a part before the pointer to a key that appears twice.
func (v *validator) within(token string) {
	if v.twice {
		v.pointer = "/" + escapePointer(shortened(token)) + v.pointer
	}
}

// shortened is text as far as a message shows it.
func shortened(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
