package worker

import (
	"cmp"
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker/queue"
)

var _ runtime.Workers = (*Hub)(nil)

// SetPeers makes those known that are told what workers take: the engine, and by it the
// other servers on the same store, to which tasks may go that no worker here takes.
func (h *Hub) SetPeers(peers runtime.Peers) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.peers = peers
	h.publishCapabilities()
}

// Covers reports whether a connected worker takes what is needed.
func (h *Hub) Covers(need checkpoint.Capability) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.isDraining && h.sessions.isServed(queue.Route{Graph: need.Graph, Version: need.Version, Node: need.Node})
}

// RecheckTasks checks all unserved tasks again, because the workers of other
// servers have changed.
func (h *Hub) RecheckTasks() {
	h.mu.Lock()
	defer h.unlockAndNotify()
	for r := range h.queue.Routes() {
		h.notifyUnserved(r, true)
	}
	for j := range h.withheld {
		h.followHolder(j)
	}
	for j := range h.disconnected {
		h.followHolder(j)
	}
}

// maxSyncPublish is how many entries are put in order at once, while mu is held.
const maxSyncPublish = 1000

// publishCapabilities publishes what is served here. mu is held.
func (h *Hub) publishCapabilities() {
	switch lists, sum := h.listServed(); {
	case h.peers == nil:
	case h.isPublishing:
		h.mustPublishAgain = true
	case sum <= maxSyncPublish:
		h.peers.SetCapabilities(mergeCapabilities(lists))
	default:
		h.isPublishing = true
		go h.containPanics(h.publishUntilCurrent)()
	}
}

// publishUntilCurrent puts what is served in order while no call waits, and tells it. It rests
// in between: workers may come and go all the time.
func (h *Hub) publishUntilCurrent() {
	for more := true; more; {
		began := time.Now()
		h.mu.Lock()
		h.mustPublishAgain = false
		peers := h.peers
		lists, _ := h.listServed()
		h.mu.Unlock()
		peers.SetCapabilities(mergeCapabilities(lists))
		if rest := min(9*time.Since(began), time.Second); rest > 0 {
			timer := time.NewTimer(rest)
			<-timer.C
		}
		h.mu.Lock()
		more = h.mustPublishAgain
		h.isPublishing = more
		h.mu.Unlock()
	}
}

// listServed lists what each worker serves, and how much that is: nothing while the
// server drains. mu is held.
func (h *Hub) listServed() (lists [][]checkpoint.Capability, sum int) {
	if h.isDraining {
		return nil, 0
	}
	return h.sessions.listServed()
}

// mergeCapabilities is what is in one of the lists, in order.
func mergeCapabilities(lists [][]checkpoint.Capability) []checkpoint.Capability {
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(a, b checkpoint.Capability) int {
		return cmp.Or(cmp.Compare(a.Graph, b.Graph), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Node, b.Node))
	})
	return slices.Compact(all)
}
