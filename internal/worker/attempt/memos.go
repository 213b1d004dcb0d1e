package attempt

import (
	"context"
	"slices"
	"sync"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Memos are the memos that were recorded in one attempt, over all its deliveries.
// They have a lock of their own, so that many memos do not delay the holder of the
// dispatcher's mu.
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

// findMemo returns the recorded value at the place of a memo.
func (r *Memos) findMemo(m *checkpoint.Memo) (payload.JSON, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	value, ok := r.values[keyOfMemo(m)]
	return value, ok
}

// addMemo adds a stored memo, unless it is known.
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

// RecordMemo records a memo of the task, unless its place has one already. It
// returns the value of the memo at that place.
func (r *Memos) RecordMemo(ctx context.Context, effects runtime.Effects, m checkpoint.Memo) (payload.JSON, bool, error) {
	if known, ok := r.findMemo(&m); ok {
		return known, true, nil
	}
	value, existed, err := effects.RecordMemo(ctx, m)
	if err == nil {
		// The next worker of the task must see the memo, even when the worker
		// that recorded it has lost the task meanwhile and gets no answer.
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
