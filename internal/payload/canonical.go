package payload

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// Canonical returns a digest, 32 hex digits, that is equal for values that
// differ only in white space, in the order of object keys and in how strings
// are escaped. Number spelling counts: 1 and 1.0 differ. Text that is not JSON
// is digested as it is.
func Canonical(j JSON) string {
	sum := sha256.Sum256([]byte(CanonicalText(j)))
	return hex.EncodeToString(sum[:16])
}

// CanonicalText returns the form that Canonical digests: no white space, keys
// sorted at all levels, the last of a repeated key. Text that is not JSON is
// returned as it is.
func CanonicalText(j JSON) JSON {
	s := newScanner(string(j))
	if !s.value() || !s.end() {
		return j
	}
	var b strings.Builder
	b.Grow(len(j))
	canonical{}.write(&b, Trim(j))
	return JSON(b.String())
}

// Equal reports whether two values have the same canonical text.
func Equal(a, b JSON) bool {
	return a == b || CanonicalText(a) == CanonicalText(b)
}

// canonical writes values in one form.
type canonical struct {
	number func(text string) string // how a number is spelled; nil = as it is
}

// write needs well-formed text, so no step of it can fail.
func (c canonical) write(b *strings.Builder, j JSON) {
	switch KindOf(j) {
	case String:
		WriteQuoted(b, unescape(string(j)))
	case ArrayKind:
		items, _ := Elements(j) // checked by the caller
		b.WriteByte('[')
		for i, item := range items {
			if i > 0 {
				b.WriteByte(',')
			}
			c.write(b, item)
		}
		b.WriteByte(']')
	case ObjectKind:
		b.WriteByte('{')
		for i, field := range sorted(j) {
			if i > 0 {
				b.WriteByte(',')
			}
			WriteQuoted(b, field.Key)
			b.WriteByte(':')
			c.write(b, field.Value)
		}
		b.WriteByte('}')
	case Number:
		text := string(j)
		if c.number != nil {
			text = c.number(text)
		}
		b.WriteString(text)
	case None, NullKind, Bool:
		b.WriteString(string(j))
	}
}

// sorted returns the fields of an object by key, each key once.
func sorted(j JSON) []Field {
	fields, _ := Fields(j) // checked by the caller
	slices.SortStableFunc(fields, func(x, y Field) int { return cmp.Compare(x.Key, y.Key) })
	kept := fields[:0]
	for i := range fields {
		if i+1 < len(fields) && fields[i+1].Key == fields[i].Key {
			continue
		}
		kept = append(kept, fields[i])
	}
	return kept
}
