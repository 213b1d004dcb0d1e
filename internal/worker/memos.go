package worker

import (
	"slices"
	"sync"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

// Memos are those that were recorded in one attempt, over all its
// deliveries. They have a lock of their own: however many there are, no caller waits
// for them under Hub.mu.
type Memos struct {
	mu     sync.Mutex
	memos  []checkpoint.Memo // only ever grows
	values map[place]payload.JSON
}

// place is where a memo of a task stands.
type place struct {
	scope, key string
	index      int
}

func placeIn(m *checkpoint.Memo) place { return place{m.Scope, m.Key, m.Index} }

// find returns what was recorded where a memo is to stand.
func (r *Memos) find(m *checkpoint.Memo) (payload.JSON, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	value, ok := r.values[placeIn(m)]
	return value, ok
}

// add takes in a memo that is stored, unless it is known.
func (r *Memos) add(m checkpoint.Memo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := placeIn(&m)
	if _, known := r.values[at]; known {
		return
	}
	if r.values == nil {
		r.values = make(map[place]payload.JSON, 1)
	}
	r.values[at] = m.Value
	r.memos = append(r.memos, m)
}

// list returns all of them, in the order in which they came. It is not to be changed.
func (r *Memos) list() []checkpoint.Memo {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clip(r.memos)
}
