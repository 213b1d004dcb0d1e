package worker

import (
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// withhold keeps a task back that a worker may still run for the server before
// this one. That worker gets it when it comes back; when the time of a lease has
// passed since the run was taken up, any worker may. It reports false for a task
// that no worker can have. mu is held.
func (h *Hub) withhold(j *job) bool {
	if j.task.Recovered.IsZero() || j.task.Router != "" || j.task.Reduce != nil {
		return false
	}
	left := h.opts.LeaseTTL - time.Since(j.task.Recovered)
	if left <= 0 {
		return false
	}
	j.stage = withheld
	h.withheld[j] = struct{}{}
	if j.task.Keeping != nil {
		j.task.Keeping.Withheld.Store(true)
	}
	h.changeClaims()
	j.expiry = time.AfterFunc(left, h.contained(func() { h.endWithholding(j) }))
	if h.draining {
		h.leaveWithheld(j)
	} else {
		h.seekHolder(j)
	}
	return true
}

// endsWithholding notes that a task is not kept back any more. mu is held.
func (h *Hub) endsWithholding(j *job) {
	if j.stage != withheld {
		return
	}
	delete(h.withheld, j)
	if j.task.Keeping != nil {
		j.task.Keeping.Withheld.Store(false)
	}
	h.changeClaims()
}

// endWithholding offers a task to any worker whose holder has not come back.
func (h *Hub) endWithholding(j *job) {
	h.mu.Lock()
	defer h.unlockAndTell()
	if j.stage != withheld {
		return
	}
	if h.seekHolder(j) { // the run is about to go there
		h.renew(j)
		return
	}
	h.log.Info("no worker came back for a task that an earlier server may have handed out", j.about()...)
	if j.task.HandedOut {
		h.lose(j)
		return
	}
	h.release(j)
	j.stage = queued
	h.enqueue(j)
	h.dispatch(j.route)
}

// leaveWithheld leaves the run of a withheld task to the next server, because
// this one stops. mu is held.
func (h *Hub) leaveWithheld(j *job) {
	h.strand(j, true)
	h.tell(j, "", runtime.Host.HandOver)
}

// leaveBehind notes that a worker may go on with a task whose run goes on at
// another server, and keeps its lease should that be here again. mu is held.
func (h *Hub) leaveBehind(j *job) {
	if j.task.Lent != nil {
		j.task.Lent.Store(true)
	}
	s, token := j.session, j.token
	if token == "" {
		return
	}
	h.departed.add(token)
	if l, ok := h.read(token); ok && l.lasts() && h.held[l.place()] == nil {
		h.log.Info("a worker keeps a task whose run goes on at another server", append(j.fields(), zap.Bool("connected", s != nil))...)
		h.retain(s, token, l)
	}
}
