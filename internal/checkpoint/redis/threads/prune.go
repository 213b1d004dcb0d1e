package threads

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
)

// prunedRecords are the records that a change removes from a thread.
type prunedRecords struct {
	checkpointIDs []string
	members       []string
	fields        []string
}

// findPruned finds the records that DropBefore or DropAfter remove. It reads
// before the change is made: when the thread changes in between, the change is a
// conflict.
func (t *Reader) findPruned(ctx context.Context, c *checkpoint.Change) (old prunedRecords, err error) {
	if c.DropAfter != nil {
		return t.findRolledBack(ctx, c.Thread, *c.DropAfter)
	}
	if c.DropBefore == 0 {
		return old, nil
	}
	names, err := t.listValueFields(ctx, c.Thread)
	if err != nil {
		return old, err
	}
	all, err := t.readManifests(ctx, c.Thread, names)
	if err != nil {
		return old, err
	}
	gone, left := c.SelectPruned(all)
	for _, cp := range gone {
		old.addCheckpoint(cp)
	}
	if len(gone) == 0 {
		return old, nil
	}
	shown := codec.CollectReferences(left)
	for _, name := range names {
		if !isFieldNeeded(shown, name) {
			old.fields = append(old.fields, name)
		}
	}
	return old, nil
}

// addCheckpoint adds a checkpoint without its separate values.
func (p *prunedRecords) addCheckpoint(cp *checkpoint.Checkpoint) {
	p.checkpointIDs = append(p.checkpointIDs, cp.ID)
	p.members = append(p.members, layout.CheckpointMember(cp))
	p.fields = append(p.fields, "c"+cp.ID)
}

// findRolledBack finds the checkpoints after a number, and the values that they
// wrote. Values of earlier checkpoints stay. The values of a checkpoint that
// can't be read are removed when the history is pruned.
func (t *Reader) findRolledBack(ctx context.Context, thread string, after uint64) (old prunedRecords, err error) {
	keys := t.keys.ThreadKeys(thread, layout.KeyValues, layout.KeyOrder)
	err = script.Retry(ctx, func() (err error) {
		from := &goredis.ZRangeBy{Min: "(" + strconv.FormatUint(min(after, maxScriptInteger), 10), Max: "+inf"}
		old.members, err = t.database.Client.ZRangeByScore(ctx, keys[1], from).Result()
		return err
	})
	if err != nil {
		return old, err
	}
	for _, member := range old.members {
		id, ok := layout.ParseCheckpointMember(member)
		if !ok {
			return old, layout.CorruptError("key %s has the member %q", keys[1], member)
		}
		old.checkpointIDs = append(old.checkpointIDs, id)
		old.fields = append(old.fields, "c"+id)
	}
	w := newerWrites{after: after, values: map[string]bool{}, lists: map[segmentKey]itemRange{}}
	for fields := range slices.Chunk(old.fields, maxFieldsPerRead) {
		manifests, err := t.runner.ReadFields(ctx, keys[0], fields...)
		if err != nil {
			return old, err
		}
		for i, field := range fields {
			m, err := t.decodeManifest(thread, field[1:], manifests.TextAt(i))
			if err != nil {
				continue
			}
			for j := range m.Channels {
				w.addChannel(&m.Channels[j])
			}
		}
	}
	old.fields = append(old.fields, w.listFields()...)
	return old, nil
}

// newerWrites are the values that checkpoints after a number wrote.
type newerWrites struct {
	after  uint64
	values map[string]bool
	lists  map[segmentKey]itemRange
}

// itemRange is some elements of a segment.
type itemRange struct{ from, to int }

// addChannel adds the values of a channel that were written after the number.
func (w *newerWrites) addChannel(ch *checkpoint.Channel) {
	if ch.Stored <= w.after {
		return
	}
	if ch.List == nil {
		w.values[layout.ValueField(ch.Stored, ch.Name)] = true
		return
	}
	for i, seg := range ch.List.Segments {
		part := itemRange{0, seg.Len}
		if seg.ID <= w.after {
			if i < len(ch.List.Segments)-1 {
				continue
			}
			part.from = max(0, seg.Len-ch.List.Appended)
		}
		at := segmentKey{ch.Name, seg.ID}
		if had, ok := w.lists[at]; ok {
			part = itemRange{min(part.from, had.from), max(part.to, had.to)}
		}
		w.lists[at] = part
	}
}

func (w *newerWrites) listFields() []string {
	all := slices.Collect(maps.Keys(w.values))
	for at, part := range w.lists {
		for i := part.from; i < part.to; i++ {
			all = append(all, layout.ItemField(at.segment, i, at.channel))
		}
	}
	for _, field := range all {
		all = append(all, layout.RestField(field))
	}
	slices.Sort(all)
	return all
}

// listValueFields lists the fields of a thread's values.
func (t *Reader) listValueFields(ctx context.Context, thread string) (all []string, err error) {
	key := t.keys.ThreadKeys(thread, layout.KeyValues)
	for cursor := "0"; ; {
		r, err := t.runner.RunScript(ctx, t.scripts.Names, key, cursor, maxFieldsPerRead)
		if err != nil {
			return nil, err
		}
		for i := 1; i < len(r); i++ {
			all = append(all, r.TextAt(i))
		}
		if cursor = r.TextAt(0); cursor == "0" || cursor == "" {
			slices.Sort(all) // some may have come twice
			return slices.Compact(all), nil
		}
	}
}

// readManifests reads checkpoints without the values beside them.
func (t *Reader) readManifests(
	ctx context.Context, thread string, names []string,
) (all []*checkpoint.Checkpoint, err error) {
	key := t.keys.ThreadKeys(thread, layout.KeyValues)[0]
	var fields []string
	for _, name := range names {
		if strings.HasPrefix(name, "c") {
			fields = append(fields, name)
		}
	}
	found := make([]any, 0, len(fields))
	for some := range slices.Chunk(fields, maxFieldsPerRead) {
		values, err := t.runner.ReadFields(ctx, key, some...)
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
		m, err := t.decodeManifest(thread, fields[i][1:], text)
		if err != nil {
			return nil, layout.WrapRecordError(err, "key %s, checkpoint %q", key, fields[i][1:])
		}
		all = append(all, m.Checkpoint)
	}
	return all, nil
}

// isFieldNeeded reports whether a checkpoint shows a field of a thread's values, or no
// checkpoint could show it: it reads names of ValueField and ItemField.
func isFieldNeeded(shown *codec.References, field string) bool {
	field = strings.TrimPrefix(field, layout.RestField(""))
	kind, rest := field[:min(1, len(field))], field[min(1, len(field)):]
	number, rest, ok := strings.Cut(rest, ":")
	seq, err := strconv.ParseUint(number, 10, 64)
	if !ok || err != nil {
		return true
	}
	switch kind {
	case "v":
		return shown.HasValue(seq, rest)
	case "i":
		index, channel, ok := strings.Cut(rest, ":")
		n, err := strconv.Atoi(index)
		return !ok || err != nil || n < shown.ElementCount(seq, channel)
	}
	return true
}
