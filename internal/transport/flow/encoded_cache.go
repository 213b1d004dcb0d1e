package flow

import "sync"

// EncodedCache keeps the newest encoded messages that several streams send, so that each is
// encoded once. K identifies what was encoded, which never changes.
type EncodedCache[K comparable] struct {
	mu             sync.Mutex
	byKey          map[K]*EncodedMessage
	insertionOrder [maxCachedMessages]K // keys in the order of insertion
	oldestIndex    int                  // where the ring begins
	count          int
	totalBytes     int // of all
}

// Bounds of the kept messages. Larger messages are encoded for each stream.
const (
	maxCachedMessages     = 1024 // more than the changes of one read
	maxCachedMessageBytes = 1 << 20
	maxCachedBytes        = 4 << 20
)

// NewEncodedCache makes an empty cache.
func NewEncodedCache[K comparable]() *EncodedCache[K] {
	return &EncodedCache[K]{byKey: make(map[K]*EncodedMessage, maxCachedMessages)}
}

// FindMessage returns a kept message, nil = none.
func (c *EncodedCache[K]) FindMessage(k K) *EncodedMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byKey[k]
}

// AddMessage adds a message, and drops the oldest ones.
func (c *EncodedCache[K]) AddMessage(k K, m *EncodedMessage) {
	if len(m.Bytes) > maxCachedMessageBytes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey[k] != nil {
		return
	}
	var none K
	for c.count > 0 && (c.count == maxCachedMessages || c.totalBytes+len(m.Bytes) > maxCachedBytes) {
		oldest := c.insertionOrder[c.oldestIndex]
		c.totalBytes -= len(c.byKey[oldest].Bytes)
		delete(c.byKey, oldest)
		c.insertionOrder[c.oldestIndex] = none
		c.oldestIndex, c.count = (c.oldestIndex+1)%maxCachedMessages, c.count-1
	}
	c.byKey[k], c.insertionOrder[(c.oldestIndex+c.count)%maxCachedMessages] = m, k
	c.count++
	c.totalBytes += len(m.Bytes)
}
