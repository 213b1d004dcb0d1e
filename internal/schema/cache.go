package schema

import (
	"container/list"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/graphd-dev/graphd/internal/payload"
)

// cache keeps the compiled schemas that were used last.
type cache struct {
	mu    sync.Mutex
	size  int
	order *list.List // of *entry, last used first
	known map[payload.JSON]*list.Element
}

type entry struct {
	text   payload.JSON
	schema *jsonschema.Schema
}

func newCache(size int) *cache {
	return &cache{size: size, order: list.New(), known: make(map[payload.JSON]*list.Element)}
}

func (c *cache) get(text payload.JSON) (*jsonschema.Schema, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.known[text]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	found, ok := e.Value.(*entry)
	return found.schema, ok
}

func (c *cache) put(text payload.JSON, s *jsonschema.Schema) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.known[text]; ok {
		return
	}
	c.known[text] = c.order.PushFront(&entry{text: text, schema: s})
	if c.order.Len() <= c.size {
		return
	}
	if last, ok := c.order.Remove(c.order.Back()).(*entry); ok {
		delete(c.known, last.text)
	}
}
