package engine

import (
	"context"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/questions"
	"github.com/graphd-dev/graphd/internal/runtime/threads"
	"github.com/graphd-dev/graphd/internal/runtime/webhooks"
	"github.com/graphd-dev/graphd/internal/trail"
)

// Start begins a run, or queues it, or attaches to the run that the same request began
// before. It returns when the run is durable. The errors are *Error: THREAD_NOT_FOUND,
// GRAPH_NOT_FOUND, THREAD_BUSY, THREAD_INTERRUPTED, THREAD_QUEUE_FULL, TOO_MANY_RUNS,
// QUOTA_EXCEEDED, SERVER_DRAINING, CHECKPOINT_CONFLICT, RUN_EXISTS, REQUEST_ID_CONFLICT,
// INVALID_FIELD, INPUT_SCHEMA_MISMATCH, those of the store, and with a webhook those of
// webhooks.Keeper.BeginRun.
func (e *Engine) Start(ctx context.Context, req runtime.StartRequest) (*runtime.Started, error) {
	if req.Webhook == "" {
		return e.admitter.StartRun(ctx, req)
	}
	if req.Thread == "" {
		req.Thread, req.CreateThread = threads.NewThreadID(req.Tenant, req.RequestID), true
	}
	asked := webhooks.Request{Thread: req.Thread, ID: req.RequestID, Digest: req.Digest, URL: req.Webhook, Field: "run.webhook"}
	return e.webhooks.BeginRun(ctx, &asked, func(ctx context.Context) (*runtime.Started, error) { return e.admitter.StartRun(ctx, req) })
}

// Resume stores answers, all or none, and lets the thread go on. The same
// answer to the same interrupt again is accepted and changes nothing. The
// errors are *Error: THREAD_NOT_FOUND, THREAD_NOT_INTERRUPTED,
// INTERRUPT_NOT_FOUND, INTERRUPT_ALREADY_RESOLVED, INTERRUPT_EXPIRED,
// RESPONSE_SCHEMA_MISMATCH, RESPONSES_INCOMPLETE, RESPONSE_AMBIGUOUS,
// ETAG_MISMATCH, CHECKPOINT_CONFLICT, REQUEST_ID_CONFLICT, INVALID_FIELD and
// those of the store, and with a webhook those of webhooks.Keeper.BeginRun.
func (e *Engine) Resume(ctx context.Context, req runtime.ResumeRequest) (*runtime.Started, error) {
	if req.Webhook == "" {
		return e.admitter.ResumeRun(ctx, req)
	}
	asked := webhooks.Request{Thread: req.Thread, ID: req.RequestID, Digest: req.Digest, URL: req.Webhook, Field: "resume.webhook"}
	return e.webhooks.BeginRun(ctx, &asked, func(ctx context.Context) (*runtime.Started, error) { return e.admitter.ResumeRun(ctx, req) })
}

// Cancel asks a run to stop. A run without a driver is cancelled at once, a live run
// when its nodes have returned, for which they have the grace. After an accepted cancel
// the run always ends as cancelled, save one whose questions are left. Cancelling a run
// that is over returns it unchanged. The errors are *Error: THREAD_NOT_FOUND,
// RUN_NOT_FOUND, and those of the store.
func (e *Engine) Cancel(ctx context.Context, req runtime.CancelRequest) (checkpoint.Run, error) {
	return e.canceller.CancelRun(ctx, req)
}

// UpdateState makes a new checkpoint as if a node had written the values: its edges
// fire, and earlier pending tasks are dropped. The results of finished siblings are
// kept. The errors are *Error: THREAD_NOT_FOUND, THREAD_BUSY, THREAD_INTERRUPTED,
// CHECKPOINT_NOT_FOUND, CHECKPOINT_CONFLICT, NODE_NOT_FOUND, AMBIGUOUS_NODE,
// INVALID_FIELD, REQUEST_ID_CONFLICT, and those of the store.
func (e *Engine) UpdateState(ctx context.Context, req runtime.UpdateStateRequest) (runtime.Snapshot, error) {
	return e.editor.UpdateState(ctx, req)
}

// BulkUpdateState makes one checkpoint per superstep, all of them or none. The errors
// are those of UpdateState; their fields name the write.
func (e *Engine) BulkUpdateState(ctx context.Context, req runtime.BulkUpdateStateRequest) (runtime.Snapshot, error) {
	return e.editor.BulkUpdateState(ctx, req)
}

// CreateThread makes an empty thread. The errors are *Error: THREAD_EXISTS,
// GRAPH_NOT_FOUND, REQUEST_ID_CONFLICT, and those of the store.
func (e *Engine) CreateThread(ctx context.Context, req runtime.CreateThreadRequest) (checkpoint.Head, error) {
	return e.threads.CreateThread(ctx, req)
}

// UpdateThread changes labels, expiry and how much history is kept. The errors are *Error:
// THREAD_NOT_FOUND, ETAG_MISMATCH, and those of the store.
func (e *Engine) UpdateThread(ctx context.Context, req runtime.UpdateThreadRequest) (checkpoint.Head, error) {
	return e.threads.UpdateThread(ctx, req)
}

