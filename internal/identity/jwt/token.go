package jwt

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"

	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/payload"
)

// Bounds of a token, besides its size.
const (
	maxDepth    = 32 // nesting of the header and of the claims
	maxKeyBytes = 256
)

// token is a JWT whose signature has not been verified.
type token struct {
	text      string
	algorithm jose.SignatureAlgorithm
	keyID     string // "" = the token names no key
	issuer    string
}

// parseToken reads what finds the key of a token. It refuses all but the compact
// form of a JWS with an asymmetric algorithm. The error is an *identity.Error.
func parseToken(text string) (token, error) {
	if len(text) > identity.MaxTokenBytes {
		return token{}, &identity.Error{Reason: identity.TokenTooLarge}
	}
	parts := strings.SplitN(text, ".", 4)
	if len(parts) != 3 {
		return token{}, newMalformedError("")
	}
	header, ok := decodeObject(parts[0])
	if !ok {
		return token{}, newMalformedError("header")
	}
	t := token{text: text}
	if err := t.readHeader(header); err != nil {
		return token{}, err
	}
	claims, ok := decodeObject(parts[1])
	if !ok {
		return token{}, newMalformedError("claims")
	}
	if signature, ok := decodePart(parts[2]); !ok || signature == "" {
		return token{}, newMalformedError("signature")
	}
	if t.issuer, ok = lookupText(claims, "iss"); !ok {
		return token{}, &identity.Error{Reason: identity.TokenIssuer}
	}
	return t, nil
}

func (t *token) readHeader(header payload.JSON) error {
	algorithm, ok := lookupText(header, "alg")
	if !ok {
		return newMalformedError("alg")
	}
	t.algorithm = jose.SignatureAlgorithm(algorithm)
	if !slices.Contains(asymmetricAlgorithms(), t.algorithm) {
		return &identity.Error{Reason: identity.TokenAlgorithm}
	}
	if _, ok := payload.Lookup(header, "crit"); ok {
		return newMalformedError("crit")
	}
	if _, ok := payload.Lookup(header, "kid"); ok {
		if t.keyID, ok = lookupText(header, "kid"); !ok || len(t.keyID) > maxKeyBytes {
			return newMalformedError("kid")
		}
	}
	return nil
}

func newMalformedError(field string) error {
	return &identity.Error{Reason: identity.TokenMalformed, Field: field}
}

// decodeObject decodes a part of a token that is a JSON object, with each key once.
func decodeObject(part string) (payload.JSON, bool) {
	text, ok := decodePart(part)
	if !ok || payload.Validate(text, payload.Limits{MaxBytes: identity.MaxTokenBytes, MaxDepth: maxDepth}) != nil {
		return "", false
	}
	j := payload.JSON(text)
	return j, payload.KindOf(j) == payload.ObjectKind
}

// decodePart decodes base64url without padding. Of the texts that differ in unused
// bits or in breaks of lines it accepts one, so that a token has one spelling.
func decodePart(part string) (string, bool) {
	if strings.ContainsAny(part, "\r\n") {
		return "", false
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(part)
	return string(text), err == nil
}

// lookupText returns the text of a key, false when it is absent or no text.
func lookupText(object payload.JSON, key string) (string, bool) {
	value, ok := payload.Lookup(object, key)
	if !ok {
		return "", false
	}
	return readText(value)
}

func readText(value payload.JSON) (string, bool) {
	if payload.KindOf(value) != payload.String {
		return "", false
	}
	text, err := payload.Unquote(value)
	return text, err == nil
}
