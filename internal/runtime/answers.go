package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

func (r *resumption) responses(b *batch) []Response {
	if r.req.Single != nil {
		return b.single
	}
	return r.req.Responses
}

// batch is a set of answers that has been checked as a whole.
type batch struct {
	open     []checkpoint.Interrupt // questions of the thread that are open
	answered []checkpoint.Interrupt // with their answers
	passed   []checkpoint.Interrupt // breakpoints that are left behind
	single   []Response
	hold     bool
	lacks    error // why the run waits for a place or for room, and the log says so
}

func (b *batch) nothingNew() bool { return len(b.answered) == 0 && len(b.passed) == 0 }

// left counts the questions that stay open.
func (b *batch) left() int { return len(b.open) - len(b.answered) - len(b.passed) }

// match checks every answer against its question before any is stored.
func (r *resumption) match(ctx context.Context, head *checkpoint.Head) (*batch, error) {
	b := &batch{}
	var err error
	if head.Open > 0 {
		if b.open, err = r.engine.openInterrupts(ctx, head.Thread); err != nil {
			return nil, err
		}
	}
	responses := r.req.Responses
	if r.req.Single != nil {
		one, err := r.only(head, b)
		if err != nil {
			return nil, err
		}
		b.single, responses = one, one
	}
	seen := make(map[string]Response, len(responses))
	for i, resp := range responses {
		field := "responses[" + strconv.Itoa(i) + "]"
		if r.req.Single != nil {
			field = "single"
		}
		if old, twice := seen[resp.Interrupt]; twice && !sameResponse(old, resp) {
			return nil, Errorf(ReasonInvalidField, "%s answers question %q a second time", field, resp.Interrupt).
				InField(field, "must not answer a question twice")
		} else if twice {
			continue
		}
		seen[resp.Interrupt] = resp
		if err := r.answer(ctx, b, resp, field); err != nil {
			return nil, err
		}
	}
	return b, r.covers(head, b, len(responses))
}

func sameResponse(a, b Response) bool {
	return a.Dismissed == b.Dismissed && (a.Dismissed || payload.Equal(a.Value, b.Value))
}

// only addresses an answer without an id to the one open question.
func (r *resumption) only(head *checkpoint.Head, b *batch) ([]Response, error) {
	var ids, breakpoints []string
	for _, q := range b.open {
		if q.Reason == checkpoint.ReasonBreakpoint {
			breakpoints = append(breakpoints, q.ID)
		} else {
			ids = append(ids, q.ID)
		}
	}
	switch {
	case len(ids) == 0 && len(breakpoints) > 0:
		return nil, Errorf(ReasonThreadNotInterrupted, "the thread is paused at a breakpoint, which asks nothing; resume without a response").
			With("threadState", string(head.State)).With("breakpointIds", joinIDs(breakpoints))
	case len(ids) == 0:
		return nil, notInterrupted(head)
	case len(ids) == 1:
		one := *r.req.Single
		one.Interrupt = ids[0]
		return []Response{one}, nil
	default:
		return nil, Errorf(ReasonResponseAmbiguous, "%d questions are open; name the one that is answered", len(ids)).
			With("openInterruptIds", joinIDs(ids)).With("count", itoa(len(ids)))
	}
}

func notInterrupted(head *checkpoint.Head) *Error {
	return Errorf(ReasonThreadNotInterrupted, "the thread does not wait for answers; it is %s", head.State).
		With("threadState", string(head.State))
}

// answer checks one answer and adds it to the batch.
func (r *resumption) answer(ctx context.Context, b *batch, resp Response, field string) error {
	q, err := r.engine.store.Interrupt(ctx, r.req.Thread, resp.Interrupt)
	if errors.Is(err, checkpoint.ErrInterruptNotFound) {
		return Errorf(ReasonInterruptNotFound, "the thread has no question %q", resp.Interrupt).
			With("interruptId", resp.Interrupt).With("openInterruptIds", joinIDs(idsOf(b.open)))
	}
	if err != nil {
		return storeError(err)
	}
	switch q.State {
	case checkpoint.InterruptOpen:
		if !q.Expires.IsZero() && !q.Expires.After(r.engine.now()) {
			return tooLate(&q)
		}
	case checkpoint.InterruptAnswered, checkpoint.InterruptConsumed:
		if q.Reason != checkpoint.ReasonBreakpoint && q.Dismissed == resp.Dismissed &&
			(q.Dismissed || payload.Equal(q.Response, resp.Value)) {
			return nil
		}
		return resolved(&q)
	case checkpoint.InterruptExpired:
		return tooLate(&q)
	default:
		return b.succeeded(&q, resolved(&q))
	}
	if resp.Etag != "" && resp.Etag != strconv.FormatUint(q.Revision, 10) {
		return Errorf(ReasonEtagMismatch, "question %q was changed", q.ID).With("current", strconv.FormatUint(q.Revision, 10))
	}
	if q.Reason == checkpoint.ReasonBreakpoint {
		return Errorf(ReasonInvalidField, "%s: %q is a breakpoint and asks nothing; resume without a response for it", field, q.ID).
			InField(field, "must not answer a breakpoint")
	}
	if !resp.Dismissed {
		if err := r.engine.fits(ctx, q.Schema, resp.Value, ReasonResponseSchemaMismatch, field+".value"); err != nil {
			if bad, ok := errors.AsType[*Error](err); ok {
				return bad.With("interruptId", q.ID)
			}
			return err
		}
	}
	q.State, q.Dismissed, q.Note = checkpoint.InterruptAnswered, resp.Dismissed, resp.Note
	q.Responder, q.Request = r.req.By, r.req.RequestID
	if !resp.Dismissed {
		q.Response = resp.Value
	}
	b.answered = append(b.answered, q)
	return nil
}

