package memory

import (
	"context"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// eventLog holds the events of a thread in the batches they came in, so that an
// append never moves older batches and a trim frees them.
type eventLog struct {
	chunks [][]checkpoint.Event
	first  uint64 // number of the oldest event that is kept; 0 = 1
	last   uint64
}

func (l *eventLog) appendEvents(events []checkpoint.Event) {
	if len(events) == 0 {
		return
	}
	l.chunks = append(l.chunks, events)
	l.last = events[len(events)-1].Seq
}

// trimBefore forgets events with a smaller number.
func (l *eventLog) trimBefore(before uint64) {
	if before <= l.first {
		return
	}
	l.first = min(before, l.last+1)
	n := 0
	for n < len(l.chunks) && l.chunks[n][len(l.chunks[n])-1].Seq < l.first {
		n++
	}
	l.chunks = slices.Delete(l.chunks, 0, n)
}

// chunksAfter returns the chunks that hold limit events after a number, all for a
// limit of 0. They are never changed, so they are read without the thread's lock.
func (l *eventLog) chunksAfter(after uint64, limit int) ([][]checkpoint.Event, error) {
	if after+1 < l.first {
		return nil, checkpoint.ErrTrimmed
	}
	i, _ := slices.BinarySearchFunc(l.chunks, after, func(c []checkpoint.Event, after uint64) int {
		if c[len(c)-1].Seq <= after {
			return -1
		}
		return 1
	})
	end := len(l.chunks)
	if limit > 0 {
		end = min(end, i+limit+1) // no chunk is empty, and only the first may be used in part
	}
	return slices.Clone(l.chunks[i:end]), nil
}

// Events returns events with a greater number than after, oldest first. It returns
// checkpoint.ErrThreadNotFound when there is no such thread, and checkpoint.ErrTrimmed
// when events after that number are gone.
func (s *Store) Events(
	ctx context.Context, thread string, after uint64, limit int,
) ([]checkpoint.Event, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	t := s.lockThread(thread)
	if t == nil {
		return nil, checkpoint.ErrThreadNotFound
	}
	chunks, err := t.log.chunksAfter(after, limit)
	t.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return collectEvents(chunks, after, limit), nil
}

// collectEvents returns a copy of the events after a number, at most limit of them.
// Only the first chunk may have events up to that number.
func collectEvents(chunks [][]checkpoint.Event, after uint64, limit int) []checkpoint.Event {
	var total int
	for i, c := range chunks {
		if i == 0 && len(c) > 0 && after >= c[0].Seq {
			chunks[0] = c[after-c[0].Seq+1:]
		}
		total += len(chunks[i])
	}
	if limit > 0 {
		total = min(total, limit)
	}
	if total == 0 {
		return nil
	}
	out := make([]checkpoint.Event, 0, total)
	portion := checkpoint.Portion{Limit: limit}
	for _, c := range chunks {
		for i := range c {
			if portion.Full() {
				return out
			}
			portion.Take(c[i].Size())
			out = append(out, c[i])
		}
	}
	return out
}
