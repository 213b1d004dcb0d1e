package worker

import (
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/worker/kept"
	"github.com/graphd-dev/graphd/internal/worker/lease"
	"github.com/graphd-dev/graphd/internal/worker/message"
	"github.com/graphd-dev/graphd/internal/worker/outbox"
	"github.com/graphd-dev/graphd/internal/worker/profile"
	"github.com/graphd-dev/graphd/internal/worker/queue"
)

// dispatcher gives tasks to workers and takes them back. Its mu guards all that
// changes together when a task changes hands: the queue, the leases, the sessions
// and the tasks themselves. The caller of a method holds mu unless the method's
// comment says otherwise. The caller sends the returned notices after it has
// released mu.
type dispatcher struct {
	opts         Options
	log          *zap.Logger
	signer       *lease.Signer
	claims       *lease.ClaimsPublisher
	workerLosses atomic.Uint64 // leases that ended because a worker was silent, and calls of endpoints that were lost
	keptCounts   kept.Counts

	mu          sync.Mutex
	placement   *placement
	profiles    *profile.Table[Session] // of the sessions
	queue       *queue.Queue[*job, *capacity]
	unserved    *unservedTasks
	awaited     *awaitedJobs
	history     *lease.History
	reclaims    *lease.Reclaims[Session] // leases of an earlier server, or of a run that went elsewhere
	jobsByLease map[string]*job
	jobsByKey   map[string]*job // tasks that are asked for
	lastOrder   uint64
}

func newDispatcher(o Options) *dispatcher {
	d := &dispatcher{
		opts: o, log: o.Logger, signer: lease.NewSigner(o.Key), history: lease.NewHistory(),
		placement: &placement{}, profiles: profile.NewTable[Session](o.MaxWorkers, o.MaxProfileBytes), queue: queue.New[*job, *capacity](),
		jobsByLease: make(map[string]*job), jobsByKey: make(map[string]*job),
	}
	d.claims = lease.NewClaimsPublisher(o.Logger, d.takeClaims)
	d.unserved = &unservedTasks{queue: d.queue, profiles: d.profiles, placement: d.placement}
	d.awaited = &awaitedJobs{
		placement: d.placement, unserved: d.unserved, leaseTTL: o.LeaseTTL, scheduleClaims: d.scheduleClaims,
		detached: make(map[string]map[string]*job), disconnected: make(map[*job]struct{}), withheld: make(withheldJobs),
	}
	d.reclaims = lease.NewReclaims(d.history, d.startReclaimTimer, d.scheduleClaims)
	return d
}

// containPanics wraps f for a goroutine or a timer: a panic ends f alone.
func (d *dispatcher) containPanics(f func()) func() {
	return contain.Func(f, contain.LogPanic(d.log, "the hub of workers panicked"))
}

// runLocked makes a change under mu, and returns its notices. Their tasks don't end
// before the notices are sent. The caller does not hold mu.
func (d *dispatcher) runLocked(change func() []notice) []notice {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := change()
	for _, n := range list {
		n.job.notifying.Add(1)
	}
	return list
}

// updateState makes a change under mu, and sends its notices. The caller does not hold
// mu.
func (d *dispatcher) updateState(change func() []notice) { sendNotices(d.log, d.runLocked(change)) }

// scheduleClaims publishes soon which leases of other servers are known here.
func (d *dispatcher) scheduleClaims() {
	if d.placement.peers != nil {
		d.claims.ScheduleClaims()
	}
}

// takeClaims lists the leases to be published. The caller does not hold mu.
func (d *dispatcher) takeClaims() (peers runtime.Peers, c checkpoint.Claims) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.claims.BeginClaims()
	if d.placement.isDraining {
		return d.placement.peers, c
	}
	for held := range d.reclaims.All() {
		if place := held.Place(); held.HasWorker() && len(c.Held) < lease.MaxClaims {
			c.Held = append(c.Held, place, lease.NameOf(place, held.Token))
		}
	}
	c.Awaited = d.awaited.listPlaces()
	return d.placement.peers, c
}

// admitJob queues a task, or gives it to the worker that runs it already.
func (d *dispatcher) admitJob(j *job) []notice {
	d.lastOrder++
	j.order = d.lastOrder
	d.history.AddRequest(j.task)
	d.jobsByKey[j.key] = j
	if list, ok := d.adoptReclaimed(j); ok {
		return list
	}
	if list, ok := d.withholdJob(j); ok {
		return list
	}
	return d.enqueueJob(j)
}

// enqueueJob adds a task to the queue by its age, and offers the tasks of its route
// to workers with free slots.
func (d *dispatcher) enqueueJob(j *job) []notice {
	d.queue.AddTask(j)
	list := d.unserved.noticeRoute(j.route, false)
	for {
		next, c, ok := d.queue.TakeMatch(j.route, d.listCapacities())
		if !ok {
			return list
		}
		d.offerJob(next, c.session)
	}
}

// listCapacities iterates over the capacities of the workers.
func (d *dispatcher) listCapacities() iter.Seq[*capacity] {
	return func(yield func(*capacity) bool) {
		for s := range d.profiles.Sessions() {
			if !yield(&s.capacity) {
				return
			}
		}
	}
}

// dispatchJob offers a task to a worker that takes it, if it is in the queue.
func (d *dispatcher) dispatchJob(j *job) {
	if c, ok := d.queue.TakeTask(j, d.listCapacities()); ok {
		d.offerJob(j, c.session)
	}
}