// succeeded adds to a refusal which question stands now where the refused one stood.
func (b *batch) succeeded(q *checkpoint.Interrupt, refused *Error) *Error {
	for i := range b.open {
		if now := &b.open[i]; now.Round > q.Round && now.Task == q.Task && now.Scope == q.Scope && now.Key == q.Key && now.Index == q.Index {
			refused = refused.With("supersededBy", now.ID)
			refused.Message += fmt.Sprintf("; question %q is asked in its place, read it and answer that", now.ID)
		}
	}
	return refused
}

func tooLate(q *checkpoint.Interrupt) *Error {
	return Errorf(ReasonInterruptExpired, "question %q has expired", q.ID).
		With("interruptId", q.ID).With("expireTime", q.Expires.UTC().Format(time.RFC3339))
}

func resolved(q *checkpoint.Interrupt) *Error {
	how := string(q.State)
	switch {
	case q.Dismissed:
		how = "dismissed"
	case q.State == checkpoint.InterruptConsumed && q.Reason != checkpoint.ReasonBreakpoint:
		how = string(checkpoint.InterruptAnswered) // that the node has used the answer is of no interest here
	}
	err := Errorf(ReasonInterruptAlreadyResolved, "question %q was %s already", q.ID, how).
		With("interruptId", q.ID).With("state", string(q.State))
	if q.Responder != "" {
		err = err.With("responder", q.Responder)
	}
	return err
}

// covers checks that the batch lets the thread go on, and takes the open
// breakpoints into it.
func (r *resumption) covers(head *checkpoint.Head, b *batch, responses int) error {
	if len(b.open) == 0 && len(b.answered) == 0 {
		if responses > 0 && !r.commands() {
			return nil // all of them were repetitions
		}
		if head.State != checkpoint.ThreadInterrupted {
			return notInterrupted(head)
		}
	}
	var missing []string
	for _, q := range b.open {
		switch {
		case q.Reason == checkpoint.ReasonBreakpoint:
			q.State = checkpoint.InterruptConsumed
			b.passed = append(b.passed, q)
		case !slices.ContainsFunc(b.answered, func(a checkpoint.Interrupt) bool { return a.ID == q.ID }):
			missing = append(missing, q.ID)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if r.req.Coverage == All || (responses == 0 && !r.commands()) {
		what := "open questions are"
		if len(missing) == 1 {
			what = "open question is"
		}
		return Errorf(ReasonResponsesIncomplete, "%d %s not answered", len(missing), what).
			With("missingInterruptIds", joinIDs(missing)).With("count", itoa(len(missing)))
	}
	return nil
}

// store puts the answers into a change.
func (b *batch) store(t *tx) {
	all := make([]checkpoint.Interrupt, 0, len(b.answered)+len(b.passed))
	all = append(append(all, b.answered...), b.passed...)
	for i := range all {
		all[i].Updated = t.now
	}
	t.Interrupts = append(t.Interrupts, all...)
	t.Head.Open = max(0, t.Head.Open-len(all))
	t.Head.Answered += len(b.answered)
	t.Head.Hold = b.hold
	if len(all) > 0 {
		t.emit(checkpoint.Event{Kind: checkpoint.EventResolved, Interrupts: all})
	}
}

// openInterrupts lists the questions of a thread that are open.
func (e *Engine) openInterrupts(ctx context.Context, thread string) ([]checkpoint.Interrupt, error) {
	var open []checkpoint.Interrupt
	err := e.eachOpen(ctx, thread, func(q *checkpoint.Interrupt) { open = append(open, *q) })
	return open, err
}

func (e *Engine) eachOpen(ctx context.Context, thread string, visit func(*checkpoint.Interrupt)) error {
	return e.eachInterrupt(ctx, checkpoint.InterruptQuery{
		Thread: thread, States: []checkpoint.InterruptState{checkpoint.InterruptOpen},
	}, visit)
}

func (e *Engine) openIDs(ctx context.Context, thread string) (ids []string, err error) {
	err = e.eachOpen(ctx, thread, func(q *checkpoint.Interrupt) { ids = append(ids, q.ID) })
	return ids, err
}

func idsOf(interrupts []checkpoint.Interrupt) []string {
	ids := make([]string, len(interrupts))
	for i := range interrupts {
		ids[i] = interrupts[i].ID
	}
	return ids
}

// joinIDs lists ids for the metadata of an error: at most ten, it travels in
// a trailer.
func joinIDs(ids []string) string {
	return strings.Join(ids[:min(len(ids), 10)], ",")
}

func itoa(n int) string { return strconv.Itoa(n) }
