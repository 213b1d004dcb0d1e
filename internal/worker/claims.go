package worker

import (
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker/lease"
)

const (
	// claimsDelay is how long changes of claims are collected before they are
	// published: workers come back at the same moment.
	claimsDelay = 10 * time.Millisecond
	// maxClaims bounds how many of each kind are published. The tasks of the
	// others wait no longer than a lease.
	maxClaims = 10_000
)

// scheduleClaims publishes soon which leases of other servers are known here. mu is
// held.
func (h *Hub) scheduleClaims() {
	if h.peers == nil || h.areClaimsScheduled {
		return
	}
	h.areClaimsScheduled = true
	time.AfterFunc(claimsDelay, h.containPanics(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.areClaimsScheduled = false
		h.peers.SetClaims(h.currentClaims())
	}))
}

// currentClaims lists the published claims. mu is held.
func (h *Hub) currentClaims() checkpoint.Claims {
	var c checkpoint.Claims
	if h.isDraining {
		return c
	}
	for held := range h.reclaims.All() {
		if place := held.Place(); held.HasWorker() && len(c.Held) < maxClaims {
			c.Held = append(c.Held, place, lease.NameOf(place, held.Token))
		}
	}
	for j := range h.withheld {
		if len(c.Awaited) < maxClaims {
			c.Awaited = append(c.Awaited, lease.PlaceOf(j.task))
		}
	}
	for j := range h.disconnected {
		if j.holderServer != "" && len(c.Awaited) < maxClaims {
			c.Awaited = append(c.Awaited, lease.PlaceOf(j.task))
		}
	}
	slices.Sort(c.Held)
	slices.Sort(c.Awaited)
	return c
}

// followHolder finds the server to which the worker of a task is attached, and
// hands the run over to it. It reports whether the task waits on: also when the
// worker is not there any more, because it has the time of a lease to come back. mu
// is held.
func (h *Hub) followHolder(j *job) (waits bool) {
	k := j.task.WorkerWait
	if h.peers == nil || k == nil {
		return false
	}
	held := lease.PlaceOf(j.task)
	if j.token != "" {
		held = lease.NameOf(held, j.token)
	}
	server := ""
	if !j.isStopping {
		server = h.peers.FindHolder(held, j.task.AlsoNeeds...)
	}
	if server == "" {
		waits = j.holderServer != ""
		h.clearHolder(j)
		if waits {
			h.renewLease(j)
		}
		return waits
	}
	if j.holderServer == "" && j.stage != stageWithheld {
		h.scheduleClaims() // it awaits the worker
	}
	j.holderServer = server
	k.Holder.Store(&server)
	k.Withheld.Store(!j.calls.hasLiveCalls()) // what the task has called goes on here
	if h.isDraining {
		h.addNotice(j, "", runtime.Host.HandOff)
	} else {
		h.addNotice(j, "", runtime.Host.NotifyStranded)
	}
	return true
}

// clearHolder records that the worker of a task is not known to be at another
// server. mu is held.
func (h *Hub) clearHolder(j *job) {
	if j.holderServer == "" {
		return
	}
	j.holderServer = ""
	j.task.WorkerWait.Holder.Store(nil)
	j.task.WorkerWait.Withheld.Store(j.stage == stageWithheld)
	h.scheduleClaims()
}

// followHolderAfterCalls looks for the worker of a task again when its called
// graphs have ended.
func (h *Hub) followHolderAfterCalls(j *job) {
	h.mu.Lock()
	defer h.unlockAndNotify()
	if _, ok := h.disconnected[j]; ok {
		h.followHolder(j)
	}
}
