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
	compares             bool // it must compare what it asks with what was answered
}

// Binding reports whether a task has answers that must be compared with what
// the code asks: whoever does not do that must not get them.
func Binding(t *runtime.Task) bool {
	spec := t.Graph.Spec
	return len(t.Journal.Answers) > 0 && t.Router == "" && t.Reduce == nil && (spec == nil || spec.Drift != graph.DriftAccept)
}

// routeOf says who may run a task. A reducer belongs to the whole graph.
func routeOf(t *runtime.Task) route {
	r := route{graph: t.Graph.Name, version: t.Graph.Version, compares: Binding(t)}
	if t.Node != nil {
		r.node = t.Node.Name
	}
	return r
}

// anyhow is the route of tasks that need nothing compared.
func (r route) anyhow() route {
	r.compares = false
	return r
}

// queue holds the tasks of one route, the oldest first.
type queue struct{ jobs []*job }

// enqueue puts a task where its age belongs. mu is held.
func (h *Hub) enqueue(j *job) {
	q := h.queues[j.route]
	if q == nil {
		q = &queue{}
		h.queues[j.route] = q
	}
	at := sort.Search(len(q.jobs), func(i int) bool { return q.jobs[i].order > j.order })
	q.jobs = slices.Insert(q.jobs, at, j)
	h.waiting.Add(1)
	h.notice(j.route)
}

// dequeue takes a task out of the queue if it is there. mu is held.
func (h *Hub) dequeue(j *job) {
	q := h.queues[j.route]
	if q == nil {
		return
	}
	if i := slices.Index(q.jobs, j); i >= 0 {
		q.jobs = slices.Delete(q.jobs, i, i+1)
		h.waiting.Add(-1)
	}
	if len(q.jobs) == 0 {
		delete(h.queues, j.route)
	}
}

// dispatch offers the tasks of a route to whoever has just finished one of the
// same thread and waits for the next, or else has most room. mu is held.
func (h *Hub) dispatch(r route) {
	for {
		q := h.queues[r]
		if q == nil {
			return
		}
		j, s := h.match(q)
		if j == nil {
			return
		}
		h.dequeue(j)
		h.offer(j, s)
	}
}

// dispatchOne offers a task to a worker that takes it, if it is in a queue. mu is held.
func (h *Hub) dispatchOne(j *job) {
	if q := h.queues[j.route]; j.stage != queued || q == nil || !slices.Contains(q.jobs, j) {
		return
	}
	if s := h.bestFor(j); s != nil {
		h.dequeue(j)
		h.offer(j, s)
	}
}

// bestFor picks the worker for a task, nil when none takes it now. mu is held.
func (h *Hub) bestFor(j *job) *Session {
	var best *Session
	for _, s := range h.sessions {
		if s.takes(j) && (best == nil || s.before(best, j)) {
			best = s
		}
	}
	return best
}

// hasRoom reports whether a worker serves a route and has room. mu is held.
func (h *Hub) hasRoom(r route) bool {
	for _, s := range h.sessions {
		if s.free() > 0 && s.serves(r) {
			return true
		}
	}
	return false
}

func (h *Hub) match(q *queue) (*job, *Session) {
	if !h.hasRoom(q.jobs[0].route) {
		return nil, nil
	}
	for _, j := range q.jobs {
		if best := h.bestFor(j); best != nil {
			return j, best
		}
		if len(j.avoid) == 0 {
			return nil, nil // nobody has room for any task of the route
		}
	}
	return nil, nil
}

// offerTo gives a worker that has room the oldest tasks it serves. mu is held.
func (h *Hub) offerTo(s *Session) {
	for s.free() > 0 {
		var oldest *job
		for r, q := range h.queues {
			if !s.serves(r) {
				continue
			}
			for _, j := range q.jobs {
				if s.takes(j) {
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
		h.dequeue(oldest)
		h.offer(oldest, s)
	}
}

func (h *Hub) served(r route) bool {
	for _, s := range h.sessions {
		if s.serves(r) && !s.leaving {
			return true
		}
	}
	return false
}

// whyNobody says in words of the operator why a route is not served.
func (h *Hub) whyNobody(r route) string {
	var versions []string
	known := false
	for _, s := range h.sessions {
		if r.compares && s.serves(r.anyhow()) {
			return "no connected worker of graph " + r.graph + " compares what it asks with what was answered " +
				"(feature \"drift\"): bring the workers up to date"
		}
		for _, served := range s.hello.Serves {
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
			"; those that are connected serve " + join(versions)
	case known:
		return "no connected worker serves node " + r.node + " of graph " + r.graph
	default:
		return "no worker of graph " + r.graph + " is connected"
	}
}

func join(list []string) string {
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

// about names a task in the log.
func (j *job) about() []zap.Field {
	return []zap.Field{
		zap.String("thread", j.task.Thread), zap.String("run", j.task.Run), zap.String("task", j.task.ID),
		zap.String("graph", j.route.graph), zap.String("node", j.route.node),
	}
}

// fields names a task and the worker that has it. mu is held.
func (j *job) fields() []zap.Field {
	f := j.about()
	if j.session != nil {
		f = append(f, zap.String("worker", j.session.hello.Worker))
	}
	return f
}
