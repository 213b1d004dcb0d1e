package capacity

// slotQueue is the queue of threads that need a slot. It saves the scheduler from
// reading each of them again and again. Limiter.mu guards it.
type slotQueue struct {
	threads []string            // including removed ones
	queued  map[string]struct{} // those that have not
}

// maxQueuedThreads bounds how many threads a process keeps queued. The store knows
// them all: those beyond are found when the queue has room.
const maxQueuedThreads = 1 << 16

// enqueueThread puts a thread at the end.
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

// removeThread takes a thread out.
func (q *slotQueue) removeThread(thread string) {
	delete(q.queued, thread)
	if len(q.queued) == 0 {
		q.threads = nil
	}
}

// takeThreads takes the first n threads out.
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
