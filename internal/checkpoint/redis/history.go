package redis

import (
	"context"
	"errors"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/payload"
)

var _ checkpoint.BoundedReader = (*Store)(nil)

// Checkpoint returns one checkpoint of a namespace, the newest for an empty id.
func (s *Store) Checkpoint(ctx context.Context, thread, namespace, id string) (*checkpoint.Checkpoint, error) {
	return s.CheckpointWithin(ctx, thread, namespace, id, 0)
}

// CheckpointWithin returns one checkpoint that is not large; with a most of 0, any.
func (s *Store) CheckpointWithin(
	ctx context.Context, thread, namespace, id string, most int,
) (cp *checkpoint.Checkpoint, err error) {
	var large *checkpoint.LargeError
	err = s.look(ctx, thread, func() error {
		list, err := s.load(ctx, thread, 0, most, func() (reply, error) {
			if id == "" {
				return s.find(ctx, &checkpoint.CheckpointQuery{Thread: thread, Namespace: namespace, Limit: 1})
			}
			r, err := s.read(ctx, s.scripts.values, s.keys.thread(thread, keyHead, keyValues, keyRecords), 0, "c"+id)
			if err != nil || !r.has(2) {
				return nil, err
			}
			return reply{r[0], id, r[2]}, nil
		})
		if errors.As(err, &large) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(list) == 0 || list[0].Namespace != namespace {
			return checkpoint.ErrCheckpointNotFound
		}
		cp = list[0]
		return nil
	})
	if large != nil {
		return nil, large
	}
	return cp, err
}

// Checkpoints lists the checkpoints of a namespace, newest first.
func (s *Store) Checkpoints(
	ctx context.Context, q checkpoint.CheckpointQuery,
) (out []*checkpoint.Checkpoint, err error) {
	err = s.look(ctx, q.Thread, func() error {
		out, err = s.list(ctx, q)
		return err
	})
	return out, err
}

