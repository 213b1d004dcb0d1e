package inbox

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// EventQueue delivers the events of one task to its run, in order, on a goroutine
// of its own, so that an event delays only events. It is bounded: it drops the
// oldest ephemeral events.
type EventQueue struct {
	effects runtime.Effects
	budget  *EventBudget
	log     *zap.Logger

	mu            sync.Mutex
	items         []runtime.Emission
	waitingBytes  int64         // of items, and of those that are being handed on
	durableCount  int           // among items
	freed         chan struct{} // closed when there is room; nil = no stream waits
	droppedCount  uint64
	receivedCount uint64
	isClosed      bool
	drained       chan struct{} // closed when the queue is empty; nil while no delivery runs
	arrived       chan struct{} // closed when events arrive; nil = no waiter
}

// Bounds of an EventQueue, in events.
const (
	maxEphemeralEvents = 1024 // that may be dropped
	maxDurableEvents   = 4096 // that may not
)

// NewEventQueue makes the queue of a task, which counts in a budget of all tasks.
func NewEventQueue(effects runtime.Effects, all *EventBudget, log *zap.Logger) *EventQueue {
	return &EventQueue{effects: effects, budget: all, log: log}
}

// AddEvents adds events. It returns the number of dropped events, and whether more
// durable events wait than the queue can hold.
func (q *EventQueue) AddEvents(events []runtime.Emission, dropped uint64) (lost uint64, flooded bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.receivedCount += uint64(len(events))
	if q.arrived != nil {
		close(q.arrived)
		q.arrived = nil
	}
	if q.isClosed {
		return 0, false
	}
	q.droppedCount += dropped
	for _, e := range events {
		if e.Durable {
			q.durableCount++
		}
		q.addBytes(eventSize(e))
	}
	q.items = append(q.items, events...)
	lost = q.dropOldest()
	flooded = q.durableCount > maxDurableEvents || q.durableCount > 1 && q.waitingBytes > q.budget.maxBytes/taskShareDivisor
	q.isClosed = flooded
	if q.drained == nil && (len(q.items) > 0 || q.droppedCount > 0) { // also for a flood: a waiting event counts until it is delivered
		q.drained = make(chan struct{})
		idle := q.drained
		go contain.Func(func() { q.deliverEvents(idle) }, contain.LogPanic(q.log, "a lane of events panicked"))()
	}
	return lost, flooded
}

// AddMarker adds an event of the hub to the sequence of the events.
func (q *EventQueue) AddMarker(kind checkpoint.EventKind) {
	q.AddEvents([]runtime.Emission{{Kind: kind, Durable: true}}, 0)
}

// addBytes adds to the bytes that wait. mu is held.
func (q *EventQueue) addBytes(n int64) {
	q.waitingBytes += n
	q.budget.addBytes(n)
	if q.freed != nil && q.waitingBytes <= q.budget.maxBytes/taskShareDivisor/2 {
		close(q.freed)
		q.freed = nil
	}
}

// dropOldest drops the oldest ephemeral events when they are many or large.
func (q *EventQueue) dropOldest() (lost uint64) {
	surplus := len(q.items) - q.durableCount - maxEphemeralEvents
	within := q.budget.maxBytes / taskShareDivisor
	if q.budget.isFull() {
		within = 0
	}
	if surplus <= 0 && q.waitingBytes <= within || len(q.items) == q.durableCount {
		return 0
	}
	q.items = slices.DeleteFunc(q.items, func(e runtime.Emission) bool {
		if e.Durable || surplus <= 0 && q.waitingBytes <= within {
			return false
		}
		surplus--
		q.addBytes(-eventSize(e))
		lost++
		return true
	})
	q.droppedCount += lost
	return lost
}

// deliverEvents delivers events until the queue is empty.
func (q *EventQueue) deliverEvents(idle chan struct{}) {
	defer close(idle)
	for {
		q.mu.Lock()
		items, lost := q.items, q.droppedCount
		q.items, q.durableCount, q.droppedCount = nil, 0, 0
		if len(items) == 0 && lost == 0 {
			q.drained = nil
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()
		if lost > 0 {
			q.deliverEvent(runtime.Emission{Kind: runtime.EventGap, Value: runtime.GapValue(lost)})
		}
		for _, e := range items {
			q.deliverEvent(e)
			q.mu.Lock()
			q.addBytes(-eventSize(e))
			q.mu.Unlock()
		}
	}
}

// deliverEvent delivers one event. An event that causes a panic is lost.
func (q *EventQueue) deliverEvent(e runtime.Emission) {
	if p := contain.Call(func() { q.effects.EmitEvent(e) }); p != nil {
		q.log.Error("an event of a task panicked and is lost", p.Fields()...)
	}
}

// CloseAndFlush closes the queue and waits until all its events are delivered.
func (q *EventQueue) CloseAndFlush(ctx context.Context) {
	q.mu.Lock()
	q.isClosed = true
	idle := q.drained
	q.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// lateEventTimeout is the time for which a result waits at most for events that
// were sent before it. They are on an open stream, so they have usually
// arrived.
const lateEventTimeout = time.Second

// WaitForEvents waits a moment until so many events have arrived.
func (q *EventQueue) WaitForEvents(ctx context.Context, count uint64) {
	if q.arrivalSignal(count) == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lateEventTimeout)
	defer cancel()
	for {
		news := q.arrivalSignal(count)
		if news == nil {
			return
		}
		select {
		case <-news:
		case <-ctx.Done():
			return
		}
	}
}

// arrivalSignal returns a channel that is closed when more events arrive, nil when
// count events have arrived.
func (q *EventQueue) arrivalSignal(count uint64) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.receivedCount >= count {
		return nil
	}
	if q.arrived == nil {
		q.arrived = make(chan struct{})
	}
	return q.arrived
}
