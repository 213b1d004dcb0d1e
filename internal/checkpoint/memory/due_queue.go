package memory

import (
	"container/heap"
	"context"
	"math"
	"sync"
	"time"
)

const never = math.MaxInt64

// dueQueue finds the threads that are due. Every commit renews a lease, so the
// heap is lazy: a thread sits in it at the earliest instant it was ever seen
// to be due, and moves only when that instant is looked at.
//
// thread.dueNanos says when the thread is due and belongs to the holder of its
// lock; thread.queuedNanos says where in the heap its valid entry is and belongs
// to the holder of dueQueue.mu. Both are atomic, and each side writes its own
// before it reads the other's, so at least one side sees that the entry must
// move.
type dueQueue struct {
	mu      sync.Mutex
	entries dueHeap
}

type dueEntry struct {
	dueNanos int64 // nanoseconds since 1970
	thread   *thread
	id       string
}

// updateThread takes note of a new head.
func (d *dueQueue) updateThread(t *thread) {
	at := toUnixNanos(t.head.Due)
	if t.head.Owner != "" {
		at = min(at, toUnixNanos(t.head.LeaseExpires))
	}
	t.dueNanos.Store(at)
	if at >= t.queuedNanos.Load() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pushEntry(t, t.head.Thread, at)
}

func (d *dueQueue) pushEntry(t *thread, id string, at int64) {
	if at >= t.queuedNanos.Load() {
		return
	}
	t.queuedNanos.Store(at)
	heap.Push(&d.entries, dueEntry{dueNanos: at, thread: t, id: id})
}

// dropStaleEntries makes the first entry of the heap valid.
func (d *dueQueue) dropStaleEntries() {
	for len(d.entries) > 0 {
		first := d.entries[0]
		if first.dueNanos == first.thread.queuedNanos.Load() && first.dueNanos == first.thread.dueNanos.Load() {
			return
		}
		heap.Pop(&d.entries)
		if first.dueNanos != first.thread.queuedNanos.Load() {
			continue // the thread was queued anew at an earlier instant
		}
		first.thread.queuedNanos.Store(never)
		if wake := first.thread.dueNanos.Load(); wake != never {
			d.pushEntry(first.thread, first.id, wake)
		}
	}
}

// Due lists threads that a server should look at.
func (s *Store) Due(ctx context.Context, limit int) ([]string, time.Time, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, time.Time{}, err
	}
	threads, next := s.dueQueue.listDue(toUnixNanos(s.currentTime()), limit)
	return threads, next, nil
}

func (d *dueQueue) listDue(now int64, limit int) (threads []string, next time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []dueEntry
	for d.dropStaleEntries(); len(d.entries) > 0; d.dropStaleEntries() {
		first := d.entries[0]
		if first.dueNanos > now || (limit > 0 && len(found) == limit) {
			next = time.Unix(0, first.dueNanos).UTC()
			break
		}
		heap.Pop(&d.entries)
		first.thread.queuedNanos.Store(never)
		found = append(found, first)
		threads = append(threads, first.id)
	}
	for _, f := range found {
		if wake := f.thread.dueNanos.Load(); wake != never {
			d.pushEntry(f.thread, f.id, wake)
		}
	}
	return threads, next
}

// toUnixNanos returns nanoseconds since 1970; no time is never, and a time out of
// range is the nearest number.
func toUnixNanos(t time.Time) int64 {
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

type dueHeap []dueEntry

// Len counts the alarms, for container/heap.
func (h *dueHeap) Len() int { return len(*h) }

// Less orders by instant, for container/heap.
func (h *dueHeap) Less(i, j int) bool { return (*h)[i].dueNanos < (*h)[j].dueNanos }

// Swap exchanges two alarms, for container/heap.
func (h *dueHeap) Swap(i, j int) { (*h)[i], (*h)[j] = (*h)[j], (*h)[i] }

// Push appends an alarm, for container/heap.
func (h *dueHeap) Push(x any) {
	if a, ok := x.(dueEntry); ok {
		*h = append(*h, a)
	}
}

// Pop removes the last alarm, for container/heap.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	(*h)[last] = dueEntry{}
	*h = (*h)[:last]
	return a
}
