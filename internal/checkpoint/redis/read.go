package redis

import (
	"cmp"
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
)

// Head returns the thread's head.
func (s *Store) Head(ctx context.Context, thread string) (h checkpoint.Head, err error) {
	err = s.look(ctx, thread, func() error {
		keys := s.keys.thread(thread, keyHead)
		keys = append(keys, s.keys.of(s.keys.partition(thread), keyStore))
		keys = append(keys, s.keys.thread(thread, keyValues, keyOrder, keyProgress, keyQuestions, keyRecords, keyRuns, keyLog)...)
		r, err := s.read(ctx, s.scripts.head, keys)
		if err != nil {
			return err
		}
		h, err = s.headOf(thread, keys[0], r)
		return err
	})
	return h, err
}

// headOf reads a head that may be damaged, or lack keys of its thread.
func (s *Store) headOf(thread, key string, r reply) (h checkpoint.Head, err error) {
	if r.has(4) {
		err = missing(r.text(4), r.list(5))
	}
	if h.Now, _ = r.instant(0); !r.has(1) {
		if r.text(6) != s.mark {
			err = cmp.Or(err, s.otherStore(s.keys.partition(thread), r.text(6)))
		}
		return h, cmp.Or(err, checkpoint.ErrThreadNotFound)
	}
	damaged := err
	h, err = s.decodeHead(thread, r)
	if err = of(cmp.Or(err, damaged), "key %s", key); err != nil {
		// Enough to delete it by.
		revision, _ := r.unum(1)
		h = checkpoint.Head{Thread: thread, Revision: revision}
	}
	return h, err
}

// decodeHead reads present, revision, end of the lease and record.
func (s *Store) decodeHead(thread string, r reply) (h checkpoint.Head, err error) {
	if h, err = decode(s, thread, kindHead, "", r.text(3), codec.DecodeHead); err != nil {
		return checkpoint.Head{}, err
	}
	if h.Revision, err = r.unum(1); err != nil {
		return checkpoint.Head{}, err
	}
	if h.LeaseExpires, err = r.instant(2); err != nil {
		return checkpoint.Head{}, err
	}
	if h.Now, err = r.instant(0); err != nil {
		return checkpoint.Head{}, err
	}
	return h, nil
}

// Events returns events with a greater number than after, oldest first.
func (s *Store) Events(
	ctx context.Context, thread string, after uint64, limit int,
) (out []checkpoint.Event, err error) {
	err = s.look(ctx, thread, func() error {
		out, err = s.events(ctx, thread, min(after, maxNumber), max(0, limit))
		return err
	})
	return out, err
}

// events reads events until there are enough. One exchange has all of them,
// unless they are large.
func (s *Store) events(
	ctx context.Context, thread string, after uint64, limit int,
) (out []checkpoint.Event, err error) {
	portion := checkpoint.Portion{Limit: limit}
	for {
		next, cut, err := s.someEvents(ctx, thread, after, limit)
		if err != nil {
			return nil, err
		}
		for i := range next {
			if portion.Take(next[i].Size()); portion.Full() {
				next = next[:i+1]
				break
			}
		}
		if out == nil {
			out = next
		} else {
			out = append(out, next...)
		}
		if !cut || portion.Full() || len(next) == 0 {
			return out, nil
		}
		after, limit = next[len(next)-1].Seq, limit-len(next)
	}
}

// someEvents reads what one exchange has of some events; cut says that it may
// have left out some because of their bytes.
func (s *Store) someEvents(
	ctx context.Context, thread string, after uint64, limit int,
) (list []checkpoint.Event, cut bool, err error) {
	keys := s.keys.thread(thread, keyHead, keyLog)
	r, err := s.read(ctx, s.scripts.events, keys, unum(after), limit, bound(limit))
	switch {
	case err != nil:
		return nil, false, err
	case !r.has(0):
		return nil, false, checkpoint.ErrThreadNotFound
	case r.text(0) == "LOST":
		return nil, false, corrupt("key %s has %s elements, and not as many as its thread says", keys[1], r.text(1))
	case !r.has(1):
		return nil, false, checkpoint.ErrTrimmed
	}
	seq, err := r.unum(1)
	if err != nil {
		return nil, false, err
	}
	last, err := r.unum(2)
	if err != nil {
		return nil, false, err
	}
	if limit > 0 {
		last = min(last, seq+uint64(limit)-1)
	}
	cut = wasCut(r.list(3), limit)
	list, err = s.between(thread, r.list(3), seq, last, limit, cut)
	return list, cut, of(err, "key %s", keys[1])
}

