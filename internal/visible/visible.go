// Package visible shows text that comes from elsewhere so that a person reads
// what is there: what a terminal would obey, hide or reorder becomes a mark.
//
// That is every character that is not a letter, a mark, a number, a sign or a
// plain space: control characters with ESC, CR and C1, bidirectional controls,
// tags, zero-width and soft-hyphen characters, fillers, private ones, and
// variation selectors that do not follow a sign. In text a mark is \u{202e},
// with the number of the character; \x{ff} is a byte that is no UTF-8. Inside
// JSON it is the escape of JSON, so that the text stays the same value.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line shows a text on one line: breaks of lines and tabs are marks too.
func Line(text string) string { return marked(text, "") }

// Lines is Line for a text that may have several lines.
func Lines(text string) string { return marked(text, "\n") }

// Output is Lines for what is printed as a whole, with tabs between columns.
func Output(text string) string { return marked(text, "\n\t") }

// JSON escapes the same characters in JSON text, which stays the same value.
// Breaks of lines and tabs between values stay.
func JSON(text string) string {
	if clean(text, "\r\n\t") {
		return text
	}
	var b strings.Builder
	each(text, "\r\n\t", func(r rune, part string, shown bool) {
		switch {
		case shown:
			b.WriteString(part)
		case r == utf8.RuneError:
			b.WriteString(`\ufffd`)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	})
	return b.String()
}

func marked(text, allowed string) string {
	if clean(text, allowed) {
		return text
	}
	var b strings.Builder
	each(text, allowed, func(r rune, part string, shown bool) {
		switch {
		case shown:
			b.WriteString(part)
		case r == utf8.RuneError:
			fmt.Fprintf(&b, `\x{%x}`, part)
		default:
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
	})
	return b.String()
}

func clean(text, allowed string) bool {
	if ascii(text, allowed) {
		return true
	}
	all := true
	each(text, allowed, func(_ rune, _ string, shown bool) { all = all && shown })
	return all
}

// ascii finds out quickly that a text is what most texts are.
func ascii(text, allowed string) bool {
	for i := range len(text) {
		if c := text[i]; c >= 0x7f || c < ' ' && strings.IndexByte(allowed, c) < 0 {
			return false
		}
	}
	return true
}

// each calls visit with every character, the bytes it is made of, and whether
// it is shown as it is.
func each(text, allowed string, visit func(r rune, part string, shown bool)) {
	before := rune(0)
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		broken := r == utf8.RuneError && n == 1
		visit(r, text[:n], !broken && (shown(before, r) || r < ' ' && strings.ContainsRune(allowed, r)))
		before, text = r, text[n:]
	}
}

// shown reports whether a character can be seen where it stands.
func shown(before, r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return r >= ' ' && r != 0x7f
	case r == 0xfe0e || r == 0xfe0f: // text or picture: of a sign like ✈ only
		return unicode.In(before, unicode.So, unicode.Sm, unicode.Po, unicode.Nd)
	case r == blankBraille, unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
		return false
	}
	return unicode.IsGraphic(r)
}

// blankBraille is a sign that is not there.
const blankBraille = 0x2800
