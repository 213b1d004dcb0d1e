package superstep

import (
	"context"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/runtime/query"
)

// BeginRun puts the beginning of a run into a change: open interrupts are discarded, the
// input or the command is applied, the run is recorded as running. Errors: those of
// RefusalError and of runtime.TranslateStoreError, those of Reader.FindCheckpoint for a
// replay (CHECKPOINT_NOT_FOUND when the thread lacks the checkpoint), INVALID_FIELD for
// a new thread without an input, NODE_NOT_FOUND when the version of the graph does not
// run a node that is due, and *checkpoint.LargeError for a state without memory.
func BeginRun(ctx context.Context, reader *query.Reader, t *commit.Tx, l *Loop) error {
	run := l.run
	t.Actor = run.StartedBy // also for a run that was queued
	if run.Request.DiscardOpen {
		if err := discardInterrupts(ctx, reader, t, &run.Request); err != nil {
			return err
		}
	}
	t.Head.Run, t.Head.State, t.Head.Cancel = run.ID, checkpoint.ThreadBusy, nil
	if run.Request.Input != "" && run.Request.From == "" {
		t.Head.KeepEditor(run.StartedBy)
	}
	t.Head.Graph, t.Head.Version = run.Graph, run.Version
	t.StartRun(run)
	if err := applyRequest(ctx, reader, t, l); err != nil {
		return err
	}
	run.MaxStep = l.maxStep
	t.Runs = append(t.Runs, *run)
	return nil
}

// discardInterrupts closes the interrupts in whose place a run begins. A run that goes on
// leaves the answers that the due tasks have not used.
func discardInterrupts(ctx context.Context, reader *query.Reader, t *commit.Tx, r *checkpoint.RunRequest) error {
	withdraw := WithdrawInterrupts
	if r.Input == "" && r.From == "" {
		withdraw = WithdrawWaitingInterrupts
	}
	if err := withdraw(ctx, reader, t, t.Head.Run, checkpoint.InterruptSuperseded); err != nil {
		return err
	}
	return supersedeRun(ctx, reader, t)
}

// applyRequest applies the input or the command of the run's request.
func applyRequest(ctx context.Context, reader *query.Reader, t *commit.Tx, l *Loop) error {
	r := &l.run.Request
	if r.From != "" {
		return beginReplay(ctx, reader, t, l)
	}
	l.maxStep = l.state.NextStep() + 1 + l.stepLimit()
	if r.Input == "" && l.state.IsFresh() && (r.Update != "" || len(r.Goto) > 0) {
		r.Input = "{}" // a command on a fresh thread starts it
	}
	switch {
	case r.Input != "":
		return beginWithInput(ctx, reader, t, l)
	case l.state.IsFresh():
		return emptyInputError(l.Graph())
	default:
		return continueThread(ctx, reader, t, l)
	}
}

// beginWithInput begins with an input. Updates of earlier calls stay, as does the update
// of this call. Pending tasks are dropped.
func beginWithInput(ctx context.Context, reader *query.Reader, t *commit.Tx, l *Loop) error {
	if err := WithdrawInterrupts(ctx, reader, t, t.Head.Run, checkpoint.InterruptSuperseded); err != nil {
		return err
	}
	if !l.state.IsFresh() {
		p, err := reader.ReadPending(ctx, l.thread.Reservation, t.Thread, l.state.Checkpoint().ID)
		if err != nil {
			return err
		}
		l.pending = newProgress(p)
	}
	return applyInput(ctx, t, l)
}

// applyInput puts the update and the input of the request into a state.
func applyInput(ctx context.Context, t *commit.Tx, l *Loop) error {
	r := &l.run.Request
	s, err := l.applyCommands(l.state)
	if err != nil {
		return RefusalError("update", err)
	}
	writes, err := s.CommandWrites(pregel.Result{Update: r.Update})
	if err == nil && len(writes) > 0 {
		s, writes, err = l.applyCallWrites(s, writes)
	}
	if err != nil {
		return RefusalError("update", err)
	}
	l.state = s
	if err := l.enterInput(t, r.Input); err != nil {
		return RefusalError("input", err)
	}
	if len(writes) > 0 && !l.state.HasOutputChanged() {
		l.writeTo(t).emitValues(l.state, false) // shows the update
	}
	l.inlineEnd = l.runInlineOnEntry(ctx, t)
	return nil
}

