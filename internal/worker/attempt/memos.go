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
func (m *Memos) findMemo(memo *checkpoint.Memo) (payload.JSON, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, ok := m.values[keyOfMemo(memo)]
	return value, ok
}

// addMemo adds a stored memo, unless it is known.
func (m *Memos) addMemo(memo checkpoint.Memo) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := keyOfMemo(&memo)
	if _, known := m.values[at]; known {
		return
	}
	if m.values == nil {
		m.values = make(map[memoKey]payload.JSON, 1)
	}
	m.values[at] = memo.Value
	m.memos = append(m.memos, memo)
}

// RecordMemo records a memo of the task, unless its place has a memo. It returns
// the value of the memo at that place. Errors: those of runtime.Effects.
func (m *Memos) RecordMemo(ctx context.Context, effects runtime.Effects, memo checkpoint.Memo) (payload.JSON, bool, error) {
	if known, ok := m.findMemo(&memo); ok {
		return known, true, nil
	}
	value, existed, err := effects.RecordMemo(ctx, memo)
	if err == nil {
		// The next worker of the task must see the memo, even when the worker
		// that recorded it has lost the task meanwhile and gets no answer.
		memo.Value = value
		m.addMemo(memo)
	}
	return value, existed, err
}

// ListMemos returns all of them, in the order in which they came. It is not to be changed.
func (m *Memos) ListMemos() []checkpoint.Memo {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clip(m.memos)
}
