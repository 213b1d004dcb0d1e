package payload

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// Parts of an interrupt, as ShownParts names them.
const (
	PartMessage = "message"
	PartSchema  = "schema"
	PartValue   = "value"
)

// ShownParts returns the parts of an interrupt that a person sees, as one object. Parts
// that ignore names are left out, and so are the values that its JSON pointers lead to.
func ShownParts(message string, value, schema JSON, ignore []string) JSON {
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
			value = RemoveAt(value, pointer)
		}
		parts = append(parts, Field{Key: PartValue, Value: value})
	}
	return Object(parts)
}

// HiddenDigest returns the digest of the value of an interrupt with its secret parts, bound to the id
// of the interrupt, so that equal values have other digests elsewhere. ignore is that of ShownParts.
func HiddenDigest(id string, value JSON, ignore []string) string {
	sum := sha256.Sum256([]byte(id + "\n" + string(NormalText(ShownParts("", value, "", ignore)))))
	return hex.EncodeToString(sum[:])
}

// ShownDigest returns the digest of the parts that ShownParts returns.
func ShownDigest(shown JSON) string {
	sum := sha256.Sum256([]byte(NormalText(shown)))
	return hex.EncodeToString(sum[:])
}
