package worker

import (
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker/lease"
	"github.com/graphd-dev/graphd/internal/worker/message"
)

// claimResult is the outcome of a worker's claim to a lease.
type claimResult int

const (
	claimLost      claimResult = iota
	claimUndecided             // kept until this server drives the run, or the time for that ends
	claimGranted
)

// grantLease makes a lease valid.
func (d *dispatcher) grantLease(j *job, s *Session, l lease.Lease) {
	j.lease, j.token, j.session = l, l.Token, s
	d.unserved.setStranded(j, false)
	d.jobsByLease[l.Token] = j
	if s != nil {
		s.capacity.addJob(j)
	}
	j.leaseEnd = time.Now().Add(d.opts.LeaseTTL)
	j.leaseTimer = time.AfterFunc(d.opts.LeaseTTL, d.containPanics(func() {
		d.updateState(func() []notice { return d.expireLease(j, l.Token) })
	}))
}

// releaseLease ends the lease of a task. Messages under it are refused from
// now on.
func (d *dispatcher) releaseLease(j *job) {
	d.awaited.removeDisconnected(j)
	d.awaited.removeWithheld(j)
	if j.leaseTimer != nil {
		j.leaseTimer.Stop()
		j.leaseTimer = nil
	}
	delete(d.jobsByLease, j.token)
	d.awaited.removeDetached(j)
	if j.session != nil {
		j.session.capacity.removeJob(j)
	}
	j.session, j.token, j.lease = nil, "", lease.Lease{}
}

// expireLease takes a task away from a worker that has been silent about it.
func (d *dispatcher) expireLease(j *job, token string) []notice {
	if j.token != token || j.stage == stageOver || j.isRenewed() {
		return nil
	}
	if waits, list := d.awaited.followHolder(j); waits { // the run is about to move to the worker's server
		if j.session != nil { // the earlier stream is dead
			list = append(list, d.awaited.addDetached(j)...)
		}
		j.renewLease(d.opts.LeaseTTL)
		return list
	}
	s := j.session
	d.log.Warn("a worker was silent about a task for longer than its lease", j.deliveryFields()...)
	list := d.handleLoss(j)
	if s != nil {
		s.outbox.RemoveTask(token)
		d.offerOldestTo(s)
	}
	return list
}

// handleLoss gives a task whose worker is lost to another worker.
func (d *dispatcher) handleLoss(j *job) []notice {
	j.losses++
	j.hasLostWorker = true
	d.workerLosses.Add(1)
	if j.losses >= d.opts.MaxLosses {
		d.finishJob(j, nodeFailure("WorkerLost", "every worker that was given the task was lost while it ran; see the workers' logs"))
		return nil
	}
	return d.requeueJob(j)
}

// withholdJob withholds a task that a worker may still run for the previous
// server. That worker gets the task when it comes back. Any worker may get it
// when the time of a lease has passed since this server took the run over.
// withholdJob reports false for a task that no worker can have.
func (d *dispatcher) withholdJob(j *job) ([]notice, bool) {
	if j.task.RecoveredAt.IsZero() || j.task.Router != "" || j.task.Reduce != nil {
		return nil, false
	}
	end := j.task.RecoveredAt.Add(d.opts.LeaseTTL)
	left := time.Until(end)
	if left <= 0 {
		return nil, false
	}
	j.leaseEnd = end
	j.leaseTimer = time.AfterFunc(left, d.containPanics(func() {
		d.updateState(func() []notice { return d.releaseWithheldOfRun(j) })
	}))
	return d.awaited.addWithheld(j), true
}

// releaseWithheldOfRun releases the withheld tasks of the run of a task whose time is
// over. The run moves to another server when all its tasks are withheld or have no worker
// here, and the other server withholds them again. So a task that has a worker here must
// not stay withheld when it could begin.
func (d *dispatcher) releaseWithheldOfRun(of *job) []notice {
	var list []notice
	for _, j := range d.awaited.withheld.jobsOfRun(of) {
		list = append(list, d.releaseWithheld(j)...)
	}
	return list
}

// releaseWithheld offers a task to any worker when its holder has not come back.
func (d *dispatcher) releaseWithheld(j *job) []notice {
	if j.stage != stageWithheld || j.isRenewed() {
		return nil
	}
	if waits, list := d.awaited.followHolder(j); waits { // the run is about to move there
		j.renewLease(d.opts.LeaseTTL)
		return list
	}
	d.log.Info("no worker came back for a task that an earlier server may have handed out", j.taskFields()...)
	if j.task.HandedOut {
		return d.handleLoss(j)
	}
	d.releaseLease(j)
	j.stage = stageQueued
	return d.enqueueJob(j)
}

