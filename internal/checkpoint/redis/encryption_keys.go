package redis

import (
	"context"
	"errors"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
)

// keyCheckField is the field of an encryption key in the metadata.
func keyCheckField(id string) string { return "key:" + id }

// checkEncryptionKeys refuses keys that don't fit what the store holds, and notes the one
// that new records are sealed with.
func (s *Store) checkEncryptionKeys(ctx context.Context, w *storeConfig) error {
	known, err := s.client.HGetAll(ctx, s.keys.MetadataKey()).Result()
	if err != nil {
		return err
	}
	words := map[string]string{}
	for field, word := range known {
		if id, ok := strings.CutPrefix(field, keyCheckField("")); ok {
			words[id] = word
		}
	}
	missing, err := s.box.VerifyKeys(words)
	if err != nil {
		return w.wrapKeyError(err)
	}
	if m := seal.MissingKeysWarning(missing); m != "" {
		s.warnings = append(s.warnings, m)
	}
	id := s.box.ActiveKeyID()
	if id == "" {
		return nil
	}
	if words[id] != "" {
		return s.resealGraphs(ctx)
	}
	if err := s.client.HSetNX(ctx, s.keys.MetadataKey(), keyCheckField(id), s.box.ActiveKeyCheck()).Err(); err != nil {
		return err
	}
	// Another server may have been quicker, with another key of that id.
	word, err := s.client.HGet(ctx, s.keys.MetadataKey(), keyCheckField(id)).Result()
	if err != nil {
		return err
	}
	if _, err = s.box.VerifyKeys(map[string]string{id: word}); err != nil {
		return w.wrapKeyError(err)
	}
	return s.resealGraphs(ctx)
}

// resealGraphs seals all graphs, and the tombstones of deleted ones, with the
// present key: no server starts without its graphs, so they must not be what an
// old key is kept for.
func (s *Store) resealGraphs(ctx context.Context) error {
	if err := s.resealHash(ctx, s.keys.GraphsKey(), layout.KindGraph, splitPlainRecord); err != nil {
		return err
	}
	return s.resealHash(ctx, s.keys.TombstonesKey(), layout.KindTombstone, splitDatedRecord)
}

// splitPlainRecord says that a value is a record and nothing else.
func splitPlainRecord(value string) (before, record string) { return "", value }

// splitDatedRecord parts the time of a tombstone, and the space behind it, from its record.
func splitDatedRecord(value string) (before, record string) {
	end := strings.IndexByte(value, ' ') + 1
	return value[:end], value[end:]
}

// resealHash seals the records in a hash with the present key.
func (s *Store) resealHash(ctx context.Context, key, kind string, part func(value string) (before, record string)) error {
	all, err := s.client.HGetAll(ctx, key).Result()
	if err != nil {
		return err
	}
	for field, value := range all {
		before, text := part(value)
		if id, _ := seal.SealingKeyID(text); id == s.box.ActiveKeyID() {
			continue
		}
		at := seal.RecordPlace{Kind: kind, Name: field}
		record, err := s.box.Open(at, text)
		if err != nil {
			continue // a read of the graph returns the error
		}
		if err := s.client.HSet(ctx, key, field, before+s.box.Seal(at, record)).Err(); err != nil {
			return err
		}
	}
	return nil
}

// wrapKeyError says how the keys don't fit.
func (w *storeConfig) wrapKeyError(err error) error {
	if wrong, ok := errors.AsType[*seal.KeyError](err); ok {
		return &SetupError{w.server, ProblemKeys, wrong.Describe(), wrong.Want}
	}
	return err
}
