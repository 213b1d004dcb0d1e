package runtime

import (
	"context"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// deliver stores the answers without starting anything here: the thread is
// live already, or waits for more answers, or is left to another replica.
func (r *resumption) deliver(ctx context.Context, head checkpoint.Head, b *batch) (Started, error) {
	if r.commands() && head.State == checkpoint.ThreadBusy {
		return Started{}, Errorf(ReasonThreadBusy, "run %q is active; updates and gotos need a thread that waits", head.Run).
			With("activeRunId", head.Run)
	}
	next, err := r.engine.changeFrom(ctx, head, func(t *tx) error {
		if t.Head.Revision != head.Revision {
			if t.Head.State != head.State || t.Head.Run != head.Run {
				return checkpoint.ErrConflict
			}
			if err := r.unchanged(ctx, t, b); err != nil {
				return err
			}
		}
		if err := r.leave(ctx, t); err != nil {
			return err
		}
		if err := r.amend(ctx, t); err != nil {
			return err
		}
		b.store(t)
		if err := r.queue(ctx, t, b); err != nil {
			return err
		}
		if !b.hold && t.Head.Owner == "" {
			t.Head.Due = t.now
		}
		t.remember(r.req.RequestID, r.req.Digest, t.Head.Run)
		return nil
	})
	if err != nil {
		return Started{}, err
	}
	if b.lacks != nil { // before the thread can be taken up, so that it is not in line when it runs
		r.engine.awaitRoom(head.Thread, b.lacks)
	}
	r.engine.nudge()
	run, err := r.engine.store.Run(ctx, head.Thread, head.Run)
	if err != nil {
		return Started{}, storeError(err)
	}
	return Started{Run: run, Head: next, After: head.LastEvent}, nil
}

// queue tells that the run has its answers and waits for a place.
func (r *resumption) queue(ctx context.Context, t *tx, b *batch) error {
	if b.lacks == nil {
		return nil
	}
	at := slices.IndexFunc(t.Runs, func(run checkpoint.Run) bool { return run.ID == t.Head.Run })
	if at < 0 {
		run, err := r.engine.store.Run(ctx, t.Thread, t.Head.Run)
		if err != nil {
			return storeError(err)
		}
		at, t.Runs = len(t.Runs), append(t.Runs, run)
	}
	run := &t.Runs[at]
	if run.State != checkpoint.RunInterrupted {
		return nil // it is told already, or another run goes on
	}
	run.State, run.Updated = checkpoint.RunQueued, t.now
	t.emit(checkpoint.Event{Kind: checkpoint.EventRunState, Run: run.ID, State: run.State})
	return nil
}

// amend stores an update and gotos for whoever sets the run going later.
func (r *resumption) amend(ctx context.Context, t *tx) error {
	if !r.commands() {
		return nil
	}
	e := r.engine
	run, err := e.store.Run(ctx, t.Thread, t.Head.Run)
	if err != nil {
		return storeError(err)
	}
	g, err := e.graphOf(run.Graph, run.Version)
	if err != nil {
		return err
	}
	room := e.newLoad()
	defer room.end()
	var state *pregel.State
	var p checkpoint.Pending
	err = e.readLarge(ctx, &room, loadPatience, func() error {
		if state, err = e.load(ctx, &room, &t.Head, g); err != nil {
			return err
		}
		p, err = e.pendingWithin(ctx, &room, t.Thread, state.Checkpoint().ID)
		return err
	})
	if err != nil {
		return err
	}
	l := &loop{session: e.bystander(t.Thread), run: &run, state: state, pending: newProgress(p), level: level{root: true, stored: true}}
	return command(t, l, r.req.Update, r.req.Goto)
}

// unchanged makes sure that the questions are still open when the change is
// made through a session whose head has moved since they were read.
func (r *resumption) unchanged(ctx context.Context, t *tx, b *batch) error {
	for _, list := range [][]checkpoint.Interrupt{b.answered, b.passed} {
		for _, a := range list {
			q, err := r.engine.store.Interrupt(ctx, t.Thread, a.ID)
			if err != nil {
				return storeError(err)
			}
			if q.Revision != a.Revision {
				return checkpoint.ErrConflict
			}
		}
	}
	return nil
}
