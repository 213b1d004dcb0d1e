package output

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// countColumns returns how many columns of a terminal a visible text takes. A sign that
// terminals draw differently counts as the most that it takes.
func countColumns(text string) int {
	n := 0
	for i, r := range text {
		n += countRuneColumns(text[:i], r)
	}
	return n
}

// pictureSelector makes a picture of two columns of a sign that has one.
const pictureSelector = 0xfe0f

func countRuneColumns(before string, r rune) int {
	switch {
	case r < utf8.RuneSelf:
		return 1
	case r == pictureSelector:
		last, _ := utf8.DecodeLastRuneInString(before)
		return 2 - countRuneColumns("", last)
	case unicode.In(r, unicode.Mn, unicode.Me), isJoinedJamo(r):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}

// isJoinedJamo reports whether a letter of Hangul stands in the columns of the one before.
func isJoinedJamo(r rune) bool { return r >= 0x1160 && r <= 0x11ff }

// ellipsis stands for the rest of a text that is cut, in one column.
const ellipsis = "…"

// cutColumns cuts a visible text to a number of columns. A mark like \u{202e} stays whole.
func cutColumns(text SafeText, most int) SafeText {
	if len(text) <= most || countColumns(string(text)) <= most {
		return text
	}
	n, kept := 0, text
	for i, r := range string(text) {
		if n += countRuneColumns(string(text[:i]), r); n > most-1 {
			kept = text[:i]
			break
		}
	}
	if i := strings.LastIndexByte(string(kept), '\\'); i >= 0 && beginsMark(string(kept[i:])) {
		kept = kept[:i]
	}
	return SafeText(strings.TrimRight(string(kept), " ")) + ellipsis
}

// beginsMark reports whether a text from a backslash on may be a mark without its end.
func beginsMark(text string) bool {
	const longest = len(`\u{10ffff}`)
	return len(text) < longest && !strings.Contains(text, "}") && (len(text) == 1 || text[1] == 'u' || text[1] == 'x')
}
