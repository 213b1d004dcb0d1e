package payload

// hardDepth bounds nesting where the caller set no limit, so that hostile text
// cannot exhaust the stack.
const hardDepth = 10000

// scanner walks JSON text once and stops at the first thing that is wrong. It
// lives on the stack of its caller and allocates nothing.
type scanner struct {
	text    string
	at      int // next byte
	depth   int
	deepest int    // limit of depth
	problem string // what is wrong at `at`, "" = nothing
	escapes bool   // a string had some
	tooDeep bool
}

func newScanner(text string) scanner { return scanner{text: text, deepest: hardDepth} }

func (s *scanner) fail(problem string) bool {
	if s.problem == "" {
		s.problem = problem
	}
	return false
}

func (s *scanner) err() error {
	if s.tooDeep {
		return &LimitError{Limit: "depth", Max: s.deepest, Offset: s.at}
	}
	return &SyntaxError{Offset: s.at, Problem: s.problem}
}

func (s *scanner) space() {
	for s.at < len(s.text) && isSpace(s.text[s.at]) {
		s.at++
	}
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

// end reports whether nothing but white space is left.
func (s *scanner) end() bool {
	s.space()
	if s.at < len(s.text) {
		return s.fail("text after the value")
	}
	return true
}

// value skips one value of any kind.
func (s *scanner) value() bool {
	switch c := s.peek(); {
	case c == '"':
		return s.quoted()
	case c == '{':
		return s.object()
	case c == '[':
		return s.array()
	case c == '-' || isDigit(c):
		return s.number()
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	case s.at >= len(s.text):
		return s.fail("a value is missing")
	}
	return s.fail("a value cannot begin like this")
}

func (s *scanner) word(w string) bool {
	if len(s.text)-s.at >= len(w) && s.text[s.at:s.at+len(w)] == w {
		s.at += len(w)
		return true
	}
	return s.fail("expected " + w)
}

func (s *scanner) down() bool {
	if s.depth >= s.deepest {
		s.tooDeep = true
		return false
	}
	s.depth++
	return true
}

func (s *scanner) object() bool {
	if !s.open() {
		return true
	}
	if s.problem != "" || s.tooDeep {
		return false
	}
	for {
		if _, ok := s.key(); !ok || !s.value() {
			return false
		}
		if more, ok := s.next('}'); !ok || !more {
			return ok
		}
	}
}

func (s *scanner) array() bool {
	if !s.open() {
		return true
	}
	if s.problem != "" || s.tooDeep {
		return false
	}
	for {
		if !s.value() {
			return false
		}
		if more, ok := s.next(']'); !ok || !more {
			return ok
		}
	}
}

// open enters an object or an array. It is false when the thing is empty and
// already left again.
func (s *scanner) open() bool {
	if !s.down() {
		return true
	}
	closing := s.text[s.at] + 2 // '[' + 2 = ']', '{' + 2 = '}'
	s.at++
	if s.peek() == closing {
		s.at++
		s.depth--
		return false
	}
	return true
}

// next goes on to the following element, or leaves at the closing byte.
func (s *scanner) next(closing byte) (more, ok bool) {
	switch s.peek() {
	case ',':
		s.at++
		return true, true
	case closing:
		s.at++
		s.depth--
		return false, true
	}
	if closing == '}' {
		return false, s.fail("expected , or } in an object")
	}
	return false, s.fail("expected , or ] in an array")
}

// key reads a key with its colon and returns the quoted text of the key.
func (s *scanner) key() (string, bool) {
	if s.peek() != '"' {
		return "", s.fail("expected a key in double quotes")
	}
	start := s.at
	if !s.quoted() {
		return "", false
	}
	key := s.text[start:s.at]
	if s.peek() != ':' {
		return "", s.fail("expected : after a key")
	}
	s.at++
	return key, true
}

func (s *scanner) quoted() bool {
	text, i := s.text, s.at+1
	for {
		for i < len(text) && plain[text[i]] {
			i++
		}
		switch {
		case i >= len(text):
			return s.fail("string without an end")
		case text[i] == '"':
			s.at = i + 1
			return true
		case text[i] != '\\':
			s.at = i
			return s.fail("control character in a string")
		}
		n := escape(text[i:])
		if n == 0 {
			s.at = i
			return s.fail("unknown escape in a string")
		}
		s.escapes = true
		i += n
	}
}

// plain tells the bytes of a string that mean nothing but themselves.
//
//nolint:gochecknoglobals // a table that never changes
var plain = func() (is [256]bool) {
	for c := range is {
		is[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return is
}()

// escape returns the length of the escape that text begins with, 0 if it is none.
func escape(text string) int {
	if len(text) < 2 {
		return 0
	}
	switch text[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(text) >= 6 && isHex(text[2]) && isHex(text[3]) && isHex(text[4]) && isHex(text[5]) {
			return 6
		}
	}
	return 0
}

func (s *scanner) number() bool {
	if s.text[s.at] == '-' {
		s.at++
	}
	leading := s.at
	if !s.digits("expected a digit") {
		return false
	}
	if s.text[leading] == '0' && s.at > leading+1 {
		s.at = leading
		return s.fail("a number cannot begin with 0")
	}
	if s.at < len(s.text) && s.text[s.at] == '.' {
		s.at++
		if !s.digits("expected a digit after the decimal point") {
			return false
		}
	}
	if s.at < len(s.text) && (s.text[s.at] == 'e' || s.text[s.at] == 'E') {
		s.at++
		if s.at < len(s.text) && (s.text[s.at] == '+' || s.text[s.at] == '-') {
			s.at++
		}
		return s.digits("expected a digit in the exponent")
	}
	return true
}

func (s *scanner) digits(missing string) bool {
	start := s.at
	for s.at < len(s.text) && isDigit(s.text[s.at]) {
		s.at++
	}
	if s.at == start {
		return s.fail(missing)
	}
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHex(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
