package runtime

import (
	"context"
	"errors"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
)

// behind decides about a run for a thread that is busy.
func (a *admission) behind(ctx context.Context, head checkpoint.Head, g *graph.Graph) (Started, error) {
	switch a.req.Concurrency {
	case Enqueue:
		return a.enqueue(ctx, head, g, false)
	case CancelActive, RollbackActive:
		return a.enqueue(ctx, head, g, true)
	default:
		active := head.Run
		if head.State != checkpoint.ThreadBusy {
			active = head.Queue[0]
		}
		return Started{}, Errorf(ReasonThreadBusy, "run %q of the thread is active; wait for it, or choose another concurrency policy", active).
			With("activeRunId", active)
	}
}

// enqueue puts the run behind the active one; first, it overtakes the others
// and the active one is told to stop.
func (a *admission) enqueue(ctx context.Context, head checkpoint.Head, g *graph.Graph, first bool) (Started, error) {
	var run checkpoint.Run
	next, err := a.engine.changeFrom(ctx, head, func(t *tx) error {
		if err := a.stillRight(ctx, t, &head); err != nil {
			return err
		}
		if n := len(t.Head.Queue); n >= a.engine.opts.QueueLimit {
			return Errorf(ReasonThreadQueueFull, "%d runs are waiting already (--queued-runs)", n).
				With("limit", itoa(a.engine.opts.QueueLimit)).With("option", "queued-runs")
		}
		run = a.run(t, g, checkpoint.RunQueued)
		if first {
			t.Head.Queue = slices.Insert(slices.Clone(t.Head.Queue), 0, run.ID)
			if err := a.overtake(ctx, t); err != nil {
				return err
			}
		} else {
			t.Head.Queue = append(slices.Clone(t.Head.Queue), run.ID)
		}
		if t.Head.State == checkpoint.ThreadIdle || t.Head.State == checkpoint.ThreadFailed {
			t.due(t.now)
		}
		t.emit(checkpoint.Event{Kind: checkpoint.EventRunState, Run: run.ID, State: run.State})
		run.FirstEvent, run.LastEvent = t.Head.LastEvent, t.Head.LastEvent
		t.Runs = append(t.Runs, run)
		a.remember(t, run.ID)
		return nil
	})
	if err != nil {
		return Started{}, err
	}
	a.engine.observer.RunStarted(run.Graph)
	a.engine.nudge()
	return Started{Run: run, Head: next, After: before(run.FirstEvent)}, nil
}

// stillRight makes sure that a decision holds when the change is made through a
// live run whose head has moved since.
func (a *admission) stillRight(ctx context.Context, t *tx, head *checkpoint.Head) error {
	if t.Head.Revision == head.Revision {
		return nil
	}
	if t.Head.State != head.State {
		return checkpoint.ErrConflict
	}
	_, known, err := a.known(ctx, t.Head)
	if known {
		return checkpoint.ErrConflict
	}
	return err
}

// overtake tells the active run, if there is one, to make room.
func (a *admission) overtake(ctx context.Context, t *tx) error {
	if t.Head.State != checkpoint.ThreadBusy {
		return nil
	}
	err := a.engine.askToStop(ctx, t, checkpoint.Cancel{
		Run: t.Head.Run, Rollback: a.req.Concurrency == RollbackActive,
		Reason: "another run takes its place", By: a.req.By,
	})
	if errors.Is(err, errNoChange) {
		return nil // it has been told already
	}
	return err
}
