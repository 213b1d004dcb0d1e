package worker

import (
	"context"
	"time"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// heldTask is a task that a worker was given by an earlier server, or for a run
// that this server has lost, and still runs. It waits for the run to be taken
// up here and ask for it.
type heldTask struct {
	lease   lease
	token   string
	session *Session
	calls   int  // that wait for its run
	open    bool // no run has asked for the task in time, and another server may know it
	timer   *time.Timer
	decided chan struct{} // closed when the task was asked for, or nobody did in time
}

// claim is what becomes of a lease that a worker says it holds.
type claim int

const (
	lost      claim = iota
	undecided       // kept until the run is taken up here, or the time for that is over
	granted
)

// hold decides about a lease that is not one of a running task here. mu is held.
func (h *Hub) hold(s *Session, g given) claim {
	token, l := g.token, g.lease
	if !l.lasts() || h.settled.has(token) || h.forgotten.has(token) {
		return lost
	}
	if known := h.held[l.place()]; known != nil {
		return h.reclaim(known, s, token, l)
	}
	if l.life == h.life && !h.departed.has(token) {
		return lost
	}
	if j := h.byKey[l.key]; j != nil {
		return h.claim(j, s, token, l)
	}
	if h.asked.since(l) {
		return lost // it was done without the worker, or has come further since
	}
	h.retain(s, token, l)
	return undecided
}

// retain keeps a lease until its run asks for the task here. mu is held.
func (h *Hub) retain(s *Session, token string, l lease) {
	held := &heldTask{lease: l, token: token, decided: make(chan struct{})}
	held.timer = time.AfterFunc(h.opts.Held, h.contained(func() { h.forget(held) }))
	h.held[l.place()] = held
	held.attach(s)
	h.changeClaims()
}

// isHere reports whether its worker has a stream or a call here. mu is held.
func (held *heldTask) isHere() bool { return held.session != nil || held.calls > 0 }

// attach notes which session has the worker of a held task. mu is held.
func (held *heldTask) attach(s *Session) {
	if held.session != nil {
		delete(held.session.holds, held)
	}
	if held.session = s; s != nil {
		s.holds[held] = struct{}{}
	}
}

// reclaim decides about a lease of a task that is held: of two the newer one
// counts. mu is held.
func (h *Hub) reclaim(known *heldTask, s *Session, token string, l lease) claim {
	if known.token == token {
		if s != nil && known.session != s {
			known.attach(s)
			known.timer.Reset(h.opts.Held)
			h.changeClaims()
		}
		return undecided
	}
	if !l.newer(known.lease) {
		return lost
	}
	h.giveUp(known)
	h.retain(s, token, l)
	return undecided
}

// claim gives a task that is asked for to the worker that holds an old lease of
// it, unless a worker has it that was given it later. mu is held.
func (h *Hub) claim(j *job, s *Session, token string, l lease) claim {
	switch {
	case j.task.Recovered.IsZero(), j.lent, s != nil && j.route.compares && !s.hello.Compares:
		return lost
	case j.stage == withheld, j.stage == queued:
		h.dequeue(j)
	default:
		if has, ok := h.read(j.token); !ok || has.life == h.life || !l.newer(has) {
			return lost
		}
	}
	h.release(j)
	h.take(j, s, token)
	return granted
}

// forget gives up a held task that no run has asked for. That of a worker which is
// elsewhere by now, or has no more than a call here, may still be in order: where
// its stream is it learns what became of the lease.
func (h *Hub) forget(held *heldTask) {
	h.mu.Lock()
	defer h.mu.Unlock()
	place := held.lease.place()
	if h.held[place] != held {
		return
	}
	switch {
	case !held.isHere():
		h.decide(held)
	case h.peers != nil && h.peers.Awaited(place): // the run is about to come
		held.timer.Reset(h.opts.Held)
	case held.session == nil: // the worker's stream may be at the server that has the task
		held.open = true
		h.decide(held)
	default:
		h.giveUp(held)
	}
}

// giveUp tells who waits for a held task that it is lost. mu is held.
func (h *Hub) giveUp(held *heldTask) {
	h.decide(held)
	h.forgotten.add(held.token)
}

// decide ends the waiting for the run of a held task. mu is held.
func (h *Hub) decide(held *heldTask) {
	delete(h.held, held.lease.place())
	held.timer.Stop()
	held.attach(nil)
	close(held.decided)
	h.changeClaims()
}

// adopt gives a task that is asked for to the worker that runs it already. A
// lease of the task before it has come further is lost. mu is held.
func (h *Hub) adopt(j *job) bool {
	if len(h.held) == 0 {
		return false
	}
	held := h.held[placeOf(j.task)]
	if held == nil {
		return false
	}
	if s := held.session; s != nil && j.route.compares && !s.hello.Compares {
		h.giveUp(held)
		return false
	}
	if held.lease.key != j.key || held.lease.attempt < uint64(max(j.task.Attempt, 0)) {
		h.giveUp(held)
		return false
	}
	s := held.session
	h.decide(held)
	if s != nil && s.cause != nil {
		s = nil
	}
	h.take(j, s, held.token)
	if s != nil {
		s.send(Renewed{Token: held.token, TTL: h.opts.LeaseTTL})
	}
	return true
}

// awaitRun counts the calls that wait for the run of a held task. mu is held.
func (h *Hub) awaitRun(held *heldTask, by int) {
	was := held.isHere()
	held.calls += by
	if held.isHere() != was {
		h.changeClaims()
	}
}

// take makes an old lease the one of a task. mu is held.
func (h *Hub) take(j *job, s *Session, token string) {
	j.deliveries++
	j.lane.mark(runtime.EventContinued)
	h.lend(j, s, token)
	j.stage = started
	if s == nil {
		h.part(j)
	}
}

// find returns the task of a lease. For a lease of another server it waits until
// the run has asked for the task, and has the call repeated if that takes too long.
func (h *Hub) find(ctx context.Context, token string) (*job, error) {
	for {
		h.mu.Lock()
		j := h.jobs[token]
		if j != nil {
			if j.stage == offered {
				j.stage = started
			}
			h.mu.Unlock()
			return j, nil
		}
		h.mu.Unlock()
		l, ok := h.read(token)
		if !ok {
			return nil, leaseLost("")
		}
		h.mu.Lock()
		if h.jobs[token] != nil {
			h.mu.Unlock()
			continue
		}
		c := h.hold(nil, given{token, l})
		held := h.held[l.place()]
		if c == undecided {
			h.awaitRun(held, +1)
		}
		h.unlockAndTell()
		switch c {
		case lost:
			return nil, leaseLost(l.task())
		case granted:
			continue
		case undecided:
		}
		select {
		case <-held.decided:
		case <-ctx.Done():
		}
		h.mu.Lock()
		h.awaitRun(held, -1)
		open := held.open && !h.forgotten.has(token)
		over := h.jobs[token] == nil && h.held[l.place()] == nil && !h.settled.has(token)
		h.mu.Unlock()
		switch {
		case ctx.Err() != nil, over && open:
			return nil, notTakenUp(l.task())
		case over:
			return nil, leaseLost(l.task())
		}
	}
}

// notTakenUp has a call repeated, here or at the server that has the run.
func notTakenUp(task string) *runtime.Error {
	return runtime.Errorf(runtime.ReasonWaitTimeout, "the run of task %q is not taken up here yet; repeat the call", task)
}
