package redis

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
)

// outdated is what a change makes a thread forget.
type outdated struct {
	ids     []string
	members []string
	fields  []string
}

// outdated finds what DropBefore takes away. It reads before the change is
// made: when the thread changes in between, the change is a conflict.
func (s *Store) outdated(ctx context.Context, c *checkpoint.Change) (old outdated, err error) {
	if c.DropBefore == 0 {
		return old, nil
	}
	names, err := s.names(ctx, c.Thread)
	if err != nil {
		return old, err
	}
	all, err := s.manifests(ctx, c.Thread, names)
	if err != nil {
		return old, err
	}
	gone, left := c.Outdated(all)
	for _, cp := range gone {
		old.ids = append(old.ids, cp.ID)
		old.members = append(old.members, checkpointMember(cp))
		old.fields = append(old.fields, "c"+cp.ID, "w"+cp.ID)
	}
	if len(gone) == 0 {
		return old, nil
	}
	shown := codec.ShownBy(left)
	for _, name := range names {
		if !needed(shown, name) {
			old.fields = append(old.fields, name)
		}
	}
	return old, nil
}

// names lists the fields of a thread's values.
func (s *Store) names(ctx context.Context, thread string) (all []string, err error) {
	key := s.keys.thread(thread, keyValues)
	for cursor := "0"; ; {
		r, err := s.read(ctx, s.scripts.names, key, cursor, atOnce)
		if err != nil {
			return nil, err
		}
		for i := 1; i < len(r); i++ {
			all = append(all, r.text(i))
		}
		if cursor = r.text(0); cursor == "0" || cursor == "" {
			slices.Sort(all) // some may have come twice
			return slices.Compact(all), nil
		}
	}
}

// manifests reads checkpoints without what is kept beside them.
func (s *Store) manifests(
	ctx context.Context, thread string, names []string,
) (all []*checkpoint.Checkpoint, err error) {
	key := s.keys.thread(thread, keyValues)[0]
	var fields []string
	for _, name := range names {
		if strings.HasPrefix(name, "c") {
			fields = append(fields, name)
		}
	}
	found := make([]any, 0, len(fields))
	for some := range slices.Chunk(fields, atOnce) {
		values, err := s.fields(ctx, key, some...)
		if err != nil {
			return nil, err
		}
		found = append(found, values...)
	}
	for i, v := range found {
		text, ok := v.(string)
		if !ok {
			return nil, checkpoint.ErrConflict // taken away meanwhile: the thread has changed
		}
		m, err := s.decodeCheckpoint(thread, fields[i][1:], text)
		if err != nil {
			return nil, of(err, "key %s, checkpoint %q", key, fields[i][1:])
		}
		all = append(all, m.Checkpoint)
	}
	return all, nil
}

// needed reports whether a field of a thread's values is shown by a checkpoint,
// or is none that could be: it reads what valueField and itemField write.
func needed(shown *codec.Shown, field string) bool {
	kind, rest := field[:min(1, len(field))], field[min(1, len(field)):]
	number, rest, ok := strings.Cut(rest, ":")
	seq, err := strconv.ParseUint(number, 10, 64)
	if !ok || err != nil {
		return true
	}
	switch kind {
	case "v":
		return shown.Value(seq, rest)
	case "i":
		index, channel, ok := strings.Cut(rest, ":")
		n, err := strconv.Atoi(index)
		return !ok || err != nil || n < shown.Elements(seq, channel)
	}
	return true
}
