package redis

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
)

var _ checkpoint.Glancer = (*Store)(nil)

// handful is how many questions, or records of progress, a glance takes in.
const handful = 64

// largeGlance is how many bytes of a checkpoint a glance takes in: callers make room
// for a larger one before they read it.
const largeGlance = 64 << 10

// Glance reads what it takes to go on with a thread, in one exchange, or in two
// when large values belong to it.
func (s *Store) Glance(ctx context.Context, thread, request string) (g checkpoint.Glance, err error) {
	err = s.look(ctx, thread, func() error {
		keys := s.keys.thread(thread, keyHead, keyValues, keyOrder, keyLog, keyProgress, keyQuestions, keyRecords, keyRuns)
		keys = append(keys, s.keys.of(s.keys.partition(thread), keyStore))
		r, err := s.read(ctx, s.scripts.glance, keys, sized("")+sized(""), request, handful)
		if err != nil {
			return err
		}
		if g.Head, err = s.headOf(thread, keys[0], r); err != nil {
			return err
		}
		s.glanceAt(ctx, thread, r, &g)
		if id := request; id != "" {
			g.Requests = map[string]*checkpoint.Request{id: nil}
			if r.has(14) {
				old, err := decode(s, thread, kindRequest, id, r.text(14), codec.DecodeRequest)
				if err != nil {
					g.Requests = nil // looking for it alone says what is wrong
				} else {
					old.ID = id
					g.Requests[id] = &old
				}
			}
		}
		return nil
	})
	return g, err
}

// glanceAt reads what is beside the head. What does not fit to it, or can't be
// read, is left out: reading it by name tells what is wrong.
func (s *Store) glanceAt(ctx context.Context, thread string, r reply, g *checkpoint.Glance) {
	if r.has(10) && r.text(9) == g.Head.Run {
		if run, err := s.decodeRun(thread, r.text(9), r[10:12]); err == nil {
			g.Run = &run
		}
	}
	id := r.text(7)
	if id != "" && id == g.Head.Checkpoint && r.has(8) {
		l := loader{store: s, thread: thread, generation: r.text(6), most: largeGlance}
		list, err := l.load(ctx, r[7:9], 0)
		if err == nil && !l.moved && len(list) == 1 && list[0].Namespace == "" {
			g.Checkpoint = list[0]
		}
	}
	if !r.has(13) {
		return
	}
	var all []checkpoint.Interrupt
	var asked []string
	list := r.list(13)
	fields := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		fields[list.text(i)] = list.text(i + 1)
	}
	for field, record := range fields {
		q, ok := strings.CutPrefix(field, "r")
		if !ok {
			continue
		}
		in, err := s.decodeQuestion(thread, q, record)
		if err != nil {
			return
		}
		all = append(all, in)
		if in.Checkpoint == id {
			asked = append(asked, q)
		}
	}
	slices.SortFunc(all, func(a, b checkpoint.Interrupt) int {
		return strings.Compare(questionMember(&a), questionMember(&b))
	})
	g.Interrupts = &all
	if g.Checkpoint == nil || !r.has(12) {
		return
	}
	order, err := unpackNames(fields["a"+id])
	if err != nil || len(order) != len(asked) {
		return
	}
	p, err := s.progressOf(thread, id, r.list(12))
	if err != nil {
		return
	}
	for _, q := range order {
		at := slices.IndexFunc(all, func(in checkpoint.Interrupt) bool { return in.ID == q })
		if at < 0 {
			return
		}
		p.Interrupts = append(p.Interrupts, all[at])
	}
	sortProgress(&p)
	g.Pending = &p
}

// progressOf reads fields and records of the progress after a checkpoint.
func (s *Store) progressOf(thread, id string, done reply) (p checkpoint.Pending, err error) {
	key := s.keys.thread(thread, keyProgress)[0]
	for i := 0; i+1 < len(done); i += 2 {
		name, record := done.text(i), done.text(i+1)
		if strings.HasPrefix(name, "t") {
			t, err := decode(s, thread, kindProgress, sized(id)+name, record, codec.DecodeTask)
			if err != nil {
				return checkpoint.Pending{}, of(err, "key %s, task %q", key, name[1:])
			}
			p.Tasks = append(p.Tasks, t)
			continue
		}
		m, err := decode(s, thread, kindProgress, sized(id)+name, record, codec.DecodeMemo)
		if err != nil {
			return checkpoint.Pending{}, of(err, "key %s, memo %q", key, strconv.QuoteToASCII(name))
		}
		p.Memos = append(p.Memos, m)
	}
	return p, nil
}
