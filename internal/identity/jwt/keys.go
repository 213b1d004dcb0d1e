package jwt

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// Bounds of a set of keys.
const (
	maxKeys       = 100
	maxJWKSBytes  = 1 << 20
	minRSABits    = 2048
	maxRSABits    = 8192 // a larger key makes each verification slow
	maxCandidates = 8    // keys tried for one token
)

// keySet is the public keys of an issuer.
type keySet struct {
	keys   []publicKey
	digest digest // of the text with the keys
}

type publicKey struct {
	id         string
	key        any
	algorithms []jose.SignatureAlgorithm // for which the key may be used
}

// findKeys returns the keys for an algorithm: those of an id, or without an id all.
func (s *keySet) findKeys(algorithm jose.SignatureAlgorithm, id string) []any {
	var found []any
	for i := range s.keys {
		k := &s.keys[i]
		if (id == "" || k.id == id) && slices.Contains(k.algorithms, algorithm) && len(found) < maxCandidates {
			found = append(found, k.key)
		}
	}
	return found
}

// parseKeys reads a JSON Web Key Set. It leaves out keys that are of no use here:
// symmetric, private and weak ones, those for encryption, and those of unknown
// types. A set in which no key is left is an error.
func parseKeys(text []byte) (*keySet, error) {
	if len(text) > maxJWKSBytes {
		return nil, fmt.Errorf("the key set has %d bytes: want at most %d", len(text), maxJWKSBytes)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, errors.New("the key set is not JSON with a list of keys: want a JSON Web Key Set")
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("the key set has %d keys: want at most %d", len(set.Keys), maxKeys)
	}
	s := &keySet{digest: sha256.Sum256(text)}
	for _, raw := range set.Keys {
		var k jose.JSONWebKey
		if k.UnmarshalJSON(raw) != nil || !k.Valid() || !k.IsPublic() || k.Use != "" && k.Use != "sig" || len(k.KeyID) > maxKeyBytes {
			continue
		}
		algorithms := algorithmsOf(k.Key)
		if k.Algorithm != "" {
			algorithms = slices.DeleteFunc(algorithms, func(a jose.SignatureAlgorithm) bool { return string(a) != k.Algorithm })
		}
		if len(algorithms) > 0 {
			s.keys = append(s.keys, publicKey{id: strings.Clone(k.KeyID), key: k.Key, algorithms: algorithms})
		}
	}
	if len(s.keys) == 0 {
		return nil, fmt.Errorf("none of the %d keys of the key set can verify signatures: want public RSA keys of %d to %d bits, or EC or Ed25519 keys",
			len(set.Keys), minRSABits, maxRSABits)
	}
	return s, nil
}

// algorithmsOf returns the algorithms that fit a key, none for a key that must not be
// used.
func algorithmsOf(key any) []jose.SignatureAlgorithm {
	switch key := key.(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits >= minRSABits && bits <= maxRSABits {
			return []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512}
		}
	case *ecdsa.PublicKey:
		switch key.Curve.Params().BitSize {
		case 256:
			return []jose.SignatureAlgorithm{jose.ES256}
		case 384:
			return []jose.SignatureAlgorithm{jose.ES384}
		case 521:
			return []jose.SignatureAlgorithm{jose.ES512}
		}
	case ed25519.PublicKey:
		return []jose.SignatureAlgorithm{jose.EdDSA}
	}
	return nil
}
