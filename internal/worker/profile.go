package worker

import (
	"maps"
	"slices"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// estimateProfile estimates the bytes of memory of what the worker says of itself.
func (s *Session) estimateProfile() int64 {
	const session, text = 1024, 32
	n := session + len(s.hello.BuildID)
	for _, x := range s.hello.Capabilities {
		n += 4*text + len(x.Graph) + len(x.Version) + len(x.Node)
	}
	for k, v := range s.hello.Labels {
		n += 2*text + len(k) + len(v)
	}
	for k := range s.capacity.credit.PerNode {
		n += 2*text + len(k)
	}
	return int64(n)
}

func (s *Session) describeWorker() runtime.Worker {
	w := runtime.Worker{
		ID: s.hello.Worker, Slots: s.capacity.credit.Total, FreeSlots: max(s.capacity.FreeSlots(), 0), LastHeartbeat: s.lastHeard,
		Labels: maps.Clone(s.hello.Labels), Draining: s.isLeaving, Build: s.hello.BuildID,
	}
	for _, x := range s.hello.Capabilities {
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
