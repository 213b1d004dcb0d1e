package capacity

// slotQueue is the queue of threads that need a slot. It saves the scheduler from
// reading each of them again and again. Limiter.mu guards it.
type slotQueue struct {
	threads []string            // including removed threads
	queued  map[string]struct{} // those that have not
}

// maxQueuedThreads is the largest number of queued threads. The store knows all
// threads: the scheduler finds the others when the queue has room.
const maxQueuedThreads = 1 << 16

// enqueueThread adds a thread at the end.
func (q *slotQueue) enqueueThread(thread string) {
	if _, in := q.queued[thread]; in || len(q.threads) >= maxQueuedThreads {
		return
	}
	if q.queued == nil {
		q.queued = make(map[string]struct{})
	}
	q.queued[thread] = struct{}{}
	q.threads = append(q.threads, thread)
}

// hasThread reports whether a thread is queued.
func (q *slotQueue) hasThread(thread string) bool {
	_, in := q.queued[thread]
	return in
}

// removeThread removes a thread.
func (q *slotQueue) removeThread(thread string) {
	delete(q.queued, thread)
	if len(q.queued) == 0 {
		q.threads = nil
	}
}

// takeThreads removes the first n threads and returns them.
func (q *slotQueue) takeThreads(n int) []string {
	var out []string
	for len(out) < n && len(q.queued) > 0 {
		thread := q.threads[0]
		q.threads = q.threads[1:]
		if _, in := q.queued[thread]; in {
			delete(q.queued, thread)
			out = append(out, thread)
		}
	}
	if len(q.queued) == 0 {
		q.threads = nil
	}
	return out
}
