package worker

import (
	"cmp"
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

var _ runtime.Workers = (*Hub)(nil)

// need is what a worker must take to run tasks of a route.
func (r route) need() checkpoint.Served {
	return checkpoint.Served{Graph: r.graph, Version: r.version, Node: r.node}
}

// Meet makes those known that are told what workers take: the engine, and by it the
// other servers on the same store, to which tasks may go that no worker here takes.
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

// fewAnnounced is how many entries are put in order at once, while mu is held.
const fewAnnounced = 1000

// announce tells the other servers what is served here; where that is a lot, soon.
// mu is held.
func (h *Hub) announce() {
	switch lists, sum := h.servedBy(); {
	case h.peers == nil:
	case h.serving:
		h.servesAnew = true
	case sum <= fewAnnounced:
		h.peers.Serve(union(lists))
	default:
		h.serving = true
		go h.contained(h.tellServed)()
	}
}

// tellServed puts what is served in order while no call waits, and tells it. It rests
// in between: workers may come and go all the time.
func (h *Hub) tellServed() {
	for more := true; more; {
		began := time.Now()
		h.mu.Lock()
		h.servesAnew = false
		peers := h.peers
		lists, _ := h.servedBy()
		h.mu.Unlock()
		peers.Serve(union(lists))
		if rest := min(9*time.Since(began), time.Second); rest > 0 {
			timer := time.NewTimer(rest)
			<-timer.C
		}
		h.mu.Lock()
		more = h.servesAnew
		h.serving = more
		h.mu.Unlock()
	}
}

// servedBy lists what each worker serves, and how much that is. mu is held.
func (h *Hub) servedBy() (lists [][]checkpoint.Served, sum int) {
	for _, s := range h.sessions {
		if !s.leaving && !h.draining {
			lists = append(lists, s.hello.Serves)
			sum += len(s.hello.Serves)
		}
	}
	return lists, sum
}

// union is what is in one of the lists, in order.
func union(lists [][]checkpoint.Served) []checkpoint.Served {
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(a, b checkpoint.Served) int {
		return cmp.Or(cmp.Compare(a.Graph, b.Graph), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Node, b.Node))
	})
	return slices.Compact(all)
}
