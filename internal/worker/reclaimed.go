package worker

import (
	"context"
	"time"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// reclaimedTask is a task that a worker was given by an earlier server, or for a
// run that this server has lost, and still runs. It waits until the run is taken up
// here and asks for it.
type reclaimedTask struct {
	lease        lease
	token        string
	session      *Session
	waitingCalls int  // that wait for its run
	isUnclaimed  bool // no run has asked for the task in time, and another server may know it
	timer        *time.Timer
	decided      chan struct{} // closed when the run asked for the task, or did not in time
}

// claimResult is what becomes of a lease that a worker holds by its own account.
type claimResult int

const (
	claimLost      claimResult = iota
	claimUndecided             // kept until the run is taken up here, or the time for that is over
	claimGranted
)

// claimUnknownLease decides about a lease that belongs to no running task here. mu
// is held.
func (h *Hub) claimUnknownLease(s *Session, g parsedToken) claimResult {
	token, l := g.token, g.lease
	if !l.outlivesServer() || h.completedLeases.hasLease(token) || h.rejectedLeases.hasLease(token) {
		return claimLost
	}
	if known := h.reclaimed[l.nodePlace()]; known != nil {
		return h.claimReclaimed(known, s, token, l)
	}
	if l.incarnation == h.incarnation && !h.departedLeases.hasLease(token) {
		return claimLost
	}
	if j := h.jobsByKey[l.key]; j != nil {
		return h.claimJob(j, s, token, l)
	}
	if h.requested.isRequestedSince(l) {
		return claimLost // it was done without the worker, or has come further since
	}
	h.addReclaimed(s, token, l)
	return claimUndecided
}

// addReclaimed keeps a lease until its run asks for the task here. mu is held.
func (h *Hub) addReclaimed(s *Session, token string, l lease) {
	held := &reclaimedTask{lease: l, token: token, decided: make(chan struct{})}
	held.timer = time.AfterFunc(h.opts.ReclaimTimeout, h.containPanics(func() { h.expireReclaimed(held) }))
	h.reclaimed[l.nodePlace()] = held
	held.setSession(s)
	h.scheduleClaims()
}

// hasWorker reports whether its worker has a stream or a call here. mu is held.
func (held *reclaimedTask) hasWorker() bool { return held.session != nil || held.waitingCalls > 0 }

// setSession records which session has the worker of a reclaimed task. mu is held.
func (held *reclaimedTask) setSession(s *Session) {
	if held.session != nil {
		delete(held.session.reclaimed, held)
	}
	if held.session = s; s != nil {
		s.reclaimed[held] = struct{}{}
	}
}

// claimReclaimed decides about a lease of a task that is reclaimed already: of two
// the newer one counts. mu is held.
func (h *Hub) claimReclaimed(known *reclaimedTask, s *Session, token string, l lease) claimResult {
	if known.token == token {
		if s != nil && known.session != s {
			known.setSession(s)
			known.timer.Reset(h.opts.ReclaimTimeout)
			h.scheduleClaims()
		}
		return claimUndecided
	}
	if !l.isNewer(known.lease) {
		return claimLost
	}
	h.rejectReclaimed(known)
	h.addReclaimed(s, token, l)
	return claimUndecided
}

// claimJob gives a requested task to the worker that holds an old lease of it,
// unless a worker has a later lease. mu is held.
func (h *Hub) claimJob(j *job, s *Session, token string, l lease) claimResult {
	switch {
	case j.task.RecoveredAt.IsZero(), j.isOnEndpoint, s != nil && j.route.needsComparison && !s.hello.ComparesAnswers:
		return claimLost
	case j.stage == stageWithheld, j.stage == stageQueued:
		h.dequeueJob(j)
	default:
		if has, ok := h.parseLease(j.token); !ok || has.incarnation == h.incarnation || !l.isNewer(has) {
			return claimLost
		}
	}
	h.releaseLease(j)
	h.resumeLease(j, s, token)
	return claimGranted
}

// expireReclaimed gives up a reclaimed task that no run has asked for. The lease of
// a worker that is at another server by now may still be valid.
func (h *Hub) expireReclaimed(held *reclaimedTask) {
	h.mu.Lock()
	defer h.mu.Unlock()
	place := held.lease.nodePlace()
	if h.reclaimed[place] != held {
		return
	}
	switch {
	case !held.hasWorker():
		h.removeReclaimed(held)
	case h.peers != nil && h.peers.IsAwaited(place): // the run is about to come
		held.timer.Reset(h.opts.ReclaimTimeout)
	case held.session == nil: // the worker's stream may be at the server that has the task
		held.isUnclaimed = true
		h.removeReclaimed(held)
	default:
		h.rejectReclaimed(held)
	}
}

// rejectReclaimed ends the waiting for a reclaimed task: its lease is lost. mu is
// held.
func (h *Hub) rejectReclaimed(held *reclaimedTask) {
	h.removeReclaimed(held)
	h.rejectedLeases.addLease(held.token)
}

// removeReclaimed ends the waiting for the run of a reclaimed task. mu is held.
func (h *Hub) removeReclaimed(held *reclaimedTask) {
	delete(h.reclaimed, held.lease.nodePlace())
	held.timer.Stop()
	held.setSession(nil)
	close(held.decided)
	h.scheduleClaims()
}

// adoptReclaimed gives a requested task to the worker that runs it already. A lease
// of an earlier attempt or pass is lost. mu is held.
func (h *Hub) adoptReclaimed(j *job) bool {
	if len(h.reclaimed) == 0 {
		return false
	}
	held := h.reclaimed[nodePlace(j.task)]
	if held == nil {
		return false
	}
	if s := held.session; s != nil && j.route.needsComparison && !s.hello.ComparesAnswers {
		h.rejectReclaimed(held)
		return false
	}
	if held.lease.key != j.key || held.lease.attempt < uint64(max(j.task.Attempt, 0)) {
		h.rejectReclaimed(held)
		return false
	}
	s := held.session
	h.removeReclaimed(held)
	if s != nil && s.endCause != nil {
		s = nil
	}
	h.resumeLease(j, s, held.token)
	if s != nil {
		s.sendMessage(LeaseRenewal{Token: held.token, LeaseTTL: h.opts.LeaseTTL})
	}
	return true
}

// addWaitingCalls counts the calls that wait for the run of a reclaimed task. mu is
// held.
func (h *Hub) addWaitingCalls(held *reclaimedTask, by int) {
	was := held.hasWorker()
	held.waitingCalls += by
	if held.hasWorker() != was {
		h.scheduleClaims()
	}
}

// resumeLease makes an old lease the one of a task. mu is held.
func (h *Hub) resumeLease(j *job, s *Session, token string) {
	j.deliveries++
	j.events.addMarker(runtime.EventContinued)
	h.grantLease(j, s, token)
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
		l, ok := h.parseLease(token)
		if !ok {
			return nil, leaseLostError("")
		}
		h.mu.Lock()
		if h.jobsByLease[token] != nil {
			h.mu.Unlock()
			continue
		}
		c := h.claimUnknownLease(nil, parsedToken{token, l})
		held := h.reclaimed[l.nodePlace()]
		if c == claimUndecided {
			h.addWaitingCalls(held, +1)
		}
		h.unlockAndNotify()
		switch c {
		case claimLost:
			return nil, leaseLostError(l.taskID())
		case claimGranted:
			continue
		case claimUndecided:
		}
		select {
		case <-held.decided:
		case <-ctx.Done():
		}
		h.mu.Lock()
		h.addWaitingCalls(held, -1)
		open := held.isUnclaimed && !h.rejectedLeases.hasLease(token)
		over := h.jobsByLease[token] == nil && h.reclaimed[l.nodePlace()] == nil && !h.completedLeases.hasLease(token)
		h.mu.Unlock()
		switch {
		case ctx.Err() != nil, over && open:
			return nil, notTakenUp(l.taskID())
		case over:
			return nil, leaseLostError(l.taskID())
		}
	}
}

// notTakenUp has a call repeated, here or at the server that has the run.
func notTakenUp(task string) *runtime.Error {
	return runtime.Errorf(runtime.ReasonWaitTimeout, "the run of task %q is not taken up here yet; repeat the call", task)
}
