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
func (l *EventQueue) AddEvents(events []runtime.Emission, dropped uint64) (lost uint64, flooded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.receivedCount += uint64(len(events))
	if l.arrived != nil {
		close(l.arrived)
		l.arrived = nil
	}
	if l.isClosed {
		return 0, false
	}
	l.droppedCount += dropped
	for _, e := range events {
		if e.Durable {
			l.durableCount++
		}
		l.addBytes(eventSize(e))
	}
	l.items = append(l.items, events...)
	lost = l.dropOldest()
	flooded = l.durableCount > maxDurableEvents || l.durableCount > 1 && l.waitingBytes > l.budget.maxBytes/taskShareDivisor
	l.isClosed = flooded
	if l.drained == nil && (len(l.items) > 0 || l.droppedCount > 0) { // also for a flood: a waiting event counts until it is delivered
		l.drained = make(chan struct{})
		idle := l.drained
		go contain.Func(func() { l.deliverEvents(idle) }, contain.LogPanic(l.log, "a lane of events panicked"))()
	}
	return lost, flooded
}

// AddMarker adds an event of the hub to the sequence of the events.
func (l *EventQueue) AddMarker(kind checkpoint.EventKind) {
	l.AddEvents([]runtime.Emission{{Kind: kind, Durable: true}}, 0)
}

// addBytes adds to the bytes that wait. mu is held.
func (l *EventQueue) addBytes(n int64) {
	l.waitingBytes += n
	l.budget.addBytes(n)
	if l.freed != nil && l.waitingBytes <= l.budget.maxBytes/taskShareDivisor/2 {
		close(l.freed)
		l.freed = nil
	}
}

// dropOldest drops the oldest ephemeral events when they are many or large.
func (l *EventQueue) dropOldest() (lost uint64) {
	surplus := len(l.items) - l.durableCount - maxEphemeralEvents
	within := l.budget.maxBytes / taskShareDivisor
	if l.budget.isFull() {
		within = 0
	}
	if surplus <= 0 && l.waitingBytes <= within || len(l.items) == l.durableCount {
		return 0
	}
	l.items = slices.DeleteFunc(l.items, func(e runtime.Emission) bool {
		if e.Durable || surplus <= 0 && l.waitingBytes <= within {
			return false
		}
		surplus--
		l.addBytes(-eventSize(e))
		lost++
		return true
	})
	l.droppedCount += lost
	return lost
}

// deliverEvents delivers events until the queue is empty.
func (l *EventQueue) deliverEvents(idle chan struct{}) {
	defer close(idle)
	for {
		l.mu.Lock()
		items, lost := l.items, l.droppedCount
		l.items, l.durableCount, l.droppedCount = nil, 0, 0
		if len(items) == 0 && lost == 0 {
			l.drained = nil
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		if lost > 0 {
			l.deliverEvent(runtime.Emission{Kind: runtime.EventGap})
		}
		for _, e := range items {
			l.deliverEvent(e)
			l.mu.Lock()
			l.addBytes(-eventSize(e))
			l.mu.Unlock()
		}
	}
}

// deliverEvent delivers one event. An event that causes a panic is lost.
func (l *EventQueue) deliverEvent(e runtime.Emission) {
	if p := contain.Call(func() { l.effects.EmitEvent(e) }); p != nil {
		l.log.Error("an event of a task panicked and is lost", p.Fields()...)
	}
}

// CloseAndFlush closes the queue and waits until all its events are delivered.
func (l *EventQueue) CloseAndFlush(ctx context.Context) {
	l.mu.Lock()
	l.isClosed = true
	idle := l.drained
	l.mu.Unlock()
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
func (l *EventQueue) WaitForEvents(ctx context.Context, count uint64) {
	if l.arrivalSignal(count) == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lateEventTimeout)
	defer cancel()
	for {
		news := l.arrivalSignal(count)
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
func (l *EventQueue) arrivalSignal(count uint64) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.receivedCount >= count {
		return nil
	}
	if l.arrived == nil {
		l.arrived = make(chan struct{})
	}
	return l.arrived
}
