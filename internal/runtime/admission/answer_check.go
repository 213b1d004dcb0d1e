package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/redact"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/query"
	"github.com/graphd-dev/graphd/internal/runtime/questions"
)

func (r *resumeCall) givenResponses(b *answerBatch) []runtime.Response {
	if r.req.Single != nil {
		return b.singleResponse
	}
	return r.req.Responses
}

// answerBatch is the answers of one request, checked together.
type answerBatch struct {
	openInterrupts    []checkpoint.Interrupt // open interrupts of the thread
	answered          []checkpoint.Interrupt // with their answers, which take effect at once
	retractable       []checkpoint.Interrupt // with their answers, which take effect later
	voted             []checkpoint.Interrupt // with votes that do not decide
	repeated          []string               // ids of waiting interrupts that have the vote or the answer already
	passedBreakpoints []checkpoint.Interrupt // breakpoints that the resume passes
	singleResponse    []runtime.Response
	countRetractable  int // interrupts of the thread that had such an answer before
	needsAllAnswers   bool
	triesSecrets      bool  // see triesSecrets
	capacityErr       error // the error that keeps the run waiting for a slot or for memory; nil = the run starts
}

func (b *answerBatch) hasNothingNew() bool {
	return len(b.answered)+len(b.retractable)+len(b.voted)+len(b.passedBreakpoints) == 0
}

// hasNoEffect reports whether the thread does not go on now: votes were cast that do not
// decide, or answers were given that take effect later.
func (b *answerBatch) hasNoEffect() bool {
	return len(b.answered) == 0 && len(b.passedBreakpoints) == 0 && len(b.voted)+len(b.retractable)+len(b.repeated) > 0
}

// onlyAwaitsEffect reports whether a request that brings nothing new finds nothing but answers
// that take effect later.
func (b *answerBatch) onlyAwaitsEffect() bool {
	return b.hasNothingNew() && len(b.openInterrupts) == 0 && b.countRetractable > 0
}

// countLeftWaiting returns how many interrupts stay without an answer in effect.
func (b *answerBatch) countLeftWaiting() int {
	return len(b.openInterrupts) + b.countRetractable - len(b.answered) - len(b.passedBreakpoints)
}

// checkAnswers checks every answer against its interrupt before any is stored.
func (r *resumeCall) checkAnswers(ctx context.Context, reader *query.Reader, head *checkpoint.Head) (*answerBatch, error) {
	b := &answerBatch{}
	if head.Open > 0 {
		waiting, err := reader.ListWaitingInterrupts(ctx, head.Thread)
		if err != nil {
			return nil, err
		}
		b.openInterrupts = slices.DeleteFunc(waiting, func(q checkpoint.Interrupt) bool { return q.State != checkpoint.InterruptOpen })
		b.countRetractable = len(waiting) - len(b.openInterrupts)
	}
	responses := r.req.Responses
	if r.req.Single != nil {
		one, err := r.addressSingle(head, b)
		if err != nil {
			return nil, err
		}
		b.singleResponse, responses = one, one
	}
	seen := make(map[string]runtime.Response, len(responses))
	for i, resp := range responses {
		field := "responses[" + strconv.Itoa(i) + "]"
		if r.req.Single != nil {
			field = "single"
		}
		if old, twice := seen[resp.Interrupt]; twice && !isSameResponse(old, resp) {
			return nil, runtime.Errorf(runtime.ReasonInvalidField, "%s answers question %q a second time", field, resp.Interrupt).
				WithViolation(field, "must not answer a question twice")
		} else if twice {
			continue
		}
		seen[resp.Interrupt] = resp
		if err := r.checkAnswer(ctx, reader, b, resp, field); err != nil {
			return nil, err
		}
	}
	return b, r.checkCoverage(head, b, len(responses))
}

func isSameResponse(a, b runtime.Response) bool {
	return a.Dismissed == b.Dismissed && (a.Dismissed || payload.Equal(a.Value, b.Value))
}

// addressSingle gives a response without an id the id of the only open interrupt.
func (r *resumeCall) addressSingle(head *checkpoint.Head, b *answerBatch) ([]runtime.Response, error) {
	var ids, breakpoints []string
	for _, q := range b.openInterrupts {
		if q.Reason == checkpoint.ReasonBreakpoint {
			breakpoints = append(breakpoints, q.ID)
		} else {
			ids = append(ids, q.ID)
		}
	}
	switch {
	case len(ids) == 0 && len(breakpoints) > 0:
		return nil, runtime.Errorf(runtime.ReasonThreadNotInterrupted, "the thread is paused at a breakpoint, which asks nothing; resume without a response").
			With("threadState", string(head.State)).WithIDs("breakpointIds", breakpoints)
	case len(ids) == 0:
		return nil, notInterruptedError(head)
	case len(ids) == 1:
		one := *r.req.Single
		one.Interrupt = ids[0]
		return []runtime.Response{one}, nil
	default:
		return nil, runtime.Errorf(runtime.ReasonResponseAmbiguous, "%d questions are open; name the one that is answered", len(ids)).
			WithIDs("openInterruptIds", ids).With("count", strconv.Itoa(len(ids)))
	}
}

