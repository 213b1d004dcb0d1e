package payload

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits bounds what Validate accepts.
type Limits struct {
	MaxBytes int // size of the text; 0 = 2 GiB
	MaxDepth int // nesting of objects and arrays; 0 = 10000
	Repeats  Repeats
}

// Repeats is where objects may name a key twice. Values that may come from the store
// do, because earlier versions have kept such.
type Repeats int

const (
	// NoRepeats refuses repeated keys at every depth.
	NoRepeats Repeats = iota
	// RepeatsBelow lets objects below the root repeat keys.
	RepeatsBelow
	// AnyRepeats lets every object do so.
	AnyRepeats
)

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
// nothing after it, and that no object names a key twice, unless limits lets it. The error is a
// *SyntaxError or a *LimitError. It allocates nothing for text that passes,
// unless more than 64 keys are open, or keys have escapes.
func Validate(text string, limits Limits) error {
	if most := cmp.Or(limits.MaxBytes, math.MaxInt32); len(text) > most {
		return &LimitError{Limit: "bytes", Max: most, Got: len(text)}
	}
	if !utf8.ValidString(text) {
		return &SyntaxError{Offset: firstInvalid(text), Problem: "invalid UTF-8"}
	}
	s := newScanner(text)
	if limits.MaxDepth > 0 {
		s.deepest = min(limits.MaxDepth, hardDepth)
	}
	c, repeats := s.peek(), limits.Repeats
	if c != '{' && c != '[' || c == '[' && repeats == RepeatsBelow || repeats == AnyRepeats {
		if !s.value() || !s.end() {
			return s.err()
		}
		return nil
	}
	v := validator{scanner: s, shallow: repeats == RepeatsBelow}
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

// fewKeys is how many keys of one object are compared one by one before a set pays
// off, and of all open objects together before they take memory.
const fewKeys = 64

// validator is a scanner that refuses a second use of a key in an object.
type validator struct {
	scanner

	first   [fewKeys]uint32 // where the keys of the objects that are open begin, behind their quotes
	more    []uint32        // those that first has no room for
	used    int             // of both
	shallow bool            // objects below the root may name a key twice
	twice   bool            // a key appears twice
	pointer string          // to that key
}

func (v *validator) err() error {
	if strings.Count(v.pointer, "/") > 1 {
		v.problem += ", at " + v.pointer
	}
	return v.scanner.err()
}

// value skips one value of any kind.
func (v *validator) value() bool {
	if v.shallow && v.depth > 0 {
		return v.scanner.value()
	}
	switch c := v.peek(); {
	case c == '"':
		return v.quoted()
	case isDigit(c):
		return v.number()
	case c == '{':
		return v.object()
	case c == '[':
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
	var marks [4]uint64 // of the keys that came: most are told apart by theirs
	var many map[string]struct{}
	for {
		v.space()
		start := v.at
		v.escapes = false
		quoted, ok := v.key()
		if !ok {
			return false
		}
		key := quoted[1 : len(quoted)-1]
		escapes := v.escapes
		if escapes {
			key = unescape(quoted)
		}
		if many == nil && (escapes || v.used-base == fewKeys) {
			many = v.gather(base)
		}
		word, mark := markOf(key)
		if marks[word]&mark != 0 && v.known(base, many, key) {
			v.at, v.twice = start, true
			v.within(key)
			return v.fail("key " + shortened(quoted) + " appears twice")
		}
		marks[word] |= mark
		if many != nil {
			many[key] = struct{}{}
		} else {
			v.push(uint32(start + 1))
		}
		if !v.value() {
			if v.twice {
				v.within(key)
			}
			return false
		}
		if more, ok := v.next('}'); !ok || !more {
			v.used = base
			return ok
		}
	}
}

// push notes where a key begins.
func (v *validator) push(at uint32) {
	if v.used < fewKeys {
		v.first[v.used] = at
	} else {
		if v.more == nil {
			v.more = make([]uint32, 0, fewKeys)
		}
		v.more = append(v.more[:v.used-fewKeys], at)
	}
	v.used++
}

// start is where a key begins that came before.
func (v *validator) start(i int) int {
	if i < fewKeys {
		return int(v.first[i])
	}
	return int(v.more[i-fewKeys])
}

// gather moves the keys of the object that is open into a set.
func (v *validator) gather(base int) map[string]struct{} {
	const few = 8
	many := make(map[string]struct{}, v.used-base+few)
	for i := base; i < v.used; i++ {
		key := v.text[v.start(i):]
		many[key[:strings.IndexByte(key, '"')]] = struct{}{} // no key with escapes came before
	}
	v.used = base
	return many
}

// markOf is one of 256 bits.
func markOf(key string) (word int, mark uint64) {
	n := len(key)
	if n == 0 {
		return 0, 1
	}
	sum := n*5 + int(key[0]) + int(key[n-1])*3 + int(key[n/2])*7
	return sum >> 6 & 3, 1 << (sum & 63)
}

// known reports whether a key is among those of the object that is open.
func (v *validator) known(base int, many map[string]struct{}, key string) bool {
	if many != nil {
		_, known := many[key]
		return known
	}
	for i := base; i < v.used; i++ {
		at := v.start(i)
		end := at + len(key)
		if end < len(v.text) && v.text[end] == '"' && v.text[at:end] == key {
			return true
		}
	}
	return false
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
