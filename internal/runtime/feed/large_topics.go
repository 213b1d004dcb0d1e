package feed

import (
	"math/bits"
	"sync"
)

// largeTopics finds a topic whose ring is among the largest without a look at
// all topics. It keeps the larger topics by size class, the number of bits of
// their size.
type largeTopics struct {
	minBytes int // bytes of a topic that is worth finding

	mu      sync.Mutex
	classes [bits.UintSize + 1]map[*Topic]struct{}
}

// updateSize records a change of a topic's size. The caller holds the topic's mu.
func (l *largeTopics) updateSize(t *Topic, before, now int) {
	from, to := l.sizeClass(before), l.sizeClass(now)
	if from == to {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.classes[from], t)
	if to == 0 {
		return
	}
	if l.classes[to] == nil {
		l.classes[to] = make(map[*Topic]struct{})
	}
	l.classes[to][t] = struct{}{}
}

// sizeClass returns the class of a size, 0 for a topic that is not kept.
func (l *largeTopics) sizeClass(size int) int {
	if size <= l.minBytes {
		return 0
	}
	return bits.Len(uint(size))
}

// findLargest returns a topic of the largest size class, nil when all are small.
func (l *largeTopics) findLargest() *Topic {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.classes) - 1; i > 0; i-- {
		for t := range l.classes[i] {
			return t
		}
	}
	return nil
}

// dropExcess makes the largest topics drop their oldest batches while all topics
// hold too much. The caller holds no topic's mu.
func (h *eventHub) dropExcess() {
	for h.bytes.Load() > h.limit {
		t := h.largeTopics.findLargest()
		if t == nil {
			return
		}
		t.dropOldestHalf()
	}
}
