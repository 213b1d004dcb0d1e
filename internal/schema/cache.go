package schema

import (
	"container/list"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/graphd-dev/graphd/internal/payload"
)

// compiled is a schema that is ready to check values.
type compiled struct {
	schema *jsonschema.Schema
	plan   *plan
	bytes  int // what it takes in memory, about
}

// cache keeps the compiled schemas that were used last, within a size.
type cache struct {
	mu    sync.Mutex
	left  int
	order *list.List // of *entry, last used first
	known map[payload.JSON]*list.Element
}

type entry struct {
	text payload.JSON
	*compiled
}

func newCache(bytes int) *cache {
	return &cache{left: bytes, order: list.New(), known: make(map[payload.JSON]*list.Element)}
}

func (c *cache) get(text payload.JSON) (*compiled, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.known[text]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	found, ok := e.Value.(*entry)
	return found.compiled, ok
}

func (c *cache) put(text payload.JSON, s *compiled) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.known[text]; ok {
		return
	}
	c.known[text] = c.order.PushFront(&entry{text, s})
	c.left -= s.bytes
	for c.left < 0 {
		last, ok := c.order.Remove(c.order.Back()).(*entry)
		if !ok {
			return
		}
		delete(c.known, last.text)
		c.left += last.bytes
	}
}
