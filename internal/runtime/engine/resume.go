package engine

import (
	"context"
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/capacity"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/ownership"
	"github.com/graphd-dev/graphd/internal/runtime/query"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// Resume stores answers, all or none, and lets the thread go on. The same
// answer to the same interrupt again is accepted and changes nothing. The
// errors are *Error: THREAD_NOT_FOUND, THREAD_NOT_INTERRUPTED,
// INTERRUPT_NOT_FOUND, INTERRUPT_ALREADY_RESOLVED, INTERRUPT_EXPIRED,
// RESPONSE_SCHEMA_MISMATCH, RESPONSES_INCOMPLETE, RESPONSE_AMBIGUOUS,
// ETAG_MISMATCH, CHECKPOINT_CONFLICT, REQUEST_ID_CONFLICT, INVALID_FIELD and
// those of the store.
func (e *Engine) Resume(ctx context.Context, req runtime.ResumeRequest) (*runtime.Started, error) {
	r := &resumption{engine: e, req: req}
	return commit.RetryOnConflict(ctx, e.committer, func(head *checkpoint.Head) (*runtime.Started, error) { return r.tryResume(ctx, head) })
}

// resumption decides about one resume request.
type resumption struct {
	engine *Engine
	req    runtime.ResumeRequest
}

func (r *resumption) tryResume(ctx context.Context, head *checkpoint.Head) (*runtime.Started, error) {
	e := r.engine
	view, err := e.storeClient.ViewThread(ctx, r.req.Thread, r.req.RequestID, head)
	if err != nil {
		return nil, runtime.TranslateThreadError(r.req.Thread, err)
	}
	reader := e.reader
	if head.State != checkpoint.ThreadBusy { // what is read then belongs to this head
		reader = reader.WithView(view)
	}
	if r.req.RequestID != "" {
		old, err := reader.FindRequest(ctx, head.Thread, r.req.RequestID, r.req.Digest)
		if err != nil {
			return nil, err
		}
		if old != nil {
			return attachRun(ctx, reader, head, old.Run, old.Event)
		}
	}
	b, err := r.checkAnswers(ctx, reader, head)
	if err != nil {
		return nil, err
	}
	if b.hasNothingNew() && len(r.givenResponses(b)) > 0 && !r.hasCommand() {
		return attachRun(ctx, reader, head, head.Run, head.LastEvent)
	}
	if err := runtime.CheckExpected(head, r.req.Expected); err != nil {
		return nil, err
	}
	b.needsAllAnswers = r.req.Coverage == runtime.CoverCollect && b.countLeftOpen() > 0
	switch {
	case head.State == checkpoint.ThreadBusy, b.needsAllAnswers:
		return r.storeAnswers(ctx, reader, head, b)
	default:
		return r.resumeRun(ctx, reader, head, b)
	}
}

func (r *resumption) hasCommand() bool { return r.req.Update != "" || len(r.req.Goto) > 0 }

// resumeRun stores the answers and drives the thread from here, in one change.
func (r *resumption) resumeRun(ctx context.Context, reader *query.Reader, head *checkpoint.Head, b *answerBatch) (*runtime.Started, error) {
	e := r.engine
	var run checkpoint.Run
	next, err := e.owner.Take(ctx, head, runtime.ReadWaitTimeout, func(c *ownership.Claim, t *commit.Tx) (*superstep.Loop, error) {
		l, err := e.continueRun(ctx, reader, c, t, func(l *superstep.Loop) error { return r.applyRequest(ctx, t, l, b) })
		if err != nil {
			return nil, err
		}
		l.ResumeInline(ctx, t)
		err = c.PutLeaseOrHandOff(t, l)
		if run = *l.Run(); err == nil {
			r.req.OnStart.NotifyStart(head.Thread, head.LastEvent)
		}
		return l, err
	})
	switch {
	case errors.Is(err, capacity.ErrNoCapacity):
		b.capacityErr = err
		return r.storeAnswers(ctx, reader, head, b)
	case errors.Is(err, ownership.ErrDraining):
		return r.storeAnswers(ctx, reader, head, b)
	case errors.Is(err, ownership.ErrThreadHeld):
		return nil, e.changer.WaitUntilSettled(ctx, head.Thread)
	case err != nil:
		return nil, err
	}
	return &runtime.Started{Run: run, Head: *next, After: head.LastEvent}, nil
}

// applyRequest puts what the request brings into the change that goes on with the
// thread.
func (r *resumption) applyRequest(ctx context.Context, t *commit.Tx, l *superstep.Loop, b *answerBatch) error {
	b.putAnswers(t)
	l.LoadAnswers(b.answered)
	t.RecordRequest(r.req.RequestID, r.req.Digest, l.Run().ID)
	if err := r.applySettings(ctx, l); err != nil {
		return err
	}
	return superstep.PutCommand(t, l, r.req.Update, r.req.Goto)
}

// continueRun prepares to go on with a thread's run where it stopped, under a new
// lease. with may add to the change before the superstep is planned. A run
// that is over is followed by a new one of the same kind.
func (e *Engine) continueRun(
	ctx context.Context, reader *query.Reader, c *ownership.Claim, t *commit.Tx, with func(l *superstep.Loop) error,
) (*superstep.Loop, error) {
	thread := c.Thread()
	run, err := reader.StoredRun(ctx, t.Thread, t.Head.Run)
	if err != nil {
		return nil, runtime.TranslateStoreError(err)
	}
	if run.State.Terminal() {
		run = newSuccessor(t, run)
	}
	g, err := reader.FindGraph(run.Graph, run.Version)
	if err != nil {
		return nil, err
	}
	state, err := reader.LoadState(ctx, thread.Reservation, &t.Head, g)
	if err != nil {
		return nil, err
	}
	l := superstep.NewRootLoop(e.loopEnv, thread, &run, state)
	p, err := reader.ReadPending(ctx, thread.Reservation, t.Thread, state.Checkpoint().ID)
	if err != nil {
		return nil, err
	}
	l.LoadProgress(p)
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
	t.Head.Answered, t.Head.NeedsAllAnswers = 0, false // later ones are found by the count
	if err := superstep.PlanNextSuperstep(t, l); err != nil {
		return nil, err
	}
	run.MaxStep, run.Updated = l.MaxStep(), t.Now
	t.Runs = append(t.Runs, run)
	return l, nil
}

// newSuccessor returns the run that goes on after a failed run.
func newSuccessor(t *commit.Tx, old checkpoint.Run) checkpoint.Run {
	request := old.Request
	request.Input, request.From, request.Update, request.Goto, request.Expected = "", "", "", nil, ""
	return checkpoint.Run{
		ID: newRunID(t, ""), Thread: t.Thread, Graph: old.Graph, Version: old.Version,
		State: checkpoint.RunQueued, Metadata: old.Metadata, Created: t.Now, Updated: t.Now,
		Order: t.Head.LastEvent + 1, Request: request, Base: t.Head.Checkpoint,
	}
}
