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
func (l *graphLoop) pauseForAnswers(ctx context.Context, s *superstep) *End {
	v := &End{State: checkpoint.RunInterrupted}
	again := false
	s.reducePartial(ctx)
	err := l.thread.commitChange(func(t *commit.Tx) error {
		again = false
		if err := s.putInterrupts(t); err != nil {
			return err
		}
		if !l.level.isRoot {
			return t.RequireContent()
		}
		if t.Head.HasEnoughAnswers() && (t.Head.Cancel == nil || t.Head.Cancel.IsDrain()) {
			again, t.Head.Answered, t.Head.NeedsAllAnswers = true, 0, false
			return nil
		}
		return l.writeTo(t).putRunEnd(l.state, v)
	})
	if err != nil {
		return errorEnd(err)
	}
	v.openInterrupts = s.openInterruptIDs()
	if !again {
		return v
	}
	l.thread.HasReportedResults, l.isWithinSuperstep = true, true
	if err := l.reloadSuperstep(); err != nil {
		return errorEnd(err)
	}
	return nil
}

// putInterrupts puts the interrupts of a superstep into a change, with the results of
// its finished tasks.
func (s *superstep) putInterrupts(t *commit.Tx) error {
	fr := s.frame
	s.emitTaskEvents(t)
	if err := s.putTaskRecords(t); err != nil {
		return err
	}
	s.putPreview(t)
	state := s.partialState()
	fr.putLiveOutput(t, state)
	if state != fr.state && state.HasOutputChanged() {
		t.EmitRedacted(checkpoint.Event{
			Kind: checkpoint.EventValues, Namespace: fr.state.Namespace(), Step: fr.state.NextStep(),
			Value: state.Values(),
		}, state.DurableValues())
	}
	return nil
}

// openInterruptIDs lists the interrupts that keep the superstep from ending.
func (s *superstep) openInterruptIDs() []string {
	all := slices.Clone(s.openInterrupts)
	for _, o := range s.endedOutcomes() {
		all = append(all, o.openInterrupts...)
	}
	return all
}
