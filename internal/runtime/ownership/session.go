package ownership

import (
	"errors"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/capacity"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/placement"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// session is the hold of this process on a thread while one of its runs is live. Each of
// its parts does one thing for the loops of the run.
type session struct {
	owner     *Owner
	thread    heldThread
	followers topicFollowers
	stop      runStop
	lease     lease
	commits   leaseCommitter
	history   historyPruner
	remote    remoteWork

	capacity    capacity.Holder         // slot and bytes that the run holds
	reservation runtime.ReadReservation // memory for the state until the run is live
	unserved    *placement.UnservedRun  // the run, if it gives its slot up for want of workers
	turn        Turn                    // nil = it is not traced

	loopThread superstep.Thread // the part of the session that the loops of the run see
}

// newSession makes a session and connects its parts. The session does not hold the
// thread yet.
func (o *Owner) newSession(thread string) *session {
	s := &session{owner: o, thread: heldThread{
		id: thread, opts: &o.opts, log: o.log.WithLazy(zap.String("thread", thread)),
		topic: o.opts.Feed.AcquireTopic(thread), released: make(chan struct{}),
	}}
	s.followers = topicFollowers{feed: o.opts.Feed, topic: s.thread.topic}
	s.stop.thread = &s.thread
	s.stop.initContexts(o)
	s.lease.thread, s.lease.stop, s.lease.renewer = &s.thread, &s.stop, &s.commits
	s.commits.thread, s.commits.lease, s.commits.stop, s.commits.progress = &s.thread, &s.lease, &s.stop, &s.remote
	s.commits.commitLock = make(chan struct{}, 1)
	s.history.thread, s.history.commits = &s.thread, &s.commits
	s.remote.thread, s.remote.stop, s.remote.slot = &s.thread, &s.stop, &s.capacity
	s.capacity.Init(o.opts.Capacity, thread, &s.remote)
	s.loopThread = superstep.Thread{
		ID: thread, Log: s.thread.log, StoreCtx: s.stop.storeCtx, WorkDone: s.stop.workCtx.Done(), Reservation: &s.reservation,
		Committer: &s.commits, Followers: &s.followers, Stop: &s.stop, RunEnd: s, History: &s.history, Memory: &s.capacity,
		Tasks: &s.remote, Placement: &s.remote, Reasons: &s.remote,
	}
	return s
}

// holdThread prepares to drive a thread here. The error is ErrDraining or
// ErrThreadHeld: this process must leave the run to others. Until startDriving or
// releaseThread is called nothing runs, and others wait who want to change the
// thread through the session.
func (o *Owner) holdThread(thread string) (*session, error) {
	s := o.newSession(thread)
	s.commits.commitLock <- struct{}{}
	if err := o.opts.Threads.registerSession(s); err != nil {
		s.stop.stopWork(nil)
		s.stop.cancelStoreCalls()
		o.opts.Feed.ReleaseTopic(s.thread.topic)
		return nil, err
	}
	s.thread.topic.AddDriver()
	return s, nil
}

// releaseThread undoes holdThread. When it is unknown whether the lease was taken, the
// thread is looked at again.
func (s *session) releaseThread(err error) {
	s.lease.isLost = true
	s.commits.unlockCommits()
	s.closeSession()
	s.owner.opts.Feed.InvalidateTopic(s.thread.id) // others may drive the thread meanwhile
	if errors.Is(err, checkpoint.ErrUnavailable) {
		s.owner.opts.Threads.MarkMaybeLeased(s.thread.id)
	}
}

// closeSession releases the thread. Nothing of the run is running any more.
func (s *session) closeSession() {
	s.stop.cancelStoreCalls() // a holder of commitLock that hangs gives it back
	s.commits.commitLock <- struct{}{}
	s.lease.isLost = true
	s.stop.endGrace()
	s.commits.unlockCommits()
	s.remote.stopTracking()
	s.stop.stopWork(nil)
	s.leaveTable()
	s.thread.topic.RemoveDriver()
	s.owner.opts.Feed.ReleaseTopic(s.thread.topic)
	s.owner.opts.Feed.StopPublishing(s.thread.id)
	close(s.thread.released)
	s.lease.stopRenewal()
}

// leaveTable ends the hold in the table of the process.
func (s *session) leaveTable() {
	o := &s.owner.opts
	if o.Threads.unregisterSession(s) {
		o.Scheduler.Wake() // others may wait for the slot
	}
	if s.unserved != nil && o.Peers.CoversAnyHere(s.unserved) { // it has come meanwhile
		o.Unserved.RequestCheck()
	}
}

// releaseCapacity gives back the slot and the bytes of the run, and reports whether
// others may wait for it.
func (s *session) releaseCapacity() (awaited bool) {
	s.reservation.ReleaseAll()
	if s.unserved != nil {
		s.owner.opts.Unserved.AddRun(s.thread.id, s.unserved, s.owner.opts.Uptime())
	}
	return s.capacity.Release()
}

// reserveSlot takes a slot for the run that the session is about to drive, and counts
// the bytes of the loop.
func (s *session) reserveSlot(l *superstep.Loop) error {
	grant, err := s.capacity.Reserve(l.Run().StartedBy, l.MeasureUncounted())
	if err != nil {
		return err
	}
	l.SetCounted(grant.HeldBytes)
	s.history.mark = grant.PruneMark
	return nil
}

// PutHandOver leaves the run in a change to the server with its workers, or to the time
// when such a server may have come.
func (s *session) PutHandOver(t *commit.Tx, run *checkpoint.Run) { s.remote.putHandOver(t, run) }

// PutCancelledEnd ends the run, which is cancelled, in a change. Errors: those of
// Canceller.PutCancelledEnd.
func (s *session) PutCancelledEnd(t *commit.Tx, run checkpoint.Run, request checkpoint.Cancel) error {
	return s.owner.opts.Canceller.PutCancelledEnd(s.stop.storeCtx, t, run, request)
}
