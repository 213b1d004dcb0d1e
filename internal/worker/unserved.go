package worker

import (
	"slices"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker/queue"
)

// runNotice is a pending notice to the run of a task that no worker of this server
// serves.
type runNotice struct {
	job    *job
	why    string // for the log of the run; "" = the run was notified before, or another server serves it
	notify func(runtime.Host)
}

// unlockAndNotify releases mu, and then sends the pending notices to the runs of
// unserved tasks.
func (h *Hub) unlockAndNotify() {
	alone := h.notices
	h.notices = nil
	h.mu.Unlock()
	for _, l := range alone {
		if l.why != "" {
			h.log.Info("no worker can take a task", append(l.job.taskFields(), zap.String("reason", l.why))...)
		}
		go contain.Func(func() {
			defer l.job.notifying.Done()
			if l.job.task.Host != nil {
				l.notify(l.job.task.Host)
			}
		}, contain.LogPanic(h.log, "telling the run of a task panicked"))()
	}
}

// addNotice queues a notice to the run of a task until mu is released. mu is held.
func (h *Hub) addNotice(j *job, why string, what func(runtime.Host)) {
	j.notifying.Add(1)
	h.notices = append(h.notices, runNotice{job: j, why: why, notify: what})
}

// noticeUnserved queues notices for the unserved tasks of a route. mu is held.
func (h *Hub) noticeUnserved(r queue.Route) { h.notifyUnserved(r, false) }

// notifyUnserved does so; with again also to runs that were notified before,
// because the workers of other servers have changed. mu is held.
func (h *Hub) notifyUnserved(r queue.Route, again bool) {
	tasks := h.queue.TasksOf(r)
	if len(tasks) == 0 || h.sessions.isServed(r) {
		return
	}
	why := "" // the same for all of them
	somewhere := h.peers != nil && h.peers.Cover(r.Capability())
	for _, j := range tasks {
		isNew := !j.isStranded
		h.setStranded(j, true)
		elsewhere := somewhere && (len(j.task.AlsoNeeds) == 0 || h.peers.Cover(append(slices.Clip(j.task.AlsoNeeds), r.Capability())...))
		switch {
		case h.isDraining: // another server goes on with the run
			h.addNotice(j, "", runtime.Host.HandOff)
		case !elsewhere && !j.isReported:
			j.isReported = true
			if why == "" {
				why = h.sessions.unservedReason(r)
			}
			h.addNotice(j, why, func(host runtime.Host) {
				host.ReportUnassigned(why)
				host.NotifyStranded()
			})
		case isNew, again && elsewhere:
			h.addNotice(j, "", runtime.Host.NotifyStranded)
		}
	}
}

// setStranded records whether no worker of this server can take a task. mu is held.
func (h *Hub) setStranded(j *job, stranded bool) {
	if j.isStranded != stranded {
		j.isStranded = stranded
		if stranded {
			h.unservedTasks.Add(1)
		} else {
			h.unservedTasks.Add(-1)
		}
	}
	if j.task.Stranded != nil {
		j.task.Stranded.Store(stranded)
	}
}

// clearStranded records that the tasks that a new worker serves need no other
// server. mu is held.
func (h *Hub) clearStranded(s *Session) {
	for r := range h.queue.Routes() {
		if !s.capacity.CanServe(r) {
			continue
		}
		for _, j := range h.queue.TasksOf(r) {
			h.setStranded(j, false)
		}
	}
}
