// Package sim plays the servers of a large installation in virtual time: masters of Redis with
// their queues, servers that look for due threads, and a billion threads by counts. Servers look at
// all of them, as graphd does, or share the looks, as package sweep decides. The same seed plays
// the same.
package sim

import "container/heap"

// clock is virtual time, and what happens in it.
type clock struct {
	now    int64 // nanoseconds
	events eventHeap
	count  uint64
}

type event struct {
	at    int64
	order uint64 // of events at the same time
	do    func()
}

type eventHeap []event

// Len implements heap.Interface.
func (h *eventHeap) Len() int { return len(*h) }

// Less implements heap.Interface.
func (h *eventHeap) Less(i, j int) bool {
	a, b := &(*h)[i], &(*h)[j]
	return a.at < b.at || a.at == b.at && a.order < b.order
}

// Swap implements heap.Interface.
func (h *eventHeap) Swap(i, j int) { (*h)[i], (*h)[j] = (*h)[j], (*h)[i] }

// Push implements heap.Interface.
func (h *eventHeap) Push(x any) { *h = append(*h, x.(event)) } //nolint:errcheck,forcetypeassert // only schedule calls it

// Pop implements heap.Interface.
func (h *eventHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = event{}
	*h = (*h)[:last]
	return e
}

// schedule has something happen at a time, or now when the time has passed.
func (c *clock) schedule(at int64, do func()) {
	c.count++
	heap.Push(&c.events, event{at: max(at, c.now), order: c.count, do: do})
}

// runUntil lets time pass until an end, or until isOver reports true.
func (c *clock) runUntil(until int64, isOver func() bool) {
	for len(c.events) > 0 && c.events[0].at <= until && !isOver() {
		e := heap.Pop(&c.events).(event) //nolint:errcheck,forcetypeassert // it has nothing else
		c.now = e.at
		e.do()
	}
}
