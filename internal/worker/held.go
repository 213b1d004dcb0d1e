package worker

import (
	"context"
	"time"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// heldTask is a task that a worker was given by an earlier server and still
// runs. It waits for the run to be taken up here and ask for it.
type heldTask struct {
	token   string
	session *Session
	timer   *time.Timer
	decided chan struct{} // closed when the task was asked for, or nobody did in time
}

// hold keeps a lease of an earlier server. It reports false when the lease is
// lost for good. mu is held.
func (h *Hub) hold(s *Session, token string) bool {
	l, ok := h.read(token)
	if !ok || l.life == h.life || !l.lasts() || h.settled.has(token) || h.forgotten.has(token) {
		return false
	}
	if known := h.held[l.key]; known != nil {
		if known.token != token {
			return false
		}
		if s != nil {
			known.session = s
		}
		return true
	}
	for _, j := range h.jobs {
		if j.key == l.key {
			return false // somebody else has it by now
		}
	}
	for _, q := range h.queues {
		for _, j := range q.jobs {
			if j.key == l.key {
				h.dequeue(j)
				h.take(j, s, token)
				return true
			}
		}
	}
	if h.asked.has(l.task()) {
		return false // it was done without the worker, or has come further since
	}
	held := &heldTask{token: token, session: s, decided: make(chan struct{})}
	held.timer = time.AfterFunc(h.opts.Held, func() { h.forget(l.key, held) })
	h.held[l.key] = held
	return true
}

// forget gives up a held task that no run has asked for.
func (h *Hub) forget(key string, held *heldTask) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held[key] == held {
		h.giveUp(key, held)
	}
}

// disown gives up what is held of a task that has come further since. mu is held.
func (h *Hub) disown(task string) {
	for key, held := range h.held {
		if taskOf(key) == task {
			held.timer.Stop()
			h.giveUp(key, held)
		}
	}
}

// giveUp tells who waits for a held task that it is lost. mu is held.
func (h *Hub) giveUp(key string, held *heldTask) {
	delete(h.held, key)
	h.forgotten.add(held.token)
	close(held.decided)
}

// adopt gives a task that is asked for to the worker that runs it already. mu
// is held.
func (h *Hub) adopt(j *job) bool {
	held := h.held[j.key]
	if held == nil {
		return false
	}
	delete(h.held, j.key)
	held.timer.Stop()
	s := held.session
	if s != nil && s.cause != nil {
		s = nil
	}
	h.take(j, s, held.token)
	close(held.decided)
	return true
}

// take makes an old lease the one of a task. mu is held.
func (h *Hub) take(j *job, s *Session, token string) {
	j.deliveries++
	h.lend(j, s, token)
	j.stage = started
}

// find returns the task of a lease. For a lease of an earlier server it waits
// until the run has asked for the task.
func (h *Hub) find(ctx context.Context, token string) (*job, error) {
	for {
		h.mu.Lock()
		j := h.jobs[token]
		l, ok := h.read(token)
		if j != nil || !ok {
			h.mu.Unlock()
			if j == nil {
				return nil, leaseLost("")
			}
			return j, nil
		}
		if !h.hold(nil, token) {
			h.mu.Unlock()
			return nil, leaseLost(l.task())
		}
		held := h.held[l.key]
		h.mu.Unlock()
		if held == nil {
			continue // it was asked for already
		}
		select {
		case <-held.decided:
		case <-ctx.Done():
			return nil, runtime.Errorf(runtime.ReasonWaitTimeout,
				"the run of task %q is not taken up here yet; repeat the call", l.task())
		}
		h.mu.Lock()
		lost := h.jobs[token] == nil && h.held[l.key] == nil && !h.settled.has(token)
		h.mu.Unlock()
		if lost {
			return nil, leaseLost(l.task())
		}
	}
}
