package setup

import (
	"context"
	"errors"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
)

// keyCheckField is the field of an encryption key in the metadata.
func keyCheckField(id string) string { return "key:" + id }

// verifyEncryptionKeys refuses keys that don't fit what the store holds. words has what the
// store knows of its keys, by their ids.
func (d *Database) verifyEncryptionKeys(ctx context.Context) (words map[string]string, err error) {
	known, err := d.Client.HGetAll(ctx, d.Keys.MetadataKey()).Result()
	if err != nil {
		return nil, err
	}
	words = map[string]string{}
	for field, word := range known {
		if id, ok := strings.CutPrefix(field, keyCheckField("")); ok {
			words[id] = word
		}
	}
	missing, err := d.Box.VerifyKeys(words)
	if err != nil {
		return nil, d.config.wrapKeyError(err)
	}
	if m := seal.MissingKeysWarning(missing); m != "" {
		d.Warnings = append(d.Warnings, m)
	}
	return words, nil
}

// checkEncryptionKeys refuses keys that don't fit what the store holds, and notes the one
// that new records are sealed with.
func (d *Database) checkEncryptionKeys(ctx context.Context) error {
	words, err := d.verifyEncryptionKeys(ctx)
	if err != nil {
		return err
	}
	id := d.Box.ActiveKeyID()
	if id == "" {
		return nil
	}
	if words[id] != "" {
		return nil
	}
	if err := d.Client.HSetNX(ctx, d.Keys.MetadataKey(), keyCheckField(id), d.Box.ActiveKeyCheck()).Err(); err != nil {
		return err
	}
	// Another server may have been quicker, with another key of that id.
	word, err := d.Client.HGet(ctx, d.Keys.MetadataKey(), keyCheckField(id)).Result()
	if err != nil {
		return err
	}
	if _, err = d.Box.VerifyKeys(map[string]string{id: word}); err != nil {
		return d.config.wrapKeyError(err)
	}
	return nil
}

// wrapKeyError says how the keys don't fit.
func (s *storeConfig) wrapKeyError(err error) error {
	if wrong, ok := errors.AsType[*seal.KeyError](err); ok {
		return &Error{s.server, ProblemKeys, wrong.Describe(), wrong.Want}
	}
	return err
}
