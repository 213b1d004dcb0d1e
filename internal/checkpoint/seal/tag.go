package seal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// tagSize is the length of the digest of a tag in bytes.
const tagSize = 16

// TagForms returns the texts under which a store may keep a tag; a store writes the first. With
// keys a tag is a digest under the key that seals, so that the store learns which tags are
// equal, and not their text. The other forms are of the other keys, and of the time before
// there were keys.
func (b *Box) TagForms(tag string) []string {
	forms := make([]string, 0, 1+len(b.opts.Keys))
	for i := range b.opts.Keys {
		forms = append(forms, b.keys[b.opts.Keys[i].ID].digestTag(tag))
	}
	return append(forms, plainTag(tag))
}

// TagForm returns the first of TagForms.
func (b *Box) TagForm(tag string) string {
	if b.activeKey == nil {
		return plainTag(tag)
	}
	return b.activeKey.digestTag(tag)
}

// plainTag returns a tag, or its digest if it has control characters, by which a store may end a
// tag, or is no UTF-8, which JSON does not keep.
func plainTag(tag string) string {
	if utf8.ValidString(tag) && !strings.ContainsFunc(tag, func(r rune) bool { return r < ' ' }) {
		return tag
	}
	sum := sha256.Sum256([]byte(tag))
	return "#" + base64.RawURLEncoding.EncodeToString(sum[:tagSize])
}

// digestTag returns the digest of a tag under the key.
func (c *cipherKey) digestTag(tag string) string {
	mac := hmac.New(sha256.New, c.tagSecret[:])
	_, _ = mac.Write([]byte(tag)) // never fails
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:tagSize])
}

// deriveTagSecret derives the secret of the digests of tags from the secret of a key.
func deriveTagSecret(secret []byte) (derived [sha256.Size]byte) {
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write([]byte("graphd tags"))
	copy(derived[:], mac.Sum(nil))
	return derived
}
