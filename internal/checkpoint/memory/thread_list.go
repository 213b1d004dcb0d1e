package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Threads lists heads by update time, or with conditions by creation time, newest first.
func (s *Store) Threads(ctx context.Context, q checkpoint.ThreadQuery) ([]checkpoint.Head, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	if isIndexed(&q) {
		return s.listIndexed(&q), nil
	}
	first := firstHeads{query: &q}
	s.visitThreads(&q, func(t *thread) {
		if first.wants(&t.head) {
			first.add(t.readHead(s))
		}
	})
	first.sortHeads()
	return slices.Clone(cutAtLimit(first.heads, q.Limit, (*checkpoint.Head).Size)), nil
}

// isIndexed reports whether the index of threads finds those of a query.
func isIndexed(q *checkpoint.ThreadQuery) bool { return q.Tenant != "" && q.HasConditions() }

// listIndexed lists the threads of a query by the index.
func (s *Store) listIndexed(q *checkpoint.ThreadQuery) (out []checkpoint.Head) {
	portion := checkpoint.Portion{Limit: q.Limit}
	s.visitIndexed(q, func(t *thread) (more bool) {
		h := t.readHead(s)
		portion.Take(h.Size())
		out = append(out, h)
		return !portion.Full()
	})
	return out
}

// visitedPlaces is how many places are read from the index at a time.
const visitedPlaces = 256

// visitIndexed calls visit for each thread that a query selects, in order and with its lock held,
// until it returns false.
func (s *Store) visitIndexed(q *checkpoint.ThreadQuery, visit func(*thread) (more bool)) {
	for after := q.Before; ; {
		places := s.threads.readPlaces(q, after, visitedPlaces)
		for i := range places {
			if !places[i].visitSelected(q, visit) {
				return
			}
		}
		if len(places) < visitedPlaces {
			return
		}
		after = places[len(places)-1].position()
	}
}

// visitSelected calls visit for the thread if it stands at the place still and the query selects
// it.
func (p *threadPlace) visitSelected(q *checkpoint.ThreadQuery, visit func(*thread) (more bool)) (more bool) {
	t := p.thread
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isDeleted || !t.head.Created.Equal(p.created) || !q.MatchesThread(&t.head) {
		return true
	}
	return visit(t)
}

// visitThreads calls visit for each thread that a query selects, in any order, with its lock held.
func (s *Store) visitThreads(q *checkpoint.ThreadQuery, visit func(*thread)) {
	for i := range s.shards {
		for _, t := range s.shards[i].listThreads(q.Tenant) {
			t.mu.Lock()
			if !t.isDeleted && isThreadSelected(q, &t.head) {
				visit(t)
			}
			t.mu.Unlock()
		}
	}
}

// firstHeads keeps the heads that come first in the order of a query, as many as its limit says and
// up to as many more.
type firstHeads struct {
	query *checkpoint.ThreadQuery
	heads []checkpoint.Head
	last  *checkpoint.ThreadPosition // there are as many as the limit says up to here, nil = not yet
}

// wants reports whether a head is one of the first so far.
func (f *firstHeads) wants(h *checkpoint.Head) bool {
	return f.last == nil || compareThreads(f.query.PositionOf(h), *f.last) < 0
}

// add adds a head that is wanted.
func (f *firstHeads) add(h checkpoint.Head) {
	f.heads = append(f.heads, h)
	if limit := f.query.Limit; limit > 0 && len(f.heads) == 2*limit {
		f.sortHeads()
		clear(f.heads[limit:])
		f.heads = f.heads[:limit]
		last := f.query.PositionOf(&f.heads[limit-1])
		f.last = &last
	}
}

func (f *firstHeads) sortHeads() {
	slices.SortFunc(f.heads, func(a, b checkpoint.Head) int {
		return compareThreads(f.query.PositionOf(&a), f.query.PositionOf(&b))
	})
}

