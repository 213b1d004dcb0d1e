package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// question is one interrupt of a thread. Its record is replaced as a whole, so
// that lists over all threads need no thread's lock.
type question struct {
	record atomic.Pointer[checkpoint.Interrupt]
	gone   atomic.Bool
}

// inbox orders the questions of all threads by their last change. Changing or
// deleting one leaves its old entry behind; entries are cleaned up when most
// of them are old.
type inbox struct {
	mu      sync.Mutex
	change  uint64
	entries []entry // by change
	live    int
}

type entry struct {
	change   uint64
	question *question
}

func (e entry) stale() bool {
	return e.question.gone.Load() || e.question.record.Load().Change != e.change
}

// put numbers and publishes questions. Numbers are given under the lock that
// readers take, so a reader never sees a number before a smaller one.
func (b *inbox) put(t *thread, list []checkpoint.Interrupt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range list {
		in := list[i]
		q := t.question(&in)
		in.Revision = 1
		if old := q.record.Load(); old != nil {
			in.Revision = old.Revision + 1
		} else {
			b.live++
		}
		b.change++
		in.Change = b.change
		q.record.Store(&in)
		b.entries = append(b.entries, entry{change: in.Change, question: q})
	}
	b.compact()
}

func (t *thread) question(in *checkpoint.Interrupt) *question {
	q := t.questions[in.ID]
	if q != nil {
		return q
	}
	if t.questions == nil {
		t.questions = map[string]*question{}
		t.asked = map[string][]*question{}
	}
	q = &question{}
	t.questions[in.ID] = q
	t.asked[in.Checkpoint] = append(t.asked[in.Checkpoint], q)
	return q
}

// forget removes the questions of a deleted thread.
func (b *inbox) forget(questions map[string]*question) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, q := range questions {
		q.gone.Store(true)
		b.live--
	}
	b.compact()
}

func (b *inbox) compact() {
	if len(b.entries) > 64 && len(b.entries) > 2*b.live {
		b.entries = slices.DeleteFunc(b.entries, entry.stale)
	}
}

// Interrupts lists questions over all threads.
func (s *Store) Interrupts(
	ctx context.Context, q checkpoint.InterruptQuery,
) ([]checkpoint.Interrupt, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	var out []checkpoint.Interrupt
	if q.Thread != "" {
		out = s.findIn(&q)
	} else {
		out = s.inbox.find(&q)
	}
	if !q.ByChange {
		slices.SortFunc(out, func(a, b checkpoint.Interrupt) int {
			return comparePositions(where(&a), where(&b))
		})
	}
	return cut(out, q.Limit, (*checkpoint.Interrupt).Size), nil
}

// findIn returns what matches of one thread, by change.
func (s *Store) findIn(q *checkpoint.InterruptQuery) []checkpoint.Interrupt {
	t := s.locked(q.Thread)
	if t == nil {
		return nil
	}
	defer t.mu.Unlock()
	var out []checkpoint.Interrupt
	for _, question := range t.questions {
		in := question.record.Load()
		if !matches(q, in) || q.ByChange && in.Change <= q.After.Change ||
			!q.ByChange && comparePositions(where(in), q.After) <= 0 {
			continue
		}
		out = append(out, *in)
	}
	if q.ByChange {
		slices.SortFunc(out, func(a, b checkpoint.Interrupt) int { return cmp.Compare(a.Change, b.Change) })
	}
	return out
}

// find returns what matches, by change.
func (b *inbox) find(q *checkpoint.InterruptQuery) []checkpoint.Interrupt {
	b.mu.Lock()
	defer b.mu.Unlock()
	from := 0
	if q.ByChange {
		from, _ = slices.BinarySearchFunc(b.entries, q.After.Change+1, func(e entry, change uint64) int {
			return cmp.Compare(e.change, change)
		})
	}
	var out []checkpoint.Interrupt
	for _, e := range b.entries[from:] {
		if e.stale() {
			continue
		}
		in := e.question.record.Load()
		if !matches(q, in) {
			continue
		}
		if !q.ByChange && comparePositions(where(in), q.After) <= 0 {
			continue
		}
		out = append(out, *in)
		if q.ByChange && len(out) == q.Limit {
			break
		}
	}
	return out
}

func where(in *checkpoint.Interrupt) checkpoint.InterruptPosition {
	return checkpoint.InterruptPosition{Created: in.Created, Thread: in.Thread, ID: in.ID}
}

func comparePositions(a, b checkpoint.InterruptPosition) int {
	return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Thread, b.Thread), strings.Compare(a.ID, b.ID))
}

func matches(q *checkpoint.InterruptQuery, in *checkpoint.Interrupt) bool {
	switch {
	case q.Thread != "" && q.Thread != in.Thread,
		q.Run != "" && q.Run != in.Run,
		q.Graph != "" && q.Graph != in.Graph,
		q.Node != "" && q.Node != in.Node,
		q.Reason != "" && q.Reason != in.Reason,
		q.Assignee != "" && !slices.Contains(in.Assignees, q.Assignee),
		len(q.States) > 0 && !slices.Contains(q.States, in.State):
		return false
	}
	return true
}

// Threads lists heads by update time, newest first.
func (s *Store) Threads(ctx context.Context, q checkpoint.ThreadQuery) ([]checkpoint.Head, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	var out []checkpoint.Head
	for i := range s.shards {
		for _, t := range s.shards[i].all() {
			t.mu.Lock()
			if !t.gone && selects(&q, &t.head) {
				out = append(out, t.readHead(s))
			}
			t.mu.Unlock()
		}
	}
	slices.SortFunc(out, func(a, b checkpoint.Head) int {
		return compareThreads(&a, b.Updated, b.Thread)
	})
	return slices.Clone(cut(out, q.Limit, (*checkpoint.Head).Size)), nil
}

// cut ends a list where a limit does.
func cut[T any](list []T, limit int, size func(*T) int) []T {
	portion := checkpoint.Portion{Limit: limit}
	for i := range list {
		if portion.Full() {
			return list[:i:i]
		}
		portion.Take(size(&list[i]))
	}
	return list
}

func (sh *shard) all() []*thread {
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	out := make([]*thread, 0, len(sh.threads))
	for _, t := range sh.threads {
		out = append(out, t)
	}
	return out
}

func compareThreads(h *checkpoint.Head, updated time.Time, thread string) int {
	return cmp.Or(updated.Compare(h.Updated), strings.Compare(h.Thread, thread))
}

func selects(q *checkpoint.ThreadQuery, h *checkpoint.Head) bool {
	if (q.State != "" && q.State != h.State) || (q.Graph != "" && q.Graph != h.Graph) {
		return false
	}
	for k, v := range q.Metadata {
		if got, ok := h.Metadata[k]; !ok || got != v {
			return false
		}
	}
	return q.Before == (checkpoint.ThreadPosition{}) || compareThreads(h, q.Before.Updated, q.Before.Thread) > 0
}
