package superstep

import (
	"context"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/runtime/query"
)

// pauseForAnswers ends a superstep that waits for answers. The interrupts, the
// results of siblings and the pause are one commit. Answers that arrived meanwhile
// are used at once instead.
func (w *superstep) pauseForAnswers(ctx context.Context) *End {
	l := w.loop
	v := &End{State: checkpoint.RunInterrupted}
	again := false
	w.reducePartial(ctx)
	err := l.commitChange(func(t *commit.Tx) error {
		again = false
		if err := w.putInterrupts(t); err != nil {
			return err
		}
		if !l.level.isRoot {
			return t.RequireContent()
		}
		if t.Head.Answered > 0 && (!t.Head.NeedsAllAnswers || t.Head.Open == 0) && t.Head.Cancel == nil {
			again, t.Head.Answered, t.Head.NeedsAllAnswers = true, 0, false
			return nil
		}
		return l.writeTo(t).putRunEnd(l.state, v)
	})
	if err != nil {
		return errorEnd(err)
	}
	v.openInterrupts = w.openInterruptIDs()
	if !again {
		return v
	}
	l.thread.HasReportedResults = true
	if err := l.reloadSuperstep(); err != nil {
		return errorEnd(err)
	}
	return nil
}

// putInterrupts puts the interrupts of a superstep into a change, with what other
// tasks of it have finished.
func (w *superstep) putInterrupts(t *commit.Tx) error {
	l := w.loop
	w.emitTaskEvents(t)
	if err := w.putTaskRecords(t); err != nil {
		return err
	}
	w.putPreview(t)
	if s := w.partialState(); s != l.state && s.HasOutputChanged() {
		t.EmitRedacted(checkpoint.Event{
			Kind: checkpoint.EventValues, Namespace: l.state.Namespace(), Step: l.state.NextStep(),
			Value: s.Values(),
		}, s.DurableValues())
	}
	return nil
}

// openInterruptIDs lists the interrupts that keep the superstep from ending.
func (w *superstep) openInterruptIDs() []string {
	all := slices.Clone(w.openInterrupts)
	for _, o := range w.endedOutcomes() {
		all = append(all, o.openInterrupts...)
	}
	return all
}

// reloadSuperstep looks again at a superstep whose interrupts have been answered
// while the loop was still live.
func (l *Loop) reloadSuperstep() error {
	p, err := l.env.Store.Pending(l.thread.StoreCtx, l.thread.ID, l.state.Checkpoint().ID)
	if err != nil {
		return runtime.TranslateStoreError(err)
	}
	l.pending, l.maybeBegun = newProgress(p), true
	l.clearMemos()
	l.setHeldBytes(l.measureBytes())
	return nil
}

// breakpointEnd is the end of a loop at a static breakpoint: an interrupt without a
// interrupt, so that it is listed and Resume can address it.
func (l *Loop) breakpointEnd(s *pregel.State, when string, nodes []string) *End {
	cp := s.Checkpoint()
	id := pregel.BreakpointID(cp.ID, when)
	names := make([]payload.JSON, len(nodes))
	for i, n := range nodes {
		names[i] = payload.Quote(n)
	}
	q := checkpoint.Interrupt{
		ID: id, Thread: l.thread.ID, Run: l.run.ID, Graph: l.run.Graph,
		Namespace: cp.Namespace, Checkpoint: cp.ID, Node: nodes[0],
		Reason: checkpoint.ReasonBreakpoint, Message: "paused " + when + " " + nodes[0],
		Value: payload.Object([]payload.Field{
			{Key: "when", Value: payload.Quote(when)}, {Key: "nodes", Value: payload.Array(names)},
		}),
		State: checkpoint.InterruptOpen,
	}
	return &End{State: checkpoint.RunInterrupted, openInterrupts: []string{id}, breakpoint: &q}
}

// putRunEnd puts the end of the run into a change: its state, its result, the
// release of the lease, and what happens to the runs behind it.
func (t changeWriter) putRunEnd(s *pregel.State, v *End) error {
	l := t.loop
	t.Head.Owner = ""
	v.IsCommitted = true
	if v.State == checkpoint.RunRunning { // handed over as it is
		t.Head.Due = t.Now
		t.Head.RemoteTasks = l.thread.Recovery.listLeft(l.maybeHandedOut)
		l.thread.RunEnd.PutHandOver(t.Tx, l.run)
		return nil
	}
	run := *l.run
	if c := t.Head.Cancel; c != nil && c.Run == run.ID {
		*v = End{State: checkpoint.RunCancelled, Failure: CancelFailure(c.Reason), IsCommitted: true}
		return l.thread.RunEnd.PutCancelledEnd(t.Tx, run, *c)
	}
	if v.breakpoint != nil {
		t.PutBreakpoint(v.breakpoint, s.NextStep())
	}
	run.State, run.Failure, run.Updated = v.State, v.Failure, t.Now
	if v.State == checkpoint.RunSucceeded {
		run.Output, run.Result = storedOutput(s)
	}
	if v.State != checkpoint.RunInterrupted && v.State != checkpoint.RunFailed {
		if err := WithdrawInterrupts(l.thread.StoreCtx, l.env.Reader, t.Tx, run.ID, checkpoint.InterruptCancelled); err != nil {
			return err
		}
	}
	t.RecordRunEnd(&run)
	return nil
}

// WithdrawInterrupts closes the interrupts of a run that need no answer any more.
func WithdrawInterrupts(ctx context.Context, reader *query.Reader, t *commit.Tx, run string, to checkpoint.InterruptState) error {
	if t.Head.Open == 0 && t.Head.Answered == 0 {
		return nil
	}
	var closed []checkpoint.Interrupt
	err := reader.EachInterrupt(ctx, checkpoint.InterruptQuery{
		Thread: t.Thread, States: []checkpoint.InterruptState{checkpoint.InterruptOpen, checkpoint.InterruptAnswered},
	}, func(q *checkpoint.Interrupt) {
		if t.ChangesInterrupt(q.ID) {
			return
		}
		closed = append(closed, *q)
		closed[len(closed)-1].State, closed[len(closed)-1].Updated = to, t.Now
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
	t.Head.Open, t.Head.Answered, t.Head.NeedsAllAnswers = 0, 0, false
	if len(closed) > 0 {
		t.EmitEvent(checkpoint.Event{Kind: checkpoint.EventResolved, Run: run, Interrupts: closed})
	}
	return nil
}

// maxStoredOutput is how many bytes of output stand in the record of a run.
const maxStoredOutput = 1024

// storedOutput is how a run remembers its output. A large one is part of the state:
// stored again with each run, it would soon be more than the thread itself.
func storedOutput(s *pregel.State) (output payload.JSON, at string) {
	output = s.Output()
	if len(output) <= maxStoredOutput || s.Graph().HasUntracked() {
		return output, ""
	}
	return "", s.Checkpoint().ID
}
