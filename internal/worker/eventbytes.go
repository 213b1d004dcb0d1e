package worker

import (
	"slices"
	"sync"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// eventBytes counts the events of all tasks that wait to be handed on.
type eventBytes struct {
	most int64

	mu    sync.Mutex
	bytes int64
	freed chan struct{} // closed when there is room again; nil = no task waits
}

// laneShare is which part of the bytes the events of one task may take.
const laneShare = 4

// sizeOf is about how many bytes of memory an event takes.
func sizeOf(e runtime.Emission) int64 {
	const around = 128
	return int64(len(e.Value)+len(e.Name)) + around
}

func (b *eventBytes) add(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes += n
	if b.freed != nil && b.bytes < b.most {
		close(b.freed)
		b.freed = nil
	}
}

func (b *eventBytes) full() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes >= b.most
}

// room returns nil when there is room, or what is closed when there is.
func (b *eventBytes) room() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bytes < b.most {
		return nil
	}
	if b.freed == nil {
		b.freed = make(chan struct{})
	}
	return b.freed
}

// admit waits until there is room for events, if some of them must be kept, or
// it is late.
func (l *lane) admit(late <-chan struct{}, events []runtime.Emission) {
	for mustKeep(events) {
		freed := l.room()
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

// room returns nil when events can be taken, or what is closed when they may be.
func (l *lane) room() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over || l.bytes <= l.all.most/laneShare/2 {
		return l.all.room()
	}
	if l.freed == nil {
		l.freed = make(chan struct{})
	}
	return l.freed
}

func mustKeep(events []runtime.Emission) bool {
	return slices.ContainsFunc(events, func(e runtime.Emission) bool { return e.Durable })
}
