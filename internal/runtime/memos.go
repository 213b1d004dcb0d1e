package runtime

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// Remember stores a memo before its value is used; the first value stays. It
// does not end with the attempt: whether the memo is stored must be known
// before a caller tries again. Of several that come at the same time, like that
// of a worker which has lost the task and that of the next one, one is stored.
func (fx *effects) Remember(_ context.Context, m checkpoint.Memo) (payload.JSON, bool, error) {
	l := fx.loop
	m.Task = fx.task.ID
	done := l.notes.claimPlace(placeOf(m))
	defer done()
	if fx.over.Load() {
		return "", false, context.Canceled
	}
	fx.alive()
	m.Checkpoint = l.state.Checkpoint().ID
	known, ok := l.notes.find(l.pending.memos[m.Task], placeOf(m))
	if ok {
		return known, true, nil
	}
	if err := l.reserve(m); err != nil {
		return "", false, err
	}
	err := l.commit(func(t *tx) error {
		t.Memos = append(t.Memos, m)
		return nil
	})
	if err != nil {
		l.session.carry(-l.notes.giveBack(m))
		return "", false, err
	}
	l.notes.add(m)
	return m.Value, false, nil
}

// memoCost is what a memo takes besides its texts, in memory and in the message
// that hands it to a worker again.
const memoCost = 256

// MemoBytes is how many bytes a memo counts for in what a task may record.
func MemoBytes(m *checkpoint.Memo) int64 {
	return memoCost + int64(len(m.Scope)+len(m.Key)+len(m.Value))
}

// reserve makes room for a memo in what its task may record, and in what the live
// runs hold.
func (l *loop) reserve(m checkpoint.Memo) error {
	most, more := l.session.engine.opts.MemoBytes, MemoBytes(&m)
	if need := l.notes.reserve(m.Task, more, most); need > most {
		return Errorf(ReasonPayloadTooLarge,
			"the memos of task %q take %d bytes with that of key %q, %d of each besides its texts; a task may have %d. "+
				"Record less, or spread the work over several nodes", m.Task, need, m.Key, memoCost, most).
			InField("value", "must fit in what the task may still record").
			With("sizeBytes", strconv.FormatInt(need, 10)).With("limitBytes", strconv.FormatInt(most, 10)).
			Beyond("max-task-memo-bytes", most, need)
	}
	l.session.carry(more)
	return nil
}

// notes are the memos of the superstep under way, by task.
type notes struct {
	mu    sync.Mutex
	tasks map[string]*taskMemos
	held  int64 // bytes of those that were recorded since the superstep was taken up
	// claims are closed when a memo that is about to be stored is, or can't be.
	claims map[place]chan struct{}
}

// taskMemos are what a task has recorded. Those that were stored when the
// superstep was taken up are values, but not fresh.
type taskMemos struct {
	values map[place]payload.JSON
	fresh  []checkpoint.Memo
	bytes  int64 // of all, and of those that are about to be stored
}

// place is where a memo stands: only one can be stored there.
type place struct {
	task, scope, key string
	index            int
}

func placeOf(m checkpoint.Memo) place { return place{m.Task, m.Scope, m.Key, m.Index} }

// claimPlace waits until no other caller is about to store a memo at a place. The
// caller may then do so, and calls done.
func (n *notes) claimPlace(p place) (done func()) {
	n.mu.Lock()
	for n.claims[p] != nil {
		claim := n.claims[p]
		n.mu.Unlock()
		<-claim
		n.mu.Lock()
	}
	defer n.mu.Unlock()
	if n.claims == nil {
		n.claims = make(map[place]chan struct{}, 1)
	}
	claim := make(chan struct{})
	n.claims[p] = claim
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.claims, p)
		close(claim)
	}
}

// task returns what a task has recorded. The caller holds mu.
func (n *notes) task(id string) *taskMemos {
	t := n.tasks[id]
	if t == nil {
		t = &taskMemos{values: make(map[place]payload.JSON)}
		if n.tasks == nil {
			n.tasks = make(map[string]*taskMemos, 1)
		}
		n.tasks[id] = t
	}
	return t
}

// find returns the value at a place. stored are the memos of its task that were
// stored when the superstep was taken up.
func (n *notes) find(stored []checkpoint.Memo, p place) (payload.JSON, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.tasks[p.task]
	if t == nil {
		t = n.task(p.task)
		for i := range stored {
			t.values[placeOf(stored[i])] = stored[i].Value
			t.bytes += MemoBytes(&stored[i])
		}
	}
	value, ok := t.values[p]
	return value, ok
}

// reserve makes room for a memo of a task. It returns what all of them take then;
// beyond most nothing is reserved.
func (n *notes) reserve(task string, more, most int64) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.task(task)
	need := t.bytes + more
	if need <= most {
		t.bytes = need
		n.held += more
	}
	return need
}

// giveBack gives up the room of a memo that was not stored. It returns how much
// that was.
func (n *notes) giveBack(m checkpoint.Memo) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	t, less := n.tasks[m.Task], MemoBytes(&m)
	if t == nil || n.held < less {
		return 0
	}
	t.bytes -= less
	n.held -= less
	return less
}

func (n *notes) add(m checkpoint.Memo) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.task(m.Task)
	t.values[placeOf(m)] = m.Value
	t.fresh = append(t.fresh, m)
}

// of returns the fresh memos of a task.
func (n *notes) of(task string) []checkpoint.Memo {
	n.mu.Lock()
	defer n.mu.Unlock()
	if t := n.tasks[task]; t != nil {
		return t.fresh
	}
	return nil
}

// any reports whether a memo was recorded since the superstep was taken up.
func (n *notes) any() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for t := range maps.Values(n.tasks) {
		if len(t.fresh) > 0 {
			return true
		}
	}
	return false
}

// clear begins another superstep. It returns how many bytes were held.
func (n *notes) clear() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	held := n.held
	n.tasks, n.held = nil, 0
	return held
}

// forgetMemos drops the memos of the superstep: they are used, or read anew.
func (l *loop) forgetMemos() {
	if held := l.notes.clear(); held != 0 {
		l.session.carry(-held)
	}
}

// memos are all that a task has recorded.
func (l *loop) memos(task string) []checkpoint.Memo {
	known, fresh := l.pending.memos[task], l.notes.of(task)
	if len(fresh) == 0 {
		return known
	}
	return slices.Concat(known, fresh)
}

// journal is what a task must see again.
func (l *loop) journal(task string) pregel.Journal {
	j := l.pending.journal(task)
	j.Memos = l.memos(task)
	return j
}
