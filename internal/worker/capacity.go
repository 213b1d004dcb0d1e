package worker

import (
	"maps"
	"slices"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// serves reports whether the worker runs tasks of a route. A reducer belongs
// to no node: who serves any node of the graph knows it.
func (s *Session) serves(r route) bool {
	if r.compares && !s.hello.Compares {
		return false
	}
	return s.covers.Takes(r.need())
}

// seat makes room for a worker, which may take the place of its older session. mu
// is held.
func (h *Hub) seat(s, older *Session) error {
	sum, connected := h.said+s.claims(), len(h.sessions)
	if older != nil {
		connected--
		if older.cause == nil {
			sum -= older.weight
		}
	}
	if connected >= h.opts.Workers {
		return tooMany("workers", "max-workers", int64(h.opts.Workers), int64(connected)+1)
	}
	return s.weigh(sum)
}

// weigh counts what the worker says of itself, if all of that together may be so
// much. mu is held.
func (s *Session) weigh(sum int64) error {
	h := s.hub
	if sum > h.opts.Served {
		return tooMany("bytes of what workers serve", "max-worker-bytes", h.opts.Served, sum)
	}
	claims := s.claims()
	h.said += claims - s.weight
	s.weight = claims
	return nil
}

func tooMany(what, limit string, most, need int64) error {
	return runtime.Errorf(runtime.ReasonTooManyRequests, "the server holds as many %s as it may, %d; connect to another one, or later",
		what, most).Beyond(limit, most, need)
}

// claims is about how many bytes of memory what the worker says of itself takes.
func (s *Session) claims() int64 {
	const session, text = 1024, 32
	n := session + len(s.hello.Build)
	for _, x := range s.hello.Serves {
		n += 4*text + len(x.Graph) + len(x.Version) + len(x.Node)
	}
	for k, v := range s.hello.Labels {
		n += 2*text + len(k) + len(v)
	}
	for k := range s.credit.PerNode {
		n += 2*text + len(k)
	}
	return int64(n)
}

// takes reports whether a task may be offered to the worker now.
func (s *Session) takes(j *job) bool {
	if s.leaving || s.cause != nil || s.free() <= 0 || !s.serves(j.route) {
		return false
	}
	if _, refused := j.avoid[s]; refused {
		return false
	}
	limit, ok := s.credit.PerNode[j.route.graph+"/"+j.route.node]
	return !ok || s.busy(j.route) < limit
}

func (s *Session) busy(r route) int {
	n := 0
	for _, j := range s.jobs {
		if j.blocked == 0 && j.route.graph == r.graph && j.route.node == r.node {
			n++
		}
	}
	return n
}

// free is how many more tasks the worker could take.
func (s *Session) free() int {
	if s.leaving || s.cause != nil {
		return 0
	}
	if s.refused >= maxRefused {
		return 0
	}
	return s.credit.Total - (len(s.jobs) - s.blocked) - len(s.holds)
}

// gain notes that the worker has a task, under its lease. mu is held.
func (s *Session) gain(j *job) {
	s.drop(j)
	s.jobs[j.token] = j
	if j.blocked > 0 {
		s.blocked++
	}
}

// drop notes that it has it no more. mu is held.
func (s *Session) drop(j *job) {
	if s.jobs[j.token] != j {
		return
	}
	delete(s.jobs, j.token)
	if j.blocked > 0 {
		s.blocked--
	}
}

func (s *Session) describe() runtime.Worker {
	w := runtime.Worker{
		ID: s.hello.Worker, Slots: s.credit.Total, Free: max(s.free(), 0), Beat: s.heard,
		Labels: maps.Clone(s.hello.Labels), Draining: s.leaving, Build: s.hello.Build,
	}
	for _, x := range s.hello.Serves {
		node := x.Node
		if node == "" {
			node = "*"
		}
		w.Nodes = append(w.Nodes, x.Graph+"/"+node)
	}
	slices.Sort(w.Nodes)
	w.Nodes = slices.Compact(w.Nodes)
	return w
}