// continueThread goes on with the due tasks of the thread, and with the updates and
// gotos of the call.
func continueThread(ctx context.Context, reader *query.Reader, t *commit.Tx, l *Loop) error {
	if err := l.checkDueNodes(); err != nil {
		return err
	}
	p, err := reader.ReadPending(ctx, l.thread.Reservation, t.Thread, l.state.Checkpoint().ID)
	if err != nil {
		return err
	}
	l.pending, l.maybeBegun = newProgress(p), true
	t.RecordTrails()
	l.pending.setAnswers(t.Interrupts)                 // interrupts that this change withdraws
	t.Head.Answered, t.Head.NeedsAllAnswers = 0, false // later answers are found by the count
	if err := PutCommand(t, l, l.run.Request.Update, l.run.Request.Goto); err != nil {
		return err
	}
	return PlanNextSuperstep(t, l, true)
}

// PlanNextSuperstep plans the superstep at which a loaded thread goes on. announces says
// that followers have to learn of the superstep: it has been shown before an earlier
// stop at most. Errors: those of RefusalError.
func PlanNextSuperstep(t *commit.Tx, l *Loop, announces bool) error {
	s, err := l.applyCommands(l.state)
	if err != nil {
		return RefusalError("update", err)
	}
	ahead := s != l.state
	l.state = s
	l.passBreakpoints()
	if l.tasks, err = l.state.PlanTasks(); err != nil {
		return RefusalError("update", err)
	}
	if t != nil {
		t.Actor = "" // from here on the graph acts
		if ahead || !l.isBranched {
			l.writeTo(t).emitValues(l.state, ahead)
		}
		if announces && !l.isBranched {
			goesOn := l.decideEnd(l.state, l.tasks, nil, &l.pending) == nil
			l.writeTo(t).emitSuperstep(l.state, l.tasks, ahead, goesOn)
		}
	}
	return nil
}

// PutCommand stores an update and gotos beside the tasks of the superstep. Errors: those
// of RefusalError.
func PutCommand(t *commit.Tx, l *Loop, update payload.JSON, to []checkpoint.Send) error {
	return putCommand(t, &l.frame, update, to)
}

// putCommand puts the writes of a command into a change, as a finished task of the
// present checkpoint.
func putCommand(t *commit.Tx, fr *frame, update payload.JSON, to []checkpoint.Send) error {
	command, err := newCommand(t, fr, update, to)
	if command == nil || err != nil {
		return err
	}
	stored := *command
	stored.Writes = fr.state.DurableWrites(command.Writes)
	t.Tasks = append(t.Tasks, stored)
	fr.pending.commands = append(fr.pending.commands, *command)
	fr.maybeBegun = true // the record is used up by the superstep
	return nil
}

// newCommand drafts the record of an update and gotos; nil where there are none.
func newCommand(t *commit.Tx, fr *frame, update payload.JSON, to []checkpoint.Send) (*checkpoint.Task, error) {
	if update == "" && len(to) == 0 {
		return nil, nil
	}
	writes, err := fr.state.CommandWrites(pregel.Result{Update: update, Goto: to})
	if err != nil {
		return nil, RefusalError("update", err)
	}
	earlier, err := fr.applyCommands(fr.state)
	if err == nil {
		_, writes, err = fr.applyCallWrites(earlier, writes)
	}
	if err != nil {
		return nil, RefusalError("update", err)
	}
	return &checkpoint.Task{
		ID:         commandID(t.Head.LastEvent, fr.run.ID),
		Checkpoint: fr.state.Checkpoint().ID, State: checkpoint.TaskDone, Writes: writes,
	}, nil
}