// offerOldestTo offers a worker with free slots the oldest tasks that it
// serves.
func (d *dispatcher) offerOldestTo(s *Session) {
	for {
		j, ok := d.queue.TakeOldest(&s.capacity)
		if !ok {
			return
		}
		d.offerJob(j, s)
	}
}

// offerJob leases a task to a worker.
func (d *dispatcher) offerJob(j *job, s *Session) {
	j.deliveries++
	switch {
	case j.hasLostWorker:
		j.hasLostWorker = false
		j.events.AddMarker(runtime.EventWorkerLost)
	case j.deliveries > 1:
		j.events.AddMarker(runtime.EventRestarted)
	}
	d.grantLease(j, s, d.signer.SignLease(j.task, j.key, s.profile.Hello.Principal))
	j.stage = stageOffered
	s.deliverAssignment(j, j.newAssignment(d.opts.LeaseTTL))
}

// requeueJob returns a task to its place in the queue. Graphs that the task
// has called must stop before it runs again.
func (d *dispatcher) requeueJob(j *job) []notice {
	d.releaseLease(j) // before finishJob, so that a result under the old lease does not count
	if j.isStopping {
		d.finishJob(j, nodeFailure("Cancelled", "the task was stopped, and then its worker gave it up"))
		return nil
	}
	j.stage = stageQueued
	if j.calls.IsEmpty() {
		return d.enqueueJob(j)
	}
	go d.containPanics(func() {
		j.calls.StopAndReset()
		d.updateState(func() []notice {
			if j.stage == stageQueued {
				return d.enqueueJob(j)
			}
			return nil
		})
	})()
	return nil
}

// releaseJobs requeues the tasks that were not sent to a worker whose stream
// has ended. It keeps the others for that worker.
func (d *dispatcher) releaseJobs(s *Session) []notice {
	var list []notice
	unsent := s.unsentJobs()
	for _, j := range sortedByAge(s.capacity.jobs) {
		if unsent[j.token] != nil {
			list = append(list, d.requeueJob(j)...)
		} else {
			list = append(list, d.awaited.addDetached(j)...)
		}
	}
	return list
}

// requeueDetached requeues the tasks that a reconnected worker does not hold. It
// keeps a task in the answer to a call, because that may still be on its way.
func (d *dispatcher) requeueDetached(s *Session) []notice {
	var list []notice
	for _, j := range d.awaited.detachedOf(s.profile.Hello.Worker) {
		if j.stage == stageOffered && j.isInCallAnswer {
			d.attachJob(j, s)
		} else {
			list = append(list, d.requeueJob(j)...)
		}
	}
	return list
}

// attachJob sets the session of the worker of a task.
func (d *dispatcher) attachJob(j *job, s *Session) {
	if j.session != nil {
		j.session.capacity.removeJob(j)
	}
	d.awaited.removeDetached(j)
	d.awaited.removeDisconnected(j)
	j.session = s
	s.capacity.addJob(j)
}

// refuseJob gives a task that a worker refuses to other workers.
func (d *dispatcher) refuseJob(j *job, s *Session, reason string, delay time.Duration) []notice {
	j.nacks++
	if j.nacks >= d.opts.MaxNacks {
		d.finishJob(j, nodeFailure("Refused", "workers refused the task too often; the last one said: "+reason))
		return nil
	}
	if j.refusedBy == nil {
		j.refusedBy = make(map[*Session]struct{})
	}
	j.refusedBy[s] = struct{}{}
	s.capacity.recentRefusals++
	delay = min(max(delay, 10*time.Millisecond), time.Minute)
	time.AfterFunc(delay, d.containPanics(func() { d.forgetRefusal(j, s) }))
	return d.requeueJob(j)
}

// forgetRefusal offers a task to a worker again that has refused it. The caller does
// not hold mu.
func (d *dispatcher) forgetRefusal(j *job, s *Session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(j.refusedBy, s)
	if s.capacity.recentRefusals--; s.capacity.recentRefusals == maxRecentRefusals-1 {
		d.offerOldestTo(s)
	}
	d.dispatchJob(j)
}

// applyCompletion ends a task with the result of its worker. waiting, if set, gets
// the next task.
func (d *dispatcher) applyCompletion(j *job, c message.Completion, waiting *outbox.WaitingCall) []notice {
	var list []notice
	s := j.session
	switch {
	case c.IsRefused && s != nil:
		list = d.refuseJob(j, s, c.Result.Failure.Message, 0)
	case c.IsRefused:
		list = d.requeueJob(j)
	default:
		if _, flooded := j.events.AddEvents(c.Events, c.DroppedEvents); flooded {
			c.Result = EmitFloodFailure()
		}
		d.finishJob(j, c.Result)
		if waiting != nil {
			s.waitingCalls.AddCall(waiting)
		}
	}
	if s != nil {
		d.offerOldestTo(s)
	}
	return list
}

// finishJob delivers the result of a task to its run.
func (d *dispatcher) finishJob(j *job, r pregel.Result) {
	if j.stage == stageOver {
		return
	}
	if j.token != "" {
		d.history.AddCompleted(j.token)
	}
	d.endJob(j)
	j.result <- r
}

// endJob removes a task that its run does not request any more.
func (d *dispatcher) endJob(j *job) {
	d.releaseLease(j)
	d.queue.RemoveTask(j)
	j.stage = stageOver
	d.unserved.countStranded(j, false)
	if d.jobsByKey[j.key] == j {
		delete(d.jobsByKey, j.key)
	}
}
