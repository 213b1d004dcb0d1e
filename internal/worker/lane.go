package worker

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// lane carries the events of one task to its run, in order, on a goroutine of
// its own, so that nothing that has to do with events can hold up anything
// else. It is bounded: the oldest events that need not be kept are dropped.
type lane struct {
	effects runtime.Effects
	all     *eventBytes
	log     *zap.Logger

	mu       sync.Mutex
	items    []runtime.Emission
	bytes    int64         // of items, and of those that are being handed on
	durable  int           // among items
	freed    chan struct{} // closed when there is room again; nil = no stream waits
	lost     uint64
	received uint64
	over     bool
	idle     chan struct{} // closed when nothing is left to hand on; nil while nothing runs
	news     chan struct{} // closed when events arrive, if somebody waits for them
}

// Bounds of a lane, in events.
const (
	maxWaiting = 1024 // that may be dropped
	maxDurable = 4096 // that may not
)

func newLane(effects runtime.Effects, all *eventBytes, log *zap.Logger) *lane {
	return &lane{effects: effects, all: all, log: log}
}

// put adds events. It says how many were dropped, and whether more events that
// must be kept are waiting than can be held.
func (l *lane) put(events []runtime.Emission, dropped uint64) (lost uint64, flooded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.received += uint64(len(events))
	if l.news != nil {
		close(l.news)
		l.news = nil
	}
	if l.over {
		return 0, false
	}
	l.lost += dropped
	for _, e := range events {
		if e.Durable {
			l.durable++
		}
		l.count(sizeOf(e))
	}
	l.items = append(l.items, events...)
	lost = l.trim()
	flooded = l.durable > maxDurable || l.durable > 1 && l.bytes > l.all.most/laneShare
	l.over = flooded
	if l.idle == nil && (len(l.items) > 0 || l.lost > 0) { // also of a flood: what waits counts until it is handed on
		l.idle = make(chan struct{})
		idle := l.idle
		go contain.Func(func() { l.run(idle) }, contain.Log(l.log, "a lane of events panicked"))()
	}
	return lost, flooded
}

// mark puts what the hub says of the events that follow into their order.
func (l *lane) mark(kind checkpoint.EventKind) {
	l.put([]runtime.Emission{{Kind: kind, Durable: true}}, 0)
}

// count adds to the bytes that wait. mu is held.
func (l *lane) count(n int64) {
	l.bytes += n
	l.all.add(n)
	if l.freed != nil && l.bytes <= l.all.most/laneShare/2 {
		close(l.freed)
		l.freed = nil
	}
}

// trim drops the oldest events that may be dropped: of many, and of large ones.
func (l *lane) trim() (lost uint64) {
	surplus := len(l.items) - l.durable - maxWaiting
	within := l.all.most / laneShare
	if l.all.full() {
		within = 0
	}
	if surplus <= 0 && l.bytes <= within || len(l.items) == l.durable {
		return 0
	}
	l.items = slices.DeleteFunc(l.items, func(e runtime.Emission) bool {
		if e.Durable || surplus <= 0 && l.bytes <= within {
			return false
		}
		surplus--
		l.count(-sizeOf(e))
		lost++
		return true
	})
	l.lost += lost
	return lost
}

// run hands events on until none is left.
func (l *lane) run(idle chan struct{}) {
	defer close(idle)
	for {
		l.mu.Lock()
		items, lost := l.items, l.lost
		l.items, l.durable, l.lost = nil, 0, 0
		if len(items) == 0 && lost == 0 {
			l.idle = nil
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		if lost > 0 {
			l.emit(runtime.Emission{Kind: runtime.EventGap})
		}
		for _, e := range items {
			l.emit(e)
			l.mu.Lock()
			l.count(-sizeOf(e))
			l.mu.Unlock()
		}
	}
}

// emit hands one event on. One that panics is lost.
func (l *lane) emit(e runtime.Emission) {
	if p := contain.Call(func() { l.effects.Emit(e) }); p != nil {
		l.log.Error("an event of a task panicked and is lost", p.Fields()...)
	}
}

// flush closes the lane and waits until everything in it is handed on.
func (l *lane) flush(ctx context.Context) {
	l.mu.Lock()
	l.over = true
	idle := l.idle
	l.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// stragglers is how long a result waits at most for events that were sent
// before it: they are on an open stream, so as a rule they are there.
const stragglers = time.Second

// await waits a moment until so many events have arrived.
func (l *lane) await(ctx context.Context, count uint64) {
	if l.complete(count) == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, stragglers)
	defer cancel()
	for {
		news := l.complete(count)
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

// complete returns what is closed when more events arrive, nil when so many
// have come.
func (l *lane) complete(count uint64) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.received >= count {
		return nil
	}
	if l.news == nil {
		l.news = make(chan struct{})
	}
	return l.news
}

// FloodFailure fails a task whose events can't all be kept.
func FloodFailure() pregel.Result {
	r := failed("EmitFlood", "the node emitted more durable events than can be stored in time; emit fewer, or not durable ones")
	r.Failure.Permanent = true
	return r
}
