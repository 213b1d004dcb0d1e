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

	mu     sync.Mutex
	bytes  int
	views  map[string]*list.Element // by thread; each has a *view
	recent *list.List               // the front was used last
}

// NewCache makes a cache for so many bytes of views, 0 = none.
func NewCache(maxBytes int) *Cache {
	return &Cache{maxBytes: maxBytes, views: make(map[string]*list.Element), recent: list.New()}
}

// FindView returns the view of a thread at rest, nil when there is none. It shows whether the
// thread has a request. Views share their records: the caller must not change them.
func (c *Cache) FindView(thread, request string) *checkpoint.ThreadView {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.views[thread]
	if e == nil {
		return nil
	}
	v := e.Value.(*view) //nolint:errcheck,forcetypeassert // it has nothing else
	if !v.isAtRest() {
		return nil
	}
	c.recent.MoveToFront(e)
	return v.snapshotFor(request)
}

// NoteChange takes over a change that the store has accepted, and the head that it left.
func (c *Cache) NoteChange(t *commit.Tx, head *checkpoint.Head) {
	if c.maxBytes == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.views[t.Thread]
	var old *view
	if e != nil {
		old = e.Value.(*view) //nolint:errcheck,forcetypeassert // it has nothing else
		c.bytes -= old.bytes
	}
	var next *view
	if !t.Delete {
		next = old.applyChange(t, head)
	}
	switch isKept := next != nil && next.bytes <= c.maxBytes/16; {
	case !isKept && e != nil:
		c.recent.Remove(e)
		delete(c.views, t.Thread)
	case isKept && e != nil:
		e.Value = next
		c.recent.MoveToFront(e)
		c.makeRoom(next)
	case isKept:
		c.views[t.Thread] = c.recent.PushFront(next)
		c.makeRoom(next)
	}
}

// DropView forgets the view of a thread.
func (c *Cache) DropView(thread string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.views[thread]; e != nil {
		c.remove(e)
	}
}

// makeRoom counts a view that was added, and removes those that were not used for longest until
// all have room. The caller holds the mutex.
func (c *Cache) makeRoom(v *view) {
	for c.bytes += v.bytes; c.bytes > c.maxBytes; {
		c.remove(c.recent.Back())
	}
}

// remove removes a view. The caller holds the mutex.
func (c *Cache) remove(e *list.Element) {
	v := c.recent.Remove(e).(*view) //nolint:errcheck,forcetypeassert // it has nothing else
	delete(c.views, v.head.Thread)
	c.bytes -= v.bytes
}
