package schema

import (
	"container/list"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/graphd-dev/graphd/internal/payload"
)

// compiledSchema is a schema that is ready to check values.
type compiledSchema struct {
	schema *jsonschema.Schema
	plan   *costPlan
	bytes  int // memory that it takes, estimated
}

// schemaCache keeps the compiled schemas that were used last, within a size.
type schemaCache struct {
	mu        sync.Mutex
	freeBytes int
	order     *list.List // of *entry, last used first
	entries   map[payload.JSON]*list.Element
}

type cacheEntry struct {
	text payload.JSON
	*compiledSchema
}

func newSchemaCache(bytes int) *schemaCache {
	return &schemaCache{freeBytes: bytes, order: list.New(), entries: make(map[payload.JSON]*list.Element)}
}

func (c *schemaCache) getSchema(text payload.JSON) (*compiledSchema, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[text]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	found, ok := e.Value.(*cacheEntry)
	return found.compiledSchema, ok
}

func (c *schemaCache) putSchema(text payload.JSON, s *compiledSchema) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.entries[text]; ok {
		return
	}
	c.entries[text] = c.order.PushFront(&cacheEntry{text, s})
	c.freeBytes -= s.bytes
	for c.freeBytes < 0 {
		last, ok := c.order.Remove(c.order.Back()).(*cacheEntry)
		if !ok {
			return
		}
		delete(c.entries, last.text)
		c.freeBytes += last.bytes
	}
}
