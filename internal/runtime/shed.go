package runtime

import (
	"math/bits"
	"sync"
)

// largeTopics finds a topic whose ring is among the largest, without a look at
// all of them: those that hold at least some bytes are kept by the number of
// bits in what they hold.
type largeTopics struct {
	least int // bytes of a topic that is worth finding

	mu      sync.Mutex
	classes [bits.UintSize + 1]map[*topic]struct{}
}

// move notes how many bytes a topic holds. The caller holds the topic's mu.
func (l *largeTopics) move(t *topic, before, now int) {
	from, to := l.class(before), l.class(now)
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
		l.classes[to] = make(map[*topic]struct{})
	}
	l.classes[to][t] = struct{}{}
}

// class is 0 for a topic that is not kept.
func (l *largeTopics) class(size int) int {
	if size <= l.least {
		return 0
	}
	return bits.Len(uint(size))
}

// any returns one of the largest topics, nil when all are small.
func (l *largeTopics) any() *topic {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.classes) - 1; i > 0; i-- {
		for t := range l.classes[i] {
			return t
		}
	}
	return nil
}

// relieve makes the largest topics drop their oldest batches while all of them
// hold too much. Their followers read the store. The caller holds no topic's mu.
func (h *hub) relieve() {
	for h.bytes.Load() > h.limit {
		t := h.large.any()
		if t == nil {
			return
		}
		t.shed()
	}
}
