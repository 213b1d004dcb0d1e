package inbox

import (
	"slices"
	"sync"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// EventBudget counts the bytes of the events of all tasks that wait for delivery to
// their runs.
type EventBudget struct {
	maxBytes int64

	mu        sync.Mutex
	usedBytes int64
	freed     chan struct{} // closed when there is room; nil = no task waits
}

// NewEventBudget makes a budget of so many bytes.
func NewEventBudget(maxBytes int64) *EventBudget { return &EventBudget{maxBytes: maxBytes} }

// taskShareDivisor is the part of the bytes that the events of one task may take.
const taskShareDivisor = 4

// eventSize estimates the bytes of memory of an event.
func eventSize(e runtime.Emission) int64 {
	const around = 128
	return int64(len(e.Value)+len(e.Name)) + around
}

func (b *EventBudget) addBytes(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.usedBytes += n
	if b.freed != nil && b.usedBytes < b.maxBytes {
		close(b.freed)
		b.freed = nil
	}
}

func (b *EventBudget) isFull() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.usedBytes >= b.maxBytes
}

// roomSignal returns nil when there is room, or a channel that is closed when there
// is.
func (b *EventBudget) roomSignal() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.usedBytes < b.maxBytes {
		return nil
	}
	if b.freed == nil {
		b.freed = make(chan struct{})
	}
	return b.freed
}

// WaitForRoom waits until there is room for events, if some of them are durable, or
// until late is closed.
func (q *EventQueue) WaitForRoom(late <-chan struct{}, events []runtime.Emission) {
	for HasDurable(events) {
		freed := q.RoomSignal()
		if freed == nil {
			return
		}
		select {
		case <-freed:
		case <-late:
			return
		}
	}
}

// RoomSignal returns nil when events can be taken, or else a channel that is closed
// when they may be.
func (q *EventQueue) RoomSignal() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.isClosed || q.waitingBytes <= q.budget.maxBytes/taskShareDivisor/2 {
		return q.budget.roomSignal()
	}
	if q.freed == nil {
		q.freed = make(chan struct{})
	}
	return q.freed
}

// HasDurable reports whether some events must be kept.
func HasDurable(events []runtime.Emission) bool {
	return slices.ContainsFunc(events, func(e runtime.Emission) bool { return e.Durable })
}
