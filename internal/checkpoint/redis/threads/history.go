package threads

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/payload"
)

// ReadCheckpoint returns a checkpoint of a namespace, the newest for an empty id. With
// a most of 0 it may be of any size; otherwise a LargeError says that it has more
// bytes.
func (t *Reader) ReadCheckpoint(
	ctx context.Context, thread, namespace, id string, most int,
) (*checkpoint.Checkpoint, error) {
	list, err := t.loadCheckpoints(ctx, thread, 0, most, func() (script.Reply, error) {
		if id == "" {
			return t.findCheckpoints(ctx, &checkpoint.CheckpointQuery{Thread: thread, Namespace: namespace, Limit: 1})
		}
		keys := t.keys.ThreadKeys(thread, layout.KeyHead, layout.KeyValues, layout.KeyRecords)
		r, err := t.runner.RunScript(ctx, t.scripts.Values, keys, 0, "c"+id)
		if err != nil || !r.HasValue(2) {
			return nil, err
		}
		return script.Reply{r[0], id, r[2]}, nil
	})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 || list[0].Namespace != namespace {
		return nil, checkpoint.ErrCheckpointNotFound
	}
	return list[0], nil
}

// ReadCheckpoints reads checkpoints of a namespace, newest first, until there are
// enough. One exchange finds all of them, unless their manifests are large.
func (t *Reader) ReadCheckpoints(
	ctx context.Context, q checkpoint.CheckpointQuery,
) (out []*checkpoint.Checkpoint, err error) {
	portion := checkpoint.Portion{Limit: q.Limit}
	for {
		cut := false
		next, err := t.loadCheckpoints(ctx, q.Thread, q.Limit, 0, func() (script.Reply, error) {
			r, err := t.findCheckpoints(ctx, &q)
			cut = wasCut(r, q.Limit)
			return r, err
		})
		if err != nil {
			return nil, err
		}
		for _, cp := range next {
			if portion.Full() {
				break
			}
			portion.Take(cp.Size())
			out = append(out, cp)
		}
		if portion.Full() || len(next) == 0 || !cut {
			return out, nil
		}
		q.Before, q.Limit = next[len(next)-1].Seq, q.Limit-len(next)
	}
}

// findCheckpoints returns the generation, then id and manifest of each.
func (t *Reader) findCheckpoints(ctx context.Context, q *checkpoint.CheckpointQuery) (script.Reply, error) {
	prefix, open := layout.AddLength(checkpoint.NodePath(q.Namespace)), "1"
	switch {
	case q.AllNamespaces:
		prefix, open = "", "2"
	case !q.AnyTask:
		prefix, open = prefix+layout.AddLength(q.Namespace), "0"
	}
	return t.runner.RunScript(ctx, t.scripts.History, t.keys.ThreadKeys(q.Thread, layout.KeyHead, layout.KeyValues, layout.KeyOrder),
		prefix, open, scoreBelow(q.Before), max(0, q.Limit), responseBytes(q.Limit))
}

// responseBytes is how many bytes a script that is given a limit returns before it
// leaves the rest for another exchange, 0 = all.
func responseBytes(limit int) int {
	if limit <= 0 {
		return 0
	}
	return checkpoint.ReadBytes
}

// wasCut reports whether a script has left something for another exchange.
func wasCut(r script.Reply, limit int) bool { return limit > 0 && r.Bytes() >= checkpoint.ReadBytes }

