package redis

import (
	"context"
	"errors"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
)

// Kinds of records, as seal.Place has them. They are part of what is stored and
// must never change.
const (
	kindHead      = "head"
	kindValues    = "values" // manifests too; the name is the field
	kindProgress  = "progress"
	kindQuestion  = "question"
	kindRun       = "run"
	kindRequest   = "request"
	kindEvent     = "event" // without a name: the record has its number
	kindGraph     = "graph"
	kindTombstone = "tombstone" // of a graph
)

// writer makes what is written of the records of a thread.
type writer struct {
	box    *seal.Box
	thread string
}

func (w writer) write(kind, name, record string) string {
	return w.box.Seal(seal.Place{Thread: w.thread, Kind: kind, Name: name}, record)
}

// decode opens a record of a thread and reads it.
func decode[T any](s *Store, thread, kind, name, text string, read func(string) (T, error)) (v T, err error) {
	text, err = s.box.Open(seal.Place{Thread: thread, Kind: kind, Name: name}, text)
	if err != nil {
		return v, err
	}
	return read(text)
}

// decodeCheckpoint opens a manifest and reads it.
func (s *Store) decodeCheckpoint(thread, id, text string) (m manifest, err error) {
	return decode(s, thread, kindValues, "c"+id, text, func(text string) (m manifest, err error) {
		m.Checkpoint, m.beside, err = codec.DecodeCheckpoint(text)
		return m, err
	})
}

// checkField is where a key is noted in what the whole store agrees on.
func checkField(id string) string { return "key:" + id }

// unlock refuses keys that don't fit what the store holds, and notes the one
// that new records are sealed with.
func (s *Store) unlock(ctx context.Context, w *location) error {
	known, err := s.client.HGetAll(ctx, s.keys.meta()).Result()
	if err != nil {
		return err
	}
	words := map[string]string{}
	for field, word := range known {
		if id, ok := strings.CutPrefix(field, checkField("")); ok {
			words[id] = word
		}
	}
	missing, err := s.box.Check(words)
	if err != nil {
		return w.misfit(err)
	}
	if m := seal.Missing(missing); m != "" {
		s.warned = append(s.warned, m)
	}
	id := s.box.Active()
	if id == "" {
		return nil
	}
	if words[id] != "" {
		return s.resealGraphs(ctx)
	}
	if err := s.client.HSetNX(ctx, s.keys.meta(), checkField(id), s.box.Word()).Err(); err != nil {
		return err
	}
	// Another server may have been quicker, with another key of that id.
	word, err := s.client.HGet(ctx, s.keys.meta(), checkField(id)).Result()
	if err != nil {
		return err
	}
	if _, err = s.box.Check(map[string]string{id: word}); err != nil {
		return w.misfit(err)
	}
	return s.resealGraphs(ctx)
}

// resealGraphs seals all graphs, and the tombstones of deleted ones, with the
// present key: no server starts without its graphs, so they must not be what an
// old key is kept for.
func (s *Store) resealGraphs(ctx context.Context) error {
	if err := s.resealHash(ctx, s.keys.graphs(), kindGraph, whole); err != nil {
		return err
	}
	return s.resealHash(ctx, s.keys.tombstones(), kindTombstone, dated)
}

// whole says that a value is a record and nothing else.
func whole(value string) (before, record string) { return "", value }

// dated parts the time of a tombstone, and the space behind it, from its record.
func dated(value string) (before, record string) {
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
		if id, _ := seal.Sealed(text); id == s.box.Active() {
			continue
		}
		at := seal.Place{Kind: kind, Name: field}
		record, err := s.box.Open(at, text)
		if err != nil {
			continue // whoever reads it is told
		}
		if err := s.client.HSet(ctx, key, field, before+s.box.Seal(at, record)).Err(); err != nil {
			return err
		}
	}
	return nil
}

// misfit says how the keys don't fit.
func (w *location) misfit(err error) error {
	if wrong, ok := errors.AsType[*seal.KeyError](err); ok {
		return &SetupError{w.server, ProblemKeys, wrong.What(), wrong.Want}
	}
	return err
}
