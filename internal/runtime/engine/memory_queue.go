package engine

import (
	"sync"
	"sync/atomic"
	"time"
)

// memoryQueue is the order in which heavy runs that wait for memory get it.
type memoryQueue struct {
	waiterCount atomic.Int64 // how many wait

	mu      sync.Mutex
	waiters []memoryWaiter // some may have left
	queued  map[string]struct{}
}

// memoryWaiter is a thread whose run waits for memory.
type memoryWaiter struct {
	thread    string
	needBytes int64         // bytes
	pruneMark pruneMark     // what its loop knew of the past, if it was live here
	queuedAt  time.Duration // Engine.uptime
}

// enqueueWaiter puts a thread at the end.
func (l *memoryQueue) enqueueWaiter(x memoryWaiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, in := l.queued[x.thread]; in || len(l.waiters) >= maxQueuedThreads {
		return
	}
	if l.queued == nil {
		l.queued = make(map[string]struct{})
	}
	l.queued[x.thread] = struct{}{}
	l.waiters = append(l.waiters, x)
	l.waiterCount.Store(int64(len(l.queued)))
}

// hasThread reports whether a thread is queued.
func (l *memoryQueue) hasThread(thread string) bool {
	if l.waiterCount.Load() == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, in := l.queued[thread]
	return in
}

// removeThread takes a thread out.
func (l *memoryQueue) removeThread(thread string) {
	if l.waiterCount.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removeLocked(thread)
}

// removeLocked notes that a thread is no longer queued. The caller holds mu.
func (l *memoryQueue) removeLocked(thread string) {
	delete(l.queued, thread)
	if len(l.queued) == 0 {
		l.waiters = nil
	}
	l.waiterCount.Store(int64(len(l.queued)))
}

func (l *memoryQueue) len() int { return int(l.waiterCount.Load()) }

// maxLookAhead bounds how far behind one that does not fit others are looked at.
const maxLookAhead = 64

// takeNext removes the first thread for which there is memory. One for which there
// is none keeps those behind it from passing for two turns, in which runs release
// memory that come to the end of a superstep, and lets them pass for two: those
// that are left may stand still for long.
func (l *memoryQueue) takeNext(now time.Duration, fits func(need int64) bool) (memoryWaiter, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := 0; i < min(len(l.waiters), maxLookAhead); i++ {
		x := l.waiters[i]
		_, in := l.queued[x.thread]
		switch {
		case !in || fits(x.needBytes):
			copy(l.waiters[1:i+1], l.waiters[:i])
			l.waiters[0] = memoryWaiter{}
			l.waiters = l.waiters[1:]
			if in {
				l.removeLocked(x.thread)
				return x, true
			}
			i--
		case (now-x.queuedAt)/(2*heavyTurn)%2 == 0:
			return memoryWaiter{}, false
		}
	}
	return memoryWaiter{}, false
}
