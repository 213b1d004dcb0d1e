package registry

import (
	"sync"
	"sync/atomic"
	"weak"

	"github.com/graphd-dev/graphd/internal/graph"
)

// compiledCache keeps the compiled graphs that were used last, within a size. A
// dropped graph lives as long as a run holds it, and the cache takes it back from
// there instead of compiling it again. The use of a cached graph takes no lock.
type compiledCache struct {
	uses atomic.Int64

	mu            sync.Mutex
	freeBytes     int
	ready         map[*graphVersion]struct{}
	droppedGraphs map[*graphVersion]droppedGraph // runs may hold them
}

// droppedGraph is a graph that the cache has dropped.
type droppedGraph struct {
	graph weak.Pointer[graph.Graph]
	bytes int
}

func newCompiledCache(bytes int) *compiledCache {
	return &compiledCache{
		freeBytes: bytes, ready: make(map[*graphVersion]struct{}), droppedGraphs: make(map[*graphVersion]droppedGraph),
	}
}

// getCompiled returns the compiled graph of a version, nil if it is not cached.
func (c *compiledCache) getCompiled(v *graphVersion) *graph.Graph {
	l := v.compiled.Load()
	if l == nil {
		return nil
	}
	l.lastUse.Store(c.uses.Add(1))
	return l.graph
}

// restoreDropped puts a dropped graph that a run holds back into the cache and
// returns it, nil if there is none.
func (c *compiledCache) restoreDropped(v *graphVersion) *graph.Graph {
	c.mu.Lock()
	held, ok := c.droppedGraphs[v]
	c.mu.Unlock()
	if !ok {
		return nil
	}
	g := held.graph.Value()
	if g != nil {
		c.putCompiled(v, g, held.bytes)
	}
	return g
}

// putCompiled adds a graph and drops the least recently used graphs. The graph
// stays even if it is larger than the cache.
func (c *compiledCache) putCompiled(v *graphVersion, g *graph.Graph, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeReady(v)
	delete(c.droppedGraphs, v)
	l := &compiledGraph{graph: g, bytes: bytes}
	l.lastUse.Store(c.uses.Add(1))
	v.compiled.Store(l)
	c.ready[v] = struct{}{}
	c.freeBytes -= bytes
	for c.freeBytes < 0 && len(c.ready) > 1 {
		c.dropCompiled(c.leastRecentlyUsed())
	}
}

// removeVersion drops a deleted version.
func (c *compiledCache) removeVersion(v *graphVersion) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeReady(v)
	delete(c.droppedGraphs, v)
}

func (c *compiledCache) dropCompiled(v *graphVersion) {
	l := v.compiled.Load()
	c.removeReady(v)
	for other, held := range c.droppedGraphs { // removes entries that runs have released
		if held.graph.Value() == nil {
			delete(c.droppedGraphs, other)
		}
	}
	c.droppedGraphs[v] = droppedGraph{weak.Make(l.graph), l.bytes}
}

func (c *compiledCache) removeReady(v *graphVersion) {
	if _, ok := c.ready[v]; !ok {
		return
	}
	c.freeBytes += v.compiled.Load().bytes
	v.compiled.Store(nil)
	delete(c.ready, v)
}

func (c *compiledCache) leastRecentlyUsed() *graphVersion {
	var oldest *graphVersion
	var least int64
	for v := range c.ready {
		if used := v.compiled.Load().lastUse.Load(); oldest == nil || used < least {
			oldest, least = v, used
		}
	}
	return oldest
}
