package worker

import (
	"slices"
	"sync/atomic"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker/profile"
	"github.com/graphd-dev/graphd/internal/worker/queue"
)

// unservedTasks are the queued tasks that no worker of this server serves. They are
// guarded by the dispatcher's mu, save for the count.
type unservedTasks struct {
	queue     *queue.Queue[*job, *capacity]
	profiles  *profile.Table[Session]
	placement *placement
	count     atomic.Int64
}

// noticeRoute lists the notices for the unserved tasks of a route. With again also
// for runs that were notified before, because the workers of other servers have changed.
func (u *unservedTasks) noticeRoute(r queue.Route, again bool) []notice {
	tasks := u.queue.TasksOf(r)
	if len(tasks) == 0 || u.profiles.IsServed(r) {
		return nil
	}
	var list []notice
	why := "" // the same for all of them
	somewhere := u.placement.hasWorkersFor(r.Capability())
	for _, j := range tasks {
		isNew := !j.isStranded
		u.setStranded(j, true)
		elsewhere := somewhere && (len(j.task.AlsoNeeds) == 0 || u.placement.hasWorkersFor(append(slices.Clip(j.task.AlsoNeeds), r.Capability())...))
		switch {
		case u.placement.isDraining: // another server continues the run
			list = append(list, u.placement.noticeStranded(j))
		case !elsewhere && !j.isReported:
			j.isReported = true
			if why == "" {
				why = u.profiles.ExplainUnserved(r)
			}
			list = append(list, notice{job: j, why: why, notify: func(host runtime.Host) {
				host.ReportUnassigned(why)
				host.NotifyStranded()
			}})
		case isNew, again && elsewhere:
			list = append(list, u.placement.noticeStranded(j))
		}
	}
	return list
}

// noticeAll lists the notices for the unserved tasks of all routes.
func (u *unservedTasks) noticeAll(again bool) []notice {
	var list []notice
	for r := range u.queue.Routes() {
		list = append(list, u.noticeRoute(r, again)...)
	}
	return list
}

// setStranded records whether no worker of this server can take a task.
func (u *unservedTasks) setStranded(j *job, stranded bool) {
	u.countStranded(j, stranded)
	if j.task.Stranded != nil {
		j.task.Stranded.Store(stranded)
	}
}

// countStranded adds a task that no worker can take to the count, or removes it. It
// does not notify the run.
func (u *unservedTasks) countStranded(j *job, stranded bool) {
	if j.isStranded == stranded {
		return
	}
	j.isStranded = stranded
	if stranded {
		u.count.Add(1)
	} else {
		u.count.Add(-1)
	}
}

// clearStranded records that the tasks that a new worker serves need no other
// server.
func (u *unservedTasks) clearStranded(s *Session) {
	for r := range u.queue.Routes() {
		if !s.capacity.CanServe(r) {
			continue
		}
		for _, j := range u.queue.TasksOf(r) {
			u.setStranded(j, false)
		}
	}
}
