package worker

import (
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// silent ends a session whose worker has not been heard of for three beats.
func (s *Session) silent() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.hub.log.Warn("a worker has gone silent", zap.String("worker", s.hello.Worker), zap.String("session", s.id))
	s.finish(runtime.Errorf(runtime.ReasonWorkerSilent, "nothing was heard for %d beats of %s; connect again",
		silentBeats, s.hub.opts.Beat).With("workerId", s.hello.Worker))
}

// touch notes that the worker is alive. It reports false when the session has
// ended. mu is held.
func (s *Session) touch() bool {
	if s.cause != nil || !s.checkRead() {
		return false
	}
	s.heard = time.Now()
	s.silence.Reset(silentBeats * s.hub.opts.Beat)
	return true
}

// maxForged bounds how many leases a beat may name that no server has given.
const maxForged = 1000

// Beat prolongs the leases of the tasks that the worker says it holds. One
// that names many leases which no server has given ends the session.
func (s *Session) Beat(number uint64, running []string) {
	h := s.hub
	given, forged := h.readAll(running)
	h.mu.Lock()
	defer h.unlockAndTell()
	if !s.touch() {
		return
	}
	s.heldUp = 0
	if len(forged) > maxForged {
		s.finish(runtime.Errorf(runtime.ReasonInvalidField,
			"beat.running names %d leases that no server with this key has given; at most %d are answered", len(forged), maxForged).
			With("field", "beat.running").InField("beat.running", "must name leases of the worker's tasks"))
		return
	}
	ack := Ack{Number: number, Lost: forged}
	for _, g := range given {
		switch h.keep(s, g) {
		case lost:
			ack.Lost = append(ack.Lost, g.token)
		case undecided:
			ack.Undecided = append(ack.Undecided, g.token)
		case granted:
		}
	}
	s.send(ack)
}

// keep prolongs a lease for its worker, which has begun the task. mu is held.
func (h *Hub) keep(s *Session, g given) claim {
	j := h.jobs[g.token]
	if j == nil {
		return h.hold(s, g)
	}
	if j.lent {
		return lost
	}
	if j.session != s {
		h.attach(j, s)
		if j.last { // what was said on the stream before may be lost
			s.sendCancel(j)
		}
	}
	j.stage = started
	h.renew(j)
	return granted
}

// Alive notes that a task has begun or is still worked on.
func (s *Session) Alive(token string) {
	s.hub.mu.Lock()
	j := s.own(token)
	if j != nil {
		j.stage = started
		s.hub.renew(j)
	}
	s.hub.unlockAndTell()
	if j != nil && j.task.Host != nil {
		j.task.Host.Alive()
	}
}

// own returns the task of a lease that this session holds, and notes that the
// worker is alive. mu is held.
func (s *Session) own(token string) *job {
	if !s.touch() {
		return nil
	}
	return s.jobs[token]
}

// Credit sets how much the worker takes. An older one than the last is ignored.
func (s *Session) Credit(c Credit) {
	s.hub.mu.Lock()
	defer s.hub.unlockAndTell()
	if !s.touch() || c.Revision < s.credit.Revision {
		return
	}
	s.credit = c
	if err := s.weigh(s.hub.said - s.weight + s.claims()); err != nil {
		s.finish(err)
		return
	}
	s.hub.offerTo(s)
}
