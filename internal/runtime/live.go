package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// lease puts the taking of the lease into a change. An appointment that has
// come is kept while questions are open: what expires may be among them.
func (s *session) lease(t *tx) {
	t.Head.Owner, t.Head.Wish, t.Head.WishUntil, t.Head.RetryAt = s.engine.id, "", time.Time{}, time.Time{}
	t.Head.Fence++
	t.Head.Lent = nil
	t.Lease = s.engine.opts.Lease
	if t.Head.Open == 0 {
		t.Head.Due = time.Time{}
	}
}

// launch drives a loop whose first commit was made under the session's lease.
func (s *session) launch(head checkpoint.Head, l *loop) {
	s.head, s.fence = head, head.Fence
	s.renewed.Store(int64(s.engine.uptime()))
	s.arrived(head.Moves)
	s.call(l.run)
	s.obey() // a cancel may have come before anybody drove the run
	s.yield()
	s.keep()
	go contain.Func(func() { s.drive(l) }, contain.Log(s.log, "the goroutine of a run panicked"))()
}

// call names the run in the log.
func (s *session) call(run *checkpoint.Run) {
	s.log = s.log.WithLazy(zap.String("run", run.ID), zap.String("graph", run.Graph))
}

// wasBrief lets go of a thread whose run has ended with the change that began
// it or took it up.
func (s *session) wasBrief(head checkpoint.Head, l *loop) {
	s.head, s.lost = head, true
	s.yield()
	s.call(l.run)
	s.engine.observer.RunDriven(l.run.Graph)
	s.report(l, *l.ended, s.engine.now().Sub(l.run.Updated))
	s.close()
	if !head.Due.IsZero() {
		s.engine.nudge()
	}
}

func (s *session) drive(l *loop) {
	ctx, cancel := s.work, context.CancelFunc(func() {})
	if !l.run.Deadline.IsZero() {
		left := l.run.Deadline.Sub(s.engine.now())
		ctx, cancel = context.WithTimeoutCause(ctx, left, errTimedOut)
	}
	began := s.engine.now()
	s.engine.observer.RunDriven(l.run.Graph)
	v := s.guarded(ctx, l)
	cancel()
	if errors.Is(v.err, checkpoint.ErrInvalid) {
		s.log.Error("the store refused a change as invalid", zap.Error(v.err))
		v = l.settle(*failed(internal()))
	}
	if f := tooLarge(v.err); f != nil {
		v = l.settle(*failed(f))
	}
	head := s.current()
	s.comeBack(l, &v, &head)
	s.standBack(l, &v, &head)
	s.report(l, v, s.engine.now().Sub(began))
	s.close()
	if v.settled && head.Owner == "" && head.Wish != "" {
		s.log.Info("run left to a server with workers", zap.String("server", head.Wish))
		s.engine.hub.doubt(s.thread) // who follows it here looks at the log again
		return
	}
	due := head.Due
	if p, ok := errors.AsType[*contain.PanicError](v.err); ok {
		s.engine.putOff(s.engine.commits, s.thread, p)
	} else if !v.settled {
		s.engine.adrift(s.thread)
	}
	if !v.settled || !due.IsZero() {
		s.engine.nudge()
	}
}

// comeBack puts a run that was given up for want of room in line when it is let go of.
func (s *session) comeBack(l *loop, v *verdict, head *checkpoint.Head) {
	if !v.settled || v.state != checkpoint.RunRunning || head.Cancel != nil || head.Wish != "" || !s.engine.isDismissed(s) {
		return
	}
	s.past, s.returns = l.past, true
	s.engine.observer.RunPutOff(l.run.Graph)
}

// current returns the newest head that is known.
func (s *session) current() checkpoint.Head {
	s.turn <- struct{}{}
	defer s.yield()
	return s.head
}

// report says how the live part of a run ended.
func (s *session) report(l *loop, v verdict, took time.Duration) {
	state := string(v.state)
	if !v.settled {
		state = "lost"
	}
	s.engine.observer.RunEnded(l.run.Graph, state, took)
	switch {
	case errors.Is(v.err, checkpoint.ErrUnavailable):
		s.log.Warn("run given up, for the store does not answer; it will be taken up again", zap.Error(v.err), cause(v.err))
	case v.err != nil && !errors.Is(v.err, errLeaseLost):
		s.log.Error("run given up; it will be taken up again", zap.Error(v.err), cause(v.err))
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

// cause is what a client is not told of an error.
func cause(err error) zap.Field {
	if e, ok := errors.AsType[*Error](err); ok && e.Cause != nil {
		return zap.NamedError("cause", e.Cause)
	}
	return zap.Skip()
}

// guarded keeps a defect in the engine from taking the process with it: the
// run fails, the server lives. Where not even the failure can be stored, the
// error is the panic, and the thread is put off.
func (s *session) guarded(ctx context.Context, l *loop) (v verdict) {
	p := contain.Call(func() { v = l.drive(ctx) })
	if p == nil {
		return v
	}
	s.log.Error("the engine panicked; the run fails", p.Fields()...)
	if p := contain.Call(func() { v = l.settle(*failed(internal())) }); p != nil {
		return verdict{state: checkpoint.RunFailed, err: p}
	}
	return v
}

func internal() *checkpoint.Failure {
	return &checkpoint.Failure{Reason: ReasonInternal, Message: "the engine failed; the operator's log says why"}
}

// root makes the loop of a run's root graph around a state.
func (s *session) root(run *checkpoint.Run, state *pregel.State) *loop {
	l := &loop{session: s, run: run, state: state, level: level{root: true, stored: true}}
	l.obey()
	return l
}

// load reads the newest state of a thread's root graph. The error is a
// *checkpoint.LargeError when it is large and there is no room for it yet.
func (e *Engine) load(ctx context.Context, room *load, head *checkpoint.Head, g *graph.Graph) (*pregel.State, error) {
	if head.Checkpoint == "" {
		return pregel.New(g, "", e.opts.Limits), nil
	}
	cp, err := e.checkpointWithin(ctx, room, head.Thread, "", head.Checkpoint)
	if large, ok := errors.AsType[*checkpoint.LargeError](err); ok {
		return nil, large
	}
	if err != nil {
		return nil, storeError(fmt.Errorf("checkpoint %s: %w", head.Checkpoint, err))
	}
	return pregel.Load(g, cp, head.Branched, e.opts.Limits), nil
}

// graphOf finds the graph that a thread is pinned to.
func (e *Engine) graphOf(name, version string) (*graph.Graph, error) {
	return e.graphs.Graph(name, version)
}
