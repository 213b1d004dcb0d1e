// Package scheduler holds what the scheduler remembers of threads between two looks at
// them: which wait for a slot or for memory, which are quarantined, and how long a store
// that refuses changes is left alone.
package scheduler

import (
	"sync"
)

// SlotQueue is the queue of threads that need a slot. It saves the scheduler from
// reading each of them again and again.
type SlotQueue struct {
	mu      sync.Mutex
	threads []string            // including removed ones
	queued  map[string]struct{} // those that have not
}

// MaxQueuedThreads bounds how many threads a process keeps queued. The store knows
// them all: those beyond are found when the queue has room.
const MaxQueuedThreads = 1 << 16

// EnqueueThread puts a thread at the end.
func (l *SlotQueue) EnqueueThread(thread string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, in := l.queued[thread]; in || len(l.threads) >= MaxQueuedThreads {
		return
	}
	if l.queued == nil {
		l.queued = make(map[string]struct{})
	}
	l.queued[thread] = struct{}{}
	l.threads = append(l.threads, thread)
}

// HasThread reports whether a thread is queued.
func (l *SlotQueue) HasThread(thread string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, in := l.queued[thread]
	return in
}

// RemoveThread takes a thread out.
func (l *SlotQueue) RemoveThread(thread string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.queued, thread)
	if len(l.queued) == 0 {
		l.threads = nil
	}
}

// TakeThreads takes the first n threads out.
func (l *SlotQueue) TakeThreads(n int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for len(out) < n && len(l.queued) > 0 {
		thread := l.threads[0]
		l.threads = l.threads[1:]
		if _, in := l.queued[thread]; in {
			delete(l.queued, thread)
			out = append(out, thread)
		}
	}
	if len(l.queued) == 0 {
		l.threads = nil
	}
	return out
}

// Len counts the threads that are queued.
func (l *SlotQueue) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queued)
}
