package worker

import (
	"cmp"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

var _ runtime.Workers = (*Hub)(nil)

// need is what a worker must take to run tasks of a route.
func (r route) need() checkpoint.Served {
	return checkpoint.Served{Graph: r.graph, Version: r.version, Node: r.node}
}

// Meet makes the other servers on the same store known, to which tasks may go
// that no worker of this one takes.
func (h *Hub) Meet(peers runtime.Peers) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.peers = peers
	h.announce()
}

// Takes reports whether a connected worker takes what is needed.
func (h *Hub) Takes(need checkpoint.Served) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.draining && h.served(route{graph: need.Graph, version: need.Version, node: need.Node})
}

// Look has all tasks that nobody here serves looked at again.
func (h *Hub) Look() {
	h.mu.Lock()
	defer h.unlockAndTell()
	for r := range h.queues {
		h.attend(r, true)
	}
	for j := range h.withheld {
		h.seekHolder(j)
	}
	for j := range h.apart {
		h.seekHolder(j)
	}
}

// announce tells the other servers what is served here. mu is held.
func (h *Hub) announce() {
	if h.peers == nil {
		return
	}
	var all []checkpoint.Served
	for _, s := range h.sessions {
		if !s.leaving && !h.draining {
			all = append(all, s.hello.Serves...)
		}
	}
	slices.SortFunc(all, func(a, b checkpoint.Served) int {
		return cmp.Or(cmp.Compare(a.Graph, b.Graph), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Node, b.Node))
	})
	h.peers.Serve(slices.Compact(all))
}
