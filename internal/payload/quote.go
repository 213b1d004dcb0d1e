package payload

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Quote returns text as a JSON string. Only characters that JSON demands are
// escaped; bytes that are not UTF-8 become U+FFFD.
func Quote(text string) JSON {
	var b strings.Builder
	b.Grow(len(text) + 2)
	WriteQuoted(&b, text)
	return JSON(b.String())
}

// WriteQuoted writes text as Quote returns it.
func WriteQuoted(b *strings.Builder, text string) {
	const hex = "0123456789abcdef"
	b.WriteByte('"')
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	done := 0
	for i := range len(text) {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b.WriteString(text[done:i])
		done = i + 1
		switch c {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		default:
			b.WriteString(`\u00`)
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	b.WriteString(text[done:])
	b.WriteByte('"')
}

// Unquote returns the text of a JSON string. The error is a *KindError when
// the value is not a string, or a *SyntaxError.
func Unquote(j JSON) (string, error) {
	j = Trim(j)
	if KindOf(j) != String {
		return "", &KindError{Want: String, Got: KindOf(j)}
	}
	s := newScanner(string(j))
	if !s.skipString() || !s.expectEnd() {
		return "", s.problemError()
	}
	return unescapeString(string(j)), nil
}

// unescapeString returns the content of a well-formed quoted string.
func unescapeString(quoted string) string {
	if strings.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var out string
	if err := json.Unmarshal([]byte(quoted), &out); err != nil {
		return quoted // the scanner accepts nothing that json refuses
	}
	return out
}
