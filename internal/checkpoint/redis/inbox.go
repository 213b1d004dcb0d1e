package redis

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Interrupts lists questions over all threads.
func (s *Store) Interrupts(
	ctx context.Context, q checkpoint.InterruptQuery,
) (out []checkpoint.Interrupt, err error) {
	done, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	switch {
	case q.Thread != "":
		out, err = s.questionsOf(ctx, &q)
	case q.ByChange:
		out, err = s.questionsByChange(ctx, &q)
	default:
		if out, err = s.questionsByAge(ctx, &q); err == nil {
			err = s.present(ctx)
		}
	}
	if err != nil {
		return nil, failed(ctx, err)
	}
	return out, nil
}

// questionsOf lists the questions of one thread. Where they lie in the order
// of changes is settled: only numbers of other threads may still be smaller.
func (s *Store) questionsOf(ctx context.Context, q *checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	partition := s.keys.partition(q.Thread)
	keys := append(s.keys.thread(q.Thread, keyQuestions), s.keys.of(partition, keyStore))
	large := math.MaxInt64
	if q.Limit > 0 {
		large = checkpoint.ReadBytes
	}
	r, err := s.read(ctx, s.scripts.questions, keys, large)
	if err = failed(ctx, err); errors.Is(err, checkpoint.ErrCorrupt) {
		return nil, nil // reading one by name tells what is wrong
	}
	switch {
	case err != nil:
		return nil, err
	case !r.has(0):
		return s.largeQuestionsOf(ctx, q, r.list(1))
	}
	var out []checkpoint.Interrupt
	all := r.list(0)
	if len(all) == 0 && r.text(2) != s.mark {
		return nil, s.otherStore(partition, r.text(2)) // they are lost, rather than never asked
	}
	for i := 0; i+1 < len(all); i += 2 {
		id, ok := strings.CutPrefix(all.text(i), "r")
		if !ok {
			continue
		}
		in, err := s.decodeQuestion(q.Thread, id, all.text(i+1))
		if err == nil && matches(q, &in) && follows(q, &in) {
			out = append(out, in)
		}
	}
	slices.SortFunc(out, func(a, b checkpoint.Interrupt) int {
		if q.ByChange {
			return cmp.Compare(a.Change, b.Change)
		}
		return strings.Compare(questionMember(&a), questionMember(&b))
	})
	portion := checkpoint.Portion{Limit: q.Limit}
	for i := range out {
		if portion.Full() {
			return out[:i:i], nil
		}
		portion.Take(out[i].Size())
	}
	return out, nil
}

// largeQuestionsOf lists the questions of one thread that are too large to be
// read all at once. standing is where each stands.
func (s *Store) largeQuestionsOf(
	ctx context.Context, q *checkpoint.InterruptQuery, standing reply,
) (out []checkpoint.Interrupt, err error) {
	var list []entry
	after := ""
	if q.After != (checkpoint.InterruptPosition{}) {
		after = questionPlace(q.After.Created, q.After.Thread, q.After.ID)
	}
	for i := 0; i+3 < len(standing); i += 4 {
		n, err := standing.unum(i + 1)
		if err != nil {
			continue
		}
		id := standing.text(i)
		e := entry{thread: q.Thread, id: id, change: s.change(n, s.keys.partition(q.Thread))}
		e.at = standing.text(i+2) + q.Thread + "\x00" + id
		if q.ByChange && e.change > q.After.Change || !q.ByChange && e.at > after {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b entry) int {
		if q.ByChange {
			return cmp.Compare(a.change, b.change)
		}
		return strings.Compare(a.at, b.at)
	})
	return walk(q.Limit, "", func(string) (page, error) { return page{entries: list}, nil },
		func(list []entry, portion *checkpoint.Portion) ([]checkpoint.Interrupt, error) {
			return s.questions(ctx, q, list, portion, func(*checkpoint.Interrupt) bool { return true })
		})
}

// follows reports whether a question comes after the cursor.
func follows(q *checkpoint.InterruptQuery, in *checkpoint.Interrupt) bool {
	if q.ByChange {
		return in.Change > q.After.Change
	}
	return q.After == (checkpoint.InterruptPosition{}) ||
		questionPlace(in.Created, in.Thread, in.ID) > questionPlace(q.After.Created, q.After.Thread, q.After.ID)
}

func (s *Store) questionsByAge(ctx context.Context, q *checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	from := ""
	if q.After != (checkpoint.InterruptPosition{}) {
		from = questionPlace(q.After.Created, q.After.Thread, q.After.ID) + "\x00\xff"
	}
	keys := []string{keyOpen, keyClosed}
	switch others := slices.DeleteFunc(slices.Clone(q.States), isOpen); {
	case len(q.States) > 0 && len(others) == 0:
		keys = keys[:1]
	case len(q.States) > 0 && len(others) == len(q.States):
		keys = keys[1:]
	}
	return walk(q.Limit, from, func(from string) (page, error) {
		return s.members(ctx, keys, from, pageSize, func(member string) (entry, bool) {
			thread, id, ok := parseMember(member)
			return entry{thread: thread, id: id}, ok
		})
	}, func(list []entry, portion *checkpoint.Portion) ([]checkpoint.Interrupt, error) {
		return s.questions(ctx, q, list, portion, func(*checkpoint.Interrupt) bool { return true })
	})
}

