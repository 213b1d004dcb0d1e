package runtime

import (
	"context"
	"errors"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Cancel asks a run to stop. A run that waits for people or in the queue is
// cancelled at once, a live one as soon as its nodes let go. Cancelling a run
// that is over returns it unchanged. The errors are *Error: THREAD_NOT_FOUND,
// RUN_NOT_FOUND, and those of the store.
func (e *Engine) Cancel(ctx context.Context, req CancelRequest) (checkpoint.Run, error) {
	for {
		run, err := e.tryCancel(ctx, req)
		if !errors.Is(err, checkpoint.ErrConflict) {
			return run, err
		}
	}
}

func (e *Engine) tryCancel(ctx context.Context, req CancelRequest) (checkpoint.Run, error) {
	head, err := e.store.Head(ctx, req.Thread)
	if err != nil {
		return checkpoint.Run{}, e.threadError(req.Thread, err)
	}
	if req.Run == "" {
		req.Run = head.Run
	}
	run, err := e.Run(ctx, req.Thread, req.Run)
	if err != nil || run.State.Terminal() {
		return run, err
	}
	if head.Run == run.ID && head.State == checkpoint.ThreadBusy {
		return e.cancelLive(ctx, head, run, req)
	}
	return e.cancelParked(ctx, head, run, req)
}

// cancelLive asks whoever drives the run to stop.
func (e *Engine) cancelLive(ctx context.Context, head checkpoint.Head, run checkpoint.Run, req CancelRequest) (checkpoint.Run, error) {
	_, err := e.changeFrom(ctx, head, func(t *tx) error {
		if t.Head.Run != run.ID || t.Head.State != checkpoint.ThreadBusy {
			return checkpoint.ErrConflict
		}
		t.Head.Cancel = &checkpoint.Cancel{
			Run: run.ID, Rollback: req.Rollback, Reason: req.Reason, Grace: req.Grace, By: req.By,
		}
		if t.Head.Owner == "" {
			t.Head.Due = t.now
		}
		run.State, run.Updated = checkpoint.RunCancelling, t.now
		t.Runs = append(t.Runs, run)
		t.emit(checkpoint.Event{Kind: checkpoint.EventRunState, Run: run.ID, State: run.State})
		return nil
	})
	if err != nil {
		return run, err
	}
	e.stopLocal(head.Thread, errCancelled)
	e.nudge()
	return run, nil
}

// cancelParked ends a run that nobody drives: it waits for people or for its turn.
func (e *Engine) cancelParked(ctx context.Context, head checkpoint.Head, run checkpoint.Run, req CancelRequest) (checkpoint.Run, error) {
	_, err := e.changeFrom(ctx, head, func(t *tx) error {
		if t.Head.Revision != head.Revision {
			return checkpoint.ErrConflict
		}
		run.State, run.Updated = checkpoint.RunCancelled, t.now
		run.Failure = &checkpoint.Failure{Reason: FailedCancelledByClient, Message: cancelMessage(req.Reason)}
		if run.ID != head.Run {
			t.Head.Queue = slices.DeleteFunc(slices.Clone(t.Head.Queue), func(id string) bool { return id == run.ID })
			t.emit(checkpoint.Event{Kind: checkpoint.EventRunState, Run: run.ID, State: run.State, Failure: run.Failure})
			run.LastEvent = t.Head.LastEvent
			t.Runs = append(t.Runs, run)
			return nil
		}
		if err := e.withdraw(ctx, t, run.ID, checkpoint.InterruptCancelled); err != nil {
			return err
		}
		if req.Rollback {
			if err := e.rollback(ctx, t, &run); err != nil {
				return err
			}
		}
		t.endRun(&run)
		return nil
	})
	if err != nil {
		return run, err
	}
	e.nudge()
	return e.Run(ctx, req.Thread, run.ID)
}

func cancelMessage(reason string) string {
	if reason == "" {
		return "the run was cancelled"
	}
	return "the run was cancelled: " + reason
}

// rollback takes back every checkpoint of a run.
func (e *Engine) rollback(ctx context.Context, t *tx, run *checkpoint.Run) error {
	base := uint64(0)
	if run.Base != "" {
		cp, err := e.store.Checkpoint(ctx, t.Thread, "", run.Base)
		if err != nil {
			return storeError(err)
		}
		base = cp.Seq
	}
	t.Head.Checkpoint, t.DropAfter = run.Base, &base
	t.Checkpoints, t.Tasks = nil, nil
	return nil
}

// stopLocal cuts the work of a run that is live in this process.
func (e *Engine) stopLocal(thread string, cause error) {
	if s := e.session(thread); s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stop(cause)
	}
}
