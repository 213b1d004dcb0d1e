package payload

// maxScanDepth bounds nesting where the caller set no limit, so that hostile text
// cannot exhaust the stack.
const maxScanDepth = 10000

// scanner walks JSON text once and stops at the first thing that is wrong. It
// lives on the stack of its caller and allocates nothing.
type scanner struct {
	text       string
	pos        int // next byte
	depth      int
	maxDepth   int    // limit of depth
	problem    string // the error at `at`, "" = none
	hasEscapes bool   // a string had some
	isTooDeep  bool
}

func newScanner(text string) scanner { return scanner{text: text, maxDepth: maxScanDepth} }

func (s *scanner) setProblem(problem string) bool {
	if s.problem == "" {
		s.problem = problem
	}
	return false
}

func (s *scanner) problemError() error {
	if s.isTooDeep {
		return &LimitError{Limit: "depth", Max: s.maxDepth, Offset: s.pos}
	}
	return &SyntaxError{Offset: s.pos, Problem: s.problem}
}

func (s *scanner) skipSpace() {
	for s.pos < len(s.text) && isSpace(s.text[s.pos]) {
		s.pos++
	}
}

// peekByte skips white space and returns the next byte, 0 at the end.
func (s *scanner) peekByte() byte {
	s.skipSpace()
	if s.pos < len(s.text) {
		return s.text[s.pos]
	}
	return 0
}

// expectEnd reports whether nothing but white space is left.
func (s *scanner) expectEnd() bool {
	s.skipSpace()
	if s.pos < len(s.text) {
		return s.setProblem("text after the value")
	}
	return true
}

// skipValue skips a value of any kind.
func (s *scanner) skipValue() bool {
	switch c := s.peekByte(); {
	case c == '"':
		return s.skipString()
	case c == '{':
		return s.skipObject()
	case c == '[':
		return s.skipArray()
	case c == '-' || isDigit(c):
		return s.skipNumber()
	case c == 't':
		return s.expectWord("true")
	case c == 'f':
		return s.expectWord("false")
	case c == 'n':
		return s.expectWord("null")
	case s.pos >= len(s.text):
		return s.setProblem("a value is missing")
	}
	return s.setProblem("a value cannot begin like this")
}

func (s *scanner) expectWord(w string) bool {
	if len(s.text)-s.pos >= len(w) && s.text[s.pos:s.pos+len(w)] == w {
		s.pos += len(w)
		return true
	}
	return s.setProblem("expected " + w)
}

func (s *scanner) addDepth() bool {
	if s.depth >= s.maxDepth {
		s.isTooDeep = true
		return false
	}
	s.depth++
	return true
}

func (s *scanner) skipObject() bool {
	if !s.openContainer() {
		return true
	}
	if s.problem != "" || s.isTooDeep {
		return false
	}
	for {
		if _, ok := s.readKey(); !ok || !s.skipValue() {
			return false
		}
		if more, ok := s.nextElement('}'); !ok || !more {
			return ok
		}
	}
}

func (s *scanner) skipArray() bool {
	if !s.openContainer() {
		return true
	}
	if s.problem != "" || s.isTooDeep {
		return false
	}
	for {
		if !s.skipValue() {
			return false
		}
		if more, ok := s.nextElement(']'); !ok || !more {
			return ok
		}
	}
}

// openContainer enters an object or an array. It is false when the thing is empty and
// already left again.
func (s *scanner) openContainer() bool {
	if !s.addDepth() {
		return true
	}
	closing := s.text[s.pos] + 2 // '[' + 2 = ']', '{' + 2 = '}'
	s.pos++
	if s.peekByte() == closing {
		s.pos++
		s.depth--
		return false
	}
	return true
}

// nextElement goes on to the following element, or leaves at the closing byte.
func (s *scanner) nextElement(closing byte) (more, ok bool) {
	switch s.peekByte() {
	case ',':
		s.pos++
		return true, true
	case closing:
		s.pos++
		s.depth--
		return false, true
	}
	if closing == '}' {
		return false, s.setProblem("expected , or } in an object")
	}
	return false, s.setProblem("expected , or ] in an array")
}

// readKey reads a key with its colon and returns the quoted text of the key.
func (s *scanner) readKey() (string, bool) {
	if s.peekByte() != '"' {
		return "", s.setProblem("expected a key in double quotes")
	}
	start := s.pos
	if !s.skipString() {
		return "", false
	}
	key := s.text[start:s.pos]
	if s.peekByte() != ':' {
		return "", s.setProblem("expected : after a key")
	}
	s.pos++
	return key, true
}

func (s *scanner) skipString() bool {
	text, i := s.text, s.pos+1
	for {
		for i < len(text) && isPlainByte[text[i]] {
			i++
		}
		switch {
		case i >= len(text):
			return s.setProblem("string without an end")
		case text[i] == '"':
			s.pos = i + 1
			return true
		case text[i] != '\\':
			s.pos = i
			return s.setProblem("control character in a string")
		}
		n := escapeLen(text[i:])
		if n == 0 {
			s.pos = i
			return s.setProblem("unknown escape in a string")
		}
		s.hasEscapes = true
		i += n
	}
}

// isPlainByte tells the bytes of a string that mean nothing but themselves.
//
//nolint:gochecknoglobals // a table that never changes
var isPlainByte = func() (is [256]bool) {
	for c := range is {
		is[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return is
}()

// escapeLen returns the length of the escape that text begins with, 0 if it is none.
func escapeLen(text string) int {
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

func (s *scanner) skipNumber() bool {
	if s.text[s.pos] == '-' {
		s.pos++
	}
	leading := s.pos
	if !s.skipDigits("expected a digit") {
		return false
	}
	if s.text[leading] == '0' && s.pos > leading+1 {
		s.pos = leading
		return s.setProblem("a number cannot begin with 0")
	}
	if s.pos < len(s.text) && s.text[s.pos] == '.' {
		s.pos++
		if !s.skipDigits("expected a digit after the decimal point") {
			return false
		}
	}
	if s.pos < len(s.text) && (s.text[s.pos] == 'e' || s.text[s.pos] == 'E') {
		s.pos++
		if s.pos < len(s.text) && (s.text[s.pos] == '+' || s.text[s.pos] == '-') {
			s.pos++
		}
		return s.skipDigits("expected a digit in the exponent")
	}
	return true
}

func (s *scanner) skipDigits(missing string) bool {
	start := s.pos
	for s.pos < len(s.text) && isDigit(s.text[s.pos]) {
		s.pos++
	}
	if s.pos == start {
		return s.setProblem(missing)
	}
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHex(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
