package superstep

import (
	"context"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/query"
)

// WithdrawInterrupts closes the interrupts of a run that need no answer any more.
// Errors: those of runtime.TranslateStoreError.
func WithdrawInterrupts(ctx context.Context, reader *query.Reader, t *commit.Tx, run string, to checkpoint.InterruptState) error {
	if t.Head.Open == 0 && t.Head.Answered == 0 {
		t.Head.NeedsAllAnswers = false
		return nil
	}
	return withdrawInStates(ctx, reader, t, run, to, append(checkpoint.WaitingStates(), checkpoint.InterruptAnswered)...)
}

// WithdrawWaitingInterrupts closes the interrupts of a run that have no answer in effect.
// Errors: those of runtime.TranslateStoreError.
func WithdrawWaitingInterrupts(ctx context.Context, reader *query.Reader, t *commit.Tx, run string, to checkpoint.InterruptState) error {
	if t.Head.Open == 0 {
		return nil
	}
	return withdrawInStates(ctx, reader, t, run, to, checkpoint.WaitingStates()...)
}

// withdrawInStates closes the interrupts of a run that are in one of some states.
func withdrawInStates(
	ctx context.Context, reader *query.Reader, t *commit.Tx, run string, to checkpoint.InterruptState, states ...checkpoint.InterruptState,
) error {
	var closed []checkpoint.Interrupt
	err := reader.EachInterrupt(ctx, checkpoint.InterruptQuery{Thread: t.Thread, States: states}, func(q *checkpoint.Interrupt) {
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
	t.Head.Open, t.Head.Retractable, t.Head.NeedsAllAnswers = 0, 0, false
	if slices.Contains(states, checkpoint.InterruptAnswered) {
		t.Head.Answered = 0
	}
	if len(closed) > 0 {
		t.EmitEvent(checkpoint.Event{Kind: checkpoint.EventResolved, Run: run, Interrupts: closed})
	}
	return nil
}

// SupersedeInterrupts closes the open interrupts for a run that takes their place.
// Errors: those of runtime.TranslateStoreError.
func SupersedeInterrupts(ctx context.Context, reader *query.Reader, t *commit.Tx) error {
	if err := WithdrawInterrupts(ctx, reader, t, t.Head.Run, checkpoint.InterruptSuperseded); err != nil {
		return err
	}
	return supersedeRun(ctx, reader, t)
}

// supersedeRun ends the run that waits for answers.
func supersedeRun(ctx context.Context, reader *query.Reader, t *commit.Tx) error {
	if t.Head.Run == "" || t.Head.State != checkpoint.ThreadInterrupted {
		return nil
	}
	old, err := reader.StoredRun(ctx, t.Thread, t.Head.Run)
	if err != nil {
		return runtime.TranslateStoreError(err)
	}
	old.State, old.Updated = checkpoint.RunSuperseded, t.Now
	t.EmitEvent(checkpoint.Event{Kind: checkpoint.EventRunState, Run: old.ID, State: old.State})
	old.LastEvent = t.Head.LastEvent
	t.Runs = append(t.Runs, old)
	return nil
}

// HoldAnswers keeps the answers that have come from starting a run again that was asked to
// stop: it goes on when all questions are answered. Errors: those of runtime.TranslateStoreError.
func HoldAnswers(ctx context.Context, reader *query.Reader, t *commit.Tx) error {
	if t.Head.NeedsAllAnswers = t.Head.Answered+t.Head.Retractable > 0; t.Head.Retractable == 0 {
		return nil
	}
	return reader.EachInterrupt(ctx, checkpoint.InterruptQuery{
		Thread: t.Thread, States: []checkpoint.InterruptState{checkpoint.InterruptRetractable},
	}, func(q *checkpoint.Interrupt) {
		if held := *q; !held.NeedsAllAnswers && !t.ChangesInterrupt(held.ID) {
			held.NeedsAllAnswers, held.Updated = true, t.Now
			t.Interrupts = append(t.Interrupts, held)
		}
	})
}
