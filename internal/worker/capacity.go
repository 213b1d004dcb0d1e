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
	return slices.ContainsFunc(s.hello.Serves, func(x Served) bool { return x.Takes(r.need()) })
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
	busy := 0
	for _, j := range s.jobs {
		if j.blocked == 0 {
			busy++
		}
	}
	return s.credit.Total - busy - len(s.holds)
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
