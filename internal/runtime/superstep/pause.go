package superstep

import (
	"context"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
)

// pauseForAnswers ends a superstep that waits for answers. The interrupts, the
// results of siblings and the pause are one commit. Answers that arrived meanwhile
// are used at once instead.
func (l *graphLoop) pauseForAnswers(ctx context.Context, w *superstep) *End {
	v := &End{State: checkpoint.RunInterrupted}
	again := false
	w.reducePartial(ctx)
	err := l.thread.commitChange(func(t *commit.Tx) error {
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

// putInterrupts puts the interrupts of a superstep into a change, with the results of
// its finished tasks.
func (w *superstep) putInterrupts(t *commit.Tx) error {
	fr := w.frame
	w.emitTaskEvents(t)
	if err := w.putTaskRecords(t); err != nil {
		return err
	}
	w.putPreview(t)
	if s := w.partialState(); s != fr.state && s.HasOutputChanged() {
		t.EmitRedacted(checkpoint.Event{
			Kind: checkpoint.EventValues, Namespace: fr.state.Namespace(), Step: fr.state.NextStep(),
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
