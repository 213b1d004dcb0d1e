package capacity

import (
	"sync/atomic"
	"time"
)

// memoryQueue orders the heavy runs that wait for memory. Limiter.mu guards all of
// it but the count.
type memoryQueue struct {
	waiterCount atomic.Int64 // number of waiters

	waiters []memoryWaiter // some may have left
	queued  map[string]struct{}
}

// memoryWaiter is a thread whose run waits for memory.
type memoryWaiter struct {
	thread    string
	needBytes int64
	pruneMark PruneMark     // of its loop, if the run was live here
	queuedAt  time.Duration // uptime of the process
}

// enqueueWaiter adds a thread at the end.
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

// removeThread removes a thread.
func (q *memoryQueue) removeThread(thread string) {
	delete(q.queued, thread)
	if len(q.queued) == 0 {
		q.waiters = nil
	}
	q.waiterCount.Store(int64(len(q.queued)))
}

// countWaiters counts the threads that are queued. It needs no lock.
func (q *memoryQueue) countWaiters() int { return int(q.waiterCount.Load()) }

// maxLookAhead is the number of waiters behind a waiter that does not fit that
// are examined.
const maxLookAhead = 64

// takeNext removes the first thread for which there is memory. A thread that does
// not fit blocks those behind it for two turns, in which runs at the end of a
// superstep release memory. Then it lets them pass for two turns, because the
// remaining runs may not release memory for long.
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

// HeavyTurn is the time for which a heavy run continues while others wait for
// memory.
const HeavyTurn = 5 * time.Second
