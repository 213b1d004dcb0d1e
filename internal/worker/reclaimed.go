package worker

import (
	"context"
	"time"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker/lease"
)

// claimResult is what becomes of a lease that a worker holds by its own account.
type claimResult int

const (
	claimLost      claimResult = iota
	claimUndecided             // kept until the run is taken up here, or the time for that is over
	claimGranted
)

// claimUnknownLease decides about a lease that belongs to no running task here. mu
// is held.
func (h *Hub) claimUnknownLease(s *Session, l lease.Lease) claimResult {
	if !l.OutlivesServer() || h.history.IsCompleted(l.Token) || h.history.IsRejected(l.Token) {
		return claimLost
	}
	if known := h.reclaims.FindPlace(l.Place()); known != nil {
		if h.reclaims.Claim(known, s, l, h.opts.ReclaimTimeout) {
			return claimUndecided
		}
		return claimLost
	}
	if h.signer.IsOwn(l) && !h.history.IsDeparted(l.Token) {
		return claimLost
	}
	if j := h.jobsByKey[l.Key]; j != nil {
		return h.claimJob(j, s, l)
	}
	if h.history.IsRequestedSince(l) {
		return claimLost // it was done without the worker, or has come further since
	}
	h.reclaims.Add(s, l)
	return claimUndecided
}

// startReclaimTimer starts what gives up a reclaimed lease that no run asks for.
func (h *Hub) startReclaimTimer(held *lease.Reclaimed[Session]) *time.Timer {
	return time.AfterFunc(h.opts.ReclaimTimeout, h.containPanics(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.reclaims.Expire(held, h.isAwaited, h.opts.ReclaimTimeout)
	}))
}

// isAwaited reports whether another server keeps the task of a place back for its
// worker. mu is held.
func (h *Hub) isAwaited(place string) bool { return h.peers != nil && h.peers.IsAwaited(place) }

// claimJob gives a requested task to the worker that holds an old lease of it,
// unless a worker has a later lease. mu is held.
func (h *Hub) claimJob(j *job, s *Session, l lease.Lease) claimResult {
	switch {
	case j.task.RecoveredAt.IsZero(), j.isOnEndpoint, s != nil && j.route.NeedsComparison && !s.hello.ComparesAnswers:
		return claimLost
	case j.stage == stageWithheld, j.stage == stageQueued:
		h.queue.RemoveTask(j)
	default:
		if j.token == "" || h.signer.IsOwn(j.lease) || !l.IsNewer(j.lease) {
			return claimLost
		}
	}
	h.releaseLease(j)
	h.resumeLease(j, s, l)
	return claimGranted
}

// adoptReclaimed gives a requested task to the worker that runs it already. A lease
// of an earlier attempt or pass is lost. mu is held.
func (h *Hub) adoptReclaimed(j *job) bool {
	held := h.reclaims.FindPlace(lease.PlaceOf(j.task))
	if held == nil {
		return false
	}
	if s := held.Session(); s != nil && j.route.NeedsComparison && !s.hello.ComparesAnswers {
		h.reclaims.Reject(held)
		return false
	}
	if !held.IsFor(j.task, j.key) {
		h.reclaims.Reject(held)
		return false
	}
	s := held.Session()
	h.reclaims.Remove(held)
	if s != nil && s.hasEnded {
		s = nil
	}
	h.resumeLease(j, s, held.Lease)
	if s != nil {
		s.outbox.addMessage(LeaseRenewal{Token: held.Token, LeaseTTL: h.opts.LeaseTTL})
	}
	return true
}

// resumeLease makes an old lease the one of a task. mu is held.
func (h *Hub) resumeLease(j *job, s *Session, l lease.Lease) {
	j.deliveries++
	j.events.addMarker(runtime.EventContinued)
	h.grantLease(j, s, l)
	j.stage = stageStarted
	if s == nil {
		h.markDisconnected(j)
	}
}

// waitForJob returns the task of a lease. For a lease of another server it waits until
// the run has asked for the task, and has the call repeated if that takes too long.
func (h *Hub) waitForJob(ctx context.Context, token string) (*job, error) {
	for {
		h.mu.Lock()
		j := h.jobsByLease[token]
		if j != nil {
			if j.stage == stageOffered {
				j.stage = stageStarted
			}
			h.mu.Unlock()
			return j, nil
		}
		h.mu.Unlock()
		l, ok := h.signer.ParseToken(token)
		if !ok {
			return nil, leaseLostError("")
		}
		h.mu.Lock()
		if h.jobsByLease[token] != nil {
			h.mu.Unlock()
			continue
		}
		c := h.claimUnknownLease(nil, l)
		held := h.reclaims.FindPlace(l.Place())
		if c == claimUndecided {
			h.reclaims.AddWaitingCalls(held, +1)
		}
		h.unlockAndNotify()
		switch c {
		case claimLost:
			return nil, leaseLostError(l.TaskID())
		case claimGranted:
			continue
		case claimUndecided:
		}
		select {
		case <-held.Decided():
		case <-ctx.Done():
		}
		h.mu.Lock()
		h.reclaims.AddWaitingCalls(held, -1)
		open := held.IsUnclaimed() && !h.history.IsRejected(token)
		over := h.jobsByLease[token] == nil && h.reclaims.FindPlace(l.Place()) == nil && !h.history.IsCompleted(token)
		h.mu.Unlock()
		switch {
		case ctx.Err() != nil, over && open:
			return nil, notTakenUp(l.TaskID())
		case over:
			return nil, leaseLostError(l.TaskID())
		}
	}
}

// notTakenUp has a call repeated, here or at the server that has the run.
func notTakenUp(task string) *runtime.Error {
	return runtime.Errorf(runtime.ReasonWaitTimeout, "the run of task %q is not taken up here yet; repeat the call", task)
}
