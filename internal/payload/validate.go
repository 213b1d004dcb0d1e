package payload

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// Limits bounds what Validate accepts.
type Limits struct {
	MaxBytes int // size of the text; 0 = any
	MaxDepth int // nesting of objects and arrays; 0 = 10000
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
// nothing after it, and that an object at its root names no key twice. Keys
// deeper down are carried as they are. The error is a *SyntaxError or a
// *LimitError. It allocates nothing for text that passes, unless the root has
// more than 32 keys.
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
	var ok bool
	if s.peek() == '{' {
		ok = s.root()
	} else {
		ok = s.value()
	}
	if !ok || !s.end() {
		return s.err()
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

// root skips the object at the root and refuses a second use of a key.
func (s *scanner) root() bool {
	if !s.open() {
		return true
	}
	if s.tooDeep {
		return false
	}
	var few [fewKeys]string
	var many map[string]bool
	for n := 0; ; n++ {
		s.space()
		start := s.at
		quoted, ok := s.key()
		if !ok {
			return false
		}
		key := unescape(quoted)
		if n == fewKeys {
			many = make(map[string]bool, 2*fewKeys)
			for _, k := range few[:] {
				many[k] = true
			}
		}
		if repeated(few[:min(n, fewKeys)], many, key) {
			s.at = start
			return s.fail("key " + quoted + " appears twice")
		}
		if many != nil {
			many[key] = true
		} else {
			few[n] = key
		}
		if !s.value() {
			return false
		}
		if more, ok := s.next('}'); !ok || !more {
			return ok
		}
	}
}

func repeated(few []string, many map[string]bool, key string) bool {
	if many != nil {
		return many[key]
	}
	return slices.Contains(few, key)
}
