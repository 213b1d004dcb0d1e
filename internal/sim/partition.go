package sim

import (
	"container/heap"
	"slices"
)

// A thread that is due passes twice: its question expires, and then its run goes on.

// ref names a thread that is due, in one of the queues of a partition.
type ref struct {
	partition int32
	index     int32
	goesOn    bool // its question has expired, and its run goes on
}

// queue has the threads of a partition that become due, in this order.
type queue struct {
	due     []int32 // milliseconds
	claimed []int32 // when the server that was first has changed it, in units of 100 µs; 0 = no server has
	origin  []int32 // when the thread became due first, of those that go on; nil = due
	first   int     // all before it are claimed
	passed  int     // all before it are due
	taken   int     // claimed ones before passed
}

// addThreads adds a thread behind the others.
func (q *queue) addThreads(due, origin int32) {
	q.due, q.claimed, q.origin = append(q.due, due), append(q.claimed, 0), append(q.origin, origin)
}

// passDue moves time on.
func (q *queue) passDue(now int32) {
	for q.passed < len(q.due) && q.due[q.passed] <= now {
		q.passed++
	}
	for q.first < q.passed && q.claimed[q.first] != 0 {
		q.first++
	}
}

// countDue returns how many threads are due.
func (q *queue) countDue() int { return q.passed - q.taken }

// partition has the due threads of a partition.
type partition struct {
	master  int
	expires queue
	goOn    queue
}

// passDue moves time on.
func (p *partition) passDue(now int64) {
	ms := int32(now / 1e6)
	p.expires.passDue(ms)
	p.goOn.passDue(ms)
}

// countDue returns how many threads are due.
func (p *partition) countDue() int { return p.expires.countDue() + p.goOn.countDue() }

// cursor walks over the due threads of a partition, longest due first.
type cursor struct {
	p         *partition
	id        int32
	a, b      int // places in the two queues
	isAtEnd   bool
	isGoingOn bool  // the present thread is one that goes on
	due       int32 // when it became due
}

// walk begins a walk.
func (p *partition) walk(id int32) cursor {
	c := cursor{p: p, id: id, a: p.expires.first, b: p.goOn.first}
	c.settle()
	return c
}

// settle finds the present thread.
func (c *cursor) settle() {
	a, b := &c.p.expires, &c.p.goOn
	for c.a < a.passed && a.claimed[c.a] != 0 {
		c.a++
	}
	for c.b < b.passed && b.claimed[c.b] != 0 {
		c.b++
	}
	switch {
	case c.a < a.passed && (c.b >= b.passed || a.due[c.a] <= b.due[c.b]):
		c.isGoingOn, c.due = false, a.due[c.a]
	case c.b < b.passed:
		c.isGoingOn, c.due = true, b.due[c.b]
	default:
		c.isAtEnd = true
	}
}

// take returns the present thread, and moves to the next.
func (c *cursor) take() ref {
	r := ref{partition: c.id, index: int32(c.a), goesOn: c.isGoingOn}
	if c.isGoingOn {
		r.index = int32(c.b)
		c.b++
	} else {
		c.a++
	}
	c.settle()
	return r
}

// listDue returns due threads after some, longest due first. first is when the first of all became
// due, or -1.
func (p *partition) listDue(id int32, skip, limit int) (out []ref, first int32) {
	c := p.walk(id)
	if c.isAtEnd {
		return nil, -1
	}
	first = c.due
	for ; skip > 0 && !c.isAtEnd; skip-- {
		c.take()
	}
	for len(out) < limit && !c.isAtEnd {
		out = append(out, c.take())
	}
	return out, first
}

// mergeCursors returns the threads of several walks that are due longest.
func mergeCursors(all []cursor, limit int) (out []ref) {
	h := cursorHeap(slices.DeleteFunc(all, func(c cursor) bool { return c.isAtEnd }))
	heap.Init(&h)
	for len(out) < limit && len(h) > 0 {
		out = append(out, h[0].take())
		if h[0].isAtEnd {
			heap.Pop(&h)
		} else {
			heap.Fix(&h, 0)
		}
	}
	return out
}

// cursorHeap has the walk with the thread that is due longest first.
type cursorHeap []cursor

// Len implements heap.Interface.
func (h *cursorHeap) Len() int { return len(*h) }

// Less implements heap.Interface.
func (h *cursorHeap) Less(i, j int) bool { return (*h)[i].due < (*h)[j].due }

// Swap implements heap.Interface.
func (h *cursorHeap) Swap(i, j int) { (*h)[i], (*h)[j] = (*h)[j], (*h)[i] }

// Push implements heap.Interface. It is not used.
func (h *cursorHeap) Push(x any) { *h = append(*h, x.(cursor)) } //nolint:errcheck,forcetypeassert // no other is there

// Pop implements heap.Interface.
func (h *cursorHeap) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	*h = (*h)[:last]
	return c
}

// findNext returns when the next thread becomes due, in milliseconds, or -1.
func (p *partition) findNext() int32 {
	if p.expires.passed < len(p.expires.due) {
		return p.expires.due[p.expires.passed]
	}
	return -1
}

// queueOf returns the queue of a thread.
func (p *partition) queueOf(r ref) *queue {
	if r.goesOn {
		return &p.goOn
	}
	return &p.expires
}
