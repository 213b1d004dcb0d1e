package worker

import (
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker/queue"
)

// NeedsComparison reports whether a task has answers that must be compared with
// what the code asks: a process that does not compare must not get them.
func NeedsComparison(t *runtime.Task) bool { return queue.NeedsComparison(t) }

// enqueueJob puts a task where its age belongs. mu is held.
func (h *Hub) enqueueJob(j *job) {
	h.queue.AddTask(j)
	h.noticeUnserved(j.route)
}

// dispatchRoute offers the tasks of a route to workers with free slots. mu is held.
func (h *Hub) dispatchRoute(r queue.Route) {
	for {
		j, c, ok := h.queue.TakeMatch(r, h.sessions.listCapacities())
		if !ok {
			return
		}
		h.offerJob(j, c.session)
	}
}

// dispatchJob offers a task to a worker that takes it, if it is in the queue. mu is held.
func (h *Hub) dispatchJob(j *job) {
	if c, ok := h.queue.TakeTask(j, h.sessions.listCapacities()); ok {
		h.offerJob(j, c.session)
	}
}

// offerOldestTo gives a worker with free slots the oldest tasks that it serves. mu
// is held.
func (h *Hub) offerOldestTo(s *Session) {
	for {
		j, ok := h.queue.TakeOldest(&s.capacity)
		if !ok {
			return
		}
		h.offerJob(j, s)
	}
}
