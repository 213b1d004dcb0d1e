package setup

import (
	"context"
	"errors"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
)

// keyCheckField returns the field in the metadata for the check of an encryption key.
func keyCheckField(id string) string { return "key:" + id }

// verifyEncryptionKeys returns the checks of the encryption keys of the store, by their
// ids. It returns an *Error for keys that do not open the records of the store.
func (d *Database) verifyEncryptionKeys(ctx context.Context) (checks map[string]string, err error) {
	known, err := d.Client.HGetAll(ctx, d.Keys.MetadataKey()).Result()
	if err != nil {
		return nil, err
	}
	checks = map[string]string{}
	for field, check := range known {
		if id, ok := strings.CutPrefix(field, keyCheckField("")); ok {
			checks[id] = check
		}
	}
	missing, err := d.Box.VerifyKeys(checks)
	if err != nil {
		return nil, d.config.wrapKeyError(err)
	}
	if m := seal.MissingKeysWarning(missing); m != "" {
		d.Warnings = append(d.Warnings, m)
	}
	return checks, nil
}

// checkEncryptionKeys verifies the encryption keys, and stores the check of the key that
// seals new records. The errors are those of verifyEncryptionKeys.
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
