package admission

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

// ResumeRun stores answers, all or none, and lets the thread go on. The same
// answer to the same interrupt again is accepted and changes nothing. The
// errors are *Error: THREAD_NOT_FOUND, THREAD_NOT_INTERRUPTED,
// INTERRUPT_NOT_FOUND, INTERRUPT_ALREADY_RESOLVED, INTERRUPT_EXPIRED,
// INTERRUPT_CLAIMED, ACCESS_DENIED, QUESTION_CHANGED, TRAIL_FULL,
// RESPONSE_SCHEMA_MISMATCH, SCHEMA_LIMIT_EXCEEDED, PAYLOAD_TOO_LARGE,
// RESPONSES_INCOMPLETE, RESPONSE_AMBIGUOUS, ETAG_MISMATCH,
// CHECKPOINT_CONFLICT, REQUEST_ID_CONFLICT, INVALID_FIELD, THREAD_BUSY,
// SERVER_DRAINING, those of the graph, of the capacity and of the store.
func (a *Admitter) ResumeRun(ctx context.Context, req runtime.ResumeRequest) (*runtime.Started, error) {
	r := &resumeCall{opts: &a.opts, req: req}
	started, isDone, err := a.opts.tryOnRecentView(ctx, req.Thread, req.RequestID, func(recent *checkpoint.ThreadView) (*runtime.Started, error) {
		r.recent = recent
		defer func() { r.recent = nil }()
		return r.tryResume(ctx, new(checkpoint.Head))
	})
	if isDone {
		return started, err
	}
	return commit.RetryOnConflict(ctx, a.opts.Committer, func(head *checkpoint.Head) (*runtime.Started, error) { return r.tryResume(ctx, head) })
}

// resumeCall decides about one request that resumes a run.
type resumeCall struct {
	opts          *Options
	req           runtime.ResumeRequest
	isContributor bool // the caller has edited the state since the run began
	// recent is a view that may be outdated, nil = the store is read.
	recent *checkpoint.ThreadView
}

