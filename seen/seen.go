// Package seen makes the digest of what a question shows. Workers and endpoints
// written in Go compare it with Answer.seen before they use an answer.
package seen

import (
	"encoding/json"

	"github.com/graphd-dev/graphd/internal/payload"
)

// Digest is 64 hex digits, the same for questions that show the same. The value
// and the schema are JSON text; nil is null for the value and none for the
// schema. ignore names parts that may differ: JSON pointers into the value, or
// "message", "schema", "value".
func Digest(message string, value, schema json.RawMessage, ignore ...string) string {
	return payload.ShownDigest(payload.ShownParts(message, payload.JSON(value), payload.JSON(schema), ignore))
}
