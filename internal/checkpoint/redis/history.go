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

// Checkpoint returns one checkpoint of a namespace, the newest for an empty id.
func (s *Store) Checkpoint(
	ctx context.Context, thread, namespace, id string,
) (cp *checkpoint.Checkpoint, err error) {
	err = s.look(ctx, thread, func() error {
		list, err := s.load(ctx, thread, func() (reply, error) {
			if id == "" {
				return s.find(ctx, &checkpoint.CheckpointQuery{Thread: thread, Namespace: namespace, Limit: 1})
			}
			r, err := s.read(ctx, s.scripts.values, s.keys.thread(thread, keyHead, keyValues, keyRecords), "c"+id)
			if err != nil || !r.has(1) {
				return nil, err
			}
			return reply{r[0], id, r[1]}, nil
		})
		if err != nil {
			return err
		}
		if len(list) == 0 || list[0].Namespace != namespace {
			return checkpoint.ErrCheckpointNotFound
		}
		cp = list[0]
		return nil
	})
	return cp, err
}

// Checkpoints lists the checkpoints of a namespace, newest first.
func (s *Store) Checkpoints(
	ctx context.Context, q checkpoint.CheckpointQuery,
) (out []*checkpoint.Checkpoint, err error) {
	err = s.look(ctx, q.Thread, func() error {
		out, err = s.load(ctx, q.Thread, func() (reply, error) { return s.find(ctx, &q) })
		return err
	})
	return out, err
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
		prefix, open, smaller(q.Before), max(0, q.Limit))
}

// load reads manifests and the values beside them. A rollback in between may
// take values away or put others in their place; then it begins again. So may
// a Redis that lost its newest changes, which nobody can see: what does not fit
// together is read once more before it is called damaged.
func (s *Store) load(
	ctx context.Context, thread string, manifests func() (reply, error),
) (out []*checkpoint.Checkpoint, err error) {
	for doubted := false; ; {
		r, err := manifests()
		if err != nil || len(r) == 0 {
			return nil, err
		}
		l := loader{store: s, thread: thread, generation: r.text(0)}
		out, err := l.load(ctx, r[1:])
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

	wanted []string // fields, each once
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
}

func (l *loader) load(ctx context.Context, r reply) ([]*checkpoint.Checkpoint, error) {
	l.values, l.lists = map[string]payload.JSON{}, map[place][]payload.JSON{}
	var list []manifest
	lengths := map[place]int{}
	for i := 0; i+1 < len(r); i += 2 {
		m, err := l.store.decodeCheckpoint(l.thread, r.text(i), r.text(i+1))
		if err != nil {
			return nil, of(err, "key %s, checkpoint %q", l.key(), r.text(i))
		}
		list = append(list, m)
		l.want(m.Checkpoint, m.beside, lengths)
	}
	for at, n := range lengths {
		for i := range n {
			l.wanted = append(l.wanted, itemField(at.segment, i, at.channel))
		}
	}
	if err := l.fetch(ctx); err != nil || l.moved {
		return nil, err
	}
	out := make([]*checkpoint.Checkpoint, 0, len(list))
	for _, m := range list {
		if err := l.fill(m); err != nil {
			return nil, of(err, "key %s, checkpoint %q", l.key(), m.ID)
		}
		out = append(out, m.Checkpoint)
	}
	return out, nil
}

func (l *loader) key() string { return l.store.keys.thread(l.thread, keyValues)[0] }

// want notes what a manifest refers to.
func (l *loader) want(cp *checkpoint.Checkpoint, beside []codec.Beside, lengths map[place]int) {
	for _, b := range beside {
		ch := &cp.Channels[b.Channel]
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
			lengths[at] = max(lengths[at], seg.Len)
		}
	}
}

// atOnce is how many fields one script reads: others wait meanwhile.
const atOnce = 1000

func (l *loader) fetch(ctx context.Context) error {
	keys := l.store.keys.thread(l.thread, keyHead, keyValues, keyRecords)
	for fields := range slices.Chunk(l.wanted, atOnce) {
		args := make([]any, len(fields))
		for i, f := range fields {
			args[i] = f
		}
		r, err := l.store.read(ctx, l.store.scripts.values, keys, args...)
		if err != nil {
			return err
		}
		if r.text(0) != l.generation {
			l.moved = true
			return nil
		}
		for i, f := range fields {
			if !r.has(i + 1) {
				delete(l.values, f)
				continue
			}
			if l.values[f], err = l.value(f, r.text(i+1), r[min(len(r), 1+len(fields)):]); err != nil {
				return of(err, "key %s, field %q", l.key(), f)
			}
		}
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
