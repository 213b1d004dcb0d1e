package listing

import (
	"fmt"
	"strings"

	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// A filter is a subset of AIP-160: conditions `field = "value"` joined by AND.
// Fields come from an allow-list. A condition that no index can answer is refused.

// condition is one `field = value`, or `field < value` for dueField. Key is set for
// metadata.KEY.
type condition struct {
	Field string
	Key   string
	Value string
}

// filterError is the error of a filter that can't be parsed, with its place.
type filterError struct {
	Offset  int // byte of the filter, from 0
	Problem string
}

// Error returns the problem and the byte.
func (e *filterError) Error() string { return fmt.Sprintf("%s (at byte %d)", e.Problem, e.Offset) }

// maxFilterLength bounds the text of a filter.
const maxFilterLength = 4096

// metadataField is the field that takes a key, and dueField the one that is compared with <.
const (
	metadataField = "metadata"
	dueField      = "due"
)

// parseFilter splits a filter into conditions. allowed lists the fields; metadata
// allows every key of it.
func parseFilter(text string, allowed []string) ([]condition, error) {
	if len(text) > maxFilterLength {
		return nil, &filterError{maxFilterLength, fmt.Sprintf("has %d bytes; at most %d are allowed", len(text), maxFilterLength)}
	}
	p := &filterParser{text: text, allowed: allowed}
	p.skipSpace()
	if p.pos == len(p.text) {
		return nil, nil
	}
	var found []condition
	for {
		c, err := p.parseCondition()
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			if f.Field == c.Field && f.Key == c.Key {
				return nil, p.newError("%s is asked for twice", c.displayName())
			}
		}
		found = append(found, c)
		p.skipSpace()
		if p.pos == len(p.text) {
			return found, nil
		}
		start := p.pos
		if word := p.readWord(); word != "AND" {
			p.pos = start
			return nil, p.newError("expected AND; only conditions joined by AND are supported, no OR, NOT or parentheses")
		}
	}
}

func (c condition) displayName() string {
	if c.Key != "" {
		return c.Field + "." + c.Key
	}
	return c.Field
}

type filterParser struct {
	text    string
	pos     int
	allowed []string
}

func (p *filterParser) newError(format string, args ...any) error {
	return &filterError{p.pos, fmt.Sprintf(format, args...)}
}

func (p *filterParser) skipSpace() {
	for p.pos < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.pos]) >= 0 {
		p.pos++
	}
}

func (p *filterParser) peekByte() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

// readWord reads letters, digits and _ - : as in ids, names and unquoted enum
// values.
func (p *filterParser) readWord() string {
	start := p.pos
	for p.pos < len(p.text) && wire.IsIDByte(p.text[p.pos]) && p.text[p.pos] != '.' {
		p.pos++
	}
	return p.text[start:p.pos]
}

func (p *filterParser) parseCondition() (condition, error) {
	p.skipSpace()
	c, err := p.parseField()
	if err != nil {
		return c, err
	}
	p.skipSpace()
	comparison := byte('=')
	if c.Field == dueField {
		comparison = '<'
	}
	if p.peekByte() != comparison {
		return c, p.newError("expected %c after %s; it is its only comparison", comparison, c.displayName())
	}
	p.pos++
	p.skipSpace()
	c.Value, err = p.parseValue()
	return c, err
}

func (p *filterParser) parseField() (condition, error) {
	start := p.pos
	c := condition{Field: p.readWord()}
	known := false
	for _, a := range p.allowed {
		known = known || a == c.Field
	}
	if !known {
		p.pos = start
		return c, p.newError("expected a field: %s", strings.Join(displayFields(p.allowed), ", "))
	}
	if c.Field != metadataField {
		return c, nil
	}
	if p.peekByte() != '.' {
		return c, p.newError("expected metadata.KEY")
	}
	p.pos++
	var err error
	if c.Key, err = p.parseLabelKey(); err == nil && c.Key == "" {
		err = p.newError("expected metadata.KEY; quote a key that is not a word")
	}
	return c, err
}

func displayFields(allowed []string) []string {
	names := make([]string, 0, len(allowed))
	for _, a := range allowed {
		if a == metadataField {
			a = "metadata.KEY"
		}
		names = append(names, a)
	}
	return names
}

// parseLabelKey reads the key of metadata: words joined by dots, or a quoted text.
func (p *filterParser) parseLabelKey() (string, error) {
	if q := p.peekByte(); q == '"' || q == '\'' {
		return p.parseQuoted()
	}
	start := p.pos
	for p.pos < len(p.text) && wire.IsIDByte(p.text[p.pos]) {
		p.pos++
	}
	return p.text[start:p.pos], nil
}

func (p *filterParser) parseValue() (string, error) {
	switch q := p.peekByte(); {
	case q == '"' || q == '\'':
		return p.parseQuoted()
	case wire.IsIDByte(q):
		start := p.pos
		for p.pos < len(p.text) && wire.IsIDByte(p.text[p.pos]) {
			p.pos++
		}
		return p.text[start:p.pos], nil
	}
	return "", p.newError("expected a value in quotes")
}

// parseQuoted reads a quoted text, in which a backslash escapes the quote and
// itself.
func (p *filterParser) parseQuoted() (string, error) {
	quote, start := p.text[p.pos], p.pos
	p.pos++
	var b strings.Builder
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		p.pos++
		switch {
		case c == quote:
			return b.String(), nil
		case c == '\\' && (p.peekByte() == quote || p.peekByte() == '\\') && p.pos < len(p.text):
			b.WriteByte(p.peekByte())
			p.pos++
		case c == '\\':
			p.pos--
			return "", p.newError(`a backslash may only stand before a quote or a backslash`)
		default:
			b.WriteByte(c)
		}
	}
	p.pos = start
	return "", p.newError("the quote is never closed")
}
