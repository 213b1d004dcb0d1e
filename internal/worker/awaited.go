package worker

import (
	"iter"
	"maps"
	"time"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker/lease"
)

// awaitedJobs are the tasks that wait for a certain worker, which may run them but
// has no stream here. They are guarded by the dispatcher's mu.
type awaitedJobs struct {
	placement      *placement
	unserved       *unservedTasks
	leaseTTL       time.Duration
	scheduleClaims func() // tells the other servers of changes

	detached     map[string]map[string]*job // by worker and lease: tasks whose worker's stream is broken
	disconnected map[*job]struct{}          // those, and tasks whose worker came with a call alone
	withheld     withheldJobs
}

// addDetached keeps a task for its worker, whose stream is broken. The worker may
// have begun, whether or not it has said so: no other worker gets the task until
// its lease ends, or the worker comes back without it.
func (a *awaitedJobs) addDetached(j *job) []notice {
	s := j.session
	s.capacity.removeJob(j)
	j.session, j.detachedWorker = nil, s.profile.Hello.Worker
	if a.detached[j.detachedWorker] == nil {
		a.detached[j.detachedWorker] = make(map[string]*job, 1)
	}
	a.detached[j.detachedWorker][j.token] = j
	return a.addDisconnected(j)
}

// removeDetached records that the worker of a task is back, or not waited for any
// more.
func (a *awaitedJobs) removeDetached(j *job) {
	if j.detachedWorker == "" {
		return
	}
	delete(a.detached[j.detachedWorker], j.token)
	if len(a.detached[j.detachedWorker]) == 0 {
		delete(a.detached, j.detachedWorker)
	}
	j.detachedWorker = ""
}

// detachedOf lists the tasks that wait for a worker to come back, the oldest first.
func (a *awaitedJobs) detachedOf(worker string) []*job { return sortedByAge(a.detached[worker]) }

// addDisconnected records that the worker of a task has no stream here. The
// worker may have a stream to another server.
func (a *awaitedJobs) addDisconnected(j *job) []notice {
	a.disconnected[j] = struct{}{}
	_, list := a.followHolder(j)
	return list
}

// removeDisconnected records that the worker of a task has a stream here, or is not
// awaited any more.
func (a *awaitedJobs) removeDisconnected(j *job) {
	delete(a.disconnected, j)
	a.clearHolder(j)
}

// followDisconnected finds the server of a task's worker if that has no stream
// here.
func (a *awaitedJobs) followDisconnected(j *job) []notice {
	if _, ok := a.disconnected[j]; !ok {
		return nil
	}
	_, list := a.followHolder(j)
	return list
}

// addWithheld keeps a task for the worker that may have it from an earlier server.
func (a *awaitedJobs) addWithheld(j *job) []notice {
	j.stage = stageWithheld
	a.withheld.addJob(j)
	if j.task.WorkerWait != nil {
		j.task.WorkerWait.Withheld.Store(true)
	}
	a.scheduleClaims()
	if a.placement.isDraining {
		return []notice{a.handOffWithheld(j)}
	}
	_, list := a.followHolder(j)
	return list
}

// removeWithheld records that a task is not withheld any more.
func (a *awaitedJobs) removeWithheld(j *job) {
	if j.stage != stageWithheld {
		return
	}
	a.withheld.removeJob(j)
	if j.task.WorkerWait != nil {
		j.task.WorkerWait.Withheld.Store(false)
	}
	a.scheduleClaims()
}

// handOffWithheld hands the run of a withheld task to the next server, because
// this server stops.
func (a *awaitedJobs) handOffWithheld(j *job) notice {
	a.unserved.setStranded(j, true)
	return notice{job: j, notify: runtime.Host.HandOff}
}

// handOffAll leaves the runs of all tasks to other servers, as far as they can go
// there.
func (a *awaitedJobs) handOffAll() []notice {
	var list []notice
	for j := range a.withheld.allJobs() {
		list = append(list, a.handOffWithheld(j))
	}
	for j := range a.disconnected {
		list = append(list, a.followDisconnected(j)...)
	}
	return list
}

// followAll finds the servers of all awaited workers.
func (a *awaitedJobs) followAll() []notice {
	var list []notice
	for _, jobs := range []iter.Seq[*job]{a.withheld.allJobs(), maps.Keys(a.disconnected)} {
		for j := range jobs {
			_, more := a.followHolder(j)
			list = append(list, more...)
		}
	}
	return list
}

// followHolder finds the server to which the worker of a task is attached, and
// hands the run over to it. It reports whether the task waits on: also when the
// worker is not there any more, because it has the time of a lease to come back.
func (a *awaitedJobs) followHolder(j *job) (waits bool, list []notice) {
	k := j.task.WorkerWait
	if a.placement.peers == nil || k == nil {
		return false, nil
	}
	server := a.findHolder(j)
	if server == "" {
		waits = j.holderServer != ""
		a.clearHolder(j)
		if waits {
			j.renewLease(a.leaseTTL)
		}
		return waits, nil
	}
	if j.holderServer == "" && j.stage != stageWithheld {
		a.scheduleClaims() // it awaits the worker
	}
	j.holderServer = server
	k.Holder.Store(&server)
	k.Withheld.Store(!j.calls.HasLiveCalls()) // the graphs that the task has called continue here
	return true, []notice{a.placement.noticeStranded(j)}
}

// findHolder returns the other server to which the worker of a task is attached,
// "" when none is known.
func (a *awaitedJobs) findHolder(j *job) string {
	if j.isStopping {
		return ""
	}
	held := lease.PlaceOf(j.task)
	if j.token != "" {
		held = lease.NameOf(held, j.token)
	}
	return a.placement.peers.FindHolder(held, j.task.AlsoNeeds...)
}

// clearHolder records that the worker of a task is not known to be at another
// server.
func (a *awaitedJobs) clearHolder(j *job) {
	if j.holderServer == "" {
		return
	}
	j.holderServer = ""
	j.task.WorkerWait.Holder.Store(nil)
	j.task.WorkerWait.Withheld.Store(j.stage == stageWithheld)
	a.scheduleClaims()
}

// listPlaces lists the places of the tasks whose worker is awaited, lease.MaxClaims at
// most.
func (a *awaitedJobs) listPlaces() []string {
	var places []string
	for j := range a.withheld.allJobs() {
		if len(places) < lease.MaxClaims {
			places = append(places, lease.PlaceOf(j.task))
		}
	}
	for j := range a.disconnected {
		if j.holderServer != "" && len(places) < lease.MaxClaims {
			places = append(places, lease.PlaceOf(j.task))
		}
	}
	return places
}
