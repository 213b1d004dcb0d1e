package memory

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// thread is the records of a thread.
type thread struct {
	mu        sync.Mutex
	isDeleted bool // deleted; a caller that still holds the pointer must look again

	head    checkpoint.Head
	op      string
	receipt checkpoint.Receipt

	history                history
	progress               map[string]*progress // by checkpoint
	log                    eventLog
	runs                   runs
	interrupts             map[string]*interruptRecord
	interruptsByCheckpoint map[string][]*interruptRecord // by checkpoint, in the order of their first put
	requests               map[string]checkpoint.Request

	// dueNanos and queued belong to alarms.
	dueNanos    atomic.Int64
	queuedNanos atomic.Int64
}

// Apply makes a change. It returns checkpoint.ErrConflict when the thread is not at the
// expected revision, and checkpoint.ErrInvalid when the change contradicts itself.
func (s *Store) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	if err := s.checkOpen(ctx); err != nil {
		return checkpoint.Receipt{}, err
	}
	if err := c.Validate(); err != nil {
		return checkpoint.Receipt{}, err
	}
	if t := s.lockThread(c.Thread); t != nil {
		if c.Delete {
			t.mu.Unlock()
			return s.deleteThread(c)
		}
		defer t.mu.Unlock()
		return s.applyChange(t, c)
	}
	if c.Expect != 0 {
		return checkpoint.Receipt{}, checkpoint.ErrConflict
	}
	return s.createThread(c)
}

// createThread applies the first change of a thread. The shard stays locked, so that
// a thread is found only once it holds something.
func (s *Store) createThread(c *checkpoint.Change) (checkpoint.Receipt, error) {
	sh := s.shardOf(c.Thread)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	t := sh.findThread(c.Thread)
	if t == nil {
		t = &thread{}
		t.queuedNanos.Store(never)
		t.dueNanos.Store(never)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r, err := s.applyChange(t, c)
	if err == nil {
		sh.addThread(c.Thread, t)
	}
	return r, err
}

// deleteThread deletes a thread.
func (s *Store) deleteThread(c *checkpoint.Change) (checkpoint.Receipt, error) {
	sh := s.shardOf(c.Thread)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	t := sh.findThread(c.Thread)
	if t == nil {
		return checkpoint.Receipt{}, checkpoint.ErrConflict
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.Op != "" && c.Op == t.op {
		return t.receipt, nil
	}
	if !t.isExpected(c) {
		return checkpoint.Receipt{}, checkpoint.ErrConflict
	}
	t.isDeleted = true
	t.dueNanos.Store(never)
	sh.removeThread(c.Thread)
	s.interrupts.deleteInterrupts(c.Thread, t.interrupts)
	s.threads.moveThread(t, c.Thread, &t.head, &checkpoint.Head{})
	// An alarm may hold on to the thread for long; drop its large parts.
	t.history, t.log, t.runs = history{}, eventLog{}, runs{}
	t.progress, t.interrupts, t.interruptsByCheckpoint, t.requests = nil, nil, nil, nil
	return checkpoint.Receipt{Revision: c.Expect + 1, Now: s.currentTime()}, nil
}

// applyChange checks everything before it changes anything.
func (s *Store) applyChange(t *thread, c *checkpoint.Change) (checkpoint.Receipt, error) {
	if c.Op != "" && c.Op == t.op {
		return t.receipt, nil
	}
	if !t.isExpected(c) {
		return checkpoint.Receipt{}, checkpoint.ErrConflict
	}
	if err := c.ValidateSequence(t.head.LastEvent, t.head.Seq); err != nil {
		return checkpoint.Receipt{}, err
	}
	now := s.currentTime()
	t.dropRolledBack(c)
	t.dropPruned(c)
	t.history.addCheckpoints(c.Checkpoints)
	t.addProgress(c)
	t.log.appendEvents(c.Events)
	t.log.trimBefore(c.TrimEvents)
	revisions := t.runs.putRuns(c.Runs)
	if len(c.Interrupts) > 0 {
		s.interrupts.putInterrupts(t, c)
	}
	if c.Request != nil {
		if t.requests == nil {
			t.requests = map[string]checkpoint.Request{}
		}
		t.requests[c.Request.ID] = *c.Request
	}
	old := t.head
	t.replaceHead(c, now)
	s.threads.moveThread(t, c.Thread, &old, &t.head)
	s.dueQueue.updateThread(t)
	r := t.receipt
	r.Runs = revisions
	return r, nil
}

// isExpected reports whether the thread is as the change takes it to be.
func (t *thread) isExpected(c *checkpoint.Change) bool {
	return t.head.Revision == c.Expect && (c.Expect == 0 || c.LogID == "" || c.LogID == t.head.LogID)
}

func (t *thread) replaceHead(c *checkpoint.Change, now time.Time) {
	expires := t.head.LeaseExpires
	if c.Lease > 0 {
		expires = now.Add(c.Lease)
	}
	if c.Head.Owner == "" {
		expires = time.Time{}
	}
	t.head = c.Head
	t.head.Queue, t.head.Later = slices.Clone(c.Head.Queue), slices.Clone(c.Head.Later) // writers append to values that they read
	t.head.Revision = c.Expect + 1
	t.head.LeaseExpires = expires
	t.head.Now = time.Time{}
	t.op = c.Op
	t.receipt = checkpoint.Receipt{Revision: c.Expect + 1, LeaseExpires: expires, Now: now}
}

// dropPruned removes the checkpoints that DropBefore names.
func (t *thread) dropPruned(c *checkpoint.Change) {
	if c.DropBefore == 0 {
		return
	}
	for _, cp := range t.history.dropPruned(c) {
		delete(t.progress, cp.ID)
	}
}

// dropRolledBack removes the records that DropAfter and ClearTasks name.
func (t *thread) dropRolledBack(c *checkpoint.Change) {
	for _, id := range c.ClearTasks {
		delete(t.progress, id)
	}
	if c.DropAfter == nil {
		return
	}
	for _, cp := range t.history.dropAfter(*c.DropAfter) {
		delete(t.progress, cp.ID)
	}
}