// SkipThreads returns the place of the last of the first n threads that a query selects, zero when
// there are fewer.
func (s *Store) SkipThreads(ctx context.Context, q checkpoint.ThreadQuery, n int) (at checkpoint.ThreadPosition, err error) {
	if err := s.checkOpen(ctx); err != nil {
		return at, err
	}
	if isIndexed(&q) {
		if passed, last := s.passIndexed(&q, n); passed == n {
			at = last
		}
		return at, nil
	}
	var places []checkpoint.ThreadPosition
	s.visitThreads(&q, func(t *thread) { places = append(places, q.PositionOf(&t.head)) })
	if n > len(places) {
		return at, nil
	}
	return selectPlace(places, n-1), nil
}

// CountSelectedThreads returns how many threads a query selects, or atMost if it selects more.
func (s *Store) CountSelectedThreads(ctx context.Context, q checkpoint.ThreadQuery, atMost int) (n int, err error) {
	if err := s.checkOpen(ctx); err != nil {
		return 0, err
	}
	if isIndexed(&q) || q.Tenant != "" && q.Before == (checkpoint.ThreadPosition{}) { // the order of all does not matter
		n, _ = s.passIndexed(&q, atMost)
		return n, nil
	}
	s.visitThreads(&q, func(*thread) { n++ })
	return min(n, atMost), nil
}

// passIndexed passes over the first n threads of a query, and returns how many there were and the
// place of the last.
func (s *Store) passIndexed(q *checkpoint.ThreadQuery, n int) (passed int, last checkpoint.ThreadPosition) {
	if passed, place, ok := s.threads.skipPlaces(q, n); ok {
		return passed, place.position()
	}
	if n > 0 {
		s.visitIndexed(q, func(t *thread) (more bool) {
			passed++
			last = q.PositionOf(&t.head)
			return passed < n
		})
	}
	return passed, last
}

// selectPlace returns the place that would be at an index if the places were sorted. It changes
// their order.
func selectPlace(places []checkpoint.ThreadPosition, at int) checkpoint.ThreadPosition {
	for len(places) > 1 {
		before, same := partitionPlaces(places, medianPlace(places))
		switch {
		case at < before:
			places = places[:before]
		case at < before+same:
			return places[at]
		default:
			places, at = places[before+same:], at-before-same
		}
	}
	return places[at]
}

// medianPlace returns the middle one of three places.
func medianPlace(places []checkpoint.ThreadPosition) checkpoint.ThreadPosition {
	three := []checkpoint.ThreadPosition{places[0], places[len(places)/2], places[len(places)-1]}
	slices.SortFunc(three, compareThreads)
	return three[1]
}

// partitionPlaces moves the places that come before one to the begin, and those that are the same
// behind them. It returns how many there are of both.
func partitionPlaces(places []checkpoint.ThreadPosition, pivot checkpoint.ThreadPosition) (before, same int) {
	end := len(places)
	for i := 0; i < end; {
		switch order := compareThreads(places[i], pivot); {
		case order < 0:
			places[before], places[i] = places[i], places[before]
			before++
			i++
		case order > 0:
			end--
			places[i], places[end] = places[end], places[i]
		default:
			i++
		}
	}
	return before, end - before
}

// listThreads lists the threads of a tenant, "" = of all.
func (s *shard) listThreads(owner string) []*thread {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if owner != "" {
		return slices.Collect(maps.Values(s.tenants[owner]))
	}
	var out []*thread
	for _, threads := range s.tenants {
		out = slices.AppendSeq(out, maps.Values(threads))
	}
	return out
}

func compareThreads(a, b checkpoint.ThreadPosition) int {
	return cmp.Or(b.Time().Compare(a.Time()), strings.Compare(a.Thread, b.Thread))
}

// isThreadSelected reports whether a query selects a thread, behind the place where the page
// begins.
func isThreadSelected(q *checkpoint.ThreadQuery, h *checkpoint.Head) bool {
	return q.MatchesThread(h) && (q.Before == (checkpoint.ThreadPosition{}) || compareThreads(q.PositionOf(h), q.Before) > 0)
}
