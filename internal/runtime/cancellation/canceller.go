// Package cancellation stops runs. It asks the driver of a live run to stop, ends a
// run without a driver, and undoes a run that is to be rolled back.
package cancellation

import (
	"context"
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/query"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// Store is the part of the store that a Canceller reads directly: heads, and runs
// that it changes.
type Store interface {
	Head(ctx context.Context, thread string) (checkpoint.Head, error)
	Run(ctx context.Context, thread, run string) (checkpoint.Run, error)
}

// Options are the collaborators of a Canceller.
type Options struct {
	Store      Store
	Reader     *query.Reader
	Committer  *commit.Committer
	ReadBudget *runtime.ReadBudget
	// Change makes one attempt at a change that was decided on a given head, through the
	// live run, if any. After ErrConflict the caller decides anew.
	Change        func(ctx context.Context, head checkpoint.Head, b commit.Build) (checkpoint.Head, error)
	WakeScheduler func()
}

// Canceller stops runs. It has no state between two calls.
type Canceller struct {
	store         Store
	reader        *query.Reader
	committer     *commit.Committer
	readBudget    *runtime.ReadBudget
	change        func(ctx context.Context, head checkpoint.Head, b commit.Build) (checkpoint.Head, error)
	wakeScheduler func()
}

// New makes a canceller.
func New(o Options) *Canceller {
	return &Canceller{
		store: o.Store, reader: o.Reader, committer: o.Committer, readBudget: o.ReadBudget, change: o.Change, wakeScheduler: o.WakeScheduler,
	}
}

// CancelRun asks a run to stop. A run without a driver is cancelled at once. A live
// run is cancelled when its nodes have returned, for which they have the grace.
// After an accepted cancel the run always ends as cancelled. A run whose questions are
// left ends so if it does not stop by itself and none is open. A run that has ended is
// returned unchanged, and one that waits for answers if its questions are left. The
// errors are *Error: THREAD_NOT_FOUND, RUN_NOT_FOUND, and those of the store.
func (c *Canceller) CancelRun(ctx context.Context, req runtime.CancelRequest) (checkpoint.Run, error) {
	return commit.RetryOnConflict(ctx, c.committer, func(seen *checkpoint.Head) (checkpoint.Run, error) { return c.tryCancel(ctx, req, seen) })
}

func (c *Canceller) tryCancel(ctx context.Context, req runtime.CancelRequest, seen *checkpoint.Head) (checkpoint.Run, error) {
	head, err := c.store.Head(ctx, req.Thread)
	if err != nil {
		return checkpoint.Run{}, runtime.TranslateThreadError(req.Thread, err)
	}
	*seen = head
	if req.Run == "" {
		req.Run = head.Run
	}
	run, err := c.reader.Run(ctx, req.Memory, req.Thread, req.Run)
	if err != nil || run.State.Terminal() {
		return run, err
	}
	request := checkpoint.Cancel{Run: run.ID, Rollback: req.Rollback, Reason: req.Reason, Grace: req.Grace, By: req.By.Name}
	switch {
	case request.KeepsQuestions() && run.State == checkpoint.RunInterrupted:
		return run, nil
	case head.Run != run.ID:
		err = c.cancelQueued(ctx, head, run, request)
	case head.State == checkpoint.ThreadBusy && (head.Leased() || request.IsDrain()):
		err = c.cancelLive(ctx, head, run, request)
	default:
		err = c.cancelParked(ctx, runtime.ReadWaitTimeout, head, run, request)
	}
	if err != nil {
		return run, err
	}
	c.wakeScheduler()
	return c.reader.Run(ctx, req.Memory, req.Thread, run.ID)
}

// cancelLive asks the driver of the run to stop.
func (c *Canceller) cancelLive(ctx context.Context, head checkpoint.Head, run checkpoint.Run, request checkpoint.Cancel) error {
	_, err := c.change(ctx, head, func(t *commit.Tx) error {
		if t.Head.Run != run.ID || t.Head.State != checkpoint.ThreadBusy {
			return checkpoint.ErrConflict
		}
		t.Actor = request.By
		return c.PutRequest(ctx, t, request)
	})
	return err
}

// PutRequest adds a cancel request for the live run to a change. Of two requests the
// stronger counts. Errors: commit.ErrNoChange when an earlier request is as strong, and
// those of runtime.TranslateStoreError.
func (c *Canceller) PutRequest(ctx context.Context, t *commit.Tx, request checkpoint.Cancel) error {
	old := t.Head.Cancel
	if old == nil || old.Run != request.Run {
		run, err := c.store.Run(ctx, t.Thread, request.Run)
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
	if !old.KeepsQuestions() || !request.KeepsQuestions() {
		both.Grace = max(both.Grace, 0)
	}
	if both == *old {
		return commit.ErrNoChange
	}
	t.Head.Cancel = &both
	return nil
}

// dequeueRun removes a run from those that wait. It reports false when it is not there.
func dequeueRun(h *checkpoint.Head, run string) bool {
	waiting := h.CountWaiting()
	h.Queue = slices.DeleteFunc(slices.Clone(h.Queue), func(queued string) bool { return queued == run })
	h.Later = slices.DeleteFunc(slices.Clone(h.Later), func(later checkpoint.LaterRun) bool { return later.Run == run })
	return h.CountWaiting() < waiting
}

// cancelQueued removes a run from the queue.
func (c *Canceller) cancelQueued(ctx context.Context, head checkpoint.Head, run checkpoint.Run, request checkpoint.Cancel) error {
	_, err := c.change(ctx, head, func(t *commit.Tx) error {
		if !dequeueRun(&t.Head, run.ID) {
			return checkpoint.ErrConflict
		}
		t.Actor = request.By
		ended := run
		ended.State, ended.Updated, ended.Failure = checkpoint.RunCancelled, t.Now, superstep.CancelFailure(request.Reason)
		t.EmitEvent(checkpoint.Event{Kind: checkpoint.EventRunState, Run: run.ID, State: ended.State, Failure: ended.Failure})
		ended.LastEvent = t.Head.LastEvent
		t.Runs = append(t.Runs, ended)
		return nil
	})
	return err
}

// cancelParked ends a run without a driver, which waits for answers or for a server.
// timeout bounds the wait for memory that a rollback needs.
func (c *Canceller) cancelParked(ctx context.Context, timeout time.Duration, head checkpoint.Head, run checkpoint.Run, request checkpoint.Cancel) error {
	memory := c.readBudget.NewReservation()
	defer memory.ReleaseAll()
	return c.reader.RetryLargeRead(ctx, &memory, timeout, func() error {
		_, err := c.change(ctx, head, func(t *commit.Tx) error {
			if t.Head.Revision != head.Revision {
				return checkpoint.ErrConflict
			}
			if old := t.Head.Cancel; old != nil && old.Run == run.ID {
				request.Rollback = request.Rollback || old.Rollback
				if !old.KeepsQuestions() {
					request.Grace = max(request.Grace, 0) // a cancel is stronger than a pause
				}
			}
			return c.endParkedRun(ctx, &memory, t, run, request)
		})
		return err
	})
}

// PutCancelledEnd adds the end of a cancelled run to a change. It reserves no memory for
// a rollback, because there are few live runs. Errors: those of
// runtime.TranslateStoreError.
func (c *Canceller) PutCancelledEnd(ctx context.Context, t *commit.Tx, run checkpoint.Run, request checkpoint.Cancel) error {
	return c.endParkedRun(ctx, nil, t, run, request)
}

// endParkedRun adds the end of a cancelled run without a driver to a change. The error
// is a *checkpoint.LargeError when there is no memory yet for a rollback.
func (c *Canceller) endParkedRun(ctx context.Context, memory *runtime.ReadReservation, t *commit.Tx, run checkpoint.Run, request checkpoint.Cancel) error {
	t.Actor = request.By
	t.Head.Owner, t.Head.Due = "", time.Time{}
	run.State, run.Updated = request.EndState(t.Head.Open), t.Now
	if run.State == checkpoint.RunCancelled {
		run.Failure = superstep.CancelFailure(request.Reason)
	} else { // it goes on when all are answered, and a server looks when they expire
		if err := superstep.HoldAnswers(ctx, c.reader, t); err != nil {
			return err
		}
		t.Head.Due = t.Now
	}
	if !request.KeepsQuestions() {
		if err := superstep.WithdrawInterrupts(ctx, c.reader, t, run.ID, checkpoint.InterruptCancelled); err != nil {
			return err
		}
	}
	if request.Rollback {
		if err := c.rollBackRun(ctx, memory, t, &run); err != nil {
			return err
		}
		markRolledBack(run.Failure)
	}
	t.RecordRunEnd(&run)
	t.Actor = ""
	return nil
}

// markRolledBack has the failure of a run say that nothing of it is left.
func markRolledBack(f *checkpoint.Failure) {
	if f == nil { // it goes on
		return
	}
	if f.Details == nil {
		f.Details = map[string]string{}
	}
	f.Details[runtime.DetailRolledBack] = "true"
}

// FinishCancel ends a run that was to be cancelled when its driver was lost. Errors:
// those of runtime.TranslateStoreError and of Options.Change, and the cause of ctx.
func (c *Canceller) FinishCancel(ctx context.Context, head checkpoint.Head) error {
	run, err := c.store.Run(ctx, head.Thread, head.Run)
	if err != nil {
		return runtime.TranslateStoreError(err)
	}
	err = c.cancelParked(ctx, runtime.WaitForever, head, run, *head.Cancel)
	c.wakeScheduler()
	return err
}

// rollBackRun undoes every checkpoint of a run.
func (c *Canceller) rollBackRun(ctx context.Context, memory *runtime.ReadReservation, t *commit.Tx, run *checkpoint.Run) error {
	base := uint64(0)
	if run.Base != "" {
		var err error
		if base, err = c.reader.FindCheckpointSeq(ctx, t.Thread, run.Base); err != nil {
			return runtime.TranslateStoreError(err)
		}
	}
	t.Head.Checkpoint, t.DropAfter = run.Base, &base
	t.Checkpoints, t.Tasks, t.Memos = nil, nil, nil
	return c.removeCommands(ctx, memory, t, run)
}

// removeCommands removes the updates of a run's calls from the checkpoint at which
// the run began.
func (c *Canceller) removeCommands(ctx context.Context, memory *runtime.ReadReservation, t *commit.Tx, run *checkpoint.Run) error {
	if run.Base == "" {
		return nil
	}
	p, err := c.reader.ReadPending(ctx, memory, t.Thread, run.Base)
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
