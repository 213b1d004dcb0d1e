package engine

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// claimLease adds the lease to a change. A due time that has come is kept while
// interrupts are open: one of them may have expired.
func (s *session) claimLease(t *commit.Tx) {
	t.Head.Owner, t.Head.PreferredOwner, t.Head.PreferredUntil, t.Head.RetryAt = s.engine.id, "", time.Time{}, time.Time{}
	t.Head.Fence++
	t.Head.RemoteTasks = nil
	t.Lease = s.engine.opts.LeaseTTL
	if t.Head.Open == 0 {
		t.Head.Due = time.Time{}
	}
}

// startDriving drives a loop whose first commit was made under the session's lease.
func (s *session) startDriving(head *checkpoint.Head, l *superstep.Loop) {
	s.head, s.loopThread.Fence = *head, head.Fence
	s.renewedAt.Store(int64(s.engine.uptime()))
	s.startTracking(head.Handoffs)
	s.nameRunInLog(l.Run())
	s.applyCancel() // a cancel may have come before the run was driven
	s.unlockCommits()
	s.startRenewal()
	go contain.Func(func() { s.driveRun(l) }, contain.LogPanic(s.log, "the goroutine of a run panicked"))()
}

// nameRunInLog adds the run to the fields of the log.
func (s *session) nameRunInLog(run *checkpoint.Run) {
	s.log = s.log.WithLazy(zap.String("run", run.ID), zap.String("graph", run.Graph))
	s.loopThread.Log = s.log
}

// endInlineRun releases a thread whose run has ended with the change that began
// it or took it up.
func (s *session) endInlineRun(head *checkpoint.Head, l *superstep.Loop) {
	s.head, s.isLost = *head, true
	s.unlockCommits()
	s.nameRunInLog(l.Run())
	s.engine.observer.RunDriven(l.Run().Graph)
	s.reportEnd(l, *l.InlineEnd(), s.engine.now().Sub(l.Run().Updated))
	s.closeSession()
	if !head.Due.IsZero() {
		s.engine.wakeScheduler()
	}
}

func (s *session) driveRun(l *superstep.Loop) {
	ctx, cancel := s.workCtx, context.CancelFunc(func() {})
	if !l.Run().Deadline.IsZero() {
		left := l.Run().Deadline.Sub(s.engine.now())
		ctx, cancel = context.WithTimeoutCause(ctx, left, superstep.ErrRunTimedOut)
	}
	began := s.engine.now()
	s.engine.observer.RunDriven(l.Run().Graph)
	v := s.driveContained(ctx, l)
	cancel()
	if errors.Is(v.Err, checkpoint.ErrInvalid) {
		s.log.Error("the store refused a change as invalid", zap.Error(v.Err))
		v = l.CommitFailure(superstep.InternalFailure())
	}
	if f := tooLargeFailure(v.Err); f != nil {
		v = l.CommitFailure(f)
	}
	head := s.currentHead()
	s.requeueEvicted(l, &v, &head)
	s.waitForWorkers(l, &v, &head)
	s.reportEnd(l, v, s.engine.now().Sub(began))
	s.closeSession()
	if v.IsCommitted && head.Owner == "" && head.PreferredOwner != "" {
		s.log.Info("run left to a server with workers", zap.String("server", head.PreferredOwner))
		s.engine.feed.InvalidateTopic(s.thread) // local followers read the log again
		return
	}
	due := head.Due
	if p, ok := errors.AsType[*contain.PanicError](v.Err); ok {
		s.engine.scheduler.QuarantineThread(s.engine.commitCtx, s.thread, p)
	} else if !v.IsCommitted {
		s.engine.live.MarkMaybeLeased(s.thread)
	}
	if !v.IsCommitted || !due.IsZero() {
		s.engine.wakeScheduler()
	}
}

// requeueEvicted puts an evicted run into the memory queue when its session ends.
func (s *session) requeueEvicted(l *superstep.Loop, v *superstep.End, head *checkpoint.Head) {
	if !v.IsCommitted || v.State != checkpoint.RunRunning || head.Cancel != nil || head.PreferredOwner != "" || !s.capacity.IsEvicted() {
		return
	}
	s.capacity.RequeueThread(s.pruneMark)
	s.engine.observer.RunEvicted(l.Run().Graph)
}

// currentHead returns the newest head that is known.
func (s *session) currentHead() checkpoint.Head {
	s.commitLock <- struct{}{}
	defer s.unlockCommits()
	return s.head
}

// reportEnd says how the live part of a run ended.
func (s *session) reportEnd(l *superstep.Loop, v superstep.End, took time.Duration) {
	state := string(v.State)
	if !v.IsCommitted {
		state = "lost"
	}
	s.engine.observer.RunEnded(l.Run().Graph, state, took)
	switch {
	case errors.Is(v.Err, checkpoint.ErrUnavailable):
		s.log.Warn("run given up, for the store does not answer; it will be taken up again", zap.Error(v.Err), runtime.CauseField(v.Err))
	case v.Err != nil && !errors.Is(v.Err, superstep.ErrLeaseLost):
		s.log.Error("run given up; it will be taken up again", zap.Error(v.Err), runtime.CauseField(v.Err))
	case v.Failure != nil && (v.State == checkpoint.RunFailed || v.State == checkpoint.RunTimedOut):
		s.log.Warn("run failed", append(failureFields(v.Failure), zap.String("state", state), zap.Duration("took", took))...)
	case v.Failure != nil:
		s.log.Info("run stopped", append(failureFields(v.Failure), zap.String("state", state), zap.Duration("took", took))...)
	default:
		s.log.Debug("run stopped", zap.String("state", state), zap.Duration("took", took))
	}
}

func failureFields(f *checkpoint.Failure) []zap.Field {
	return []zap.Field{zap.String("reason", f.Reason), zap.String("node", f.Node), zap.String("message", f.Message)}
}

// driveContained contains a panic of the engine: the run fails, the server lives.
// If not even the failure can be stored, the error is the panic and the thread is
// quarantined.
func (s *session) driveContained(ctx context.Context, l *superstep.Loop) (v superstep.End) {
	p := contain.Call(func() { v = l.RunSupersteps(ctx) })
	if p == nil {
		return v
	}
	s.log.Error("the engine panicked; the run fails", p.Fields()...)
	if p := contain.Call(func() { v = l.CommitFailure(superstep.InternalFailure()) }); p != nil {
		return superstep.End{State: checkpoint.RunFailed, Err: p}
	}
	return v
}

// newRootLoop makes the loop of a run's root graph around a state.
func (s *session) newRootLoop(run *checkpoint.Run, state *pregel.State) *superstep.Loop {
	return superstep.NewRootLoop(s.engine.loopEnv, &s.loopThread, run, state)
}

// PutHandOver leaves the run in a change to the server with its workers, or to the time
// when one may have come.
func (s *session) PutHandOver(t *commit.Tx, run *checkpoint.Run) {
	if to := s.handOffDestination(); to != "" {
		s.noteProgress(t)
		s.engine.putHandOff(t, to)
		return
	}
	s.putUnservedDue(t, run)
}

// PutCancelledEnd ends the run, which is cancelled, in a change.
func (s *session) PutCancelledEnd(t *commit.Tx, run checkpoint.Run, request checkpoint.Cancel) error {
	return s.engine.canceller.PutCancelledEnd(s.storeCtx, t, run, request)
}