// loadCheckpoints reads manifests and the values beside them. A rollback in
// between may take values away or put others in their place; then it begins
// again. So may a Redis that lost its newest changes without a trace: records
// that do not fit together are read once more before they are called damaged.
func (t *Reader) loadCheckpoints(
	ctx context.Context, thread string, limit, most int, manifests func() (script.Reply, error),
) (out []*checkpoint.Checkpoint, err error) {
	for doubted := false; ; {
		r, err := manifests()
		if err != nil || len(r) == 0 {
			return nil, err
		}
		l := checkpointLoader{reader: t, thread: thread, generation: r.TextAt(0), most: most}
		out, err := l.loadManifests(ctx, r[1:], limit)
		switch {
		case errors.Is(err, checkpoint.ErrCorrupt) && !doubted:
			doubted = true
		case err != nil || !l.isStale:
			return out, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// checkpointLoader adds the values that are kept beside manifests. Checkpoints that are
// read together share equal parts.
type checkpointLoader struct {
	reader     *Reader
	thread     string
	generation string
	isStale    bool // the thread has another generation by now
	most       int  // bytes that a checkpoint may hold, 0 = any number

	wantedFields   []string // fields, each once, in the order in which they are needed
	read           int      // how many of them were read
	bytes          int      // of values that were read
	valuesByField  map[string]payload.JSON
	listsBySegment map[segmentKey][]payload.JSON
}

// segmentKey is where a segment is stored.
type segmentKey struct {
	channel string
	segment uint64
}

type manifest struct {
	*checkpoint.Checkpoint
	separateValues []codec.SeparateValue
	needs          int // how many of the wanted fields must have been read
}

// decodeManifest opens a manifest and reads it.
func (t *Reader) decodeManifest(thread, id, text string) (m manifest, err error) {
	return layout.DecodeRecord(t.box, thread, layout.KindValues, "c"+id, text, func(text string) (m manifest, err error) {
		m.Checkpoint, m.separateValues, err = codec.DecodeCheckpoint(text)
		return m, err
	})
}

// loadManifests reads the values of some manifests, and ends early where a limit does.
func (l *checkpointLoader) loadManifests(ctx context.Context, r script.Reply, limit int) ([]*checkpoint.Checkpoint, error) {
	l.valuesByField, l.listsBySegment = map[string]payload.JSON{}, map[segmentKey][]payload.JSON{}
	list := make([]manifest, 0, len(r)/2)
	lengths := map[segmentKey]int{}
	known := checkpoint.Portion{Limit: limit}
	for i := 0; i+1 < len(r) && !known.Full(); i += 2 {
		m, err := l.reader.decodeManifest(l.thread, r.TextAt(i), r.TextAt(i+1))
		if err != nil {
			return nil, layout.WrapRecordError(err, "key %s, checkpoint %q", l.valuesKey(), r.TextAt(i))
		}
		l.addFields(&m, lengths)
		known.Take(m.minimumSize())
		list = append(list, m)
	}
	out := make([]*checkpoint.Checkpoint, 0, len(list))
	portion := checkpoint.Portion{Limit: limit}
	for _, m := range list {
		if portion.Full() {
			break
		}
		if err := l.checkSize(&m); err != nil {
			return nil, err
		}
		if err := l.fetchFields(ctx, m.needs, responseBytes(limit)); err != nil || l.isStale {
			if large, ok := errors.AsType[*checkpoint.LargeError](err); ok {
				large.Seq = m.Seq
			}
			return nil, err
		}
		if err := l.fillValues(m); err != nil {
			return nil, layout.WrapRecordError(err, "key %s, checkpoint %q", l.valuesKey(), m.ID)
		}
		if size := m.Size(); l.most > 0 && size > l.most {
			return nil, &checkpoint.LargeError{Bytes: size, Seq: m.Seq}
		}
		portion.Take(m.Size())
		out = append(out, m.Checkpoint)
	}
	return out, nil
}

// checkSize finds out whether a checkpoint is large, as far as its manifest tells: that has
// the sizes of values, and not those of the elements of lists.
func (l *checkpointLoader) checkSize(m *manifest) error {
	least := m.minimumSize()
	if l.most <= 0 || least <= l.most {
		return nil
	}
	if slices.ContainsFunc(m.separateValues, func(b codec.SeparateValue) bool { return m.Channels[b.Channel].List != nil }) {
		least = 0
	}
	return &checkpoint.LargeError{Bytes: least, Seq: m.Seq}
}

// minimumSize is the size that a checkpoint will have at least.
func (m *manifest) minimumSize() int {
	n := m.Size()
	for _, b := range m.separateValues {
		n += b.Bytes
	}
	return n
}

func (l *checkpointLoader) valuesKey() string {
	return l.reader.keys.ThreadKeys(l.thread, layout.KeyValues)[0]
}

// addFields adds the fields that a manifest refers to. lengths is how much of
// each segment is wanted so far.
func (l *checkpointLoader) addFields(m *manifest, lengths map[segmentKey]int) {
	for _, b := range m.separateValues {
		ch := &m.Channels[b.Channel]
		if ch.List == nil {
			field := layout.ValueField(ch.Stored, ch.Name)
			if _, ok := l.valuesByField[field]; !ok {
				l.valuesByField[field] = ""
				l.wantedFields = append(l.wantedFields, field)
			}
			continue
		}
		for _, seg := range ch.List.Segments {
			at := segmentKey{ch.Name, seg.ID}
			for i := lengths[at]; i < seg.Len; i++ {
				l.wantedFields = append(l.wantedFields, layout.ItemField(seg.ID, i, ch.Name))
			}
			lengths[at] = max(lengths[at], seg.Len)
		}
	}
	m.needs = len(l.wantedFields)
}

// maxFieldsPerRead is how many fields a script reads: other calls wait meanwhile.
const maxFieldsPerRead = 1000

// sealBytes is about how much longer an encrypted value is than its text. Values are
// counted when they are open.
const sealBytes = 64

// fetchFields reads wanted fields until at least n of them were read: as many per
// exchange as a script reads, and at most about so many bytes, 0 = any number.
func (l *checkpointLoader) fetchFields(ctx context.Context, n, bytes int) error {
	for l.read < n {
		keys := l.reader.keys.ThreadKeys(l.thread, layout.KeyHead, layout.KeyValues, layout.KeyRecords)
		fields := l.wantedFields[l.read:min(len(l.wantedFields), l.read+maxFieldsPerRead)]
		args := make([]any, 1, 1+len(fields))
		args[0] = bytes
		if l.most > 0 {
			if l.bytes >= l.most {
				return &checkpoint.LargeError{}
			}
			args[0] = l.bytes - l.most - sealBytes*len(fields)
		}
		for _, f := range fields {
			args = append(args, f)
		}
		r, err := l.reader.runner.RunScript(ctx, l.reader.scripts.Values, keys, args...)
		if err != nil {
			return err
		}
		if r.TextAt(0) != l.generation {
			l.isStale = true
			return nil
		}
		count, err := r.UintAt(1)
		if err == nil && l.most > 0 && count < uint64(len(fields)) {
			return &checkpoint.LargeError{}
		}
		if err != nil || count == 0 || count > uint64(len(fields)) {
			return layout.CorruptError("key %s: %q of %d fields were read", l.valuesKey(), r.TextAt(1), len(fields))
		}
		fields = fields[:count]
		quoted := r[min(len(r), 2+len(fields)):]
		for i, f := range fields {
			if !r.HasValue(i + 2) {
				delete(l.valuesByField, f)
				continue
			}
			if l.valuesByField[f], err = l.openValue(f, r.TextAt(i+2), quoted); err != nil {
				return layout.WrapRecordError(err, "key %s, field %q", l.valuesKey(), f)
			}
			if l.bytes += len(l.valuesByField[f]); l.most > 0 && l.bytes > l.most {
				return &checkpoint.LargeError{}
			}
		}
		l.read += len(fields)
	}
	return nil
}

// openValue opens a value. quoted are runs and inputs that values refer to.
func (l *checkpointLoader) openValue(field, text string, quoted script.Reply) (payload.JSON, error) {
	run, isQuoted := layout.RunOfRef(text)
	if !isQuoted {
		text, err := l.reader.box.Open(seal.RecordPlace{Thread: l.thread, Kind: layout.KindValues, Name: field}, text)
		return payload.JSON(text), err
	}
	for i := 0; i+1 < len(quoted); i += 2 {
		if quoted.TextAt(i) == run && quoted.HasValue(i+1) {
			at := seal.RecordPlace{Thread: l.thread, Kind: layout.KindRun, Name: layout.InputField(run)}
			input, err := l.reader.box.Open(at, quoted.TextAt(i+1))
			if err != nil {
				return "", layout.WrapRecordError(err, "input of run %q", run)
			}
			return layout.ResolveRef(text, input)
		}
	}
	return "", layout.CorruptError("the input of run %q is missing, which it quotes", run)
}

func (l *checkpointLoader) fillValues(m manifest) error {
	for _, b := range m.separateValues {
		ch := &m.Channels[b.Channel]
		if ch.List != nil {
			if err := l.fillList(ch); err != nil {
				return err
			}
			continue
		}
		field := layout.ValueField(ch.Stored, ch.Name)
		v, ok := l.valuesByField[field]
		if !ok {
			return layout.CorruptError("field %q is missing", field)
		}
		if len(v) != b.Bytes {
			return layout.CorruptError("field %q has %d bytes, want %d", field, len(v), b.Bytes)
		}
		ch.Value = v
	}
	return nil
}

func (l *checkpointLoader) fillList(ch *checkpoint.Channel) error {
	for i, seg := range ch.List.Segments {
		items, err := l.segmentItems(segmentKey{ch.Name, seg.ID}, seg.Len)
		if err != nil {
			return err
		}
		if i == 0 {
			ch.List.Items = items[:seg.Len:seg.Len] // shared; an append makes a copy
			continue
		}
		ch.List.Items = append(ch.List.Items, items[:seg.Len]...)
	}
	return nil
}

// segmentItems returns at least the first n elements of a segment.
func (l *checkpointLoader) segmentItems(at segmentKey, n int) ([]payload.JSON, error) {
	items := l.listsBySegment[at]
	for i := len(items); i < n; i++ {
		field := layout.ItemField(at.segment, i, at.channel)
		v, ok := l.valuesByField[field]
		if !ok {
			return nil, layout.CorruptError("field %q is missing", field)
		}
		items = append(items, v)
	}
	l.listsBySegment[at] = items
	return items, nil
}

// ReadPending returns the progress after a checkpoint. With a most of 0 it may be of any
// size; otherwise a LargeError says that it has more bytes.
func (t *Reader) ReadPending(ctx context.Context, thread, id string, most int) (checkpoint.Pending, error) {
	keys := t.keys.ThreadKeys(thread, layout.KeyProgress, layout.KeyInterrupts)
	r, err := t.runner.RunScript(ctx, t.scripts.Pending, keys, id, layout.AddLength(id), most, sealBytes)
	if err != nil {
		return checkpoint.Pending{}, err
	}
	if r.HasValue(2) {
		bytes, err := r.UintAt(2)
		if err != nil {
			return checkpoint.Pending{}, err
		}
		return checkpoint.Pending{}, &checkpoint.LargeError{Bytes: int(bytes)}
	}
	bounded := checkpoint.BoundedPending{Most: most}
	if err := t.decodeProgress(thread, id, r.ListAt(0), &bounded); err != nil {
		return checkpoint.Pending{}, err
	}
	asked := r.ListAt(1)
	for i := 0; i+1 < len(asked); i += 2 {
		in, err := t.DecodeInterrupt(thread, asked.TextAt(i), asked.TextAt(i+1))
		if err != nil {
			return checkpoint.Pending{}, layout.WrapRecordError(err, "key %s, interrupt %q", keys[1], asked.TextAt(i))
		}
		bounded.AddInterrupt(&in)
	}
	p, err := bounded.BuildPending()
	sortPending(&p)
	return p, err
}

func sortPending(p *checkpoint.Pending) {
	slices.SortFunc(p.Tasks, func(a, b checkpoint.Task) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(p.Memos, func(a, b checkpoint.Memo) int {
		return cmp.Or(
			strings.Compare(a.Task, b.Task), strings.Compare(a.Scope, b.Scope),
			strings.Compare(a.Key, b.Key), cmp.Compare(a.Index, b.Index),
		)
	})
}
