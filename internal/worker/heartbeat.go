package worker

import (
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker/lease"
)

// endSilentSession ends a session whose worker has missed maxMissedHeartbeats
// heartbeats.
func (s *Session) endSilentSession() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.hub.log.Warn("a worker has gone silent", zap.String("worker", s.hello.Worker), zap.String("session", s.id))
	s.endSession(runtime.Errorf(runtime.ReasonWorkerSilent, "nothing was heard for %d beats of %s; connect again",
		maxMissedHeartbeats, s.hub.opts.HeartbeatInterval).With("workerId", s.hello.Worker))
}

// checkBacklog ends the session of a worker that sends and does not read: it would
// be given tasks, and never run them. It reports false if it did. mu is held.
func (s *Session) checkBacklog() bool {
	count, tooMuch := s.outbox.countUnread(maxMissedHeartbeats * s.hub.opts.HeartbeatInterval)
	if tooMuch {
		s.endSession(runtime.Errorf(runtime.ReasonWorkerSilent, "the worker does not read what it is sent: %d messages wait; connect again",
			count).With("workerId", s.hello.Worker))
	}
	return !tooMuch
}

// recordSignOfLife records that the worker is alive. It reports false when the
// session has ended. mu is held.
func (s *Session) recordSignOfLife() bool {
	if s.hasEnded || !s.checkBacklog() {
		return false
	}
	s.lastHeard = time.Now()
	s.silenceTimer.Reset(maxMissedHeartbeats * s.hub.opts.HeartbeatInterval)
	return true
}

// maxForgedLeases bounds how many leases a beat may name that no server has given.
const maxForgedLeases = 1000

// HandleHeartbeat prolongs the leases of the tasks that the worker says it holds. One
// that names many leases which no server has given ends the session.
func (s *Session) HandleHeartbeat(number uint64, running []string) {
	h := s.hub
	given, forged := h.signer.ParseTokens(running)
	h.mu.Lock()
	defer h.unlockAndNotify()
	if !s.recordSignOfLife() {
		return
	}
	s.heldUp = 0
	if len(forged) > maxForgedLeases {
		s.endSession(runtime.Errorf(runtime.ReasonInvalidField,
			"beat.running names %d leases that no server with this key has given; at most %d are answered", len(forged), maxForgedLeases).
			With("field", "beat.running").WithViolation("beat.running", "must name leases of the worker's tasks"))
		return
	}
	ack := HeartbeatAck{Number: number, LostLeases: forged}
	for _, g := range given {
		switch h.claimLease(s, g) {
		case claimLost:
			ack.LostLeases = append(ack.LostLeases, g.Token)
		case claimUndecided:
			ack.UndecidedLeases = append(ack.UndecidedLeases, g.Token)
		case claimGranted:
		}
	}
	s.outbox.addMessage(ack)
}

// claimLease renews a lease for its worker, which has begun the task. mu is held.
func (h *Hub) claimLease(s *Session, g lease.Lease) claimResult {
	j := h.jobsByLease[g.Token]
	if j == nil {
		return h.claimUnknownLease(s, g)
	}
	if j.isOnEndpoint {
		return claimLost
	}
	if j.session != s {
		h.attachJob(j, s)
		if j.isStopping { // what was said on the stream before may be lost
			s.sendCancel(j)
		}
	}
	j.stage = stageStarted
	h.renewLease(j)
	return claimGranted
}

// HandleAlive notes that a task has begun or is still worked on.
func (s *Session) HandleAlive(token string) {
	s.hub.mu.Lock()
	j := s.jobOfLease(token)
	if j != nil {
		j.stage = stageStarted
		s.hub.renewLease(j)
	}
	s.hub.unlockAndNotify()
	if j != nil && j.task.Host != nil {
		j.task.Host.ResetIdleTimeout()
	}
}

// jobOfLease returns the task of a lease of this session, and records that the
// worker is alive. mu is held.
func (s *Session) jobOfLease(token string) *job {
	if !s.recordSignOfLife() {
		return nil
	}
	return s.capacity.jobs[token]
}

// HandleCredit sets how much the worker takes. An older one than the last is ignored.
func (s *Session) HandleCredit(c Credit) {
	s.hub.mu.Lock()
	defer s.hub.unlockAndNotify()
	if !s.recordSignOfLife() || c.Revision < s.capacity.credit.Revision {
		return
	}
	s.capacity.credit = c
	if err := s.hub.sessions.updateProfile(s); err != nil {
		s.endSession(err)
		return
	}
	s.hub.offerOldestTo(s)
}
