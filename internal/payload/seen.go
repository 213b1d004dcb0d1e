package payload

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// Parts of a question, as Shown names them.
const (
	PartMessage = "message"
	PartSchema  = "schema"
	PartValue   = "value"
)

// Shown is what a person sees of a question, as one object. Parts that ignore
// names are left out, and so is what its JSON pointers lead to in the value.
func Shown(message string, value, schema JSON, ignore []string) JSON {
	parts := make([]Field, 0, 3)
	if !slices.Contains(ignore, PartMessage) {
		parts = append(parts, Field{Key: PartMessage, Value: Quote(message)})
	}
	if schema != "" && !slices.Contains(ignore, PartSchema) {
		parts = append(parts, Field{Key: PartSchema, Value: schema})
	}
	if !slices.Contains(ignore, PartValue) {
		value = cmp.Or(value, Null)
		for _, pointer := range ignore {
			value = Without(value, pointer)
		}
		parts = append(parts, Field{Key: PartValue, Value: value})
	}
	return Object(parts)
}

// Seen is the digest of what Shown returns, 64 hex digits, equal for values that
// mean the same; see NormalText.
func Seen(shown JSON) string {
	sum := sha256.Sum256([]byte(NormalText(shown)))
	return hex.EncodeToString(sum[:])
}