func notInterruptedError(head *checkpoint.Head) *runtime.Error {
	return runtime.Errorf(runtime.ReasonThreadNotInterrupted, "the thread does not wait for answers; it is %s", head.State).
		With("threadState", string(head.State))
}

// checkAnswer checks one answer and adds it to the batch.
func (r *resumeCall) checkAnswer(ctx context.Context, reader *query.Reader, b *answerBatch, resp runtime.Response, field string) error {
	q, err := reader.StoredInterrupt(ctx, r.req.Thread, resp.Interrupt)
	if errors.Is(err, checkpoint.ErrInterruptNotFound) {
		return runtime.Errorf(runtime.ReasonInterruptNotFound, "the thread has no question %q", resp.Interrupt).
			With("interruptId", resp.Interrupt).WithIDs("openInterruptIds", interruptIDs(b.openInterrupts))
	}
	if err != nil {
		return runtime.TranslateStoreError(err)
	}
	r.tellOfQuestion(&q)
	switch q.State {
	case checkpoint.InterruptOpen:
		if questions.IsOver(&q, r.opts.Now()) {
			return b.nameOpen(questions.ExpiredError(&q))
		}
	case checkpoint.InterruptRetractable, checkpoint.InterruptAnswered, checkpoint.InterruptConsumed:
		if r.req.Single != nil { // it was open when the answer was given its id, and fits no other question now
			return checkpoint.ErrConflict
		}
		if err := r.checkLateVoter(&q); err != nil {
			return err
		}
		if q.Reason != checkpoint.ReasonBreakpoint && q.Dismissed == resp.Dismissed &&
			(q.Dismissed || hasAnswer(&q, resp.Value)) && r.mayRepeatAnswer(&q) {
			if q.State == checkpoint.InterruptRetractable {
				b.repeated = append(b.repeated, q.ID)
			}
			return nil
		}
		return b.nameOpen(questions.ResolvedError(&q))
	case checkpoint.InterruptExpired:
		return b.nameOpen(questions.ExpiredError(&q))
	default:
		return b.nameSuccessor(&q, b.nameOpen(questions.ResolvedError(&q)))
	}
	if shown := q.DigestShown(); resp.Seen != "" && resp.Seen != shown {
		return runtime.Errorf(runtime.ReasonQuestionChanged, "question %q shows something else than was answered; read it again", q.ID).
			With("interruptId", q.ID).With("seen", shown)
	}
	if resp.Etag != "" && resp.Etag != strconv.FormatUint(q.Revision, 10) {
		return runtime.Errorf(runtime.ReasonEtagMismatch, "question %q was changed", q.ID).With("current", strconv.FormatUint(q.Revision, 10))
	}
	if q.Reason == checkpoint.ReasonBreakpoint {
		return runtime.Errorf(runtime.ReasonInvalidField, "%s: %q is a breakpoint and asks nothing; resume without a response for it", field, q.ID).
			WithViolation(field, "must not answer a breakpoint")
	}
	if !resp.Dismissed {
		if err := checkResponseSchema(ctx, r.opts.Schemas, &q, resp.Value, field+".value"); err != nil {
			if bad, ok := errors.AsType[*runtime.Error](err); ok {
				return bad.With("interruptId", q.ID)
			}
			return err
		}
	}
	shown, hidden, err := redact.Hide(resp.Value, q.Secret)
	if err != nil {
		return runtime.Errorf(runtime.ReasonInvalidField, "%s.value is not JSON", field).WithViolation(field+".value", "must be JSON")
	}
	switch outcome, err := r.castVote(ctx, &q, resp, redact.Value{Shown: shown, Hidden: hidden}, field); {
	case err != nil:
		return err
	case outcome == approval.Repeated:
		b.repeated = append(b.repeated, q.ID)
		return nil
	case outcome == approval.Counted:
		b.noteVote(&q)
		b.voted = append(b.voted, q)
		return nil
	}
	b.noteVote(&q)
	q.State, q.Dismissed, q.Note = checkpoint.InterruptAnswered, resp.Dismissed, resp.Note
	q.Request = r.req.RequestID
	q.Responder, q.ResponderHow, q.ResponseMethod = r.req.By.Name, r.req.By.How, r.req.By.Method
	if !resp.Dismissed {
		q.Response, q.Hidden.Response = shown, hidden
	}
	if q.Undo > 0 {
		q.State = checkpoint.InterruptRetractable
		b.retractable = append(b.retractable, q)
	} else {
		b.answered = append(b.answered, q)
	}
	return nil
}

// noteVote notes whether the last vote of a question tries secret parts of others.
func (b *answerBatch) noteVote(q *checkpoint.Interrupt) {
	if n := len(q.Votes); n > 0 && triesSecrets(q.Policy, &q.Votes[n-1]) {
		b.triesSecrets = true
	}
}

