package apikey

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/file"
)

// UnknownKeyError says that a file has no key of an id. It is for those who manage
// the file, never for callers.
type UnknownKeyError struct {
	File string
	ID   string
}

// Error names the file and the id.
func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("%s has no key %q: want an id that the list of keys shows", e.File, identity.APIKeyPrefix+e.ID)
}

// NewKeyError says why a key can't be made.
type NewKeyError struct {
	Field string
	Is    string
	Want  string
}

// Error names the field, the problem and what would be right.
func (e *NewKeyError) Error() string { return e.Field + " " + e.Is + ": want " + e.Want }

// Create adds a key to a file, which it makes if there is none. It fills ID, Created
// and Hash of the key. The token is not kept anywhere: who gets it must store it.
// The error is a *NewKeyError for a wrong key. The file then stays as it is.
func Create(ctx context.Context, path string, key Key, now time.Time) (made Key, token string, err error) {
	if !key.Expires.IsZero() && !key.Expires.After(now) {
		return Key{}, "", &NewKeyError{Field: "expires", Is: "is in the past", Want: "a time in the future, or none"}
	}
	err = editDocument(ctx, path, func(d *document) error {
		if len(d.Keys) >= MaxKeys {
			return &NewKeyError{Field: "keys", Is: fmt.Sprintf("has %d keys", len(d.Keys)), Want: fmt.Sprintf("at most %d", MaxKeys)}
		}
		id, secret := newToken(d.Keys)
		made = key
		made.ID, made.Hash, made.Created, made.Revoked = id, hashSecret(secret).String(), file.NewTime(now), file.Time{}
		made.Expires = file.NewTime(key.Expires.Time)
		for _, p := range made.findProblems() {
			return &NewKeyError{Field: fmt.Sprint(p.Path...), Is: p.Is, Want: p.Want}
		}
		token = made.Prefix() + "_" + secret
		d.Keys = append(d.Keys, made)
		return nil
	})
	if err != nil {
		return Key{}, "", err
	}
	return made, token, nil
}

// List returns the keys of a file in their order. The error joins a *file.Error for
// each problem.
func List(path string) ([]Key, error) {
	text, err := file.Read(path)
	if err != nil {
		return nil, err
	}
	d, err := parseDocument(path, text)
	return d.Keys, err
}

// Revoke marks a key as revoked, for good. It keeps the time of an earlier
// revocation. The error is an *UnknownKeyError when there is no such key.
func Revoke(ctx context.Context, path, id string, now time.Time) (Key, error) {
	var revoked Key
	err := editDocument(ctx, path, func(d *document) error {
		at := slices.IndexFunc(d.Keys, func(k Key) bool { return k.ID == id })
		if at < 0 {
			return &UnknownKeyError{File: path, ID: id}
		}
		if d.Keys[at].Revoked.IsZero() {
			d.Keys[at].Revoked = file.NewTime(now)
		}
		revoked = d.Keys[at]
		return nil
	})
	return revoked, err
}

// ParseID returns the id in an id, a prefix gk_ID or a whole token, false when the
// text is none of them.
func ParseID(text string) (id string, ok bool) {
	rest, isPrefixed := strings.CutPrefix(text, identity.APIKeyPrefix)
	if !isPrefixed {
		return text, isID(text)
	}
	if id, _, ok = splitToken(text); ok {
		return id, true
	}
	return rest, isID(rest)
}

// editDocument changes the keys of a file.
func editDocument(ctx context.Context, path string, change func(*document) error) error {
	return file.Edit(ctx, path, func(text []byte) ([]byte, error) {
		d, err := parseDocument(path, text)
		if err != nil {
			return nil, err
		}
		if err := change(&d); err != nil {
			return nil, err
		}
		text, err = file.Encode(&d)
		if err != nil {
			return nil, err
		}
		return append([]byte("# graphd keeps this file: comments are lost when it adds or revokes a key.\n"), text...), nil
	})
}

func parseDocument(name string, text []byte) (document, error) {
	var d document
	err := file.Decode(name, text, &d)
	return d, err
}
