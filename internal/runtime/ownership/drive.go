package ownership

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
	"github.com/graphd-dev/graphd/internal/stack"
)

// startDriving drives a loop whose first commit was made under the session's lease.
func (s *session) startDriving(head *checkpoint.Head, l *superstep.Loop) {
	s.traceWork()
	s.commits.head, s.loopThread.Fence = *head, head.Fence
	s.lease.noteRenewal(s.owner.opts.Uptime())
	s.remote.startTracking(head.Handoffs)
	s.nameRunInLog(l.Run())
	s.commits.applyCancel() // a cancel may have come before the run was driven
	s.commits.unlockCommits()
	s.lease.startRenewal()
	d := &drivenRun{session: s, loop: l}
	go contain.Func(d.driveRun, contain.LogPanic(s.thread.log, "the goroutine of a run panicked"))()
}

// endInlineRun releases a thread whose run has ended with the change that began
// it or took it up.
func (s *session) endInlineRun(head *checkpoint.Head, l *superstep.Loop) {
	s.traceWork()
	s.commits.head, s.lease.isLost = *head, true
	s.commits.unlockCommits()
	s.nameRunInLog(l.Run())
	s.owner.opts.Observer.RunDriven(l.Run().Graph)
	d := drivenRun{session: s, loop: l}
	d.reportEnd(*l.InlineEnd(), s.owner.opts.Now().Sub(l.Run().Updated))
	s.closeSession()
	if !head.Due.IsZero() {
		s.owner.opts.Scheduler.Wake()
	}
}

// nameRunInLog adds the run to the fields of the log.
func (s *session) nameRunInLog(run *checkpoint.Run) {
	s.thread.log = s.thread.log.WithLazy(zap.String("run", run.ID), zap.String("graph", run.Graph))
	s.loopThread.Log = s.thread.log
}

// drivenRun is the run that a session drives, from its first change to the release of
// the thread.
type drivenRun struct {
	session *session
	loop    *superstep.Loop
}

// driveRun drives the run as far as it goes here, and releases the thread.
func (d *drivenRun) driveRun() {
	stack.Grow()
	s, opts := d.session, &d.session.owner.opts
	began := opts.Now()
	opts.Observer.RunDriven(d.loop.Run().Graph)
	v := d.runWithinDeadline(began)
	head := s.commits.currentHead()
	d.requeueEvicted(&v, &head)
	d.waitForWorkers(&v, &head)
	d.reportEnd(v, opts.Now().Sub(began))
	s.closeSession()
	if v.IsCommitted && head.Owner == "" && head.PreferredOwner != "" {
		s.thread.log.Info("run left to a server with workers", zap.String("server", head.PreferredOwner))
		opts.Feed.InvalidateTopic(s.thread.id) // local followers read the log again
		return
	}
	if p, ok := errors.AsType[*contain.PanicError](v.Err); ok {
		opts.Scheduler.QuarantineThread(s.owner.commitCtx, s.thread.id, p)
	} else if !v.IsCommitted {
		opts.Threads.MarkMaybeLeased(s.thread.id)
	}
	if !v.IsCommitted || !head.Due.IsZero() {
		opts.Scheduler.Wake()
	}
}

// runWithinDeadline runs supersteps until the run stops here. A change that the store
// will never take fails the run.
func (d *drivenRun) runWithinDeadline(now time.Time) superstep.End {
	ctx, cancel := d.session.stop.workCtx, context.CancelFunc(func() {})
	if deadline := d.loop.Run().Deadline; !deadline.IsZero() {
		ctx, cancel = context.WithTimeoutCause(ctx, deadline.Sub(now), superstep.ErrRunTimedOut)
	}
	v := d.runContained(ctx)
	cancel()
	if errors.Is(v.Err, checkpoint.ErrInvalid) {
		d.session.thread.log.Error("the store refused a change as invalid", zap.Error(v.Err))
		v = d.loop.CommitFailure(superstep.InternalFailure())
	}
	if f := tooLargeFailure(v.Err); f != nil {
		v = d.loop.CommitFailure(f)
	}
	return v
}

// runContained contains a panic of the engine: the run fails, the server lives.
// If not even the failure can be stored, the error is the panic and the thread is
// quarantined.
func (d *drivenRun) runContained(ctx context.Context) (v superstep.End) {
	p := contain.Call(func() { v = d.loop.RunSupersteps(ctx) })
	if p == nil {
		return v
	}
	d.session.thread.log.Error("the engine panicked; the run fails", p.Fields()...)
	if p := contain.Call(func() { v = d.loop.CommitFailure(superstep.InternalFailure()) }); p != nil {
		return superstep.End{State: checkpoint.RunFailed, Err: p}
	}
	return v
}

// requeueEvicted puts an evicted run into the memory queue when its session ends.
func (d *drivenRun) requeueEvicted(v *superstep.End, head *checkpoint.Head) {
	s := d.session
	if !v.IsCommitted || v.State != checkpoint.RunRunning || head.Cancel != nil || head.PreferredOwner != "" || !s.capacity.IsEvicted() {
		return
	}
	s.capacity.RequeueThread(s.history.mark)
	s.owner.opts.Observer.RunEvicted(d.loop.Run().Graph)
}

// waitForWorkers queues a run that has given its slot up for workers when its
// session ends.
func (d *drivenRun) waitForWorkers(v *superstep.End, head *checkpoint.Head) {
	s := d.session
	u := s.remote.unservedRun()
	if u == nil || !v.IsCommitted || v.State != checkpoint.RunRunning || head.Cancel != nil || head.Owner != "" || head.PreferredOwner != "" {
		return
	}
	u.Deadline, u.Revision = d.loop.Run().Deadline, head.Revision
	u.LoggedReasons = s.remote.listReasons()
	s.unserved = u
	s.thread.log.Info("run gives its place up until a worker comes")
}

// reportEnd says how the live part of a run ended.
func (d *drivenRun) reportEnd(v superstep.End, took time.Duration) {
	log, state := d.session.thread.log, string(v.State)
	if !v.IsCommitted {
		state = "lost"
	}
	d.session.owner.opts.Observer.RunEnded(d.loop.Run().Graph, state, took)
	d.session.endTurn(d.loop.Run(), state)
	switch {
	case errors.Is(v.Err, checkpoint.ErrUnavailable):
		log.Warn("run given up, for the store does not answer; it will be taken up again", zap.Error(v.Err), runtime.CauseField(v.Err))
	case v.Err != nil && !errors.Is(v.Err, superstep.ErrLeaseLost):
		log.Error("run given up; it will be taken up again", zap.Error(v.Err), runtime.CauseField(v.Err))
	case v.Failure != nil && (v.State == checkpoint.RunFailed || v.State == checkpoint.RunTimedOut):
		log.Warn("run failed", append(runtime.FailureFields(v.Failure), zap.String("state", state), zap.Duration("took", took))...)
	case v.Failure != nil:
		log.Info("run stopped", append(runtime.FailureFields(v.Failure), zap.String("state", state), zap.Duration("took", took))...)
	default:
		log.Debug("run stopped", zap.String("state", state), zap.Duration("took", took))
	}
}