// UpdateInterrupt changes who is asked and until when. The errors are *Error:
// INTERRUPT_NOT_FOUND, INTERRUPT_ALREADY_RESOLVED, ETAG_MISMATCH, and those of
// the store.
func (e *Engine) UpdateInterrupt(ctx context.Context, c runtime.UpdateInterruptRequest) (checkpoint.Interrupt, error) {
	return e.questions.UpdateInterrupt(ctx, c)
}

// AllowedActions returns what a caller may do with a question now, see questions.Allowed.
func (e *Engine) AllowedActions(q *checkpoint.Interrupt, by runtime.Actor, isContributor bool) runtime.QuestionActions {
	return questions.Allowed(q, by, isContributor, e.now())
}

// ClaimInterrupt claims an open question for the caller. The errors are those of
// questions.Editor.ClaimInterrupt.
func (e *Engine) ClaimInterrupt(ctx context.Context, c runtime.ClaimRequest) (checkpoint.Interrupt, error) {
	return e.questions.ClaimInterrupt(ctx, c)
}

// CheckResponses checks answers without storing them. The errors are those of
// admission.Admitter.CheckResponses.
func (e *Engine) CheckResponses(ctx context.Context, req runtime.ResumeRequest) ([]runtime.CheckedResponse, error) {
	return e.admitter.CheckResponses(ctx, req)
}

// DelegateInterrupt hands the caller's part in a question to another user. The errors are those
// of questions.Editor.DelegateInterrupt.
func (e *Engine) DelegateInterrupt(ctx context.Context, c runtime.DelegateRequest) (checkpoint.Interrupt, error) {
	return e.questions.DelegateInterrupt(ctx, c)
}

// RevealInterrupt shows the secret parts of a question, and records who saw them. The errors are
// those of questions.Editor.RevealInterrupt.
func (e *Engine) RevealInterrupt(ctx context.Context, c runtime.RevealRequest) (runtime.Revealed, error) {
	return e.questions.RevealInterrupt(ctx, c)
}

// RetractResponse takes the answer or the vote of the caller back. The errors are those of
// questions.Editor.RetractResponse.
func (e *Engine) RetractResponse(ctx context.Context, c runtime.RetractRequest) (checkpoint.Interrupt, error) {
	return e.questions.RetractResponse(ctx, c)
}

// ReleaseInterrupt gives up the claim of the caller. The errors are those of
// questions.Editor.ReleaseInterrupt.
func (e *Engine) ReleaseInterrupt(ctx context.Context, c runtime.ReleaseRequest) (checkpoint.Interrupt, error) {
	return e.questions.ReleaseInterrupt(ctx, c)
}

// CommentInterrupt adds a comment to the trail of an open question. The errors are those of
// questions.Editor.CommentInterrupt.
func (e *Engine) CommentInterrupt(ctx context.Context, c runtime.CommentRequest) (trail.Entry, error) {
	return e.questions.CommentInterrupt(ctx, c)
}

// ListTrail returns what happened to a question. The errors are those of
// questions.Editor.ListTrail.
func (e *Engine) ListTrail(ctx context.Context, question runtime.Question) ([]trail.Entry, error) {
	return e.questions.ListTrail(ctx, question)
}

// CopyThread makes a copy of a thread: its state and history, its runs, and its
// interrupts, which need their own answers. Ids within the thread stay the same. Queued
// runs and request ids are not copied. The errors are *Error: THREAD_NOT_FOUND,
// THREAD_BUSY, THREAD_EXISTS, REQUEST_ID_CONFLICT, CHANGE_TOO_LARGE, and those of the
// store.
//
// A copy is one change in memory. So its size is bounded, and other copies wait until it
// is made.
func (e *Engine) CopyThread(ctx context.Context, req runtime.CopyRequest) (checkpoint.Head, error) {
	return e.threads.CopyThread(ctx, req)
}

// ForkThread makes a thread that begins with the state that another thread has, or had
// at a checkpoint. Interrupts are not copied: tasks that were waiting ask anew. The
// errors are *Error: THREAD_NOT_FOUND, THREAD_EXISTS, CHECKPOINT_NOT_FOUND, and those of
// the store.
func (e *Engine) ForkThread(ctx context.Context, req runtime.ForkRequest) (checkpoint.Head, error) {
	return e.threads.ForkThread(ctx, req)
}

// PruneThread removes all but the newest checkpoints of a thread, and the events before
// them. The errors are *Error: THREAD_NOT_FOUND, THREAD_BUSY, THREAD_INTERRUPTED,
// ETAG_MISMATCH, and those of the store.
func (e *Engine) PruneThread(ctx context.Context, req runtime.PruneRequest) (checkpoint.Head, error) {
	return e.threads.PruneThread(ctx, req)
}

// DeleteThread removes a thread that is at the revision etag (0 = any) and not busy;
// when forced, even a busy or damaged thread. The errors are *Error: THREAD_NOT_FOUND,
// THREAD_BUSY, ETAG_MISMATCH, and those of the store.
func (e *Engine) DeleteThread(ctx context.Context, thread string, etag uint64, force bool) error {
	return e.threads.DeleteThread(ctx, thread, etag, force)
}
