package runtime

import (
	"context"
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// park ends a superstep that waits for people. The questions, what siblings
// have finished, and the pause itself are one commit. Answers that came in
// while siblings were running are taken up at once instead.
func (l *loop) park(ctx context.Context, w *work) *verdict {
	v := &verdict{state: checkpoint.RunInterrupted}
	again := false
	l.foretell(ctx, w)
	err := l.commit(func(t *tx) error {
		again = false
		if err := l.pauseFor(t, w); err != nil {
			return err
		}
		if !l.level.root {
			return t.unlessEmpty()
		}
		if t.Head.Answered > 0 && (!t.Head.Hold || t.Head.Open == 0) && t.Head.Cancel == nil {
			again, t.Head.Answered, t.Head.Hold = true, 0, false
			return nil
		}
		return l.end(t, l.state, v)
	})
	if err != nil {
		return broken(err)
	}
	v.waiting = w.allWaiting()
	if !again {
		return v
	}
	l.session.told = true
	if err := l.resumeHere(); err != nil {
		return broken(err)
	}
	return nil
}

// pauseFor puts the questions of a superstep into a change, with what other
// tasks of it have finished.
func (l *loop) pauseFor(t *tx, w *work) error {
	l.report(t, w)
	if err := l.record(t, w); err != nil {
		return err
	}
	l.keepPreview(t, w)
	if s := w.partial(); s != l.state && s.OutputChanged() {
		t.emitSecret(checkpoint.Event{
			Kind: checkpoint.EventValues, Namespace: l.state.Namespace(), Step: l.state.NextStep(),
			Value: s.Values(),
		}, s.DurableValues())
	}
	return nil
}

func (t *tx) unlessEmpty() error {
	if len(t.live) == 0 && len(t.Tasks) == 0 && len(t.Interrupts) == 0 {
		return errNoChange
	}
	return nil
}

// allWaiting lists the questions that keep the superstep from ending.
func (w *work) allWaiting() []string {
	all := slices.Clone(w.waiting)
	for _, o := range w.ended() {
		all = append(all, o.waiting...)
	}
	return all
}

// resumeHere looks again at a superstep whose questions have been answered
// while the loop was still live.
func (l *loop) resumeHere() error {
	p, err := l.session.engine.store.Pending(l.session.calls, l.session.thread, l.state.Checkpoint().ID)
	if err != nil {
		return storeError(err)
	}
	l.pending, l.revisit = newProgress(p), true
	l.forgetMemos()
	l.hold(l.weigh())
	return nil
}

// breakpoint is the verdict of a static breakpoint: a question that asks
// nothing, so that the inbox shows the pause and Resume can address it.
func (l *loop) breakpoint(s *pregel.State, when string, nodes []string) *verdict {
	cp := s.Checkpoint()
	id := pregel.BreakpointID(cp.ID, when)
	names := make([]payload.JSON, len(nodes))
	for i, n := range nodes {
		names[i] = payload.Quote(n)
	}
	q := checkpoint.Interrupt{
		ID: id, Thread: l.session.thread, Run: l.run.ID, Graph: l.run.Graph,
		Namespace: cp.Namespace, Checkpoint: cp.ID, Node: nodes[0],
		Reason: checkpoint.ReasonBreakpoint, Message: "paused " + when + " " + nodes[0],
		Value: payload.Object([]payload.Field{
			{Key: "when", Value: payload.Quote(when)}, {Key: "nodes", Value: payload.Array(names)},
		}),
		State: checkpoint.InterruptOpen,
	}
	return &verdict{state: checkpoint.RunInterrupted, waiting: []string{id}, pause: &q}
}

// pauseAt adds a breakpoint's pause to a change.
func (t *tx) pauseAt(q *checkpoint.Interrupt, step int) {
	pause := *q
	pause.Created, pause.Updated = t.now, t.now
	t.Interrupts = append(t.Interrupts, pause)
	t.Head.Open++
	t.emit(checkpoint.Event{
		Kind: checkpoint.EventInterrupt, Namespace: pause.Namespace, Step: step,
		Node: pause.Node, Checkpoint: pause.Checkpoint, Interrupts: []checkpoint.Interrupt{pause},
	})
}

// end puts the end of the run into a change: its state, its result, the
// release of the lease, and what happens to the runs behind it.
func (l *loop) end(t *tx, s *pregel.State, v *verdict) error {
	t.Head.Owner = ""
	v.settled = true
	if v.state == checkpoint.RunRunning { // handed over as it is
		t.Head.Due = t.now
		t.Head.Lent = l.session.recovery.leaves(l.inherited)
		if to := l.session.moving(); to != "" {
			l.session.further(t)
			l.session.engine.wish(t, to)
			return nil
		}
		l.parkUnserved(t)
		return nil
	}
	e, run := l.session.engine, *l.run
	if c := t.Head.Cancel; c != nil && c.Run == run.ID {
		*v = verdict{state: checkpoint.RunCancelled, failure: cancelFailure(c.Reason), settled: true}
		return e.endCancelled(l.session.calls, t, run, *c)
	}
	if v.pause != nil {
		t.pauseAt(v.pause, s.NextStep())
	}
	run.State, run.Failure, run.Updated = v.state, v.failure, t.now
	if v.state == checkpoint.RunSucceeded {
		run.Output, run.Result = result(s)
	}
	if v.state != checkpoint.RunInterrupted && v.state != checkpoint.RunFailed {
		if err := e.withdraw(l.session.calls, t, run.ID, checkpoint.InterruptCancelled); err != nil {
			return err
		}
	}
	t.endRun(&run)
	return nil
}

// endRun records that the thread's active run has stopped.
func (t *tx) endRun(run *checkpoint.Run) {
	t.Head.Wish, t.Head.WishUntil, t.Head.Lent = "", time.Time{}, nil
	t.recovered()
	switch run.State {
	case checkpoint.RunInterrupted:
		t.Head.State = checkpoint.ThreadInterrupted
	case checkpoint.RunFailed, checkpoint.RunTimedOut:
		t.Head.State = checkpoint.ThreadFailed
	default:
		t.Head.State = checkpoint.ThreadIdle
	}
	t.emit(checkpoint.Event{
		Kind: checkpoint.EventRunState, Run: run.ID, State: run.State, Failure: run.Failure,
	})
	run.LastEvent = t.Head.LastEvent
	t.Runs = slices.DeleteFunc(t.Runs, func(r checkpoint.Run) bool { return r.ID == run.ID }) // begun by the same change
	t.Runs = append(t.Runs, *run)
	if t.Head.Cancel != nil && t.Head.Cancel.Run == run.ID {
		t.Head.Cancel = nil
	}
	t.due(expiry(&t.Head))
	if run.State != checkpoint.RunInterrupted && len(t.Head.Queue) > 0 {
		t.due(t.now)
	}
}

// due makes sure that somebody looks at the thread by then. Zero asks nothing.
func (t *tx) due(at time.Time) {
	if !at.IsZero() && (t.Head.Due.IsZero() || at.Before(t.Head.Due)) {
		t.Head.Due = at
	}
}

// withdraw closes the questions of a run that nobody needs to answer any more.
func (e *Engine) withdraw(ctx context.Context, t *tx, run string, to checkpoint.InterruptState) error {
	if t.Head.Open == 0 && t.Head.Answered == 0 {
		return nil
	}
	var closed []checkpoint.Interrupt
	err := e.eachInterrupt(ctx, checkpoint.InterruptQuery{
		Thread: t.Thread, States: []checkpoint.InterruptState{checkpoint.InterruptOpen, checkpoint.InterruptAnswered},
	}, func(q *checkpoint.Interrupt) {
		if t.changed(q.ID) {
			return
		}
		closed = append(closed, *q)
		closed[len(closed)-1].State, closed[len(closed)-1].Updated = to, t.now
	})
	if err != nil {
		return err
	}
	stored := len(closed)
	for i := range t.Interrupts {
		if t.Interrupts[i].State == checkpoint.InterruptOpen {
			t.Interrupts[i].State = to
			closed = append(closed, t.Interrupts[i])
		}
	}
	t.Interrupts = append(t.Interrupts, closed[:stored]...)
	t.Head.Open, t.Head.Answered, t.Head.Hold = 0, 0, false
	if len(closed) > 0 {
		t.emit(checkpoint.Event{Kind: checkpoint.EventResolved, Run: run, Interrupts: closed})
	}
	return nil
}

// maxOpen is how many questions of a thread one read asks for.
const maxOpen = 10_000
