package capacity

import (
	"sync/atomic"
	"time"
)

// memoryQueue is the order in which heavy runs that wait for memory get it. All of
// it but the count is guarded by Limiter.mu.
type memoryQueue struct {
	waiterCount atomic.Int64 // how many wait

	waiters []memoryWaiter // some may have left
	queued  map[string]struct{}
}

// memoryWaiter is a thread whose run waits for memory.
type memoryWaiter struct {
	thread    string
	needBytes int64
	pruneMark PruneMark     // what its loop knew of the past, if it was live here
	queuedAt  time.Duration // uptime of the process
}

// enqueueWaiter puts a thread at the end.
func (q *memoryQueue) enqueueWaiter(x memoryWaiter) {
	if _, in := q.queued[x.thread]; in || len(q.waiters) >= maxQueuedThreads {
		return
	}
	if q.queued == nil {
		q.queued = make(map[string]struct{})
	}
	q.queued[x.thread] = struct{}{}
	q.waiters = append(q.waiters, x)
	q.waiterCount.Store(int64(len(q.queued)))
}

// hasThread reports whether a thread is queued.
func (q *memoryQueue) hasThread(thread string) bool {
	_, in := q.queued[thread]
	return in
}

// removeThread takes a thread out.
func (q *memoryQueue) removeThread(thread string) {
	delete(q.queued, thread)
	if len(q.queued) == 0 {
		q.waiters = nil
	}
	q.waiterCount.Store(int64(len(q.queued)))
}

// countWaiters counts the threads that are queued. It needs no lock.
func (q *memoryQueue) countWaiters() int { return int(q.waiterCount.Load()) }

// maxLookAhead bounds how far behind one that does not fit others are looked at.
const maxLookAhead = 64

// takeNext removes the first thread for which there is memory. One for which there
// is none keeps those behind it from passing for two turns, in which runs release
// memory that come to the end of a superstep, and lets them pass for two: those
// that are left may stand still for long.
func (q *memoryQueue) takeNext(now time.Duration, fits func(need int64) bool) (memoryWaiter, bool) {
	for i := 0; i < min(len(q.waiters), maxLookAhead); i++ {
		x := q.waiters[i]
		_, in := q.queued[x.thread]
		switch {
		case !in || fits(x.needBytes):
			copy(q.waiters[1:i+1], q.waiters[:i])
			q.waiters[0] = memoryWaiter{}
			q.waiters = q.waiters[1:]
			if in {
				q.removeThread(x.thread)
				return x, true
			}
			i--
		case (now-x.queuedAt)/(2*HeavyTurn)%2 == 0:
			return memoryWaiter{}, false
		}
	}
	return memoryWaiter{}, false
}

// HeavyTurn is how long a heavy run goes on while others wait for memory.
const HeavyTurn = 5 * time.Second
