package redis

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
)

// outdated is what a change makes a thread forget.
type outdated struct {
	ids     []string
	members []string
	fields  []string
}

// outdated finds what DropBefore or DropAfter take away. It reads before the
// change is made: when the thread changes in between, the change is a conflict.
func (s *Store) outdated(ctx context.Context, c *checkpoint.Change) (old outdated, err error) {
	if c.DropAfter != nil {
		return s.taken(ctx, c.Thread, *c.DropAfter)
	}
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
		old.add(cp)
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

// add notes a checkpoint, without what is kept beside it.
func (o *outdated) add(cp *checkpoint.Checkpoint) {
	o.ids = append(o.ids, cp.ID)
	o.members = append(o.members, checkpointMember(cp))
	o.fields = append(o.fields, "c"+cp.ID)
}

// taken finds the checkpoints behind one, and what they wrote. What they show of
// those before stays. Of one that can't be read it is not known what it wrote:
// that goes when the past is cut off.
func (s *Store) taken(ctx context.Context, thread string, after uint64) (old outdated, err error) {
	keys := s.keys.thread(thread, keyValues, keyOrder)
	err = again(ctx, func() (err error) {
		from := &goredis.ZRangeBy{Min: "(" + unum(min(after, maxNumber)), Max: "+inf"}
		old.members, err = s.client.ZRangeByScore(ctx, keys[1], from).Result()
		return err
	})
	if err != nil {
		return old, err
	}
	for _, member := range old.members {
		id, ok := parseCheckpoint(member)
		if !ok {
			return old, corrupt("key %s has the member %q", keys[1], member)
		}
		old.ids = append(old.ids, id)
		old.fields = append(old.fields, "c"+id)
	}
	w := behind{after: after, values: map[string]bool{}, lists: map[place]stretch{}}
	for fields := range slices.Chunk(old.fields, atOnce) {
		manifests, err := s.fields(ctx, keys[0], fields...)
		if err != nil {
			return old, err
		}
		for i, field := range fields {
			m, err := s.decodeCheckpoint(thread, field[1:], manifests.text(i))
			if err != nil {
				continue
			}
			for j := range m.Channels {
				w.see(&m.Channels[j])
			}
		}
	}
	old.fields = append(old.fields, w.fields()...)
	return old, nil
}

// behind is what the checkpoints behind one wrote.
type behind struct {
	after  uint64
	values map[string]bool
	lists  map[place]stretch
}

// stretch is some elements of a segment.
type stretch struct{ from, to int }

// see notes what a channel of one of them shows that was written behind it.
func (w *behind) see(ch *checkpoint.Channel) {
	if ch.Stored <= w.after {
		return
	}
	if ch.List == nil {
		w.values[valueField(ch.Stored, ch.Name)] = true
		return
	}
	for i, seg := range ch.List.Segments {
		part := stretch{0, seg.Len}
		if seg.ID <= w.after {
			if i < len(ch.List.Segments)-1 {
				continue
			}
			part.from = max(0, seg.Len-ch.List.Fresh)
		}
		at := place{ch.Name, seg.ID}
		if had, ok := w.lists[at]; ok {
			part = stretch{min(part.from, had.from), max(part.to, had.to)}
		}
		w.lists[at] = part
	}
}

func (w *behind) fields() []string {
	all := slices.Collect(maps.Keys(w.values))
	for at, part := range w.lists {
		for i := part.from; i < part.to; i++ {
			all = append(all, itemField(at.segment, i, at.channel))
		}
	}
	for _, field := range all {
		all = append(all, restField(field))
	}
	slices.Sort(all)
	return all
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
	field = strings.TrimPrefix(field, restField(""))
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
