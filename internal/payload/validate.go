package payload

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits bounds the texts that Validate accepts.
type Limits struct {
	MaxBytes     int // size of the text; 0 = 2 GiB
	MaxDepth     int // nesting of objects and arrays; 0 = 10000
	RepeatedKeys RepeatedKeys
}

// RepeatedKeys is where objects may name a key twice. Values that may come from the store
// do, because earlier versions have kept such.
type RepeatedKeys int

const (
	// RejectRepeatedKeys refuses repeated keys at every depth.
	RejectRepeatedKeys RepeatedKeys = iota
	// AllowRepeatedKeysBelowRoot lets objects below the root repeat keys.
	AllowRepeatedKeysBelowRoot
	// AllowRepeatedKeys lets every object do so.
	AllowRepeatedKeys
)

// SyntaxError says where text stops being JSON.
type SyntaxError struct {
	Offset  int    // byte of the text, from 0
	Problem string // the error there
}

// Error tells the problem and the byte.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("not JSON: %s (at byte %d)", e.Problem, e.Offset)
}

// LimitError says that text is JSON beyond a limit.
type LimitError struct {
	Limit  string // "bytes" or "depth"
	Max    int    // the allowed number
	Got    int    // bytes: the size of the text
	Offset int    // depth: where the text gets too deep
}

// Error names the limit, and the size or the place beyond it.
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
		return &SyntaxError{Offset: firstInvalidByte(text), Problem: "invalid UTF-8"}
	}
	s := newScanner(text)
	if limits.MaxDepth > 0 {
		s.maxDepth = min(limits.MaxDepth, maxScanDepth)
	}
	c, repeats := s.peekByte(), limits.RepeatedKeys
	if c != '{' && c != '[' || c == '[' && repeats == AllowRepeatedKeysBelowRoot || repeats == AllowRepeatedKeys {
		if !s.skipValue() || !s.expectEnd() {
			return s.problemError()
		}
		return nil
	}
	v := validator{scanner: s, isRootOnly: repeats == AllowRepeatedKeysBelowRoot}
	if !v.skipValue() || !v.expectEnd() {
		return v.problemError()
	}
	return nil
}

func firstInvalidByte(text string) int {
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

// inlineKeys is how many keys of one object are compared one by one before a set pays
// off, and of all open objects together before they take memory.
const inlineKeys = 64

// validator is a scanner that refuses a second use of a key in an object.
type validator struct {
	scanner

	inlineStarts   [inlineKeys]uint32 // where the keys of the objects that are open begin, behind their quotes
	spilledStarts  []uint32           // those beyond inlineStarts
	usedKeys       int                // of both
	isRootOnly     bool               // objects below the root may name a key twice
	hasRepeatedKey bool               // a key appears twice
	pointer        string             // to that key
}

func (v *validator) problemError() error {
	if strings.Count(v.pointer, "/") > 1 {
		v.problem += ", at " + v.pointer
	}
	return v.scanner.problemError()
}

// skipValue skips one value of any kind.
func (v *validator) skipValue() bool {
	if v.isRootOnly && v.depth > 0 {
		return v.scanner.skipValue()
	}
	switch c := v.peekByte(); {
	case c == '"':
		return v.skipString()
	case isDigit(c):
		return v.skipNumber()
	case c == '{':
		return v.skipObject()
	case c == '[':
		return v.skipArray()
	}
	return v.scanner.skipValue()
}

func (v *validator) skipArray() bool {
	if !v.openContainer() {
		return true
	}
	if v.isTooDeep {
		return false
	}
	for n := 0; ; n++ {
		if !v.skipValue() {
			if v.hasRepeatedKey {
				v.prependPointer(strconv.Itoa(n))
			}
			return false
		}
		if more, ok := v.nextElement(']'); !ok || !more {
			return ok
		}
	}
}

func (v *validator) skipObject() bool {
	if !v.openContainer() {
		return true
	}
	if v.isTooDeep {
		return false
	}
	base := v.usedKeys
	var marks [4]uint64 // of the earlier keys: keys with different marks differ
	var many map[string]struct{}
	for {
		v.skipSpace()
		start := v.pos
		v.hasEscapes = false
		quoted, ok := v.readKey()
		if !ok {
			return false
		}
		key := quoted[1 : len(quoted)-1]
		escapes := v.hasEscapes
		if escapes {
			key = unescapeString(quoted)
		}
		if many == nil && (escapes || v.usedKeys-base == inlineKeys) {
			many = v.gatherKeys(base)
		}
		word, mark := keyMark(key)
		if marks[word]&mark != 0 && v.isKnownKey(base, many, key) {
			v.pos, v.hasRepeatedKey = start, true
			v.prependPointer(key)
			return v.setProblem("key " + shortenText(quoted) + " appears twice")
		}
		marks[word] |= mark
		if many != nil {
			many[key] = struct{}{}
		} else {
			v.addKeyStart(uint32(start + 1))
		}
		if !v.skipValue() {
			if v.hasRepeatedKey {
				v.prependPointer(key)
			}
			return false
		}
		if more, ok := v.nextElement('}'); !ok || !more {
			v.usedKeys = base
			return ok
		}
	}
}

// addKeyStart notes where a key begins.
func (v *validator) addKeyStart(at uint32) {
	if v.usedKeys < inlineKeys {
		v.inlineStarts[v.usedKeys] = at
	} else {
		if v.spilledStarts == nil {
			v.spilledStarts = make([]uint32, 0, inlineKeys)
		}
		v.spilledStarts = append(v.spilledStarts[:v.usedKeys-inlineKeys], at)
	}
	v.usedKeys++
}

// keyStart returns where an earlier key begins.
func (v *validator) keyStart(i int) int {
	if i < inlineKeys {
		return int(v.inlineStarts[i])
	}
	return int(v.spilledStarts[i-inlineKeys])
}

// gatherKeys moves the keys of the object that is open into a set.
func (v *validator) gatherKeys(base int) map[string]struct{} {
	const few = 8
	many := make(map[string]struct{}, v.usedKeys-base+few)
	for i := base; i < v.usedKeys; i++ {
		key := v.text[v.keyStart(i):]
		many[key[:strings.IndexByte(key, '"')]] = struct{}{} // no key with escapes came before
	}
	v.usedKeys = base
	return many
}

// keyMark returns the bit of a key among 256.
func keyMark(key string) (word int, mark uint64) {
	n := len(key)
	if n == 0 {
		return 0, 1
	}
	sum := n*5 + int(key[0]) + int(key[n-1])*3 + int(key[n/2])*7
	return sum >> 6 & 3, 1 << (sum & 63)
}

// isKnownKey reports whether a key is among those of the object that is open.
func (v *validator) isKnownKey(base int, many map[string]struct{}, key string) bool {
	if many != nil {
		_, known := many[key]
		return known
	}
	for i := base; i < v.usedKeys; i++ {
		at := v.keyStart(i)
		end := at + len(key)
		if end < len(v.text) && v.text[end] == '"' && v.text[at:end] == key {
			return true
		}
	}
	return false
}

// prependPointer puts a part before the pointer to a key that appears twice.
func (v *validator) prependPointer(token string) {
	if v.hasRepeatedKey {
		v.pointer = "/" + escapePointer(shortenText(token)) + v.pointer
	}
}

// shortenText shortens text for a message.
func shortenText(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