// between reads the events from a number to another out of elements of the log,
// until there are enough. cut says that the elements need not reach to the last.
func (s *Store) between(
	thread string, elements reply, seq, last uint64, limit int, cut bool,
) (out []checkpoint.Event, err error) {
	portion := checkpoint.Portion{Limit: limit}
	for i := range elements {
		list, first, err := s.decodeEvents(thread, elements.text(i))
		if err == nil && (first > seq || first+uint64(len(list)) <= seq && seq <= last) {
			err = corrupt("it is not where events %d to %d are", first, first+uint64(len(list))-1)
		}
		if err != nil {
			return nil, of(err, "event %d", seq)
		}
		for i := range list {
			if e := &list[i]; e.Seq >= seq && e.Seq <= last {
				portion.Take(e.Size())
				if out = append(out, *e); portion.Full() {
					return out, nil
				}
			}
		}
		seq = first + uint64(len(list))
	}
	if seq <= last && !cut {
		return nil, corrupt("event %d is missing", seq)
	}
	return out, nil
}

// decodeEvents reads an element of the log: events that follow one another.
func (s *Store) decodeEvents(thread, element string) (list []checkpoint.Event, first uint64, err error) {
	number, record, _ := strings.Cut(element, ":")
	if first, err = strconv.ParseUint(number, 10, 64); err != nil {
		return nil, 0, corrupt("an element of the log begins with %.20q", number)
	}
	if list, err = decode(s, thread, kindEvent, "", record, codec.DecodeEvents); err != nil {
		return nil, 0, err
	}
	if len(list) == 0 || list[0].Seq != first {
		return nil, 0, corrupt("it says it is another one")
	}
	return list, first, nil
}

// Run returns one run of a thread.
func (s *Store) Run(ctx context.Context, thread, run string) (out checkpoint.Run, err error) {
	err = s.look(ctx, thread, func() error {
		key := s.keys.thread(thread, keyRecords)[0]
		r, err := s.fields(ctx, key, "r"+run, inputField(run))
		if err != nil {
			return err
		}
		if !r.has(0) {
			return checkpoint.ErrRunNotFound
		}
		out, err = s.decodeRun(thread, run, r)
		return of(err, "key %s, run %q", key, run)
	})
	return out, err
}

// decodeRun reads record and input.
func (s *Store) decodeRun(thread, id string, r reply) (run checkpoint.Run, err error) {
	number, record, _ := strings.Cut(r.text(0), " ")
	if run, err = decode(s, thread, kindRun, id, record, codec.DecodeRun); err != nil {
		return checkpoint.Run{}, err
	}
	if quotes, ok := runOf(string(run.Request.Input)); ok {
		if quotes != id || !r.has(1) {
			return checkpoint.Run{}, corrupt("its input is missing")
		}
		input, err := s.box.Open(seal.Place{Thread: thread, Kind: kindRun, Name: inputField(id)}, r.text(1))
		if err == nil {
			run.Request.Input, err = unquote(string(run.Request.Input), input)
		}
		if err != nil {
			return checkpoint.Run{}, of(err, "input")
		}
	}
	if run.Revision, err = strconv.ParseUint(number, 10, 64); err != nil {
		return checkpoint.Run{}, corrupt("its revision is %.40q", number)
	}
	return run, nil
}

// fields reads fields of a hash.
func (s *Store) fields(ctx context.Context, key string, names ...string) (r reply, err error) {
	err = again(ctx, func() (err error) {
		r, err = s.client.HMGet(ctx, key, names...).Result()
		return err
	})
	return r, err
}

// Runs lists a thread's runs, newest first.
func (s *Store) Runs(
	ctx context.Context, thread string, before uint64, limit int,
) (out []checkpoint.Run, err error) {
	err = s.look(ctx, thread, func() error {
		out, err = s.runs(ctx, thread, before, limit)
		return err
	})
	return out, err
}