// claimLease renews a lease for its worker, which has begun the task.
func (d *dispatcher) claimLease(s *Session, l lease.Lease) (claimResult, []notice) {
	j := d.jobsByLease[l.Token]
	if j == nil {
		return d.claimUnknownLease(s, l)
	}
	if j.isOnEndpoint {
		return claimLost, nil
	}
	if j.session != s {
		d.attachJob(j, s)
		if j.isStopping { // messages on the previous stream may be lost
			s.sendCancel(j)
		}
	}
	j.stage = stageStarted
	j.renewLease(d.opts.LeaseTTL)
	return claimGranted, nil
}

// claimUnknownLease decides about a lease that belongs to no running task here. s
// is nil when the worker has no stream here.
func (d *dispatcher) claimUnknownLease(s *Session, l lease.Lease) (claimResult, []notice) {
	if !l.OutlivesServer() || d.history.IsCompleted(l.Token) || d.history.IsRejected(l.Token) {
		return claimLost, nil
	}
	if known := d.reclaims.FindPlace(l.Place()); known != nil {
		if d.reclaims.Claim(known, s, l, d.opts.ReclaimTimeout) {
			return claimUndecided, nil
		}
		return claimLost, nil
	}
	if d.signer.IsOwn(l) && !d.history.IsDeparted(l.Token) {
		return claimLost, nil
	}
	if j := d.jobsByKey[l.Key]; j != nil {
		return d.claimJob(j, s, l)
	}
	if d.history.IsRequestedSince(l) {
		return claimLost, nil // the task was done without the worker, or has made progress since
	}
	d.reclaims.Add(s, l)
	return claimUndecided, nil
}

// claimJob gives a requested task to the worker that holds an old lease of it,
// unless a worker has a later lease.
func (d *dispatcher) claimJob(j *job, s *Session, l lease.Lease) (claimResult, []notice) {
	switch {
	case j.task.RecoveredAt.IsZero(), j.isOnEndpoint, s != nil && j.route.NeedsComparison && !s.profile.Hello.ComparesAnswers:
		return claimLost, nil
	case j.stage == stageWithheld, j.stage == stageQueued:
		d.queue.RemoveTask(j)
	default:
		if j.token == "" || d.signer.IsOwn(j.lease) || !l.IsNewer(j.lease) {
			return claimLost, nil
		}
	}
	d.releaseLease(j)
	return claimGranted, d.resumeLease(j, s, l)
}

// adoptReclaimed gives a requested task to the worker that runs it already. The
// lease of an earlier attempt or pass is lost. It reports false when no worker runs
// the task.
func (d *dispatcher) adoptReclaimed(j *job) ([]notice, bool) {
	held := d.reclaims.FindPlace(lease.PlaceOf(j.task))
	if held == nil {
		return nil, false
	}
	s := held.Session()
	if s != nil && j.route.NeedsComparison && !s.profile.Hello.ComparesAnswers || !held.IsFor(j.task, j.key) {
		d.reclaims.Reject(held)
		return nil, false
	}
	d.reclaims.Remove(held)
	if s != nil && s.hasEnded {
		s = nil
	}
	list := d.resumeLease(j, s, held.Lease)
	if s != nil {
		s.outbox.AddMessage(message.LeaseRenewal{Token: held.Token, LeaseTTL: d.opts.LeaseTTL})
	}
	return list, true
}

// resumeLease makes an old lease the present lease of a task.
func (d *dispatcher) resumeLease(j *job, s *Session, l lease.Lease) []notice {
	j.deliveries++
	j.events.AddMarker(runtime.EventContinued)
	d.grantLease(j, s, l)
	j.stage = stageStarted
	if s == nil {
		return d.awaited.addDisconnected(j)
	}
	return nil
}

// markUnresolved records that the run continues at another server before the holder of
// the task has come back.
func (j *job) markUnresolved() {
	if j.task.Unresolved != nil {
		j.task.Unresolved.Store(true)
	}
}

// retainDeparted records that a worker may continue a task whose run continues at
// another server, and keeps its lease in case the run comes back.
func (d *dispatcher) retainDeparted(j *job) {
	if j.task.StillRemote != nil {
		j.task.StillRemote.Store(true)
	}
	s, l := j.session, j.lease
	if l.Token == "" {
		return
	}
	d.history.AddDeparted(l.Token)
	if l.OutlivesServer() && d.reclaims.FindPlace(l.Place()) == nil {
		d.log.Info("a worker keeps a task whose run goes on at another server", append(j.deliveryFields(), zap.Bool("connected", s != nil))...)
		d.reclaims.Add(s, l)
	}
}

// startReclaimTimer starts the timer that releases a reclaimed lease without a
// run.
func (d *dispatcher) startReclaimTimer(held *lease.Reclaimed[Session]) *time.Timer {
	return time.AfterFunc(d.opts.ReclaimTimeout, d.containPanics(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.reclaims.Expire(held, d.placement.isAwaited, d.opts.ReclaimTimeout)
	}))
}

// isUndecided reports whether a lease that belongs to no running task here may come
// into force again.
func (d *dispatcher) isUndecided(l lease.Lease) bool {
	held := d.reclaims.FindPlace(l.Place())
	return held != nil && held.Token == l.Token
}
