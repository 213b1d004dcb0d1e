// Package views keeps views of threads in memory, so that a call that goes on with a thread at rest
// reads nothing before its change.
//
// A view shows the thread as the changes of this server left it. Another server may have changed
// the thread since, so a view never refuses a call and answers none: it is good for an attempt at
// a change, which the store makes at the revision of the view only.
package views

import (
	"container/list"
	"sync"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
)

// Cache keeps the views that were used last. It has views of threads that were created here: of
// these it knows all records.
type Cache struct {
	maxBytes int

	mu      sync.Mutex
	bytes   int
	entries map[string]*list.Element // by thread; each has an *entry
	recent  *list.List               // the front was used last
}

// entry is the view of a thread, with the bytes for which it counts.
type entry struct {
	thread string
	view   *view
	bytes  int
}

// NewCache makes a cache for so many bytes of views, 0 = none.
func NewCache(maxBytes int) *Cache {
	return &Cache{maxBytes: maxBytes, entries: make(map[string]*list.Element), recent: list.New()}
}

// FindView returns the view of a thread at rest, nil when there is none. It shows whether the
// thread has a request. Views share their records: the caller must not change them.
func (c *Cache) FindView(thread, request string) *checkpoint.ThreadView {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.findView(thread)
	if v == nil || !v.isAtRest() {
		return nil
	}
	c.recent.MoveToFront(c.entries[thread])
	return v.snapshotFor(request)
}

// NoteChange takes over a change that the store has accepted, and the head that it left.
func (c *Cache) NoteChange(t *commit.Tx, head *checkpoint.Head) {
	if c.maxBytes == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var next *view
	if !t.Delete {
		next = c.findView(t.Thread).applyChange(t, head)
	}
	if next == nil || next.bytes > c.maxBytes/16 {
		c.dropEntry(t.Thread)
		return
	}
	c.keepView(t.Thread, next)
}

// DropView forgets the view of a thread.
func (c *Cache) DropView(thread string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropEntry(thread)
}

// findView returns the view of a thread, nil when there is none. The caller holds the mutex.
func (c *Cache) findView(thread string) *view {
	if e := c.entries[thread]; e != nil {
		return e.Value.(*entry).view //nolint:errcheck,forcetypeassert // it has nothing else
	}
	return nil
}

// keepView keeps a view in place of the one before, and drops those that were not used for longest
// until all have room. The caller holds the mutex.
func (c *Cache) keepView(thread string, v *view) {
	e := c.entries[thread]
	if e == nil {
		e = c.recent.PushFront(&entry{thread: thread})
		c.entries[thread] = e
	}
	c.recent.MoveToFront(e)
	kept := e.Value.(*entry) //nolint:errcheck,forcetypeassert // it has nothing else
	c.bytes += v.bytes - kept.bytes
	kept.view, kept.bytes = v, v.bytes
	for c.bytes > c.maxBytes {
		oldest := c.recent.Back().Value.(*entry) //nolint:errcheck,forcetypeassert // it has nothing else
		c.dropEntry(oldest.thread)
	}
}

// dropEntry drops the view of a thread, if there is one. The caller holds the mutex.
func (c *Cache) dropEntry(thread string) {
	e := c.entries[thread]
	if e == nil {
		return
	}
	dropped := c.recent.Remove(e).(*entry) //nolint:errcheck,forcetypeassert // it has nothing else
	delete(c.entries, thread)
	c.bytes -= dropped.bytes
}
