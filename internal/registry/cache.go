package registry

import (
	"sync"
	"sync/atomic"
	"weak"

	"github.com/graphd-dev/graphd/internal/graph"
)

// cache keeps the compiled graphs that were used last, within a size. What it
// drops lives on as long as a run holds it, and is taken back from there
// rather than compiled again. Using a graph that is kept takes no lock.
type cache struct {
	uses atomic.Int64

	mu    sync.Mutex
	left  int
	kept  map[*entry]struct{}
	alive map[*entry]dropped // perhaps still held
}

// dropped is a graph that the cache has let go of.
type dropped struct {
	graph weak.Pointer[graph.Graph]
	bytes int
}

func newCache(bytes int) *cache {
	return &cache{
		left: bytes, kept: make(map[*entry]struct{}), alive: make(map[*entry]dropped),
	}
}

// get returns what is kept, or nil.
func (c *cache) get(v *entry) *graph.Graph {
	l := v.loaded.Load()
	if l == nil {
		return nil
	}
	l.used.Store(c.uses.Add(1))
	return l.graph
}

// restore keeps again what was dropped and is held by a run, and returns it; nil
// = there is no such graph.
func (c *cache) restore(v *entry) *graph.Graph {
	c.mu.Lock()
	held, ok := c.alive[v]
	c.mu.Unlock()
	if !ok {
		return nil
	}
	g := held.graph.Value()
	if g != nil {
		c.put(v, g, held.bytes)
	}
	return g
}

// put keeps a graph. The one that was used longest ago makes room. The graph at
// hand stays even if it is larger than all the room there is.
func (c *cache) put(v *entry, g *graph.Graph, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(v)
	delete(c.alive, v)
	l := &loaded{graph: g, bytes: bytes}
	l.used.Store(c.uses.Add(1))
	v.loaded.Store(l)
	c.kept[v] = struct{}{}
	c.left -= bytes
	for c.left < 0 && len(c.kept) > 1 {
		c.drop(c.oldest())
	}
}

// forget lets go of a version that is no more.
func (c *cache) forget(v *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(v)
	delete(c.alive, v)
}

func (c *cache) drop(v *entry) {
	l := v.loaded.Load()
	c.remove(v)
	for other, held := range c.alive { // of those that runs have let go of
		if held.graph.Value() == nil {
			delete(c.alive, other)
		}
	}
	c.alive[v] = dropped{weak.Make(l.graph), l.bytes}
}

func (c *cache) remove(v *entry) {
	if _, ok := c.kept[v]; !ok {
		return
	}
	c.left += v.loaded.Load().bytes
	v.loaded.Store(nil)
	delete(c.kept, v)
}

func (c *cache) oldest() *entry {
	var oldest *entry
	var least int64
	for v := range c.kept {
		if used := v.loaded.Load().used.Load(); oldest == nil || used < least {
			oldest, least = v, used
		}
	}
	return oldest
}
