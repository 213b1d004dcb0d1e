package link

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Refusals of a token.
var (
	// ErrInvalid refuses a text that no key has signed, and every other text that is no link.
	// It says no more, so that a stranger learns nothing by trying.
	ErrInvalid = errors.New("the link is not valid")
	// ErrExpired refuses a link whose time is over.
	ErrExpired = errors.New("the link has expired")
)

// version is the form of the payload, its first byte.
const version = 1

// domain separates signatures of links from others that the same key may have made.
const domain = "graphd link v1\x00"

// Keys sign and verify links: the first one signs, all verify.
type Keys struct{ list []Key }

// newEncoding has one text for each value: it refuses bits that do not count.
func newEncoding() *base64.Encoding { return base64.RawURLEncoding.Strict() }

// SignToken returns the text of a link. The error is a *FieldError for a value out of bounds.
func (k Keys) SignToken(l Link) (string, error) {
	if err := l.checkFields(); err != nil {
		return "", err
	}
	if len(k.list) == 0 {
		return "", &FieldError{"keys", "are missing", "one to sign with"}
	}
	payload := encodePayload(&l)
	token := newEncoding().EncodeToString(payload) + "." + newEncoding().EncodeToString(k.list[0].signPayload(payload))
	if len(token) > MaxTokenBytes {
		return "", &FieldError{"groups", fmt.Sprintf("make a link of %d bytes", len(token)), fmt.Sprintf("at most %d: fewer groups", MaxTokenBytes)}
	}
	return token, nil
}

// ParseToken returns the link of a text. The error is ErrInvalid or, with the link, ErrExpired.
func (k Keys) ParseToken(token string, now time.Time) (Link, error) {
	if len(token) > MaxTokenBytes {
		return Link{}, ErrInvalid
	}
	first, second, _ := strings.Cut(token, ".")
	payload, wrong := decodeText(first)
	mac, wrongMAC := decodeText(second)
	if wrong != nil || wrongMAC != nil || !k.isSigned(payload, mac) {
		return Link{}, ErrInvalid
	}
	l, ok := decodePayload(payload)
	switch {
	case !ok:
		return Link{}, ErrInvalid
	case now.After(l.NotAfter):
		return l, ErrExpired
	}
	return l, nil
}

// decodeText decodes a part of a token. The decoder alone would skip line breaks.
func decodeText(text string) ([]byte, error) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, ErrInvalid
	}
	return newEncoding().DecodeString(text)
}

// isSigned reports whether a key has made a signature. It tries all keys, whichever fits.
func (k Keys) isSigned(payload, mac []byte) bool {
	found := false
	for _, key := range k.list {
		if hmac.Equal(key.signPayload(payload), mac) {
			found = true
		}
	}
	return found
}

func (k Key) signPayload(payload []byte) []byte {
	mac := hmac.New(sha256.New, k.Secret)
	mac.Write([]byte(domain))
	mac.Write(payload)
	return mac.Sum(nil)
}

// encodePayload writes a link: the version, the time, and each text after its length.
func encodePayload(l *Link) []byte {
	b := binary.AppendUvarint([]byte{version}, uint64(l.NotAfter.Unix()))
	for _, text := range []string{l.Tenant, l.Thread, l.Interrupt, l.Principal, l.Etag, l.Preset} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	b = binary.AppendUvarint(b, uint64(len(l.Groups)))
	for _, text := range l.Groups {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return b
}

// decodePayload reads a link, and returns false for bytes that encodePayload does not write.
func decodePayload(b []byte) (Link, bool) {
	if len(b) == 0 || b[0] != version {
		return Link{}, false
	}
	r := &payloadReader{rest: b[1:]}
	l := Link{NotAfter: time.Unix(int64(r.readNumber(1<<40)), 0).UTC()}
	for _, into := range []*string{&l.Tenant, &l.Thread, &l.Interrupt, &l.Principal, &l.Etag, &l.Preset} {
		*into = r.readText()
	}
	for range r.readNumber(MaxGroups) {
		l.Groups = append(l.Groups, r.readText())
	}
	return l, !r.isBroken && len(r.rest) == 0 && l.checkFields() == nil
}

// payloadReader reads the parts of a payload. After a part that is broken all are.
type payloadReader struct {
	rest     []byte
	isBroken bool
}

func (r *payloadReader) readNumber(most uint64) uint64 {
	value, size := binary.Uvarint(r.rest)
	if r.isBroken || size <= 0 || value > most {
		r.isBroken = true
		return 0
	}
	r.rest = r.rest[size:]
	return value
}

func (r *payloadReader) readText() string {
	size := r.readNumber(uint64(len(r.rest)))
	if size > uint64(len(r.rest)) {
		r.isBroken = true
		return ""
	}
	text := string(r.rest[:size])
	r.rest = r.rest[size:]
	return text
}
