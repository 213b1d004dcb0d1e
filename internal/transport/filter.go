package transport

import (
	"fmt"
	"strings"
)

// A filter is a subset of AIP-160: conditions `field = "value"` joined by AND.
// Fields come from an allow-list; whatever can't be answered from an index is
// refused, never scanned for.

// condition is one `field = value`. Key is set for metadata.KEY.
type condition struct {
	Field string
	Key   string
	Value string
}

// filterError says where a filter can't be understood.
type filterError struct {
	At      int // byte of the filter, from 0
	Problem string
}

// Error tells the problem and the byte.
func (e *filterError) Error() string { return fmt.Sprintf("%s (at byte %d)", e.Problem, e.At) }

// maxFilter bounds the text of a filter.
const maxFilter = 4096

// metadataField is the field that takes a key.
const metadataField = "metadata"

// parseFilter takes a filter apart. allowed lists the fields; metadata stands
// for every key of it.
func parseFilter(text string, allowed []string) ([]condition, error) {
	if len(text) > maxFilter {
		return nil, &filterError{maxFilter, fmt.Sprintf("has %d bytes; at most %d are allowed", len(text), maxFilter)}
	}
	p := &filterParser{text: text, allowed: allowed}
	p.space()
	if p.at == len(p.text) {
		return nil, nil
	}
	var found []condition
	for {
		c, err := p.condition()
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			if f.Field == c.Field && f.Key == c.Key {
				return nil, p.fail("%s is asked for twice", c.name())
			}
		}
		found = append(found, c)
		p.space()
		if p.at == len(p.text) {
			return found, nil
		}
		start := p.at
		if word := p.word(); word != "AND" {
			p.at = start
			return nil, p.fail("expected AND; only conditions joined by AND are supported, no OR, NOT or parentheses")
		}
	}
}

func (c condition) name() string {
	if c.Key != "" {
		return c.Field + "." + c.Key
	}
	return c.Field
}

type filterParser struct {
	text    string
	at      int
	allowed []string
}

func (p *filterParser) fail(format string, args ...any) error {
	return &filterError{p.at, fmt.Sprintf(format, args...)}
}

func (p *filterParser) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

func (p *filterParser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

// word reads letters, digits and _ - : which is what ids, names and enum
// values without quotes are made of.
func (p *filterParser) word() string {
	start := p.at
	for p.at < len(p.text) && idByte(p.text[p.at]) && p.text[p.at] != '.' {
		p.at++
	}
	return p.text[start:p.at]
}

func (p *filterParser) condition() (condition, error) {
	p.space()
	c, err := p.field()
	if err != nil {
		return c, err
	}
	p.space()
	if p.peek() != '=' {
		return c, p.fail("expected = after %s; it is the only comparison", c.name())
	}
	p.at++
	p.space()
	c.Value, err = p.value()
	return c, err
}

func (p *filterParser) field() (condition, error) {
	start := p.at
	c := condition{Field: p.word()}
	known := false
	for _, a := range p.allowed {
		known = known || a == c.Field
	}
	if !known {
		p.at = start
		return c, p.fail("expected a field: %s", strings.Join(fieldNames(p.allowed), ", "))
	}
	if c.Field != metadataField {
		return c, nil
	}
	if p.peek() != '.' {
		return c, p.fail("expected metadata.KEY")
	}
	p.at++
	var err error
	if c.Key, err = p.label(); err == nil && c.Key == "" {
		err = p.fail("expected metadata.KEY; quote a key that is not a word")
	}
	return c, err
}

func fieldNames(allowed []string) []string {
	names := make([]string, 0, len(allowed))
	for _, a := range allowed {
		if a == metadataField {
			a = "metadata.KEY"
		}
		names = append(names, a)
	}
	return names
}

// label reads the key of metadata: words joined by dots, or a quoted text.
func (p *filterParser) label() (string, error) {
	if q := p.peek(); q == '"' || q == '\'' {
		return p.quoted()
	}
	start := p.at
	for p.at < len(p.text) && idByte(p.text[p.at]) {
		p.at++
	}
	return p.text[start:p.at], nil
}

func (p *filterParser) value() (string, error) {
	switch q := p.peek(); {
	case q == '"' || q == '\'':
		return p.quoted()
	case idByte(q):
		start := p.at
		for p.at < len(p.text) && idByte(p.text[p.at]) {
			p.at++
		}
		return p.text[start:p.at], nil
	}
	return "", p.fail("expected a value in quotes")
}

// quoted reads a text in quotes; a backslash keeps the quote and itself.
func (p *filterParser) quoted() (string, error) {
	quote, start := p.text[p.at], p.at
	p.at++
	var b strings.Builder
	for p.at < len(p.text) {
		c := p.text[p.at]
		p.at++
		switch {
		case c == quote:
			return b.String(), nil
		case c == '\\' && (p.peek() == quote || p.peek() == '\\') && p.at < len(p.text):
			b.WriteByte(p.peek())
			p.at++
		case c == '\\':
			p.at--
			return "", p.fail(`a backslash may only stand before a quote or a backslash`)
		default:
			b.WriteByte(c)
		}
	}
	p.at = start
	return "", p.fail("the quote is never closed")
}