func isOpen(st checkpoint.InterruptState) bool { return st == checkpoint.InterruptOpen }

// questionsByChange lists questions up to the last change that any partition
// knows. Partitions that are behind are raised to it first, so that nothing
// can appear later at a place that was read.
func (s *Store) questionsByChange(ctx context.Context, q *checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	end, err := s.settle(ctx)
	if err != nil {
		return nil, err
	}
	from := ""
	if q.After.Change > 0 {
		from = changePlace(q.After.Change)
	}
	return walk(q.Limit, from, func(from string) (page, error) {
		return s.changes(ctx, from, end)
	}, func(list []entry, portion *checkpoint.Portion) ([]checkpoint.Interrupt, error) {
		return s.questions(ctx, q, list, portion, func(in *checkpoint.Interrupt) bool {
			// One that was changed meanwhile comes at its new place.
			_, listed := slices.BinarySearchFunc(list, in.Change, func(e entry, change uint64) int {
				return cmp.Compare(e.change, change)
			})
			return listed
		})
	})
}

// settle raises all partitions to the greatest number and returns it.
func (s *Store) settle(ctx context.Context) (uint64, error) {
	counts, err := s.counts(ctx, s.all(), "")
	if err != nil {
		return 0, err
	}
	end := slices.Max(counts)
	behind := slices.DeleteFunc(s.all(), func(p int) bool { return counts[p] >= end })
	if len(behind) > 0 {
		_, err = s.counts(ctx, behind, unum(end))
	}
	return end, err
}

func countKeys() []string { return []string{keyInbox, keyCount, keyStore} }

func (s *Store) counts(ctx context.Context, partitions []int, raise string) ([]uint64, error) {
	replies, err := s.scatter(ctx, s.scripts.changes, partitions, countKeys(), "+inf", 0, raise, s.mark)
	if err != nil {
		return nil, err
	}
	counts := make([]uint64, len(replies))
	for i, r := range replies {
		if counts[i], err = r.unum(0); err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// changes reads a page of questions in the order of their last change, up to
// the number end.
func (s *Store) changes(ctx context.Context, from string, end uint64) (page, error) {
	var after uint64
	if from != "" {
		var err error
		if after, err = strconv.ParseUint(from, 10, 64); err != nil {
			return page{}, corrupt("%q is no place", from)
		}
	}
	start := unum(after / uint64(len(s.keys.tags)))
	replies, err := s.scatter(ctx, s.scripts.changes, s.all(), countKeys(), start, pageSize, "", s.mark)
	if err != nil {
		return page{}, err
	}
	parts := make([][]entry, len(replies))
	for p, r := range replies {
		for i := 1; i+1 < len(r); i += 2 {
			n, err := r.unum(i + 1)
			if err != nil {
				return page{}, err
			}
			thread, id, ok := parseMember(r.text(i))
			e := entry{thread: thread, id: id, change: s.change(n, p)}
			e.at = changePlace(e.change)
			if n > end {
				break
			}
			if ok || len(r) > 2*pageSize { // a full page must stay one
				parts[p] = append(parts[p], e)
			}
		}
	}
	pg := gather(parts, pageSize)
	pg.entries = slices.DeleteFunc(pg.entries, func(e entry) bool { return e.change <= after })
	return pg, nil
}

// largeQuestion is from how many bytes on a question is read alone.
const largeQuestion = 32 << 10

// questions reads questions until there are enough, and leaves out what is gone,
// corrupt or not asked for. Those that are large are read one by one.
func (s *Store) questions(
	ctx context.Context, q *checkpoint.InterruptQuery, list []entry, portion *checkpoint.Portion,
	listed func(*checkpoint.Interrupt) bool,
) ([]checkpoint.Interrupt, error) {
	keys := func(e entry) []string { return s.keys.thread(e.thread, keyQuestions) }
	replies, err := s.each(ctx, list, func(pipe goredis.Pipeliner, e entry) *goredis.Cmd {
		return s.scripts.question.EvalSha(ctx, pipe, keys(e), "r"+e.id, largeQuestion)
	}, func(e entry) *goredis.Cmd {
		return s.scripts.question.Run(ctx, s.client, keys(e), "r"+e.id, largeQuestion)
	})
	if err != nil {
		return nil, err
	}
	var out []checkpoint.Interrupt
	for i, r := range replies {
		if portion.Full() {
			break
		}
		record := r.text(1)
		if n, _ := r.count(0); n >= largeQuestion {
			large, err := s.fields(ctx, keys(list[i])[0], "r"+list[i].id)
			if err = failed(ctx, err); err != nil && !errors.Is(err, checkpoint.ErrCorrupt) {
				return nil, err
			}
			record = large.text(0)
		}
		if record == "" {
			continue // it is gone
		}
		in, err := s.decodeQuestion(list[i].thread, list[i].id, record)
		if err == nil && matches(q, &in) && listed(&in) {
			portion.Take(in.Size())
			out = append(out, in)
		}
	}
	return out, nil
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

func sortProgress(p *checkpoint.Pending) {
	slices.SortFunc(p.Tasks, func(a, b checkpoint.Task) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(p.Memos, func(a, b checkpoint.Memo) int {
		return cmp.Or(
			strings.Compare(a.Task, b.Task), strings.Compare(a.Scope, b.Scope),
			strings.Compare(a.Key, b.Key), cmp.Compare(a.Index, b.Index),
		)
	})
}
