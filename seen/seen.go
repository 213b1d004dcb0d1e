// Package seen makes the digest of what a question shows. Workers and endpoints
// written in Go compare it with Answer.seen before they use an answer.
package seen

import (
	"encoding/json"
	"errors"

	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/redact"
)

// Digest is 64 hex digits, the same for questions that show the same. The value
// and the schema are JSON text; nil is null for the value and none for the
// schema. ignore names parts that may differ: JSON pointers into the value, or
// "message", "schema", "value".
func Digest(message string, value, schema json.RawMessage, ignore ...string) string {
	return payload.ShownDigest(payload.ShownParts(message, payload.JSON(value), payload.JSON(schema), ignore))
}

// DigestHiding is Digest for a question with secret parts: JSON pointers to the parts of the value
// that not everybody sees. The error is that of a value that is not JSON, or of wrong pointers.
func DigestHiding(message string, value, schema json.RawMessage, secret []string, ignore ...string) (string, error) {
	shown, _, err := hideParts(value, secret)
	if err != nil {
		return "", err
	}
	return payload.ShownDigest(payload.ShownParts(message, shown, payload.JSON(schema), ignore)), nil
}

// SecretDigest is the digest of a value with its secret parts, which a worker compares with
// Answer.secret_seen; "" when nothing in the value is secret. interrupt is Answer.interrupt_id. Errors
// are those of DigestHiding.
func SecretDigest(interrupt string, value json.RawMessage, secret []string, ignore ...string) (string, error) {
	_, hidden, err := hideParts(value, secret)
	if err != nil || hidden.IsEmpty() {
		return "", err
	}
	return payload.HiddenDigest(interrupt, payload.JSON(value), ignore), nil
}

func hideParts(value json.RawMessage, secret []string) (payload.JSON, redact.Parts, error) {
	if problems := redact.CheckPointers(secret); len(problems) > 0 {
		return "", redact.Parts{}, errors.New("secret: " + problems[0].Text)
	}
	return redact.Hide(payload.JSON(value), secret)
}
