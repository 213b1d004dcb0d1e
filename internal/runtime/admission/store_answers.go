package admission

import (
	"context"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/query"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// storeAnswers stores the answers without starting anything here: the thread is
// live already, or waits for more answers, or is left to another replica.
func (r *resumeCall) storeAnswers(ctx context.Context, reader *query.Reader, head *checkpoint.Head, b *answerBatch) (*runtime.Started, error) {
	if r.hasCommand() && head.State == checkpoint.ThreadBusy {
		return nil, runtime.Errorf(runtime.ReasonThreadBusy, "run %q is active; updates and gotos need a thread that waits", head.Run).
			With("activeRunId", head.Run)
	}
	next, err := r.opts.Changer.ChangeFrom(ctx, *head, func(t *commit.Tx) error {
		if t.Head.Revision != head.Revision {
			if t.Head.State != head.State || t.Head.Run != head.Run {
				return checkpoint.ErrConflict
			}
			reader = r.opts.Reader // the earlier reads are of another head
			if err := b.checkUnchanged(ctx, reader, t); err != nil {
				return err
			}
		}
		t.Actor = r.req.By.Name
		if t.Head.State == checkpoint.ThreadFailed && len(b.retractable) > 0 {
			if err := putWaitingSuccessor(ctx, reader, t); err != nil {
				return err
			}
		}
		if err := r.storeSettings(ctx, reader, t); err != nil {
			return err
		}
		if err := r.storeCommand(ctx, reader, t); err != nil {
			return err
		}
		b.putAnswers(t)
		if err := b.markQueued(ctx, reader, t); err != nil {
			return err
		}
		if !b.needsAllAnswers && !b.hasNoEffect() && t.Head.Owner == "" {
			t.Head.Due = t.Now
		}
		t.RecordRequest(r.req.RequestID, r.req.Digest, t.Head.Run)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if b.capacityErr != nil { // before the thread can be taken up, so that it is not queued when it runs
		r.opts.Capacity.EnqueueThread(head.Thread, commit.NextRun(&next), b.capacityErr)
	}
	if !next.Due.Equal(head.Due) { // a vote that does not decide changes nothing of it
		r.opts.WakeScheduler()
	}
	run, err := r.opts.Reader.StoredRun(ctx, head.Thread, next.Run) // as the change leaves it
	if err != nil {
		return nil, runtime.TranslateStoreError(err)
	}
	return &runtime.Started{Run: run, Head: next, After: head.LastEvent}, nil
}

// putWaitingSuccessor puts the run that follows a failed run into a change: it waits until the
// answer takes effect.
func putWaitingSuccessor(ctx context.Context, reader *query.Reader, t *commit.Tx) error {
	failed, err := reader.StoredRun(ctx, t.Thread, t.Head.Run)
	if err != nil {
		return runtime.TranslateStoreError(err)
	}
	run := superstep.NewSuccessor(t, failed)
	run.State, run.FirstEvent = checkpoint.RunInterrupted, t.Head.LastEvent+1
	t.Head.Run = run.ID
	t.RecordRunEnd(&run)
	return nil
}

// markQueued marks the run as queued: it has its answers and waits for a slot.
func (b *answerBatch) markQueued(ctx context.Context, reader *query.Reader, t *commit.Tx) error {
	if b.capacityErr == nil {
		return nil
	}
	at := slices.IndexFunc(t.Runs, func(run checkpoint.Run) bool { return run.ID == t.Head.Run })
	if at < 0 {
		run, err := reader.StoredRun(ctx, t.Thread, t.Head.Run)
		if err != nil {
			return runtime.TranslateStoreError(err)
		}
		at, t.Runs = len(t.Runs), append(t.Runs, run)
	}
	run := &t.Runs[at]
	if run.State != checkpoint.RunInterrupted {
		return nil // the event is emitted already, or another run goes on
	}
	run.State, run.Updated = checkpoint.RunQueued, t.Now
	t.EmitEvent(checkpoint.Event{Kind: checkpoint.EventRunState, Run: run.ID, State: run.State})
	return nil
}

// storeCommand stores an update and gotos for the server that starts the run later.
func (r *resumeCall) storeCommand(ctx context.Context, reader *query.Reader, t *commit.Tx) error {
	if !r.hasCommand() {
		return nil
	}
	r.noteEditor(t)
	return r.opts.Commands.PutCommand(ctx, reader, t, r.req.Update, r.req.Goto)
}

// checkUnchanged makes sure that the interrupts are still open when the change is
// made through a session whose head has moved since they were read.
func (b *answerBatch) checkUnchanged(ctx context.Context, reader *query.Reader, t *commit.Tx) error {
	for _, list := range [][]checkpoint.Interrupt{b.answered, b.retractable, b.voted, b.passedBreakpoints} {
		for _, a := range list {
			q, err := reader.StoredInterrupt(ctx, t.Thread, a.ID)
			if err != nil {
				return runtime.TranslateStoreError(err)
			}
			if q.Revision != a.Revision {
				return checkpoint.ErrConflict
			}
		}
	}
	return nil
}
