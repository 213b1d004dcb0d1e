package runtime

import (
	"context"
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// first puts the beginning of a run into a change: what is open is discarded,
// the input or the command is taken in, the run is recorded as running.
func (e *Engine) first(ctx context.Context, t *tx, l *loop) error {
	run := l.run
	if run.Request.DiscardOpen {
		if err := e.supersede(ctx, t); err != nil {
			return err
		}
	}
	t.Head.Run, t.Head.State, t.Head.Cancel = run.ID, checkpoint.ThreadBusy, nil
	t.Head.Graph, t.Head.Version = run.Graph, run.Version
	t.emit(checkpoint.Event{Kind: checkpoint.EventRunState, Run: run.ID, State: checkpoint.RunRunning})
	if run.FirstEvent == 0 {
		run.FirstEvent = t.Head.LastEvent
	}
	run.State, run.Updated = checkpoint.RunRunning, t.now
	if err := e.entry(ctx, t, l); err != nil {
		return err
	}
	run.Stop = l.stop
	t.Runs = append(t.Runs, *run)
	return nil
}

// entry takes in what the run was asked to begin with.
func (e *Engine) entry(ctx context.Context, t *tx, l *loop) error {
	r := &l.run.Request
	if r.From != "" {
		return e.replay(ctx, t, l)
	}
	l.stop = l.state.NextStep() + 1 + l.limit()
	if r.Input == "" && l.state.Fresh() && (r.Update != "" || len(r.Goto) > 0) {
		r.Input = "{}" // a command on a fresh thread starts it
	}
	switch {
	case r.Input != "":
		return e.turn(ctx, t, l)
	case l.state.Fresh():
		return emptyInput(l.graph())
	default:
		return e.continueFrom(ctx, t, l)
	}
}

// turn begins anew with an input. What earlier calls have updated stays, and
// so does the update of this one; what nodes had left to do is given up.
func (e *Engine) turn(ctx context.Context, t *tx, l *loop) error {
	if err := e.withdraw(ctx, t, t.Head.Run, checkpoint.InterruptSuperseded); err != nil {
		return err
	}
	if !l.state.Fresh() {
		p, err := e.pendingWithin(ctx, &l.session.load, t.Thread, l.state.Checkpoint().ID)
		if err != nil {
			return err
		}
		l.pending = newProgress(p)
	}
	return takeIn(ctx, t, l)
}

// takeIn puts the update and the input of the request into a state.
func takeIn(ctx context.Context, t *tx, l *loop) error {
	r := &l.run.Request
	s, err := l.inject(l.state)
	if err != nil {
		return refusal("update", err)
	}
	writes, err := s.Command(pregel.Result{Update: r.Update})
	if err == nil && len(writes) > 0 {
		s, writes, err = l.amended(s, writes)
	}
	if err != nil {
		return refusal("update", err)
	}
	l.state = s
	if err := l.enter(t, r.Input); err != nil {
		return refusal("input", err)
	}
	if len(writes) > 0 && !l.state.OutputChanged() {
		l.values(t, l.state, false) // tells of the update
	}
	l.passOn(ctx, t)
	return nil
}

// continueFrom goes on with what the thread has left to do, and with the
// updates and gotos of the call.
func (e *Engine) continueFrom(ctx context.Context, t *tx, l *loop) error {
	p, err := e.pendingWithin(ctx, &l.session.load, t.Thread, l.state.Checkpoint().ID)
	if err != nil {
		return err
	}
	l.pending, l.revisit = newProgress(p), true
	l.pending.patch(t.Interrupts) // questions that this change withdraws
	if err := command(t, l, l.run.Request.Update, l.run.Request.Goto); err != nil {
		return err
	}
	return prepare(t, l)
}

// prepare plans the superstep at which a loaded thread goes on.
func prepare(t *tx, l *loop) error {
	s, err := l.inject(l.state)
	if err != nil {
		return refusal("update", err)
	}
	ahead := s != l.state
	l.state = s
	if l.paused() {
		l.state = l.state.PassBreak()
	}
	if l.tasks, err = l.state.Plan(); err != nil {
		return refusal("update", err)
	}
	if t != nil {
		l.values(t, l.state, ahead)
	}
	return nil
}

// command stores an update and gotos beside the tasks of the superstep.
func command(t *tx, l *loop, update payload.JSON, to []checkpoint.Send) error {
	if update == "" && len(to) == 0 {
		return nil
	}
	writes, err := l.state.Command(pregel.Result{Update: update, Goto: to})
	if err != nil {
		return refusal("update", err)
	}
	earlier, err := l.inject(l.state)
	if err == nil {
		_, writes, err = l.amended(earlier, writes)
	}
	if err != nil {
		return refusal("update", err)
	}
	record := checkpoint.Task{
		ID:         commandID(t.Head.LastEvent, l.run.ID),
		Checkpoint: l.state.Checkpoint().ID, State: checkpoint.TaskDone, Writes: writes,
	}
	t.Tasks = append(t.Tasks, record)
	l.pending.commands = append(l.pending.commands, record)
	l.revisit = true // the record is used up by the superstep
	return nil
}

// refusal puts what the core says of a bad call into the words of a client;
// field is the part of the call that is to blame.
func refusal(field string, err error) error {
	var target *pregel.TargetError
	var result *pregel.ResultError
	var update *pregel.UpdateError
	var limit *graph.LimitError
	switch {
	case errors.As(err, &limit):
		return LimitRefusal(field, limit)
	case errors.As(err, &target):
		return Errorf(ReasonNodeNotFound, "%v", err).With("node", target.Target)
	case errors.As(err, &result), errors.As(err, &update):
		return Errorf(ReasonInvalidField, "%v", err).InField(field, "%v", err)
	default:
		return err
	}
}

// supersede closes the open questions for a run that takes their place.
func (e *Engine) supersede(ctx context.Context, t *tx) error {
	if err := e.withdraw(ctx, t, t.Head.Run, checkpoint.InterruptSuperseded); err != nil {
		return err
	}
	if t.Head.Run == "" || t.Head.State != checkpoint.ThreadInterrupted {
		return nil
	}
	old, err := e.store.Run(ctx, t.Thread, t.Head.Run)
	if err != nil {
		return storeError(err)
	}
	old.State, old.Updated = checkpoint.RunSuperseded, t.now
	t.emit(checkpoint.Event{Kind: checkpoint.EventRunState, Run: old.ID, State: old.State})
	old.LastEvent = t.Head.LastEvent
	t.Runs = append(t.Runs, old)
	return nil
}