// tryResume makes one attempt on the newest head. commit.RetryOnConflict repeats it
// when the thread changes meanwhile.
func (r *resumeCall) tryResume(ctx context.Context, head *checkpoint.Head) (*runtime.Started, error) {
	reader, err := r.readThread(ctx, head)
	if err != nil {
		return nil, err
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
	if r.req.Expected != "" && r.req.Expected != head.Checkpoint {
		return nil, answerInPastError(head, r.req.Expected)
	}
	if b.onlyAwaitsEffect() && !r.hasCommand() {
		return attachRun(ctx, reader, head, head.Run, head.LastEvent)
	}
	if (b.hasNoEffect() || b.onlyAwaitsEffect() || b.triesSecrets) && r.hasCommand() {
		return nil, runtime.Errorf(runtime.ReasonInvalidField,
			"the answer does not decide the question yet, can still be taken back, or is one of several votes with secret parts, "+
				"so the run does not go on with an update or a goto").
			WithViolation("resume.update", "must be empty with an answer that has no effect yet; so must goto_targets")
	}
	if (b.hasNoEffect() || b.triesSecrets) && r.req.Settings != nil {
		return nil, runtime.Errorf(runtime.ReasonInvalidField,
			"the answer does not decide the question yet, can still be taken back, or is one of several votes with secret parts, "+
				"so it changes no settings of the run").
			WithViolation("resume.settings", "must be empty with an answer that has no effect yet")
	}
	hasUndecided := len(b.voted)+len(b.repeated)+len(b.retractable)+b.countRetractable > 0
	collects := r.req.Coverage == runtime.CoverCollect || r.req.Coverage == runtime.CoverAll && hasUndecided
	b.needsAllAnswers = collects && b.countLeftWaiting() > 0
	switch {
	case head.State == checkpoint.ThreadBusy, b.needsAllAnswers, b.hasNoEffect():
		return r.storeAnswers(ctx, reader, head, b)
	default:
		return r.resumeRun(ctx, reader, head, b)
	}
}

// readThread reads the head of the thread, and returns a reader for its records.
func (r *resumeCall) readThread(ctx context.Context, head *checkpoint.Head) (*query.Reader, error) {
	view, err := r.viewThread(ctx, head)
	if err != nil {
		return nil, runtime.TranslateThreadError(r.req.Thread, err)
	}
	if err := runtime.CheckOnlyGraph(head, r.req.OnlyGraph); err != nil {
		return nil, err
	}
	r.isContributor = head.IsEditor(r.req.By.Name)
	if head.State == checkpoint.ThreadBusy {
		return r.opts.Reader, nil
	}
	return r.opts.Reader.WithView(view), nil // later reads belong to this head
}

// viewThread returns the recent view if it is tried, or else reads the store. Errors: those of the
// store.
func (r *resumeCall) viewThread(ctx context.Context, head *checkpoint.Head) (*commit.ThreadView, error) {
	if r.recent == nil {
		return r.opts.Views.ViewThread(ctx, r.req.Thread, r.req.RequestID, head)
	}
	*head = r.recent.Head
	return r.opts.Views.WithSnapshot(r.recent), nil
}

// answerInPastError refuses an answer to what was asked at an earlier checkpoint.
func answerInPastError(head *checkpoint.Head, expected string) error {
	return runtime.Errorf(runtime.ReasonCheckpointConflict,
		"the thread is at checkpoint %q, not at %q; to answer anew what was asked there, run from there and answer what the run asks",
		head.Checkpoint, expected).With("current", head.Checkpoint)
}

// noteEditor notes that the caller edits the state, if the request has a command.
func (r *resumeCall) noteEditor(t *commit.Tx) {
	if r.hasCommand() {
		t.Head.AddEditor(r.req.By.Name)
	}
}

func (r *resumeCall) hasCommand() bool { return r.req.Update != "" || len(r.req.Goto) > 0 }

// resumeRun stores the answers and drives the thread from here, in one change.
func (r *resumeCall) resumeRun(ctx context.Context, reader *query.Reader, head *checkpoint.Head, b *answerBatch) (*runtime.Started, error) {
	var run checkpoint.Run
	next, err := r.opts.Owner.Take(ctx, head, runtime.ReadWaitTimeout, func(ctx context.Context, c *ownership.Claim, t *commit.Tx) (*superstep.Loop, error) {
		t.Actor = r.req.By.Name
		l, err := superstep.ContinueRun(ctx, r.opts.Env, reader, t, c.Thread(), func(l *superstep.Loop) error { return r.applyRequest(ctx, t, l, b) })
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
	case errors.Is(err, capacity.ErrNoCapacity) && head.State != checkpoint.ThreadInterrupted:
		return nil, r.opts.Capacity.RefusalError(err) // no server takes up a run that has ended
	case errors.Is(err, capacity.ErrNoCapacity):
		b.capacityErr = err
		return r.storeAnswers(ctx, reader, head, b)
	case errors.Is(err, ownership.ErrDraining) && head.State != checkpoint.ThreadInterrupted:
		return nil, runtime.Errorf(runtime.ReasonServerDraining, "the server is going down; try another one")
	case errors.Is(err, ownership.ErrDraining):
		return r.storeAnswers(ctx, reader, head, b)
	case errors.Is(err, ownership.ErrThreadHeld):
		return nil, r.opts.Changer.WaitUntilSettled(ctx, head.Thread)
	case err != nil:
		return nil, err
	}
	return &runtime.Started{Run: run, Head: *next, After: head.LastEvent}, nil
}

// applyRequest puts the answers, settings and command of the request into the change
// that goes on with the thread.
func (r *resumeCall) applyRequest(ctx context.Context, t *commit.Tx, l *superstep.Loop, b *answerBatch) error {
	b.putAnswers(t)
	t.RecordTrails()
	l.LoadAnswers(t.Interrupts)
	t.RecordRequest(r.req.RequestID, r.req.Digest, l.Run().ID)
	if err := r.applySettings(ctx, l); err != nil {
		return err
	}
	r.noteEditor(t)
	return superstep.PutCommand(t, l, r.req.Update, r.req.Goto)
}
