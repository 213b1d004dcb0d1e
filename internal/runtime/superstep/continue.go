package superstep

import (
	"context"

	"github.com/google/uuid"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/query"
)

// ContinueRun prepares to go on with a thread's run where it stopped, under a new lease.
// with, if set, may add to the change before the superstep is planned. A run that is
// over is followed by a new run of the same kind. The errors are *Error, or a
// *checkpoint.LargeError when there is no memory yet for the state.
func ContinueRun(
	ctx context.Context, env *Env, reader *query.Reader, t *commit.Tx, thread *Thread, with func(l *Loop) error,
) (*Loop, error) {
	run, err := reader.StoredRun(ctx, t.Thread, t.Head.Run)
	if err != nil {
		return nil, runtime.TranslateStoreError(err)
	}
	if run.State.Terminal() {
		run = NewSuccessor(t, run)
	}
	g, err := reader.FindGraph(run.Graph, run.Version)
	if err != nil {
		return nil, err
	}
	state, err := reader.LoadState(ctx, thread.Reservation, &t.Head, g)
	if err != nil {
		return nil, err
	}
	l := NewRootLoop(env, thread, &run, state)
	p, err := reader.ReadPending(ctx, thread.Reservation, t.Thread, state.Checkpoint().ID)
	if err != nil {
		return nil, err
	}
	l.LoadProgress(p)
	l.isWithinSuperstep = t.Head.Cancel != nil && t.Head.Cancel.IsDrain()
	t.Head.Run, t.Head.State = run.ID, checkpoint.ThreadBusy
	thread.HasReportedResults = run.State == checkpoint.RunRunning || run.State == checkpoint.RunCancelling
	if !thread.HasReportedResults {
		run.State = checkpoint.RunRunning
		t.EmitEvent(checkpoint.Event{Kind: checkpoint.EventRunState, Run: run.ID, State: run.State})
		l.RenewStepLimit()
	} else {
		l.SetMaxStep(run.MaxStep)
	}
	if run.FirstEvent == 0 {
		run.FirstEvent = t.Head.LastEvent
	}
	if with != nil {
		if err := with(l); err != nil {
			return nil, err
		}
	}
	t.Head.Answered, t.Head.NeedsAllAnswers = 0, false // later answers are found by the count
	if err := PlanNextSuperstep(t, l, !thread.HasReportedResults); err != nil {
		return nil, err
	}
	run.MaxStep, run.Updated = l.MaxStep(), t.Now
	t.Runs = append(t.Runs, run)
	return l, nil
}

// NewSuccessor returns the run that goes on after a failed run.
func NewSuccessor(t *commit.Tx, old checkpoint.Run) checkpoint.Run {
	request := old.Request
	request.Input, request.From, request.Update, request.Goto, request.Expected = "", "", "", nil, ""
	return checkpoint.Run{
		ID: uuid.Must(uuid.NewV7()).String(), Thread: t.Thread, Graph: old.Graph, Version: old.Version,
		State: checkpoint.RunQueued, Metadata: old.Metadata, StartedBy: t.Actor, Created: t.Now, Updated: t.Now,
		Order: t.Head.LastEvent + 1, Request: request, Base: t.Head.Checkpoint,
	}
}
