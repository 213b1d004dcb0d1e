package worker

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/worker/lease"
	"github.com/graphd-dev/graphd/internal/worker/queue"
)

// stage is how far a task has come.
type stage int

const (
	stageQueued   stage = iota
	stageWithheld       // a worker may have it from an earlier server: kept until that one comes back, or its lease is over
	stageOffered        // on its way to a worker, without a sign of life
	stageStarted
	stageOver
)

// job is a task from its request by the run until its result is there. The fields
// after result are guarded by Hub.mu.
type job struct {
	ctx    context.Context //nolint:containedctx // the job is the call, seen from the workers
	task   *runtime.Task
	key    string
	route  queue.Route
	result chan pregel.Result // takes one
	events *eventQueue
	calls  *graphCalls
	// memos are the memos of this attempt; they have a lock of their own.
	memos *Memos
	// notifying waits for the notices to the run that no worker can take the
	// task.
	notifying sync.WaitGroup

	stage          stage
	order          uint64
	lease          lease.Lease
	token          string   // of the lease, "" for none
	session        *Session // nil while no worker has it, or its stream is broken
	detachedWorker string   // the worker that may have it though its stream is broken
	holderServer   string   // the server to which its worker is attached, when that is another one
	leaseTimer     *time.Timer
	deliveries     int
	losses         int
	hasLostWorker  bool // the worker before was lost, and the run does not know
	nacks          int
	refusedBy      map[*Session]struct{} // sessions that have refused it for now
	isReported     bool                  // the run was notified that no worker can take it
	isStranded     bool                  // no worker here can take it
	pendingCalls   int                   // graphs that it waits for
	isOnEndpoint   bool                  // runs on an endpoint
	answeredLease  string                // the lease whose result was answered with this task
	isInCallAnswer bool                  // the answer was that of a call, which no stream keeps in order
	isStopping     bool                  // is being stopped: no other worker gets it
	stopReason     string                // why
	stopDeadline   time.Time             // until then its result is of use
}

func (h *Hub) newJob(ctx context.Context, t *runtime.Task) *job {
	j := &job{ctx: ctx, task: t, key: lease.KeyOf(t), route: queue.RouteOf(t), result: make(chan pregel.Result, 1), memos: &Memos{}}
	j.events = newEventQueue(t.Effects, &h.eventBudget, h.log)
	j.calls = newGraphCalls(ctx, t.Host, h.log)
	return j
}

// Route is what a worker must serve to run the task.
func (j *job) Route() queue.Route { return j.route }

// Order is the age of the task among all of the hub.
func (j *job) Order() uint64 { return j.order }

// IsRefused reports whether a worker has refused the task a moment ago. The hub's
// mu is held.
func (j *job) IsRefused() bool { return len(j.refusedBy) > 0 }

// taskFields names a task in the log.
func (j *job) taskFields() []zap.Field {
	return []zap.Field{
		zap.String("thread", j.task.Thread), zap.String("run", j.task.Run), zap.String("task", j.task.ID),
		zap.String("graph", j.route.Graph), zap.String("node", j.route.Node),
	}
}

// deliveryFields names a task and the worker that has it. mu is held.
func (j *job) deliveryFields() []zap.Field {
	f := j.taskFields()
	if j.session != nil {
		f = append(f, zap.String("worker", j.session.hello.Worker))
	}
	return f
}

// newAssignment returns the message to the worker. mu is held.
func (j *job) newAssignment(ttl time.Duration) Assignment {
	a := Assignment{Token: j.token, LeaseTTL: ttl, Delivery: j.deliveries, Task: j.task, Memos: j.memos.listMemos()}
	if deadline, ok := j.ctx.Deadline(); ok {
		a.Timeout = max(time.Until(deadline), time.Millisecond)
	}
	return a
}

// offerJob leases a task to a worker. mu is held.
func (h *Hub) offerJob(j *job, s *Session) {
	j.deliveries++
	switch {
	case j.hasLostWorker:
		j.hasLostWorker = false
		j.events.addMarker(runtime.EventWorkerLost)
	case j.deliveries > 1:
		j.events.addMarker(runtime.EventRestarted)
	}
	h.grantLease(j, s, h.signer.SignLease(j.task, j.key))
	j.stage = stageOffered
	s.deliverAssignment(j, j.newAssignment(h.opts.LeaseTTL))
}

