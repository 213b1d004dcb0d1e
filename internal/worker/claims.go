package worker

import (
	"crypto/sha256"
	"encoding/hex"
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

// changeClaims tells the other servers soon which leases of theirs are known
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
	for place, held := range h.held {
		if held.isHere() && len(c.Holds) < maxClaims {
			c.Holds = append(c.Holds, place, nameOf(place, held.token))
		}
	}
	for j := range h.withheld {
		if len(c.Awaits) < maxClaims {
			c.Awaits = append(c.Awaits, placeOf(j.task))
		}
	}
	for j := range h.apart {
		if j.holder != "" && len(c.Awaits) < maxClaims {
			c.Awaits = append(c.Awaits, placeOf(j.task))
		}
	}
	slices.Sort(c.Holds)
	slices.Sort(c.Awaits)
	return c
}

// nameOf names one lease of a task for other servers, without the right that it
// gives.
func nameOf(place, token string) string {
	sum := sha256.Sum256([]byte(token))
	return place + "#" + hex.EncodeToString(sum[:8])
}

// seekHolder looks for the server to which the worker of a task is attached, and
// has the run go there. It reports whether the task waits on: also when the worker
// is not there any more, because it has the time of a lease to come back. mu is
// held.
func (h *Hub) seekHolder(j *job) (waits bool) {
	k := j.task.Keeping
	if h.peers == nil || k == nil {
		return false
	}
	lease := placeOf(j.task)
	if j.token != "" {
		lease = nameOf(lease, j.token)
	}
	server := ""
	if !j.last {
		server = h.peers.Holder(lease, j.task.With...)
	}
	if server == "" {
		waits = j.holder != ""
		h.forgetHolder(j)
		if waits {
			h.renew(j)
		}
		return waits
	}
	if j.holder == "" && j.stage != withheld {
		h.changeClaims() // it awaits the worker
	}
	j.holder = server
	k.Holder.Store(&server)
	k.Withheld.Store(!j.calls.underWay()) // what the task has called goes on here
	if h.draining {
		h.tell(j, "", runtime.Host.HandOver)
	} else {
		h.tell(j, "", runtime.Host.Strand)
	}
	return true
}

// forgetHolder notes that the worker of a task is not known to be elsewhere. mu is
// held.
func (h *Hub) forgetHolder(j *job) {
	if j.holder == "" {
		return
	}
	j.holder = ""
	j.task.Keeping.Holder.Store(nil)
	j.task.Keeping.Withheld.Store(j.stage == withheld)
	h.changeClaims()
}

// callsEnded looks for the worker of a task again whose called graphs have ended.
func (h *Hub) callsEnded(j *job) {
	h.mu.Lock()
	defer h.unlockAndTell()
	if _, ok := h.apart[j]; ok {
		h.seekHolder(j)
	}
}
