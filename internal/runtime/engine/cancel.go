package engine

import (
	"context"
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// Cancel asks a run to stop. A run without a driver is cancelled at once, a live
// one as soon as its nodes let go: they are given the grace to end the superstep.
// Once a cancel is accepted the run ends as cancelled, however far it comes.
// Cancelling a run that is over returns it unchanged. The errors are *Error:
// THREAD_NOT_FOUND, RUN_NOT_FOUND, and those of the store.
func (e *Engine) Cancel(ctx context.Context, req runtime.CancelRequest) (checkpoint.Run, error) {
	return commit.RetryOnConflict(ctx, e.committer, func(seen *checkpoint.Head) (checkpoint.Run, error) { return e.tryCancel(ctx, req, seen) })
}

func (e *Engine) tryCancel(ctx context.Context, req runtime.CancelRequest, seen *checkpoint.Head) (checkpoint.Run, error) {
	head, err := e.store.Head(ctx, req.Thread)
	if err != nil {
		return checkpoint.Run{}, runtime.TranslateThreadError(req.Thread, err)
	}
	*seen = head
	if req.Run == "" {
		req.Run = head.Run
	}
	run, err := e.reader.Run(ctx, nil, req.Thread, req.Run)
	if err != nil || run.State.Terminal() {
		return run, err
	}
	request := checkpoint.Cancel{Run: run.ID, Rollback: req.Rollback, Reason: req.Reason, Grace: req.Grace, By: req.By}
	switch {
	case head.Run != run.ID:
		err = e.cancelQueued(ctx, head, run, request)
	case head.State == checkpoint.ThreadBusy && head.Leased():
		err = e.cancelLive(ctx, head, run, request)
	default:
		err = e.cancelParked(ctx, runtime.ReadWaitTimeout, head, run, request)
	}
	if err != nil {
		return run, err
	}
	e.wakeScheduler()
	return e.reader.Run(ctx, nil, req.Thread, run.ID)
}

// cancelLive asks the driver of the run to stop.
func (e *Engine) cancelLive(ctx context.Context, head checkpoint.Head, run checkpoint.Run, request checkpoint.Cancel) error {
	_, err := e.changeFrom(ctx, head, func(t *commit.Tx) error {
		if t.Head.Run != run.ID || t.Head.State != checkpoint.ThreadBusy {
			return checkpoint.ErrConflict
		}
		return e.requestCancel(ctx, t, request)
	})
	return err
}

// requestCancel puts a cancel request for the live run into a change. Of two
// requests the stronger one counts.
func (e *Engine) requestCancel(ctx context.Context, t *commit.Tx, request checkpoint.Cancel) error {
	old := t.Head.Cancel
	if old == nil || old.Run != request.Run {
		run, err := e.store.Run(ctx, t.Thread, request.Run)
		if err != nil {
			return runtime.TranslateStoreError(err)
		}
		t.Head.Cancel = &request
		run.State, run.Updated = checkpoint.RunCancelling, t.Now
		t.Runs = append(t.Runs, run)
		t.EmitEvent(checkpoint.Event{Kind: checkpoint.EventRunState, Run: run.ID, State: run.State})
		return nil
	}
	both := *old
	both.Rollback = old.Rollback || request.Rollback
	both.Grace = min(old.Grace, request.Grace)
	if both == *old {
		return commit.ErrNoChange
	}
	t.Head.Cancel = &both
	return nil
}

// cancelQueued takes a run out of the queue.
func (e *Engine) cancelQueued(ctx context.Context, head checkpoint.Head, run checkpoint.Run, request checkpoint.Cancel) error {
	_, err := e.changeFrom(ctx, head, func(t *commit.Tx) error {
		at := slices.Index(t.Head.Queue, run.ID)
		if at < 0 {
			return checkpoint.ErrConflict
		}
		t.Head.Queue = slices.Delete(slices.Clone(t.Head.Queue), at, at+1)
		ended := run
		ended.State, ended.Updated, ended.Failure = checkpoint.RunCancelled, t.Now, superstep.CancelFailure(request.Reason)
		t.EmitEvent(checkpoint.Event{Kind: checkpoint.EventRunState, Run: run.ID, State: ended.State, Failure: ended.Failure})
		ended.LastEvent = t.Head.LastEvent
		t.Runs = append(t.Runs, ended)
		return nil
	})
	return err
}

// cancelParked ends a run without a driver: it waits for answers, or for a server. timeout
// is how long the call waits for memory for what a rollback reads.
func (e *Engine) cancelParked(ctx context.Context, timeout time.Duration, head checkpoint.Head, run checkpoint.Run, request checkpoint.Cancel) error {
	memory := e.readBudget.NewReservation()
	defer memory.ReleaseAll()
	return e.reader.RetryLargeRead(ctx, &memory, timeout, func() error {
		_, err := e.changeFrom(ctx, head, func(t *commit.Tx) error {
			if t.Head.Revision != head.Revision {
				return checkpoint.ErrConflict
			}
			if old := t.Head.Cancel; old != nil && old.Run == run.ID {
				request.Rollback = request.Rollback || old.Rollback
			}
			return e.endParkedRun(ctx, &memory, t, run, request)
		})
		return err
	})
}

// endCancelledRun puts the end of a cancelled run into a change. What a rollback reads
// is not reserved: of live runs there are few.
func (e *Engine) endCancelledRun(ctx context.Context, t *commit.Tx, run checkpoint.Run, request checkpoint.Cancel) error {
	return e.endParkedRun(ctx, nil, t, run, request)
}

// endParkedRun puts the end of a cancelled run without a driver into a change. The error
// is a *checkpoint.LargeError when there is no memory yet for what a rollback reads.
func (e *Engine) endParkedRun(ctx context.Context, memory *runtime.ReadReservation, t *commit.Tx, run checkpoint.Run, request checkpoint.Cancel) error {
	t.Head.Owner, t.Head.Due = "", time.Time{}
	run.State, run.Updated, run.Failure = checkpoint.RunCancelled, t.Now, superstep.CancelFailure(request.Reason)
	if err := superstep.WithdrawInterrupts(ctx, e.reader, t, run.ID, checkpoint.InterruptCancelled); err != nil {
		return err
	}
	if request.Rollback {
		if err := e.rollBackRun(ctx, memory, t, &run); err != nil {
			return err
		}
	}
	t.RecordRunEnd(&run)
	return nil
}

// finishCancel ends a run that was to be cancelled when its driver was lost.
func (e *Engine) finishCancel(ctx context.Context, head checkpoint.Head) error {
	run, err := e.store.Run(ctx, head.Thread, head.Run)
	if err != nil {
		return runtime.TranslateStoreError(err)
	}
	err = e.cancelParked(ctx, runtime.WaitForever, head, run, *head.Cancel)
	e.wakeScheduler()
	return err
}

// rollBackRun takes back every checkpoint of a run.
func (e *Engine) rollBackRun(ctx context.Context, memory *runtime.ReadReservation, t *commit.Tx, run *checkpoint.Run) error {
	base := uint64(0)
	if run.Base != "" {
		var err error
		if base, err = e.reader.FindCheckpointSeq(ctx, t.Thread, run.Base); err != nil {
			return runtime.TranslateStoreError(err)
		}
	}
	t.Head.Checkpoint, t.DropAfter = run.Base, &base
	t.Checkpoints, t.Tasks, t.Memos = nil, nil, nil
	return e.removeCommands(ctx, memory, t, run)
}

// removeCommands removes the updates of a run's calls from the checkpoint at which
// the run began.
func (e *Engine) removeCommands(ctx context.Context, memory *runtime.ReadReservation, t *commit.Tx, run *checkpoint.Run) error {
	if run.Base == "" {
		return nil
	}
	p, err := e.reader.ReadPending(ctx, memory, t.Thread, run.Base)
	if err != nil {
		return err
	}
	kept := slices.DeleteFunc(slices.Clone(p.Tasks), func(r checkpoint.Task) bool { return superstep.IsCommandOf(&r, run.ID) })
	if len(kept) < len(p.Tasks) {
		t.ClearTasks = append(t.ClearTasks, run.Base)
		t.Tasks, t.Memos = kept, slices.Clone(p.Memos)
	}
	return nil
}