// grantLease puts a lease into force. mu is held.
func (h *Hub) grantLease(j *job, s *Session, l lease.Lease) {
	token := l.Token
	j.lease, j.token, j.session = l, token, s
	h.setStranded(j, false)
	h.jobsByLease[token] = j
	if s != nil {
		s.capacity.addJob(j)
	}
	j.leaseTimer = time.AfterFunc(h.opts.LeaseTTL, h.containPanics(func() { h.expireLease(j, token) }))
}

// renewLease prolongs a lease. mu is held.
func (h *Hub) renewLease(j *job) {
	if j.leaseTimer != nil {
		j.leaseTimer.Reset(h.opts.LeaseTTL)
	}
}

// releaseLease ends the lease of a task; what comes under it from now on is
// refused. mu is held.
func (h *Hub) releaseLease(j *job) {
	h.clearDisconnected(j)
	h.clearWithheld(j)
	if j.leaseTimer != nil {
		j.leaseTimer.Stop()
		j.leaseTimer = nil
	}
	delete(h.jobsByLease, j.token)
	h.clearDetached(j)
	if j.session != nil {
		j.session.capacity.removeJob(j)
	}
	j.session, j.token, j.lease = nil, "", lease.Lease{}
}

// expireLease takes a task away from a worker that has been silent about it.
func (h *Hub) expireLease(j *job, token string) {
	h.mu.Lock()
	defer h.unlockAndNotify()
	if j.token != token || j.stage == stageOver {
		return
	}
	if h.followHolder(j) { // the run is about to go to where the worker is
		if j.session != nil { // what is left of that stream is dead
			h.detachJob(j)
		}
		h.renewLease(j)
		return
	}
	s := j.session
	h.log.Warn("a worker was silent about a task for longer than its lease", j.deliveryFields()...)
	h.handleLoss(j)
	if s != nil {
		s.outbox.removeTask(token)
		h.offerOldestTo(s)
	}
}

// handleLoss gives a task whose worker is lost to another one. mu is held.
func (h *Hub) handleLoss(j *job) {
	j.losses++
	h.recordLoss(j)
	if j.losses >= h.opts.MaxLosses {
		h.finishJob(j, nodeFailure("WorkerLost", "every worker that was given the task was lost while it ran; see the workers' logs"))
		return
	}
	h.requeueJob(j)
}

// recordLoss notes that a worker which may have run a task was lost. mu is held.
func (h *Hub) recordLoss(j *job) {
	j.hasLostWorker = true
	h.workerLosses.Add(1)
}

// requeueJob puts a task back to where it was in the queue. Graphs that it has
// called must stop before it runs again. mu is held.
func (h *Hub) requeueJob(j *job) {
	if j.isStopping {
		h.releaseLease(j) // before finish, so that a result under the old lease does not count
		h.finishJob(j, nodeFailure("Cancelled", "the task was stopped, and then its worker gave it up"))
		return
	}
	h.releaseLease(j)
	j.stage = stageQueued
	if j.calls.isEmpty() {
		h.enqueueJob(j)
		h.dispatchRoute(j.route)
		return
	}
	go h.containPanics(func() {
		j.calls.stopAndReset()
		h.mu.Lock()
		defer h.unlockAndNotify()
		if j.stage == stageQueued {
			h.enqueueJob(j)
			h.dispatchRoute(j.route)
		}
	})()
}

// endJob notes that a task is not asked for any more. mu is held.
func (h *Hub) endJob(j *job) {
	j.stage = stageOver
	if j.isStranded {
		j.isStranded = false
		h.unservedTasks.Add(-1)
	}
	if h.jobsByKey[j.key] == j {
		delete(h.jobsByKey, j.key)
	}
}

// finishJob hands over the result of a task. mu is held.
func (h *Hub) finishJob(j *job, r pregel.Result) {
	if j.stage == stageOver {
		return
	}
	if j.token != "" {
		h.history.AddCompleted(j.token)
	}
	h.releaseLease(j)
	h.queue.RemoveTask(j)
	h.endJob(j)
	j.result <- r
}
