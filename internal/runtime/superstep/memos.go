package superstep

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// RecordMemo stores a memo before its value is used; the first value stays. It does not
// end with the attempt: a caller must know whether the memo is stored before it tries
// again. Of several memos that come at the same time, as from a worker which has lost
// the task and from the next worker, the first is stored. Errors: context.Canceled after
// the attempt, *runtime.Error PAYLOAD_TOO_LARGE, and those of the commit.
func (fx *effects) RecordMemo(_ context.Context, m checkpoint.Memo) (payload.JSON, bool, error) {
	fr := fx.frame
	m.Task = fx.task.ID
	done := fr.stepMemos.claimKey(memoKeyOf(m))
	defer done()
	if fx.isOver.Load() {
		return "", false, context.Canceled
	}
	fx.resetIdleTimeout()
	m.Checkpoint = fr.state.Checkpoint().ID
	known, ok := fr.stepMemos.findMemo(fr.pending.memos[m.Task], memoKeyOf(m))
	if ok {
		return known, true, nil
	}
	if err := fx.reserveMemo(m); err != nil {
		return "", false, err
	}
	err := fr.thread.commitChange(func(t *commit.Tx) error {
		t.Memos = append(t.Memos, m)
		return nil
	})
	if err != nil {
		fr.thread.Memory.AddBytes(-fr.stepMemos.releaseBytes(m))
		return "", false, err
	}
	fr.stepMemos.addMemo(m)
	return m.Value, false, nil
}

// memoOverhead is the size of a memo besides its texts, in memory and in the message
// that hands it to a worker again.
const memoOverhead = 256

// MemoBytes returns how many bytes a memo counts for in the limit of its task.
func MemoBytes(m *checkpoint.Memo) int64 {
	return memoOverhead + int64(len(m.Scope)+len(m.Key)+len(m.Value))
}

// reserveMemo reserves memory for a memo, in the limit of its task and in that of the
// live runs.
func (fx *effects) reserveMemo(m checkpoint.Memo) error {
	fr := fx.frame
	most, more := fr.env.MaxTaskMemoBytes, MemoBytes(&m)
	if need := fr.stepMemos.reserveBytes(m.Task, more, most); need > most {
		return runtime.Errorf(runtime.ReasonPayloadTooLarge,
			"the memos of task %q take %d bytes with that of key %q, %d of each besides its texts; a task may have %d. "+
				"Record less, or spread the work over several nodes", m.Task, need, m.Key, memoOverhead, most).
			WithViolation("value", "must fit in what the task may still record").
			With("sizeBytes", strconv.FormatInt(need, 10)).With("limitBytes", strconv.FormatInt(most, 10)).
			WithLimit("max-task-memo-bytes", most, need)
	}
	fr.thread.Memory.AddBytes(more)
	return nil
}

// stepMemos are the memos of the current superstep, by task.
type stepMemos struct {
	mu        sync.Mutex
	tasks     map[string]*taskMemos
	heldBytes int64 // bytes of those that were recorded since the superstep was taken up
	// claims are closed when a memo that is about to be stored is, or can't be.
	claims map[memoKey]chan struct{}
}

// taskMemos are the memos of a task. Those that were stored when the
// superstep was taken up are values, but not fresh.
type taskMemos struct {
	values map[memoKey]payload.JSON
	added  []checkpoint.Memo
	bytes  int64 // of all, and of those that are about to be stored
}

// memoKey identifies a memo: each key is stored once.
type memoKey struct {
	task, scope, key string
	index            int
}

func memoKeyOf(m checkpoint.Memo) memoKey { return memoKey{m.Task, m.Scope, m.Key, m.Index} }

// claimKey waits until no other caller is about to store a memo at a place. The
// caller may then do so, and calls done.
func (s *stepMemos) claimKey(p memoKey) (done func()) {
	s.mu.Lock()
	for s.claims[p] != nil {
		claim := s.claims[p]
		s.mu.Unlock()
		<-claim
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	if s.claims == nil {
		s.claims = make(map[memoKey]chan struct{}, 1)
	}
	claim := make(chan struct{})
	s.claims[p] = claim
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.claims, p)
		close(claim)
	}
}

// memosOfTask returns the memos of a task. The caller holds mu.
func (s *stepMemos) memosOfTask(id string) *taskMemos {
	t := s.tasks[id]
	if t == nil {
		t = &taskMemos{values: make(map[memoKey]payload.JSON)}
		if s.tasks == nil {
			s.tasks = make(map[string]*taskMemos, 1)
		}
		s.tasks[id] = t
	}
	return t
}

// findMemo returns the value at a place. stored are the memos of its task that were
// stored when the superstep was taken up.
func (s *stepMemos) findMemo(stored []checkpoint.Memo, p memoKey) (payload.JSON, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tasks[p.task]
	if t == nil {
		t = s.memosOfTask(p.task)
		for i := range stored {
			t.values[memoKeyOf(stored[i])] = stored[i].Value
			t.bytes += MemoBytes(&stored[i])
		}
	}
	value, ok := t.values[p]
	return value, ok
}

// reserveBytes reserves memory for a memo of a task. It returns the bytes that all its
// memos take then. Beyond most it reserves nothing.
func (s *stepMemos) reserveBytes(task string, more, most int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.memosOfTask(task)
	need := t.bytes + more
	if need <= most {
		t.bytes = need
		s.heldBytes += more
	}
	return need
}

// releaseBytes releases the bytes of a memo that was not stored and returns how
// many.
func (s *stepMemos) releaseBytes(m checkpoint.Memo) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, less := s.tasks[m.Task], MemoBytes(&m)
	if t == nil || s.heldBytes < less {
		return 0
	}
	t.bytes -= less
	s.heldBytes -= less
	return less
}

func (s *stepMemos) addMemo(m checkpoint.Memo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.memosOfTask(m.Task)
	t.values[memoKeyOf(m)] = m.Value
	t.added = append(t.added, m)
}

// addedMemos returns the fresh memos of a task.
func (s *stepMemos) addedMemos(task string) []checkpoint.Memo {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tasks[task]; t != nil {
		return t.added
	}
	return nil
}

// hasAdded reports whether a memo was recorded since the superstep was taken up.
func (s *stepMemos) hasAdded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t := range maps.Values(s.tasks) {
		if len(t.added) > 0 {
			return true
		}
	}
	return false
}

// clearAll begins another superstep. It returns how many bytes were held.
func (s *stepMemos) clearAll() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.heldBytes
	s.tasks, s.heldBytes = nil, 0
	return held
}

// clearMemos drops the memos of the superstep: they are used, or read anew.
func (fr *frame) clearMemos() {
	if held := fr.stepMemos.clearAll(); held != 0 {
		fr.thread.Memory.AddBytes(-held)
	}
}

// allMemos returns all memos of a task.
func (fr *frame) allMemos(task string) []checkpoint.Memo {
	known, fresh := fr.pending.memos[task], fr.stepMemos.addedMemos(task)
	if len(fresh) == 0 {
		return known
	}
	return slices.Concat(known, fresh)
}

// buildJournal returns the answers and memos that a task must see again.
func (fr *frame) buildJournal(task string) pregel.Journal {
	j := fr.pending.buildJournal(task)
	j.Memos = fr.allMemos(task)
	return j
}