func (s *Store) runs(ctx context.Context, thread string, before uint64, limit int) (out []checkpoint.Run, err error) {
	keys := s.keys.thread(thread, keyRecords, keyRuns)
	portion := checkpoint.Portion{Limit: limit}
	for {
		r, err := s.read(ctx, s.scripts.runs, keys, smaller(before), all(limit), bound(limit))
		if err != nil {
			return nil, err
		}
		for i := 0; i+2 < len(r); i += 3 {
			run, err := s.decodeRun(thread, r.text(i), r[i+1:i+3])
			if err != nil {
				return nil, of(err, "key %s, run %q", keys[0], r.text(i))
			}
			portion.Take(run.Size())
			if out = append(out, run); portion.Full() {
				return out, nil
			}
			before = run.Order
		}
		if len(r) == 0 || !wasCut(r, limit) {
			return out, nil
		}
	}
}

// smaller is an end of a range of numbers below n, where 0 means no end.
func smaller(n uint64) string {
	if n == 0 || n > maxNumber {
		return "+inf"
	}
	return "(" + unum(n)
}

// all is a limit for Redis, where a negative one means none.
func all(limit int) int {
	if limit <= 0 {
		return -1
	}
	return limit
}

// Interrupt returns one question of a thread.
func (s *Store) Interrupt(ctx context.Context, thread, id string) (out checkpoint.Interrupt, err error) {
	err = s.look(ctx, thread, func() error {
		key := s.keys.thread(thread, keyQuestions)[0]
		r, err := s.fields(ctx, key, "r"+id)
		if err != nil {
			return err
		}
		if !r.has(0) {
			return checkpoint.ErrInterruptNotFound
		}
		out, err = s.decodeQuestion(thread, id, r.text(0))
		return of(err, "key %s, interrupt %q", key, id)
	})
	return out, err
}

// decodeQuestion reads numbers and record of a question.
func (s *Store) decodeQuestion(thread, id, text string) (checkpoint.Interrupt, error) {
	change, rest, _ := strings.Cut(text, " ")
	revision, rest, _ := strings.Cut(rest, " ")
	_, record, _ := strings.Cut(rest, " ")
	in, err := decode(s, thread, kindQuestion, id, record, codec.DecodeInterrupt)
	if err != nil {
		return checkpoint.Interrupt{}, err
	}
	n, err := strconv.ParseUint(change, 10, 64)
	if err == nil {
		in.Revision, err = strconv.ParseUint(revision, 10, 64)
	}
	if err != nil || n > math.MaxUint64/maxPartitions {
		return checkpoint.Interrupt{}, corrupt("its numbers are %.40q", text[:len(text)-len(record)])
	}
	in.Change = s.change(n, s.keys.partition(thread))
	return in, nil
}

// change makes the number of a change unique over all partitions.
func (s *Store) change(n uint64, partition int) uint64 {
	return n*uint64(len(s.keys.tags)) + uint64(partition)
}

// Request returns a remembered request of a thread.
func (s *Store) Request(ctx context.Context, thread, id string) (out checkpoint.Request, err error) {
	err = s.look(ctx, thread, func() error {
		key := s.keys.thread(thread, keyRecords)[0]
		r, err := s.fields(ctx, key, "q"+id)
		if err != nil {
			return err
		}
		if !r.has(0) {
			return checkpoint.ErrRequestNotFound
		}
		out, err = decode(s, thread, kindRequest, id, r.text(0), codec.DecodeRequest)
		out.ID = id
		return of(err, "key %s, request %q", key, id)
	})
	return out, err
}

// Due lists threads that somebody should look at.
func (s *Store) Due(ctx context.Context, limit int) (threads []string, next time.Time, err error) {
	done, err := s.enter(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	defer done()
	ask := -1
	if limit > 0 {
		ask = limit + 1
	}
	parts, err := s.scatter(ctx, s.scripts.members, s.all(), []string{keyDue}, "-", ask)
	if err != nil {
		return nil, time.Time{}, failed(ctx, err)
	}
	threads, next, err = merge(parts, limit)
	return threads, next, failed(ctx, err)
}
