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
func (s *session) startDriving(head *checkpoint.Head, l *loop) {
	s.head, s.fence = *head, head.Fence
	s.renewedAt.Store(int64(s.engine.uptime()))
	s.startTracking(head.Handoffs)
	s.nameRunInLog(l.run)
	s.applyCancel() // a cancel may have come before the run was driven
	s.unlockCommits()
	s.startRenewal()
	go contain.Func(func() { s.driveRun(l) }, contain.LogPanic(s.log, "the goroutine of a run panicked"))()
}

// nameRunInLog adds the run to the fields of the log.
func (s *session) nameRunInLog(run *checkpoint.Run) {
	s.log = s.log.WithLazy(zap.String("run", run.ID), zap.String("graph", run.Graph))
}

// endInlineRun releases a thread whose run has ended with the change that began
// it or took it up.
func (s *session) endInlineRun(head *checkpoint.Head, l *loop) {
	s.head, s.isLost = *head, true
	s.unlockCommits()
	s.nameRunInLog(l.run)
	s.engine.observer.RunDriven(l.run.Graph)
	s.reportEnd(l, *l.inlineEnd, s.engine.now().Sub(l.run.Updated))
	s.closeSession()
	if !head.Due.IsZero() {
		s.engine.wakeScheduler()
	}
}

func (s *session) driveRun(l *loop) {
	ctx, cancel := s.workCtx, context.CancelFunc(func() {})
	if !l.run.Deadline.IsZero() {
		left := l.run.Deadline.Sub(s.engine.now())
		ctx, cancel = context.WithTimeoutCause(ctx, left, errRunTimedOut)
	}
	began := s.engine.now()
	s.engine.observer.RunDriven(l.run.Graph)
	v := s.driveContained(ctx, l)
	cancel()
	if errors.Is(v.err, checkpoint.ErrInvalid) {
		s.log.Error("the store refused a change as invalid", zap.Error(v.err))
		v = l.commitEnd(*failedEnd(internalFailure()))
	}
	if f := tooLargeFailure(v.err); f != nil {
		v = l.commitEnd(*failedEnd(f))
	}
	head := s.currentHead()
	s.requeueEvicted(l, &v, &head)
	s.waitForWorkers(l, &v, &head)
	s.reportEnd(l, v, s.engine.now().Sub(began))
	s.closeSession()
	if v.isCommitted && head.Owner == "" && head.PreferredOwner != "" {
		s.log.Info("run left to a server with workers", zap.String("server", head.PreferredOwner))
		s.engine.feed.InvalidateTopic(s.thread) // local followers read the log again
		return
	}
	due := head.Due
	if p, ok := errors.AsType[*contain.PanicError](v.err); ok {
		s.engine.quarantineThread(s.engine.commitCtx, s.thread, p)
	} else if !v.isCommitted {
		s.engine.markMaybeLeased(s.thread)
	}
	if !v.isCommitted || !due.IsZero() {
		s.engine.wakeScheduler()
	}
}

// requeueEvicted puts an evicted run into the memory queue when its session ends.
func (s *session) requeueEvicted(l *loop, v *loopEnd, head *checkpoint.Head) {
	if !v.isCommitted || v.state != checkpoint.RunRunning || head.Cancel != nil || head.PreferredOwner != "" || !s.capacity.IsEvicted() {
		return
	}
	s.capacity.RequeueThread(l.pruneMark)
	s.engine.observer.RunEvicted(l.run.Graph)
}

// currentHead returns the newest head that is known.
func (s *session) currentHead() checkpoint.Head {
	s.commitLock <- struct{}{}
	defer s.unlockCommits()
	return s.head
}

// reportEnd says how the live part of a run ended.
func (s *session) reportEnd(l *loop, v loopEnd, took time.Duration) {
	state := string(v.state)
	if !v.isCommitted {
		state = "lost"
	}
	s.engine.observer.RunEnded(l.run.Graph, state, took)
	switch {
	case errors.Is(v.err, checkpoint.ErrUnavailable):
		s.log.Warn("run given up, for the store does not answer; it will be taken up again", zap.Error(v.err), runtime.CauseField(v.err))
	case v.err != nil && !errors.Is(v.err, errLeaseLost):
		s.log.Error("run given up; it will be taken up again", zap.Error(v.err), runtime.CauseField(v.err))
	case v.failure != nil && (v.state == checkpoint.RunFailed || v.state == checkpoint.RunTimedOut):
		s.log.Warn("run failed", append(failureFields(v.failure), zap.String("state", state), zap.Duration("took", took))...)
	case v.failure != nil:
		s.log.Info("run stopped", append(failureFields(v.failure), zap.String("state", state), zap.Duration("took", took))...)
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
func (s *session) driveContained(ctx context.Context, l *loop) (v loopEnd) {
	p := contain.Call(func() { v = l.runSupersteps(ctx) })
	if p == nil {
		return v
	}
	s.log.Error("the engine panicked; the run fails", p.Fields()...)
	if p := contain.Call(func() { v = l.commitEnd(*failedEnd(internalFailure())) }); p != nil {
		return loopEnd{state: checkpoint.RunFailed, err: p}
	}
	return v
}

func internalFailure() *checkpoint.Failure {
	return &checkpoint.Failure{Reason: runtime.ReasonInternal, Message: "the engine failed; the operator's log says why"}
}

// newRootLoop makes the loop of a run's root graph around a state.
func (s *session) newRootLoop(run *checkpoint.Run, state *pregel.State) *loop {
	l := &loop{session: s, run: run, state: state, level: level{isRoot: true, keepsCheckpoints: true}}
	l.setBreakpoints()
	return l
}
