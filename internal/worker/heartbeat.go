package worker

import (
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/worker/lease"
	"github.com/graphd-dev/graphd/internal/worker/message"
)

// endSilentSession ends a session whose worker has missed maxMissedHeartbeats
// heartbeats.
func (s *Session) endSilentSession() {
	s.dispatcher.mu.Lock()
	defer s.dispatcher.mu.Unlock()
	if time.Since(s.lastHeard) < maxMissedHeartbeats*s.hub.opts.HeartbeatInterval {
		return // it was heard of after the timer had fired: the timer fires again
	}
	s.hub.log.Warn("a worker has gone silent", zap.String("worker", s.profile.Hello.Worker), zap.String("session", s.id))
	s.endSession(runtime.Errorf(runtime.ReasonWorkerSilent, "nothing was heard for %d beats of %s; connect again",
		maxMissedHeartbeats, s.hub.opts.HeartbeatInterval).With("workerId", tenant.ClientName(s.profile.Hello.Worker)))
}

// checkBacklog ends the session of a worker that sends and does not read: it would
// be given tasks, and never run them. It reports false if it did. mu is held.
func (s *Session) checkBacklog() bool {
	count, tooMuch := s.outbox.CountUnread(maxMissedHeartbeats * s.hub.opts.HeartbeatInterval)
	if tooMuch {
		s.endSession(runtime.Errorf(runtime.ReasonWorkerSilent, "the worker does not read what it is sent: %d messages wait; connect again",
			count).With("workerId", tenant.ClientName(s.profile.Hello.Worker)))
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

// maxForgedLeases is the number of leases in a heartbeat that no server may have
// given.
const maxForgedLeases = 1000

// HandleHeartbeat renews the leases of the tasks that the worker holds. A heartbeat
// with many leases that no server has given ends the session.
func (s *Session) HandleHeartbeat(number uint64, running []string) {
	given, forged := s.dispatcher.signer.ParseTokens(running, holderOf(&s.profile.Hello))
	s.dispatcher.updateState(func() []notice { return s.renewLeases(number, given, forged) })
}

// renewLeases answers a heartbeat. mu is held.
func (s *Session) renewLeases(number uint64, given []lease.Lease, forged []string) []notice {
	if !s.recordSignOfLife() {
		return nil
	}
	s.heldUp = 0
	if len(forged) > maxForgedLeases {
		s.endSession(runtime.Errorf(runtime.ReasonInvalidField,
			"beat.running names %d leases that no server with this key has given; at most %d are answered", len(forged), maxForgedLeases).
			With("field", "beat.running").WithViolation("beat.running", "must name leases of the worker's tasks"))
		return nil
	}
	var list []notice
	ack := message.HeartbeatAck{Number: number, LostLeases: forged}
	for _, g := range given {
		c, more := s.dispatcher.claimLease(s, g)
		list = append(list, more...)
		switch c {
		case claimLost:
			ack.LostLeases = append(ack.LostLeases, g.Token)
		case claimUndecided:
			ack.UndecidedLeases = append(ack.UndecidedLeases, g.Token)
		case claimGranted:
		}
	}
	s.outbox.AddMessage(ack)
	return list
}

// HandleAlive records a sign of life for a task.
func (s *Session) HandleAlive(token string) {
	j := s.beginJob(token, s.hub.opts.LeaseTTL)
	if j != nil && j.task.Host != nil {
		j.task.Host.ResetIdleTimeout()
	}
}

// beginJob records that the worker runs a task, and returns the task, nil if there
// is none.
func (s *Session) beginJob(token string, ttl time.Duration) *job {
	s.dispatcher.mu.Lock()
	defer s.dispatcher.mu.Unlock()
	j := s.jobOfLease(token)
	if j != nil {
		j.stage = stageStarted
		j.renewLease(ttl)
	}
	return j
}

// jobOfLease returns the task of a lease of this session, and records that the
// worker is alive. mu is held.
func (s *Session) jobOfLease(token string) *job {
	if !s.recordSignOfLife() {
		return nil
	}
	return s.capacity.jobs[token]
}

// HandleCredit sets the worker's credit. It ignores a credit that is older than the
// last one.
func (s *Session) HandleCredit(c message.Credit) {
	s.dispatcher.mu.Lock()
	defer s.dispatcher.mu.Unlock()
	if !s.recordSignOfLife() || c.Revision < s.profile.Credit.Revision {
		return
	}
	if err := s.dispatcher.profiles.SetCredit(s.profile, c); err != nil {
		s.endSession(err)
		return
	}
	s.dispatcher.offerOldestTo(s)
}
