package memory

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// thread is everything that is kept of one thread.
type thread struct {
	mu   sync.Mutex
	gone bool // deleted; whoever still holds the pointer must look again

	head    checkpoint.Head
	op      string
	receipt checkpoint.Receipt

	history   history
	progress  map[string]*progress // by checkpoint
	log       log
	runs      runs
	questions map[string]*question
	asked     map[string][]*question // by checkpoint, in the order of their first put
	requests  map[string]checkpoint.Request

	// wake and queued belong to alarms.
	wake   atomic.Int64
	queued atomic.Int64
}

// Apply makes one change.
func (s *Store) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	if err := s.ready(ctx); err != nil {
		return checkpoint.Receipt{}, err
	}
	if err := c.Check(); err != nil {
		return checkpoint.Receipt{}, err
	}
	if t := s.locked(c.Thread); t != nil {
		if c.Delete {
			t.mu.Unlock()
			return s.remove(c)
		}
		defer t.mu.Unlock()
		return s.apply(t, c)
	}
	if c.Expect != 0 {
		return checkpoint.Receipt{}, checkpoint.ErrConflict
	}
	return s.create(c)
}

// create applies the first change of a thread. The shard stays locked, so that
// a thread is found only once it holds something.
func (s *Store) create(c *checkpoint.Change) (checkpoint.Receipt, error) {
	sh := s.shard(c.Thread)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	t := sh.threads[c.Thread]
	if t == nil {
		t = &thread{}
		t.queued.Store(never)
		t.wake.Store(never)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r, err := s.apply(t, c)
	if err == nil {
		sh.threads[c.Thread] = t
	}
	return r, err
}

// remove deletes a thread.
func (s *Store) remove(c *checkpoint.Change) (checkpoint.Receipt, error) {
	sh := s.shard(c.Thread)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	t := sh.threads[c.Thread]
	if t == nil {
		return checkpoint.Receipt{}, checkpoint.ErrConflict
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.Op != "" && c.Op == t.op {
		return t.receipt, nil
	}
	if !t.expected(c) {
		return checkpoint.Receipt{}, checkpoint.ErrConflict
	}
	t.gone = true
	t.wake.Store(never)
	delete(sh.threads, c.Thread)
	s.inbox.forget(t.questions)
	// An alarm may hold on to the thread for long; let go of what is large.
	t.history, t.log, t.runs = history{}, log{}, runs{}
	t.progress, t.questions, t.asked, t.requests = nil, nil, nil, nil
	return checkpoint.Receipt{Revision: c.Expect + 1, Now: s.clock()}, nil
}

// apply checks everything before it changes anything.
func (s *Store) apply(t *thread, c *checkpoint.Change) (checkpoint.Receipt, error) {
	if c.Op != "" && c.Op == t.op {
		return t.receipt, nil
	}
	if !t.expected(c) {
		return checkpoint.Receipt{}, checkpoint.ErrConflict
	}
	if err := c.Follows(t.head.LastEvent, t.head.Seq); err != nil {
		return checkpoint.Receipt{}, err
	}
	now := s.clock()
	t.rollback(c)
	t.forget(c)
	t.history.add(c.Checkpoints)
	t.addProgress(c)
	t.log.add(c.Events)
	t.log.trim(c.TrimEvents)
	revisions := t.runs.put(c.Runs)
	if len(c.Interrupts) > 0 {
		s.inbox.put(t, c.Interrupts)
	}
	if c.Request != nil {
		if t.requests == nil {
			t.requests = map[string]checkpoint.Request{}
		}
		t.requests[c.Request.ID] = *c.Request
	}
	t.replaceHead(c, now)
	s.alarms.set(t)
	r := t.receipt
	r.Runs = revisions
	return r, nil
}

// expected reports whether the thread is as the change takes it to be.
func (t *thread) expected(c *checkpoint.Change) bool {
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
	t.head.Queue = slices.Clone(c.Head.Queue) // writers append to what they read
	t.head.Revision = c.Expect + 1
	t.head.LeaseExpires = expires
	t.head.Now = time.Time{}
	t.op = c.Op
	t.receipt = checkpoint.Receipt{Revision: c.Expect + 1, LeaseExpires: expires, Now: now}
}

// forget takes away what DropBefore names.
func (t *thread) forget(c *checkpoint.Change) {
	if c.DropBefore == 0 {
		return
	}
	for _, cp := range t.history.outdated(c) {
		delete(t.progress, cp.ID)
	}
}

// rollback takes away what DropAfter and ClearTasks name.
func (t *thread) rollback(c *checkpoint.Change) {
	for _, id := range c.ClearTasks {
		delete(t.progress, id)
	}
	if c.DropAfter == nil {
		return
	}
	for _, cp := range t.history.drop(*c.DropAfter) {
		delete(t.progress, cp.ID)
	}
}
