package attempt

import (
	"context"
	"slices"
	"sync"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Memos are those that were recorded in one attempt, over all its
// deliveries. They have a lock of their own: however many there are, no caller waits
// for them under the dispatcher's mu.
type Memos struct {
	mu     sync.Mutex
	memos  []checkpoint.Memo // only ever grows
	values map[memoKey]payload.JSON
}

// memoKey is the position of a memo in its task.
type memoKey struct {
	scope, key string
	index      int
}

func keyOfMemo(m *checkpoint.Memo) memoKey { return memoKey{m.Scope, m.Key, m.Index} }

// findMemo returns what was recorded where a memo is to stand.
func (r *Memos) findMemo(m *checkpoint.Memo) (payload.JSON, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	value, ok := r.values[keyOfMemo(m)]
	return value, ok
}

// addMemo takes in a memo that is stored, unless it is known.
func (r *Memos) addMemo(m checkpoint.Memo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := keyOfMemo(&m)
	if _, known := r.values[at]; known {
		return
	}
	if r.values == nil {
		r.values = make(map[memoKey]payload.JSON, 1)
	}
	r.values[at] = m.Value
	r.memos = append(r.memos, m)
}

// RecordMemo records a memo of the task, unless one stands there already; it returns
// the value that counts.
func (r *Memos) RecordMemo(ctx context.Context, effects runtime.Effects, m checkpoint.Memo) (payload.JSON, bool, error) {
	if known, ok := r.findMemo(&m); ok {
		return known, true, nil
	}
	value, existed, err := effects.RecordMemo(ctx, m)
	if err == nil {
		// The next worker of the task must see it, also when the worker
		// that recorded it has lost the task meanwhile and is not told.
		m.Value = value
		r.addMemo(m)
	}
	return value, existed, err
}

// ListMemos returns all of them, in the order in which they came. It is not to be changed.
func (r *Memos) ListMemos() []checkpoint.Memo {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clip(r.memos)
}
