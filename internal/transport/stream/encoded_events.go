package stream

import (
	"sync"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/transport/flow"
)

// encodedEvents keeps the encoded form of the newest events that several streams
// send, so that each is encoded once.
type encodedEvents struct {
	mu             sync.Mutex
	byKey          map[encodedEventKey]*flow.EncodedMessage
	insertionOrder [maxEncodedEvents]encodedEventKey // keys in the order of insertion
	oldestIndex    int                               // where the ring begins
	count          int
	totalBytes     int // of all
}

// encodedEventKey identifies an encoded form of an event. Events are shared by all
// followers of a thread and never change.
type encodedEventKey struct {
	event               *checkpoint.Event
	mark                uint32 // in the cursor
	hasCheckpointValues bool   // whether checkpoints come with values
}

// Bounds of the kept events. Larger events are encoded for each stream.
const (
	maxEncodedEvents     = 256
	maxEncodedEventBytes = 1 << 20
	maxEncodedBytes      = 4 << 20
)

func newEncodedEvents() *encodedEvents {
	return &encodedEvents{byKey: make(map[encodedEventKey]*flow.EncodedMessage, maxEncodedEvents)}
}

func (c *encodedEvents) findEvent(k encodedEventKey) *flow.EncodedMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byKey[k]
}

// addEvent adds an encoded event, and drops the oldest events.
func (c *encodedEvents) addEvent(k encodedEventKey, f *flow.EncodedMessage) {
	if len(f.Bytes) > maxEncodedEventBytes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey[k] != nil {
		return
	}
	for c.count > 0 && (c.count == maxEncodedEvents || c.totalBytes+len(f.Bytes) > maxEncodedBytes) {
		oldest := c.insertionOrder[c.oldestIndex]
		c.totalBytes -= len(c.byKey[oldest].Bytes)
		delete(c.byKey, oldest)
		c.insertionOrder[c.oldestIndex] = encodedEventKey{}
		c.oldestIndex, c.count = (c.oldestIndex+1)%maxEncodedEvents, c.count-1
	}
	c.byKey[k], c.insertionOrder[(c.oldestIndex+c.count)%maxEncodedEvents] = f, k
	c.count++
	c.totalBytes += len(f.Bytes)
}
