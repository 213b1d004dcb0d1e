// Package visible shows text that comes from elsewhere so that a person reads what
// is there: what a terminal would interpret, hide or reorder becomes a mark.
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
	"math"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Line shows a text on one line: breaks of lines and tabs are marks too.
func Line(text string) string { return escapeText(text, "", unbounded, writeTextMark) }

// Lines is Line for a text that may have several lines.
func Lines(text string) string { return escapeText(text, "\n", unbounded, writeTextMark) }

// Output is Lines for what is printed as a whole, with tabs between columns.
func Output(text string) string { return escapeText(text, "\n\t", unbounded, writeTextMark) }

// JSON escapes the same characters in JSON text, which stays the same value.
// Breaks of lines and tabs between values stay.
func JSON(text string) string { return escapeText(text, jsonSpace, unbounded, writeJSONMark) }

// Brief is Line of the first most bytes, give or take a mark; … says that there is more.
func Brief(text string, most int) string { return escapeText(text, "", most, writeTextMark) }

// BriefJSON is Brief for JSON text on one line, with the marks of JSON.
func BriefJSON(text string, most int) string { return escapeText(text, "", most, writeJSONMark) }

const (
	jsonSpace = "\r\n\t"
	unbounded = math.MaxInt
)

// escapeText makes marks of what is not shown; most is a bound of what it returns.
func escapeText(text, allowed string, most int, mark func(b *strings.Builder, r rune, part string)) string {
	cut := len(text) > most
	if !cut && isClean(text, allowed) {
		return text
	}
	if cut { // nothing becomes shorter by marks
		for most > 0 && !utf8.RuneStart(text[most]) {
			most--
		}
		text = text[:most]
	}
	var b strings.Builder
	visitCharacters(text, allowed, func(r rune, part string, shown bool) {
		switch {
		case b.Len() >= most:
			cut = true
		case shown:
			b.WriteString(part)
		default:
			mark(&b, r, part)
		}
	})
	if cut {
		b.WriteString("…")
	}
	return b.String()
}

// writeTextMark writes \u{202e}, or \x{ff} for a byte that is no UTF-8.
func writeTextMark(b *strings.Builder, r rune, part string) {
	if r == utf8.RuneError {
		fmt.Fprintf(b, `\x{%x}`, part)
		return
	}
	fmt.Fprintf(b, `\u{%x}`, r)
}

// writeJSONMark writes the escape of JSON: a pair of surrogates beyond 16 bits. A byte
// that is no UTF-8 becomes the replacement character, because JSON can't escape it.
func writeJSONMark(b *strings.Builder, r rune, _ string) {
	if utf16.RuneLen(r) == 2 {
		high, low := utf16.EncodeRune(r)
		fmt.Fprintf(b, `\u%04x\u%04x`, high, low)
		return
	}
	fmt.Fprintf(b, `\u%04x`, r)
}

func isClean(text, allowed string) bool {
	if isPlainASCII(text, allowed) {
		return true
	}
	all := true
	visitCharacters(text, allowed, func(_ rune, _ string, shown bool) { all = all && shown })
	return all
}

// isPlainASCII finds out quickly that a text is what most texts are.
func isPlainASCII(text, allowed string) bool {
	for i := range len(text) {
		if c := text[i]; c >= 0x7f || c < ' ' && strings.IndexByte(allowed, c) < 0 {
			return false
		}
	}
	return true
}

// visitCharacters calls visit with every character, the bytes it is made of, and whether
// it is shown as it is.
func visitCharacters(text, allowed string, visit func(r rune, part string, shown bool)) {
	before := rune(0)
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		broken := r == utf8.RuneError && n == 1
		visit(r, text[:n], !broken && (isVisible(before, r) || r < ' ' && strings.ContainsRune(allowed, r)))
		before, text = r, text[n:]
	}
}

// isVisible reports whether a character can be seen where it stands.
func isVisible(before, r rune) bool {
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
