package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
)

// Kinds of records, as seal.Place has them. They are part of what is stored and
// must never change.
const (
	kindHead     = "head"
	kindValues   = "values" // manifests too; the name is the field
	kindProgress = "progress"
	kindQuestion = "question"
	kindRun      = "run"
	kindRequest  = "request"
	kindEvent    = "event" // without a name: the record has its number
	kindGraph    = "graph"
	kindCheck    = "check"
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

// checkField is where a word stands that was sealed with a key: by it the key
// is known again.
func checkField(id string) string { return "key:" + id }

const checkWord = "graphd"

func checkPlace(id string) seal.Place { return seal.Place{Kind: kindCheck, Name: id} }

// unlock refuses keys that don't fit what the store holds, and notes the one
// that new records are sealed with.
func (s *Store) unlock(ctx context.Context, w *location) error {
	known, err := s.client.HGetAll(ctx, s.keys.meta()).Result()
	if err != nil {
		return err
	}
	if err := s.fit(w, known); err != nil {
		return err
	}
	id := s.box.Active()
	if id == "" || known[checkField(id)] != "" {
		return nil
	}
	word := s.box.Seal(checkPlace(id), checkWord)
	if err := s.client.HSetNX(ctx, s.keys.meta(), checkField(id), word).Err(); err != nil {
		return err
	}
	// Another server may have been quicker, with another key of that id.
	if word, err = s.client.HGet(ctx, s.keys.meta(), checkField(id)).Result(); err != nil {
		return err
	}
	return s.opens(w, id, word)
}

// fit compares the keys that were given with those that were ever used.
func (s *Store) fit(w *location, known map[string]string) error {
	var missing []string
	given, fitting := s.box.KeyIDs(), 0
	for field, word := range known {
		id, ok := strings.CutPrefix(field, checkField(""))
		switch {
		case !ok:
		case !slices.Contains(given, id):
			missing = append(missing, strconv.Quote(id))
		default:
			if err := s.opens(w, id, word); err != nil {
				return err
			}
			fitting++
		}
	}
	slices.Sort(missing)
	names := strings.Join(missing, ", ")
	if len(missing) > 0 && fitting == 0 {
		is := "and no keys are given"
		if len(given) > 0 {
			is = "and none of these is given"
		}
		return &SetupError{
			w.server, ProblemKeys, "the store holds records that are sealed with the keys " + names + ", " + is,
			"name the file with these keys",
		}
	}
	if len(missing) > 0 {
		s.warned = append(s.warned, "the keys "+names+" are not given: calls for threads with records of theirs fail")
	}
	return nil
}

func (s *Store) opens(w *location, id, word string) error {
	if _, err := s.box.Open(checkPlace(id), word); err != nil {
		return &SetupError{
			w.server, ProblemKeys, fmt.Sprintf("the key %q is not the one that the store knows by this id", id),
			"give the right one; a new key needs a new id",
		}
	}
	return nil
}