// tellOfQuestion tells the caller which parts of the answer to an interrupt are secret.
func (r *resumeCall) tellOfQuestion(q *checkpoint.Interrupt) {
	if r.req.OnQuestion == nil {
		return
	}
	r.req.OnQuestion(q.ID, q.Secret)
	if r.req.Single != nil {
		r.req.OnQuestion("", q.Secret)
	}
}

// hasAnswer reports whether an interrupt has an answer already, secret parts included.
func hasAnswer(q *checkpoint.Interrupt, answer payload.JSON) bool {
	shown, hidden, err := redact.Hide(answer, q.Secret)
	return err == nil && q.HasAnswer(shown, hidden)
}

// nameOpen adds to a refusal the ids of the interrupts that are open.
func (b *answerBatch) nameOpen(refused *runtime.Error) *runtime.Error {
	if len(b.openInterrupts) == 0 {
		return refused
	}
	return refused.WithIDs("openInterruptIds", interruptIDs(b.openInterrupts))
}

// nameSuccessor adds to a refusal the id of the interrupt that replaced the refused
// interrupt.
func (b *answerBatch) nameSuccessor(q *checkpoint.Interrupt, refused *runtime.Error) *runtime.Error {
	for i := range b.openInterrupts {
		if now := &b.openInterrupts[i]; now.Round > q.Round && now.Task == q.Task && now.Scope == q.Scope && now.Key == q.Key && now.Index == q.Index {
			refused = refused.With("supersededBy", now.ID)
			refused.Message += fmt.Sprintf("; question %q is asked in its place, read it and answer that", now.ID)
		}
	}
	return refused
}

// checkCoverage checks that the thread can go on with the batch, and adds the open
// breakpoints to it.
func (r *resumeCall) checkCoverage(head *checkpoint.Head, b *answerBatch, responses int) error {
	if len(b.openInterrupts) == 0 && len(b.answered) == 0 {
		if responses > 0 && !r.hasCommand() {
			return nil // all of them were repetitions
		}
		if head.State != checkpoint.ThreadInterrupted {
			return notInterruptedError(head)
		}
	}
	// A repeated answer, a vote that does not decide, or an answer that takes effect later
	// passes no breakpoint.
	goesOn := responses == 0 || len(b.answered) > 0 || r.hasCommand()
	var missing []string
	for _, q := range b.openInterrupts {
		switch {
		case q.Reason == checkpoint.ReasonBreakpoint:
			if goesOn {
				q.State = checkpoint.InterruptConsumed
				b.passedBreakpoints = append(b.passedBreakpoints, q)
			}
		case !b.hasResponse(q.ID):
			missing = append(missing, q.ID)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if r.req.Coverage == runtime.CoverAll || (responses == 0 && !r.hasCommand()) {
		what := "open questions are"
		if len(missing) == 1 {
			what = "open question is"
		}
		return runtime.Errorf(runtime.ReasonResponsesIncomplete, "%d %s not answered", len(missing), what).
			WithIDs("missingInterruptIds", missing).With("count", strconv.Itoa(len(missing)))
	}
	return nil
}

// hasResponse reports whether the batch has an answer or a vote for an interrupt.
func (b *answerBatch) hasResponse(id string) bool {
	return containsInterrupt(b.answered, id) || containsInterrupt(b.retractable, id) || containsInterrupt(b.voted, id) ||
		slices.Contains(b.repeated, id)
}

func containsInterrupt(list []checkpoint.Interrupt, id string) bool {
	return slices.ContainsFunc(list, func(q checkpoint.Interrupt) bool { return q.ID == id })
}

// putAnswers adds the answers and votes to a change.
func (b *answerBatch) putAnswers(t *commit.Tx) {
	b.putVotes(t)
	all := slices.Concat(b.answered, b.retractable, b.passedBreakpoints)
	for i := range all {
		q := &all[i]
		if q.Updated = t.Now; q.Responder != "" {
			q.ResponseTime = t.Now
		}
		if q.State == checkpoint.InterruptRetractable {
			q.Effective, q.NeedsAllAnswers = t.Now.Add(q.Undo), b.needsAllAnswers
			t.ScheduleBy(q.Effective)
		}
	}
	t.Interrupts = append(t.Interrupts, all...)
	t.Head.Open = max(0, t.Head.Open-len(all)+len(b.retractable))
	t.Head.Retractable += len(b.retractable)
	t.Head.Answered += len(b.answered)
	if len(all) == 0 && len(b.voted) > 0 {
		return // the thread stays as it is
	}
	if len(all) > len(b.retractable) {
		t.Head.NeedsAllAnswers = b.needsAllAnswers
	}
	if len(all) > 0 {
		t.EmitEvent(checkpoint.Event{Kind: checkpoint.EventResolved, Interrupts: all})
	}
}

func interruptIDs(interrupts []checkpoint.Interrupt) []string {
	ids := make([]string, len(interrupts))
	for i := range interrupts {
		ids[i] = interrupts[i].ID
	}
	return ids
}
