package runtime

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// hold prepares to drive a thread here. It returns nil when this process must
// leave the run to others: it is full, draining, or on the thread already.
// Until go on or release is called nothing runs.
func (e *Engine) hold(thread string) *session {
	if !e.room() {
		return nil
	}
	s := &session{
		engine: e, thread: thread, topic: e.hub.join(thread),
		log: e.log.With(zap.String("thread", thread)), stop: func(error) {}, gone: make(chan struct{}),
	}
	// Others must wait for the first commit before they change the thread
	// through this session.
	s.mu.Lock()
	if !e.adopt(s) {
		s.mu.Unlock()
		e.hub.leave(s.topic)
		return nil
	}
	return s
}

// release gives up what hold prepared.
func (s *session) release() {
	s.lost = true
	s.mu.Unlock()
	s.close()
}

// lease puts the taking of the lease into a change.
func (s *session) lease(t *tx) {
	t.Head.Owner = s.engine.id
	t.Head.Fence++
	t.Lease = s.engine.opts.Lease
	t.Head.Due = time.Time{}
}

// launch drives a loop whose first commit was made under the session's lease.
func (s *session) launch(head checkpoint.Head, l *loop) {
	ctx, stop := context.WithCancelCause(s.engine.base)
	s.head, s.stop, s.renewed = head, stop, s.engine.now()
	s.mu.Unlock()
	s.log = s.log.With(zap.String("run", l.run.ID), zap.String("graph", l.run.Graph))
	s.keep()
	go s.drive(ctx, stop, l)
}

func (s *session) drive(ctx context.Context, stop context.CancelCauseFunc, l *loop) {
	defer stop(nil)
	if !l.run.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, l.run.Deadline, errTimedOut)
		defer cancel()
	}
	if s.current().Cancel != nil {
		stop(errCancelled)
	}
	began := s.engine.now()
	s.engine.observer.RunDriven(l.run.Graph)
	v := s.guarded(ctx, l)
	s.report(l, v, s.engine.now().Sub(began))
	s.close()
	s.engine.nudge()
}

// report says how the live part of a run ended.
func (s *session) report(l *loop, v verdict, took time.Duration) {
	state := string(v.state)
	if !v.settled {
		state = "lost"
	}
	s.engine.observer.RunEnded(l.run.Graph, state, took)
	switch {
	case v.err != nil && !errors.Is(v.err, errLeaseLost):
		s.log.Error("run given up; it will be taken up again", zap.Error(v.err))
	case v.failure != nil:
		s.log.Info("run stopped", zap.String("state", state), zap.String("reason", v.failure.Reason),
			zap.String("node", v.failure.Node), zap.String("message", v.failure.Message), zap.Duration("took", took))
	default:
		s.log.Debug("run stopped", zap.String("state", state), zap.Duration("took", took))
	}
}

// guarded keeps a defect in the engine from taking the process with it: the
// run fails, the server lives.
func (s *session) guarded(ctx context.Context, l *loop) (v verdict) {
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("the engine panicked", zap.Any("panic", r), zap.ByteString("stack", debug.Stack()))
			v = l.settle(*failed(&checkpoint.Failure{Reason: ReasonInternal, Message: "the engine failed; the operator's log says why"}))
		}
	}()
	return l.drive(ctx)
}

// root makes the loop of a run's root graph around a state.
func (s *session) root(run *checkpoint.Run, state *pregel.State) *loop {
	l := &loop{
		session: s, run: run, state: state,
		level:  level{root: true, stored: true},
		before: state.Graph().InterruptBefore, after: state.Graph().InterruptAfter,
	}
	if len(run.Request.InterruptBefore) > 0 {
		l.before = run.Request.InterruptBefore
	}
	if len(run.Request.InterruptAfter) > 0 {
		l.after = run.Request.InterruptAfter
	}
	return l
}

// load reads the newest state of a thread's root graph.
func (e *Engine) load(ctx context.Context, head *checkpoint.Head, g *graph.Graph) (*pregel.State, error) {
	if head.Checkpoint == "" {
		return pregel.New(g, ""), nil
	}
	cp, err := e.store.Checkpoint(ctx, head.Thread, "", head.Checkpoint)
	if err != nil {
		return nil, storeError(fmt.Errorf("checkpoint %s: %w", head.Checkpoint, err))
	}
	return pregel.Load(g, cp, false), nil
}

// graphOf finds the graph that a thread is pinned to.
func (e *Engine) graphOf(name, version string) (*graph.Graph, error) {
	g, ok := e.graphs.Graph(name, version)
	switch {
	case ok:
		return g, nil
	case version == "":
		return nil, Errorf(ReasonGraphNotFound, "no graph %q", name).With("graph", name)
	}
	if _, any := e.graphs.Graph(name, ""); any {
		return nil, Errorf(ReasonGraphVersionUnavailable, "graph %q has no version %q here", name, version).
			With("graph", name).With("version", version)
	}
	return nil, Errorf(ReasonGraphNotFound, "no graph %q", name).With("graph", name)
}
