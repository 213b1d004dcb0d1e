// Package apikey makes and checks API keys: random texts that graphd itself hands
// out.
//
// A key is gk_ID_SECRET. The ID is public, and the secret has 32 random bytes, so
// that a plain SHA-256 of it tells nothing: there is no smaller set of secrets to
// try. The file of the keys holds only such hashes.
package apikey

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/file"
)

// Lengths of the parts of a key.
const (
	minIDLength  = 8
	maxIDLength  = 64
	newIDLength  = 12
	secretBytes  = 32
	secretLength = 43 // of secretBytes in base64
)

// MaxKeys bounds the keys of a file, those revoked and expired included.
const MaxKeys = 50_000

const (
	idLetters  = "abcdefghijklmnopqrstuvwxyz0123456789"
	hashPrefix = "sha256:"
)

// secretEncoding refuses texts that only differ in unused bits.
func secretEncoding() *base64.Encoding { return base64.RawURLEncoding.Strict() }

// Key is what the file keeps of a key.
type Key struct {
	ID      string    `yaml:"id"`
	Name    string    `yaml:"name"`
	Groups  []string  `yaml:"groups,omitempty"`
	Tenant  string    `yaml:"tenant,omitempty"`
	Tenants []string  `yaml:"tenants,omitempty"`
	Roles   []string  `yaml:"roles,omitempty"`
	Created file.Time `yaml:"created"`
	// Expires is the time from which the key is refused. Zero = never.
	Expires file.Time `yaml:"expires,omitempty"`
	// Revoked is when the key was revoked. Any time, also a future one, revokes it. Zero =
	// not revoked.
	Revoked file.Time `yaml:"revoked,omitempty"`
	// Hash is sha256: and the SHA-256 of the text of the secret, in hexadecimal.
	Hash string `yaml:"hash"`
}

// Prefix returns the public part of the key, gk_ID.
func (k *Key) Prefix() string { return identity.APIKeyPrefix + k.ID }

// ListTenants returns the tenants that calls may name. The first is that of calls
// that name none.
func (k *Key) ListTenants() []string {
	chosen, all := identity.ChooseTenants(k.Tenant, k.Tenants)
	if at := slices.Index(all, chosen); at > 0 {
		return append([]string{chosen}, slices.Delete(slices.Clone(all), at, at+1)...)
	}
	return all
}

// document is the file.
type document struct {
	Keys []Key `yaml:"keys"`
}

// Problems lists what is wrong with the keys of a file.
func (d *document) Problems() []file.Problem {
	if len(d.Keys) > MaxKeys {
		return []file.Problem{{Path: []any{"keys"}, Is: fmt.Sprintf("has %d keys", len(d.Keys)), Want: fmt.Sprintf("at most %d", MaxKeys)}}
	}
	var all []file.Problem
	seen := make(map[string]bool, len(d.Keys))
	for i := range d.Keys {
		k := &d.Keys[i]
		found := k.findProblems()
		if seen[k.ID] {
			found = append(found, file.Problem{Path: []any{"id"}, Is: "is the id of another key too", Want: "an id of its own"})
		}
		seen[k.ID] = true
		all = append(all, file.PrefixProblems(found, "keys", i)...)
	}
	return all
}

func (k *Key) findProblems() []file.Problem {
	var all []file.Problem
	add := func(field, is, want string) {
		all = append(all, file.Problem{Path: []any{field}, Is: is, Want: want})
	}
	if !isID(k.ID) {
		add("id", "is not an id", fmt.Sprintf("%d to %d lower-case letters and digits", minIDLength, maxIDLength))
	}
	if _, ok := decodeHash(k.Hash); !ok {
		add("hash", "is not a hash", "sha256: and 64 hexadecimal digits")
	}
	if k.Created.IsZero() {
		add("created", "is missing", "a time like 2026-01-31T12:00:00Z")
	}
	p := k.makePrincipal()
	if wrong, ok := errors.AsType[*identity.PrincipalError](p.Validate()); ok {
		add(wrong.Field, wrong.Is, wrong.Want)
	}
	return all
}

func (k *Key) makePrincipal() identity.Principal {
	p := identity.Principal{Name: k.Name, Groups: k.Groups, Roles: k.Roles, How: identity.HowAPIKey}
	p.Tenant, p.Tenants = identity.ChooseTenants(k.Tenant, k.Tenants)
	return p
}

// hash is the SHA-256 of the text of a secret.
type hash [sha256.Size]byte

func hashSecret(secret string) hash { return sha256.Sum256([]byte(secret)) }

func (h hash) String() string { return hashPrefix + hex.EncodeToString(h[:]) }

// isSame compares in a time that does not depend on the hashes.
func (h hash) isSame(other hash) bool { return subtle.ConstantTimeCompare(h[:], other[:]) == 1 }

func decodeHash(text string) (hash, bool) {
	digits, ok := strings.CutPrefix(text, hashPrefix)
	sum, err := hex.DecodeString(digits)
	if !ok || err != nil || len(sum) != sha256.Size {
		return hash{}, false
	}
	return hash(sum), true
}

func isID(text string) bool {
	return len(text) >= minIDLength && len(text) <= maxIDLength &&
		!strings.ContainsFunc(text, func(c rune) bool { return !strings.ContainsRune(idLetters, c) })
}

// splitToken returns the parts of a token, false when it is no API key.
func splitToken(token string) (id, secret string, ok bool) {
	rest, ok := strings.CutPrefix(token, identity.APIKeyPrefix)
	if !ok {
		return "", "", false
	}
	id, secret, ok = strings.Cut(rest, "_")
	if !ok || !isID(id) || len(secret) != secretLength {
		return "", "", false
	}
	_, err := secretEncoding().DecodeString(secret)
	return id, secret, err == nil && !strings.ContainsAny(secret, "\r\n")
}

// newToken returns an id that is not among those used, and a secret.
func newToken(used []Key) (id, secret string) {
	for id == "" || slices.ContainsFunc(used, func(k Key) bool { return k.ID == id }) {
		id = newID()
	}
	random := make([]byte, secretBytes)
	_, _ = rand.Read(random) // never fails
	return id, secretEncoding().EncodeToString(random)
}

func newID() string {
	const unbiased = 256 / len(idLetters) * len(idLetters)
	var id []byte
	random := make([]byte, 1)
	for len(id) < newIDLength {
		_, _ = rand.Read(random) // never fails
		if int(random[0]) < unbiased {
			id = append(id, idLetters[int(random[0])%len(idLetters)])
		}
	}
	return string(id)
}
