package memory

import (
	"container/heap"
	"context"
	"math"
	"sync"
	"time"
)

const never = math.MaxInt64

// alarms finds the threads that are due. Every commit renews a lease, so the
// heap is lazy: a thread sits in it at the earliest instant it was ever seen
// to be due, and moves only when that instant is looked at.
//
// thread.wake says when the thread is due and belongs to who holds its lock;
// thread.queued says where in the heap its valid entry is and belongs to who
// holds alarms.mu. Both are atomic, and each side writes its own before it
// reads the other's, so one of them always sees that the entry must move.
type alarms struct {
	mu   sync.Mutex
	heap alarmHeap
}

type alarm struct {
	at     int64 // nanoseconds since 1970
	thread *thread
	id     string
}

// set takes note of a new head.
func (a *alarms) set(t *thread) {
	at := instant(t.head.Due)
	if t.head.Owner != "" {
		at = min(at, instant(t.head.LeaseExpires))
	}
	t.wake.Store(at)
	if at >= t.queued.Load() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.push(t, t.head.Thread, at)
}

func (a *alarms) push(t *thread, id string, at int64) {
	if at >= t.queued.Load() {
		return
	}
	t.queued.Store(at)
	heap.Push(&a.heap, alarm{at: at, thread: t, id: id})
}

// settle makes the first entry of the heap a true one.
func (a *alarms) settle() {
	for len(a.heap) > 0 {
		first := a.heap[0]
		if first.at == first.thread.queued.Load() && first.at == first.thread.wake.Load() {
			return
		}
		heap.Pop(&a.heap)
		if first.at != first.thread.queued.Load() {
			continue // the thread was queued anew at an earlier instant
		}
		first.thread.queued.Store(never)
		if wake := first.thread.wake.Load(); wake != never {
			a.push(first.thread, first.id, wake)
		}
	}
}

// Due lists threads that somebody should look at.
func (s *Store) Due(ctx context.Context, limit int) ([]string, time.Time, error) {
	if err := s.ready(ctx); err != nil {
		return nil, time.Time{}, err
	}
	threads, next := s.alarms.due(instant(s.clock()), limit)
	return threads, next, nil
}

func (a *alarms) due(now int64, limit int) (threads []string, next time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var found []alarm
	for a.settle(); len(a.heap) > 0; a.settle() {
		first := a.heap[0]
		if first.at > now || (limit > 0 && len(found) == limit) {
			next = time.Unix(0, first.at).UTC()
			break
		}
		heap.Pop(&a.heap)
		first.thread.queued.Store(never)
		found = append(found, first)
		threads = append(threads, first.id)
	}
	for _, f := range found {
		if wake := f.thread.wake.Load(); wake != never {
			a.push(f.thread, f.id, wake)
		}
	}
	return threads, next
}

// instant returns nanoseconds since 1970; no time is never, and a time that
// does not fit is as far away as one can be.
func instant(t time.Time) int64 {
	switch {
	case t.IsZero():
		return never
	case t.Year() > 2261:
		return never - 1
	case t.Year() < 1678:
		return 0
	}
	return t.UnixNano()
}

type alarmHeap []alarm

// Len counts the alarms, for container/heap.
func (h *alarmHeap) Len() int { return len(*h) }

// Less orders by instant, for container/heap.
func (h *alarmHeap) Less(i, j int) bool { return (*h)[i].at < (*h)[j].at }

// Swap exchanges two alarms, for container/heap.
func (h *alarmHeap) Swap(i, j int) { (*h)[i], (*h)[j] = (*h)[j], (*h)[i] }

// Push appends an alarm, for container/heap.
func (h *alarmHeap) Push(x any) {
	if a, ok := x.(alarm); ok {
		*h = append(*h, a)
	}
}

// Pop removes the last alarm, for container/heap.
func (h *alarmHeap) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	(*h)[last] = alarm{}
	*h = (*h)[:last]
	return a
}
