package worker

import (
	"slices"
	"sort"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// route is what a worker must serve to run a task.
type route struct {
	graph, version, node string
	needsComparison      bool // it must compare what it asks with what was answered
}

// NeedsComparison reports whether a task has answers that must be compared with
// what the code asks: a worker that does not compare must not get them.
func NeedsComparison(t *runtime.Task) bool {
	spec := t.Graph.Spec
	return len(t.Journal.Answers) > 0 && t.Router == "" && t.Reduce == nil && (spec == nil || spec.Drift != graph.DriftAccept)
}

// routeOf says who may run a task. A reducer belongs to the whole graph.
func routeOf(t *runtime.Task) route {
	r := route{graph: t.Graph.Name, version: t.Graph.Version, needsComparison: NeedsComparison(t)}
	if t.Node != nil {
		r.node = t.Node.Name
	}
	return r
}

// withoutComparison is the route of tasks that need no comparison.
func (r route) withoutComparison() route {
	r.needsComparison = false
	return r
}

// jobQueue holds the tasks of one route, the oldest first.
type jobQueue struct{ jobs []*job }

// enqueueJob puts a task where its age belongs. mu is held.
func (h *Hub) enqueueJob(j *job) {
	q := h.queues[j.route]
	if q == nil {
		q = &jobQueue{}
		h.queues[j.route] = q
	}
	at := sort.Search(len(q.jobs), func(i int) bool { return q.jobs[i].order > j.order })
	q.jobs = slices.Insert(q.jobs, at, j)
	h.queuedTasks.Add(1)
	h.noticeUnserved(j.route)
}

// dequeueJob takes a task out of the queue if it is there. mu is held.
func (h *Hub) dequeueJob(j *job) {
	q := h.queues[j.route]
	if q == nil {
		return
	}
	if i := slices.Index(q.jobs, j); i >= 0 {
		q.jobs = slices.Delete(q.jobs, i, i+1)
		h.queuedTasks.Add(-1)
	}
	if len(q.jobs) == 0 {
		delete(h.queues, j.route)
	}
}

// dispatchRoute offers the tasks of a route to the worker that has just finished
// one of the same thread and waits for the next, or else to the one with most free
// slots. mu is held.
func (h *Hub) dispatchRoute(r route) {
	for {
		q := h.queues[r]
		if q == nil {
			return
		}
		j, s := h.findMatch(q)
		if j == nil {
			return
		}
		h.dequeueJob(j)
		h.offerJob(j, s)
	}
}

// dispatchJob offers a task to a worker that takes it, if it is in a queue. mu is held.
func (h *Hub) dispatchJob(j *job) {
	if q := h.queues[j.route]; j.stage != stageQueued || q == nil || !slices.Contains(q.jobs, j) {
		return
	}
	if s := h.findWorker(j); s != nil {
		h.dequeueJob(j)
		h.offerJob(j, s)
	}
}

// findWorker picks the worker for a task, nil when none takes it now. mu is held.
func (h *Hub) findWorker(j *job) *Session {
	var best *Session
	for _, s := range h.sessions {
		if s.canTake(j) && (best == nil || s.isPreferredTo(best, j)) {
			best = s
		}
	}
	return best
}

// hasFreeWorker reports whether a worker serves a route and has a free slot. mu is held.
func (h *Hub) hasFreeWorker(r route) bool {
	for _, s := range h.sessions {
		if s.freeSlots() > 0 && s.canServe(r) {
			return true
		}
	}
	return false
}

func (h *Hub) findMatch(q *jobQueue) (*job, *Session) {
	if !h.hasFreeWorker(q.jobs[0].route) {
		return nil, nil
	}
	for _, j := range q.jobs {
		if best := h.findWorker(j); best != nil {
			return j, best
		}
		if len(j.refusedBy) == 0 {
			return nil, nil // no worker has a free slot for the route
		}
	}
	return nil, nil
}

// offerOldestTo gives a worker with free slots the oldest tasks that it serves. mu
// is held.
func (h *Hub) offerOldestTo(s *Session) {
	for s.freeSlots() > 0 {
		var oldest *job
		for r, q := range h.queues {
			if !s.canServe(r) {
				continue
			}
			for _, j := range q.jobs {
				if s.canTake(j) {
					if oldest == nil || j.order < oldest.order {
						oldest = j
					}
					break
				}
			}
		}
		if oldest == nil {
			return
		}
		h.dequeueJob(oldest)
		h.offerJob(oldest, s)
	}
}

func (h *Hub) isServed(r route) bool {
	for _, s := range h.sessions {
		if s.canServe(r) && !s.isLeaving {
			return true
		}
	}
	return false
}

// unservedReason says to the operator why a route is not served.
func (h *Hub) unservedReason(r route) string {
	var versions []string
	known := false
	for _, s := range h.sessions {
		if r.needsComparison && s.canServe(r.withoutComparison()) {
			return "no connected worker of graph " + r.graph + " compares what it asks with what was answered " +
				"(feature \"drift\"): bring the workers up to date"
		}
		for _, served := range s.hello.Capabilities {
			if served.Graph != r.graph {
				continue
			}
			known = true
			if served.Version != "" && served.Version != r.version {
				versions = append(versions, served.Version)
			}
		}
	}
	slices.Sort(versions)
	versions = slices.Compact(versions)
	switch {
	case len(versions) > 0:
		return "no connected worker serves version " + r.version + " of graph " + r.graph +
			"; those that are connected serve " + joinVersions(versions)
	case known:
		return "no connected worker serves node " + r.node + " of graph " + r.graph
	default:
		return "no worker of graph " + r.graph + " is connected"
	}
}

func joinVersions(list []string) string {
	const most = 5
	text := ""
	for i, s := range list {
		switch {
		case i == most:
			return text + ", …"
		case i > 0:
			text += ", "
		}
		text += s
	}
	return text
}

// taskFields names a task in the log.
func (j *job) taskFields() []zap.Field {
	return []zap.Field{
		zap.String("thread", j.task.Thread), zap.String("run", j.task.Run), zap.String("task", j.task.ID),
		zap.String("graph", j.route.graph), zap.String("node", j.route.node),
	}
}

// deliveryFields names a task and the worker that has it. mu is held.
func (j *job) deliveryFields() []zap.Field {
	f := j.taskFields()
	if j.session != nil {
		f = append(f, zap.String("worker", j.session.hello.Worker))
	}
	return f
}
