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

func (e *encodedEvents) findEvent(k encodedEventKey) *flow.EncodedMessage {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.byKey[k]
}

// addEvent adds an encoded event, and drops the oldest events.
func (e *encodedEvents) addEvent(k encodedEventKey, f *flow.EncodedMessage) {
	if len(f.Bytes) > maxEncodedEventBytes {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byKey[k] != nil {
		return
	}
	for e.count > 0 && (e.count == maxEncodedEvents || e.totalBytes+len(f.Bytes) > maxEncodedBytes) {
		oldest := e.insertionOrder[e.oldestIndex]
		e.totalBytes -= len(e.byKey[oldest].Bytes)
		delete(e.byKey, oldest)
		e.insertionOrder[e.oldestIndex] = encodedEventKey{}
		e.oldestIndex, e.count = (e.oldestIndex+1)%maxEncodedEvents, e.count-1
	}
	e.byKey[k], e.insertionOrder[(e.oldestIndex+e.count)%maxEncodedEvents] = f, k
	e.count++
	e.totalBytes += len(f.Bytes)
}
