// Package webhook posts events to an endpoint over HTTP, signed as Standard Webhooks says, and
// opens no connection to an address that it may not reach.
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// secretPrefix begins the text of a secret.
const secretPrefix = "whsec_"

// Bounds of the bytes of a secret.
const (
	leastSecretBytes = 24
	mostSecretBytes  = 64
)

// SecretRule says what a secret is, for errors.
const SecretRule = "whsec_ and the base64 of 24 to 64 random bytes, like whsec_$(openssl rand -base64 32)" //nolint:gosec // has no secret

// Secret is a key that an endpoint shares with the server. It prints nothing of itself.
type Secret struct{ key []byte }

// String hides the secret.
func (Secret) String() string { return secretPrefix + "…" }

// GoString hides the secret.
func (s Secret) GoString() string { return s.String() }

// ParseSecret reads the text of a secret. The error does not show it.
func ParseSecret(text string) (Secret, error) {
	encoded, ok := strings.CutPrefix(strings.TrimSpace(text), secretPrefix)
	if !ok {
		return Secret{}, errors.New("does not begin with " + secretPrefix)
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	switch {
	case err != nil:
		return Secret{}, errors.New("is no base64 after " + secretPrefix)
	case len(key) < leastSecretBytes || len(key) > mostSecretBytes:
		return Secret{}, fmt.Errorf("has %d bytes", len(key))
	}
	return Secret{key}, nil
}

// sign returns the signature of a message, as it stands in the header.
func (s Secret) sign(id string, timestamp int64, body []byte) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(id + "." + strconv.FormatInt(timestamp, 10) + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// signAll returns the signatures of a message under each of some secrets.
func signAll(secrets []Secret, id string, timestamp int64, body []byte) string {
	var all []string
	for _, s := range secrets {
		all = append(all, s.sign(id, timestamp, body))
	}
	return strings.Join(all, " ")
}
