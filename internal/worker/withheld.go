package worker

import (
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// withholdJob withholds a task that a worker may still run for the server before
// this one. That worker gets it when it comes back; when the time of a lease has
// passed since the run was taken up, any worker may. It reports false for a task
// that no worker can have. mu is held.
func (h *Hub) withholdJob(j *job) bool {
	if j.task.RecoveredAt.IsZero() || j.task.Router != "" || j.task.Reduce != nil {
		return false
	}
	left := h.opts.LeaseTTL - time.Since(j.task.RecoveredAt)
	if left <= 0 {
		return false
	}
	j.stage = stageWithheld
	h.withheld[j] = struct{}{}
	if j.task.WorkerWait != nil {
		j.task.WorkerWait.Withheld.Store(true)
	}
	h.scheduleClaims()
	j.leaseTimer = time.AfterFunc(left, h.containPanics(func() { h.releaseWithheld(j) }))
	if h.isDraining {
		h.handOffWithheld(j)
	} else {
		h.followHolder(j)
	}
	return true
}

// clearWithheld records that a task is not withheld any more. mu is held.
func (h *Hub) clearWithheld(j *job) {
	if j.stage != stageWithheld {
		return
	}
	delete(h.withheld, j)
	if j.task.WorkerWait != nil {
		j.task.WorkerWait.Withheld.Store(false)
	}
	h.scheduleClaims()
}

// releaseWithheld offers a task to any worker when its holder has not come back.
func (h *Hub) releaseWithheld(j *job) {
	h.mu.Lock()
	defer h.unlockAndNotify()
	if j.stage != stageWithheld {
		return
	}
	if h.followHolder(j) { // the run is about to go there
		h.renewLease(j)
		return
	}
	h.log.Info("no worker came back for a task that an earlier server may have handed out", j.taskFields()...)
	if j.task.HandedOut {
		h.handleLoss(j)
		return
	}
	h.releaseLease(j)
	j.stage = stageQueued
	h.enqueueJob(j)
	h.dispatchRoute(j.route)
}

// handOffWithheld leaves the run of a withheld task to the next server, because
// this one stops. mu is held.
func (h *Hub) handOffWithheld(j *job) {
	h.setStranded(j, true)
	h.addNotice(j, "", runtime.Host.HandOff)
}

// retainDeparted records that a worker may go on with a task whose run goes on at
// another server, and keeps its lease in case the run comes back. mu is held.
func (h *Hub) retainDeparted(j *job) {
	if j.task.StillRemote != nil {
		j.task.StillRemote.Store(true)
	}
	s, l := j.session, j.lease
	if l.Token == "" {
		return
	}
	h.history.AddDeparted(l.Token)
	if l.OutlivesServer() && h.reclaims.FindPlace(l.Place()) == nil {
		h.log.Info("a worker keeps a task whose run goes on at another server", append(j.deliveryFields(), zap.Bool("connected", s != nil))...)
		h.reclaims.Add(s, l)
	}
}
