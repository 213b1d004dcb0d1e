package worker

import (
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

const (
	// gather is how long changes of claims are gathered before the other servers
	// are told: workers come back at the same moment.
	gather = 10 * time.Millisecond
	// maxClaims bounds how many of each kind they are told of. The tasks of the
	// others wait no longer than a lease.
	maxClaims = 10_000
)

// changeClaims tells the other servers soon which leases of earlier servers are known
// here. mu is held.
func (h *Hub) changeClaims() {
	if h.peers == nil || h.claiming {
		return
	}
	h.claiming = true
	time.AfterFunc(gather, h.contained(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.claiming = false
		h.peers.Claim(h.claims())
	}))
}

// claims lists what the other servers are told. mu is held.
func (h *Hub) claims() checkpoint.Claims {
	var c checkpoint.Claims
	if h.draining {
		return c
	}
	for place := range h.held {
		if len(c.Holds) < maxClaims {
			c.Holds = append(c.Holds, place)
		}
	}
	for j := range h.withheld {
		if len(c.Awaits) < maxClaims {
			c.Awaits = append(c.Awaits, placeOf(j.task))
		}
	}
	slices.Sort(c.Holds)
	slices.Sort(c.Awaits)
	return c
}

// seekHolder notes the server to which the worker of a withheld task is
// attached, and has the run go there. mu is held.
func (h *Hub) seekHolder(j *job) (found bool) {
	if h.peers == nil || j.task.Keeping == nil {
		return false
	}
	server := h.peers.Holder(placeOf(j.task))
	if server == "" {
		j.task.Keeping.Holder.Store(nil)
		return false
	}
	j.task.Keeping.Holder.Store(&server)
	h.tell(j, "", runtime.Host.Strand)
	return true
}
