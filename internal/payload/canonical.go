package payload

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// CanonicalDigest returns a digest, 32 hex digits, that is equal for values that
// differ only in white space, in the order of object keys and in how strings
// are escaped. Number spelling counts: 1 and 1.0 differ. Text that is not JSON
// is digested as it is.
func CanonicalDigest(j JSON) string {
	sum := sha256.Sum256([]byte(CanonicalText(j)))
	return hex.EncodeToString(sum[:16])
}

// CanonicalText returns the form that CanonicalDigest digests: no white space, keys
// sorted at all levels, the last of a repeated key. Text that is not JSON is
// returned as it is.
func CanonicalText(j JSON) JSON {
	s := newScanner(string(j))
	if !s.skipValue() || !s.expectEnd() {
		return j
	}
	var b strings.Builder
	b.Grow(len(j))
	canonicalWriter{}.writeValue(&b, Trim(j))
	return JSON(b.String())
}

// Equal reports whether two values have the same canonical text.
func Equal(a, b JSON) bool {
	return a == b || CanonicalText(a) == CanonicalText(b)
}

// canonicalWriter writes values in one form.
type canonicalWriter struct {
	formatNumber func(text string) string // how a number is spelled; nil = as it is
}

// writeValue needs well-formed text, so no step of it can fail.
func (c canonicalWriter) writeValue(b *strings.Builder, j JSON) {
	switch KindOf(j) {
	case String:
		WriteQuoted(b, unescapeString(string(j)))
	case ArrayKind:
		items, _ := Elements(j) // checked by the caller
		b.WriteByte('[')
		for i, item := range items {
			if i > 0 {
				b.WriteByte(',')
			}
			c.writeValue(b, item)
		}
		b.WriteByte(']')
	case ObjectKind:
		b.WriteByte('{')
		for i, field := range sortedFields(j) {
			if i > 0 {
				b.WriteByte(',')
			}
			WriteQuoted(b, field.Key)
			b.WriteByte(':')
			c.writeValue(b, field.Value)
		}
		b.WriteByte('}')
	case Number:
		text := string(j)
		if c.formatNumber != nil {
			text = c.formatNumber(text)
		}
		b.WriteString(text)
	case None, NullKind, Bool:
		b.WriteString(string(j))
	}
}

// sortedFields returns the fields of an object by key, each key once.
func sortedFields(j JSON) []Field {
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
