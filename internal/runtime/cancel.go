package runtime

import (
	"context"
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Cancel asks a run to stop. A run that nobody drives is cancelled at once, a
// live one as soon as its nodes let go: they are given the grace to end the
// superstep. Once a cancel is accepted the run ends as cancelled, however far
// it comes. Cancelling a run that is over returns it unchanged. The errors are
// *Error: THREAD_NOT_FOUND, RUN_NOT_FOUND, and those of the store.
func (e *Engine) Cancel(ctx context.Context, req CancelRequest) (checkpoint.Run, error) {
	return decide(ctx, e, func(seen *checkpoint.Head) (checkpoint.Run, error) { return e.tryCancel(ctx, req, seen) })
}

func (e *Engine) tryCancel(ctx context.Context, req CancelRequest, seen *checkpoint.Head) (checkpoint.Run, error) {
	head, err := e.store.Head(ctx, req.Thread)
	if err != nil {
		return checkpoint.Run{}, threadError(req.Thread, err)
	}
	*seen = head
	if req.Run == "" {
		req.Run = head.Run
	}
	run, err := e.Run(ctx, req.Thread, req.Run)
	if err != nil || run.State.Terminal() {
		return run, err
	}
	wish := checkpoint.Cancel{Run: run.ID, Rollback: req.Rollback, Reason: req.Reason, Grace: req.Grace, By: req.By}
	switch {
	case head.Run != run.ID:
		err = e.cancelQueued(ctx, head, run, wish)
	case head.State == checkpoint.ThreadBusy && head.Leased():
		err = e.cancelLive(ctx, head, run, wish)
	default:
		err = e.cancelParked(ctx, head, run, wish)
	}
	if err != nil {
		return run, err
	}
	e.nudge()
	return e.Run(ctx, req.Thread, run.ID)
}

// cancelLive asks whoever drives the run to stop.
func (e *Engine) cancelLive(ctx context.Context, head checkpoint.Head, run checkpoint.Run, wish checkpoint.Cancel) error {
	_, err := e.changeFrom(ctx, head, func(t *tx) error {
		if t.Head.Run != run.ID || t.Head.State != checkpoint.ThreadBusy {
			return checkpoint.ErrConflict
		}
		return e.askToStop(ctx, t, wish)
	})
	return err
}

// askToStop puts a cancel request for the live run into a change. Of two
// requests the stronger one counts.
func (e *Engine) askToStop(ctx context.Context, t *tx, wish checkpoint.Cancel) error {
	old := t.Head.Cancel
	if old == nil || old.Run != wish.Run {
		run, err := e.store.Run(ctx, t.Thread, wish.Run)
		if err != nil {
			return storeError(err)
		}
		t.Head.Cancel = &wish
		run.State, run.Updated = checkpoint.RunCancelling, t.now
		t.Runs = append(t.Runs, run)
		t.emit(checkpoint.Event{Kind: checkpoint.EventRunState, Run: run.ID, State: run.State})
		return nil
	}
	both := *old
	both.Rollback = old.Rollback || wish.Rollback
	both.Grace = min(old.Grace, wish.Grace)
	if both == *old {
		return errNoChange
	}
	t.Head.Cancel = &both
	return nil
}

// cancelQueued takes a run out of the queue.
func (e *Engine) cancelQueued(ctx context.Context, head checkpoint.Head, run checkpoint.Run, wish checkpoint.Cancel) error {
	_, err := e.changeFrom(ctx, head, func(t *tx) error {
		at := slices.Index(t.Head.Queue, run.ID)
		if at < 0 {
			return checkpoint.ErrConflict
		}
		t.Head.Queue = slices.Delete(slices.Clone(t.Head.Queue), at, at+1)
		ended := run
		ended.State, ended.Updated, ended.Failure = checkpoint.RunCancelled, t.now, cancelFailure(wish.Reason)
		t.emit(checkpoint.Event{Kind: checkpoint.EventRunState, Run: run.ID, State: ended.State, Failure: ended.Failure})
		ended.LastEvent = t.Head.LastEvent
		t.Runs = append(t.Runs, ended)
		return nil
	})
	return err
}

// cancelParked ends a run that nobody drives: it waits for people, or for
// somebody to go on with it.
func (e *Engine) cancelParked(ctx context.Context, head checkpoint.Head, run checkpoint.Run, wish checkpoint.Cancel) error {
	_, err := e.changeFrom(ctx, head, func(t *tx) error {
		if t.Head.Revision != head.Revision {
			return checkpoint.ErrConflict
		}
		if old := t.Head.Cancel; old != nil && old.Run == run.ID {
			wish.Rollback = wish.Rollback || old.Rollback
		}
		return e.endCancelled(ctx, t, run, wish)
	})
	return err
}

// endCancelled puts the end of a cancelled run that nobody drives into a change.
func (e *Engine) endCancelled(ctx context.Context, t *tx, run checkpoint.Run, wish checkpoint.Cancel) error {
	t.Head.Owner, t.Head.Due = "", time.Time{}
	run.State, run.Updated, run.Failure = checkpoint.RunCancelled, t.now, cancelFailure(wish.Reason)
	if err := e.withdraw(ctx, t, run.ID, checkpoint.InterruptCancelled); err != nil {
		return err
	}
	if wish.Rollback {
		if err := e.rollback(ctx, t, &run); err != nil {
			return err
		}
	}
	t.endRun(&run)
	return nil
}

// finishCancel ends a run that was to be cancelled when its driver was lost.
func (e *Engine) finishCancel(ctx context.Context, head checkpoint.Head) error {
	run, err := e.store.Run(ctx, head.Thread, head.Run)
	if err != nil {
		return storeError(err)
	}
	err = e.cancelParked(ctx, head, run, *head.Cancel)
	e.nudge()
	return err
}

func cancelFailure(reason string) *checkpoint.Failure {
	f := &checkpoint.Failure{Reason: FailedCancelledByClient, Message: "the run was cancelled"}
	if reason != "" {
		f.Message += ": " + reason
	}
	return f
}

// rollback takes back every checkpoint of a run.
func (e *Engine) rollback(ctx context.Context, t *tx, run *checkpoint.Run) error {
	base := uint64(0)
	if run.Base != "" {
		var err error
		if base, err = e.seqOfCheckpoint(ctx, t.Thread, run.Base); err != nil {
			return storeError(err)
		}
	}
	t.Head.Checkpoint, t.DropAfter = run.Base, &base
	t.Checkpoints, t.Tasks, t.Memos = nil, nil, nil
	return e.takeBack(ctx, t, run)
}

// takeBack removes what the calls of a run have updated on the checkpoint at
// which it began.
func (e *Engine) takeBack(ctx context.Context, t *tx, run *checkpoint.Run) error {
	if run.Base == "" {
		return nil
	}
	p, err := e.store.Pending(ctx, t.Thread, run.Base)
	if err != nil {
		return storeError(err)
	}
	kept := slices.DeleteFunc(slices.Clone(p.Tasks), func(r checkpoint.Task) bool { return commandOf(&r, run.ID) })
	if len(kept) < len(p.Tasks) {
		t.ClearTasks = append(t.ClearTasks, run.Base)
		t.Tasks, t.Memos = kept, slices.Clone(p.Memos)
	}
	return nil
}
