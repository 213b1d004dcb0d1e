package scheduler

import (
	"sync"
	"sync/atomic"
	"time"
)

// MemoryQueue is the order in which heavy runs that wait for memory get it.
type MemoryQueue struct {
	waiterCount atomic.Int64 // how many wait

	mu      sync.Mutex
	waiters []MemoryWaiter // some may have left
	queued  map[string]struct{}
}

// MemoryWaiter is a thread whose run waits for memory.
type MemoryWaiter struct {
	Thread    string
	NeedBytes int64         // bytes
	PruneMark PruneMark     // what its loop knew of the past, if it was live here
	QueuedAt  time.Duration // uptime of the engine
}

// EnqueueWaiter puts a thread at the end.
func (l *MemoryQueue) EnqueueWaiter(x MemoryWaiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, in := l.queued[x.Thread]; in || len(l.waiters) >= MaxQueuedThreads {
		return
	}
	if l.queued == nil {
		l.queued = make(map[string]struct{})
	}
	l.queued[x.Thread] = struct{}{}
	l.waiters = append(l.waiters, x)
	l.waiterCount.Store(int64(len(l.queued)))
}

// HasThread reports whether a thread is queued.
func (l *MemoryQueue) HasThread(thread string) bool {
	if l.waiterCount.Load() == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, in := l.queued[thread]
	return in
}

// RemoveThread takes a thread out.
func (l *MemoryQueue) RemoveThread(thread string) {
	if l.waiterCount.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removeLocked(thread)
}

// removeLocked notes that a thread is no longer queued. The caller holds mu.
func (l *MemoryQueue) removeLocked(thread string) {
	delete(l.queued, thread)
	if len(l.queued) == 0 {
		l.waiters = nil
	}
	l.waiterCount.Store(int64(len(l.queued)))
}

// Len counts the threads that are queued.
func (l *MemoryQueue) Len() int { return int(l.waiterCount.Load()) }

// maxLookAhead bounds how far behind one that does not fit others are looked at.
const maxLookAhead = 64

// TakeNext removes the first thread for which there is memory. One for which there
// is none keeps those behind it from passing for two turns, in which runs release
// memory that come to the end of a superstep, and lets them pass for two: those
// that are left may stand still for long.
func (l *MemoryQueue) TakeNext(now time.Duration, fits func(need int64) bool) (MemoryWaiter, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := 0; i < min(len(l.waiters), maxLookAhead); i++ {
		x := l.waiters[i]
		_, in := l.queued[x.Thread]
		switch {
		case !in || fits(x.NeedBytes):
			copy(l.waiters[1:i+1], l.waiters[:i])
			l.waiters[0] = MemoryWaiter{}
			l.waiters = l.waiters[1:]
			if in {
				l.removeLocked(x.Thread)
				return x, true
			}
			i--
		case (now-x.QueuedAt)/(2*HeavyTurn)%2 == 0:
			return MemoryWaiter{}, false
		}
	}
	return MemoryWaiter{}, false
}

// HeavyTurn is how long a heavy run goes on while others wait for memory.
const HeavyTurn = 5 * time.Second

// PruneMark is what a live run knows of its last prune.
type PruneMark struct {
	At      time.Duration // uptime of the engine, 0 = not yet
	Seq     uint64        // the thread's last checkpoint then
	HasMore bool          // there was more to cut off than is cut off at once
}