// list reads checkpoints until there are enough. One exchange finds all of
// them, unless their manifests are large.
func (s *Store) list(ctx context.Context, q checkpoint.CheckpointQuery) (out []*checkpoint.Checkpoint, err error) {
	portion := checkpoint.Portion{Limit: q.Limit}
	for {
		cut := false
		next, err := s.load(ctx, q.Thread, q.Limit, 0, func() (reply, error) {
			r, err := s.find(ctx, &q)
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

// find returns the generation, then id and manifest of each.
func (s *Store) find(ctx context.Context, q *checkpoint.CheckpointQuery) (reply, error) {
	prefix, open := sized(checkpoint.NodePath(q.Namespace)), "1"
	switch {
	case q.Everywhere:
		prefix, open = "", "2"
	case !q.AnyTask:
		prefix, open = prefix+sized(q.Namespace), "0"
	}
	return s.read(ctx, s.scripts.history, s.keys.thread(q.Thread, keyHead, keyValues, keyOrder),
		prefix, open, smaller(q.Before), max(0, q.Limit), bound(q.Limit))
}

// bound is how many bytes a script that is given a limit returns before it
// leaves the rest for another exchange, 0 = all.
func bound(limit int) int {
	if limit <= 0 {
		return 0
	}
	return checkpoint.ReadBytes
}

// wasCut reports whether a script has left something for another exchange.
func wasCut(r reply, limit int) bool { return limit > 0 && r.bytes() >= checkpoint.ReadBytes }

// load reads manifests and the values beside them. A rollback in between may
// take values away or put others in their place; then it begins again. So may
// a Redis that lost its newest changes, which nobody can see: what does not fit
// together is read once more before it is called damaged.
func (s *Store) load(
	ctx context.Context, thread string, limit, most int, manifests func() (reply, error),
) (out []*checkpoint.Checkpoint, err error) {
	for doubted := false; ; {
		r, err := manifests()
		if err != nil || len(r) == 0 {
			return nil, err
		}
		l := loader{store: s, thread: thread, generation: r.text(0), most: most}
		out, err := l.load(ctx, r[1:], limit)
		switch {
		case errors.Is(err, checkpoint.ErrCorrupt) && !doubted:
			doubted = true
		case err != nil || !l.moved:
			return out, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// loader fills in the values that are kept beside manifests. Checkpoints that
// are read together share what they have in common.
type loader struct {
	store      *Store
	thread     string
	generation string
	moved      bool // the thread has another generation by now
	most       int  // bytes that a checkpoint may hold, 0 = any number

	wanted []string // fields, each once, in the order in which they are needed
	read   int      // how many of them were read
	bytes  int      // of values that were read
	values map[string]payload.JSON
	lists  map[place][]payload.JSON
}

// place is where a segment is stored.
type place struct {
	channel string
	segment uint64
}

type manifest struct {
	*checkpoint.Checkpoint
	beside []codec.Beside
	needs  int // how many of the wanted fields must have been read
}

// load reads the values of some manifests, and ends early where a limit does.
func (l *loader) load(ctx context.Context, r reply, limit int) ([]*checkpoint.Checkpoint, error) {
	l.values, l.lists = map[string]payload.JSON{}, map[place][]payload.JSON{}
	list := make([]manifest, 0, len(r)/2)
	lengths := map[place]int{}
	known := checkpoint.Portion{Limit: limit}
	for i := 0; i+1 < len(r) && !known.Full(); i += 2 {
		m, err := l.store.decodeCheckpoint(l.thread, r.text(i), r.text(i+1))
		if err != nil {
			return nil, of(err, "key %s, checkpoint %q", l.key(), r.text(i))
		}
		l.want(&m, lengths)
		known.Take(m.least())
		list = append(list, m)
	}
	out := make([]*checkpoint.Checkpoint, 0, len(list))
	portion := checkpoint.Portion{Limit: limit}
	for _, m := range list {
		if portion.Full() {
			break
		}
		if err := l.weigh(&m); err != nil {
			return nil, err
		}
		if err := l.fetch(ctx, m.needs, bound(limit)); err != nil || l.moved {
			if large, ok := errors.AsType[*checkpoint.LargeError](err); ok {
				large.Seq = m.Seq
			}
			return nil, err
		}
		if err := l.fill(m); err != nil {
			return nil, of(err, "key %s, checkpoint %q", l.key(), m.ID)
		}
		if size := m.Size(); l.most > 0 && size > l.most {
			return nil, &checkpoint.LargeError{Bytes: size, Seq: m.Seq}
		}
		portion.Take(m.Size())
		out = append(out, m.Checkpoint)
	}
	return out, nil
}

// weigh finds out whether a checkpoint is large, as far as its manifest tells: that has
// the sizes of values, and not those of the elements of lists.
func (l *loader) weigh(m *manifest) error {
	least := m.least()
	if l.most <= 0 || least <= l.most {
		return nil
	}
	if slices.ContainsFunc(m.beside, func(b codec.Beside) bool { return m.Channels[b.Channel].List != nil }) {
		least = 0
	}
	return &checkpoint.LargeError{Bytes: least, Seq: m.Seq}
}

// least is the size that a checkpoint will have at least.
func (m *manifest) least() int {
	n := m.Size()
	for _, b := range m.beside {
		n += b.Bytes
	}
	return n
}

func (l *loader) key() string { return l.store.keys.thread(l.thread, keyValues)[0] }

// want notes what a manifest refers to. lengths is how much of each segment is
// wanted so far.
func (l *loader) want(m *manifest, lengths map[place]int) {
	for _, b := range m.beside {
		ch := &m.Channels[b.Channel]
		if ch.List == nil {
			field := valueField(ch.Stored, ch.Name)
			if _, ok := l.values[field]; !ok {
				l.values[field] = ""
				l.wanted = append(l.wanted, field)
			}
			continue
		}
		for _, seg := range ch.List.Segments {
			at := place{ch.Name, seg.ID}
			for i := lengths[at]; i < seg.Len; i++ {
				l.wanted = append(l.wanted, itemField(seg.ID, i, ch.Name))
			}
			lengths[at] = max(lengths[at], seg.Len)
		}
	}
	m.needs = len(l.wanted)
}

// atOnce is how many fields one script reads: others wait meanwhile.
const atOnce = 1000

// sealBytes is about how much longer an encrypted value is than its text. What values
// hold is counted when they are open.
const sealBytes = 64

// fetch reads wanted fields until at least n of them were read: as many in one
// exchange as a script reads, and at most about so many bytes, 0 = any number.
func (l *loader) fetch(ctx context.Context, n, bytes int) error {
	for l.read < n {
		keys := l.store.keys.thread(l.thread, keyHead, keyValues, keyRecords)
		fields := l.wanted[l.read:min(len(l.wanted), l.read+atOnce)]
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
		r, err := l.store.read(ctx, l.store.scripts.values, keys, args...)
		if err != nil {
			return err
		}
		if r.text(0) != l.generation {
			l.moved = true
			return nil
		}
		count, err := r.unum(1)
		if err == nil && l.most > 0 && count < uint64(len(fields)) {
			return &checkpoint.LargeError{}
		}
		if err != nil || count == 0 || count > uint64(len(fields)) {
			return corrupt("key %s: %q of %d fields were read", l.key(), r.text(1), len(fields))
		}
		fields = fields[:count]
		quoted := r[min(len(r), 2+len(fields)):]
		for i, f := range fields {
			if !r.has(i + 2) {
				delete(l.values, f)
				continue
			}
			if l.values[f], err = l.value(f, r.text(i+2), quoted); err != nil {
				return of(err, "key %s, field %q", l.key(), f)
			}
			if l.bytes += len(l.values[f]); l.most > 0 && l.bytes > l.most {
				return &checkpoint.LargeError{}
			}
		}
		l.read += len(fields)
	}
	return nil
}

// value opens a value. quoted are runs and inputs that values are quoted from.
func (l *loader) value(field, text string, quoted reply) (payload.JSON, error) {
	run, isQuoted := runOf(text)
	if !isQuoted {
		text, err := l.store.box.Open(seal.Place{Thread: l.thread, Kind: kindValues, Name: field}, text)
		return payload.JSON(text), err
	}
	for i := 0; i+1 < len(quoted); i += 2 {
		if quoted.text(i) == run && quoted.has(i+1) {
			at := seal.Place{Thread: l.thread, Kind: kindRun, Name: inputField(run)}
			input, err := l.store.box.Open(at, quoted.text(i+1))
			if err != nil {
				return "", of(err, "input of run %q", run)
			}
			return unquote(text, input)
		}
	}
	return "", corrupt("the input of run %q is missing, which it quotes", run)
}

func (l *loader) fill(m manifest) error {
	for _, b := range m.beside {
		ch := &m.Channels[b.Channel]
		if ch.List != nil {
			if err := l.fillList(ch); err != nil {
				return err
			}
			continue
		}
		field := valueField(ch.Stored, ch.Name)
		v, ok := l.values[field]
		if !ok {
			return corrupt("field %q is missing", field)
		}
		if len(v) != b.Bytes {
			return corrupt("field %q has %d bytes, want %d", field, len(v), b.Bytes)
		}
		ch.Value = v
	}
	return nil
}

func (l *loader) fillList(ch *checkpoint.Channel) error {
	for i, seg := range ch.List.Segments {
		items, err := l.segment(place{ch.Name, seg.ID}, seg.Len)
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

// segment returns at least the first n elements of a segment.
func (l *loader) segment(at place, n int) ([]payload.JSON, error) {
	items := l.lists[at]
	for i := len(items); i < n; i++ {
		field := itemField(at.segment, i, at.channel)
		v, ok := l.values[field]
		if !ok {
			return nil, corrupt("field %q is missing", field)
		}
		items = append(items, v)
	}
	l.lists[at] = items
	return items, nil
}

// Pending returns the progress after a checkpoint.
func (s *Store) Pending(ctx context.Context, thread, id string) (p checkpoint.Pending, err error) {
	err = s.look(ctx, thread, func() error {
		p, err = s.pending(ctx, thread, id)
		return err
	})
	return p, err
}

func (s *Store) pending(ctx context.Context, thread, id string) (p checkpoint.Pending, err error) {
	keys := s.keys.thread(thread, keyProgress, keyQuestions)
	r, err := s.read(ctx, s.scripts.pending, keys, id, sized(id))
	if err != nil {
		return checkpoint.Pending{}, err
	}
	if p, err = s.progressOf(thread, id, r.list(0)); err != nil {
		return checkpoint.Pending{}, err
	}
	asked := r.list(1)
	for i := 0; i+1 < len(asked); i += 2 {
		in, err := s.decodeQuestion(thread, asked.text(i), asked.text(i+1))
		if err != nil {
			return checkpoint.Pending{}, of(err, "key %s, interrupt %q", keys[1], asked.text(i))
		}
		p.Interrupts = append(p.Interrupts, in)
	}
	sortProgress(&p)
	return p, nil
}
