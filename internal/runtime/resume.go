package runtime

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

// Resume stores answers, all or none, and lets the thread go on. The same
// answer to the same question again is accepted and changes nothing. The
// errors are *Error: THREAD_NOT_FOUND, THREAD_NOT_INTERRUPTED,
// INTERRUPT_NOT_FOUND, INTERRUPT_ALREADY_RESOLVED, INTERRUPT_EXPIRED,
// RESPONSE_SCHEMA_MISMATCH, RESPONSES_INCOMPLETE, RESPONSE_AMBIGUOUS,
// ETAG_MISMATCH, CHECKPOINT_CONFLICT, REQUEST_ID_CONFLICT, INVALID_FIELD and
// those of the store.
func (e *Engine) Resume(ctx context.Context, req ResumeRequest) (Started, error) {
	r := &resumption{engine: e, req: req}
	return decide(ctx, e, func(seen *checkpoint.Head) (Started, error) { return r.try(ctx, seen) })
}

// resumption decides about one resume request.
type resumption struct {
	engine *Engine
	req    ResumeRequest
}

func (r *resumption) try(ctx context.Context, seen *checkpoint.Head) (Started, error) {
	e := r.engine
	head, err := e.store.Head(ctx, r.req.Thread)
	if err != nil {
		return Started{}, threadError(r.req.Thread, err)
	}
	*seen = head
	if r.req.RequestID != "" {
		old, err := e.request(ctx, head.Thread, r.req.RequestID, r.req.Digest)
		if err != nil {
			return Started{}, err
		}
		if old != nil {
			return e.attach(ctx, head, old.Run, old.Event)
		}
	}
	b, err := r.match(ctx, &head)
	if err != nil {
		return Started{}, err
	}
	if b.nothingNew() && len(r.responses(b)) > 0 && !r.commands() {
		return e.attach(ctx, head, head.Run, head.LastEvent)
	}
	if err := atCheckpoint(&head, r.req.Expected); err != nil {
		return Started{}, err
	}
	b.hold = r.req.Coverage == Collect && b.left() > 0
	switch {
	case head.State == checkpoint.ThreadBusy, b.hold:
		return r.deliver(ctx, head, b)
	default:
		return r.goOn(ctx, head, b)
	}
}

func (r *resumption) commands() bool { return r.req.Update != "" || len(r.req.Goto) > 0 }

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
	var ids []string
	for _, q := range b.open {
		if q.Reason != checkpoint.ReasonBreakpoint {
			ids = append(ids, q.ID)
		}
	}
	switch len(ids) {
	case 0:
		return nil, notInterrupted(head)
	case 1:
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
		return resolved(&q)
	}
	if resp.Etag != "" && resp.Etag != strconv.FormatUint(q.Revision, 10) {
		return Errorf(ReasonEtagMismatch, "question %q was changed", q.ID).With("current", strconv.FormatUint(q.Revision, 10))
	}
	if q.Reason == checkpoint.ReasonBreakpoint {
		return Errorf(ReasonInvalidField, "%s: %q is a breakpoint and asks nothing; resume without a response for it", field, q.ID).
			InField(field, "must not answer a breakpoint")
	}
	if !resp.Dismissed {
		if err := r.engine.fits(q.Schema, resp.Value, ReasonResponseSchemaMismatch, field+".value"); err != nil {
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

// deliver stores the answers without starting anything here: the thread is
// live already, or waits for more answers, or is left to another replica.
func (r *resumption) deliver(ctx context.Context, head checkpoint.Head, b *batch) (Started, error) {
	if r.commands() && head.State == checkpoint.ThreadBusy {
		return Started{}, Errorf(ReasonThreadBusy, "run %q is active; updates and gotos need a thread that waits", head.Run).
			With("activeRunId", head.Run)
	}
	next, err := r.engine.changeFrom(ctx, head, func(t *tx) error {
		if t.Head.Revision != head.Revision {
			if t.Head.State != head.State || t.Head.Run != head.Run {
				return checkpoint.ErrConflict
			}
			if err := r.unchanged(ctx, t, b); err != nil {
				return err
			}
		}
		if err := r.leave(ctx, t); err != nil {
			return err
		}
		if err := r.amend(ctx, t); err != nil {
			return err
		}
		b.store(t)
		if !b.hold && t.Head.Owner == "" {
			t.Head.Due = t.now
		}
		t.remember(r.req.RequestID, r.req.Digest, t.Head.Run)
		return nil
	})
	if err != nil {
		return Started{}, err
	}
	r.engine.nudge()
	run, err := r.engine.store.Run(ctx, head.Thread, head.Run)
	if err != nil {
		return Started{}, storeError(err)
	}
	return Started{Run: run, Head: next, After: head.LastEvent}, nil
}

// amend stores an update and gotos for whoever sets the run going later.
func (r *resumption) amend(ctx context.Context, t *tx) error {
	if !r.commands() {
		return nil
	}
	e := r.engine
	run, err := e.store.Run(ctx, t.Thread, t.Head.Run)
	if err != nil {
		return storeError(err)
	}
	g, err := e.graphOf(run.Graph, run.Version)
	if err != nil {
		return err
	}
	state, err := e.load(ctx, &t.Head, g)
	if err != nil {
		return err
	}
	p, err := e.store.Pending(ctx, t.Thread, state.Checkpoint().ID)
	if err != nil {
		return storeError(err)
	}
	l := &loop{session: e.bystander(t.Thread), run: &run, state: state, pending: newProgress(p), level: level{root: true, stored: true}}
	return command(t, l, r.req.Update, r.req.Goto)
}

// unchanged makes sure that the questions are still open when the change is
// made through a session whose head has moved since they were read.
func (r *resumption) unchanged(ctx context.Context, t *tx, b *batch) error {
	for _, list := range [][]checkpoint.Interrupt{b.answered, b.passed} {
		for _, a := range list {
			q, err := r.engine.store.Interrupt(ctx, t.Thread, a.ID)
			if err != nil {
				return storeError(err)
			}
			if q.Revision != a.Revision {
				return checkpoint.ErrConflict
			}
		}
	}
	return nil
}

// goOn stores the answers and drives the thread from here, in one change.
func (r *resumption) goOn(ctx context.Context, head checkpoint.Head, b *batch) (Started, error) {
	e := r.engine
	s := e.hold(head.Thread)
	if s == nil {
		if e.session(head.Thread) != nil {
			return Started{}, e.settling(ctx, head.Thread)
		}
		return r.deliver(ctx, head, b)
	}
	t := newTx(head, e.now())
	l, err := e.pickUp(ctx, s, t, func(l *loop) error {
		b.store(t)
		l.pending.patch(b.answered)
		t.remember(r.req.RequestID, r.req.Digest, l.run.ID)
		if err := r.settings(l); err != nil {
			return err
		}
		return command(t, l, r.req.Update, r.req.Goto)
	})
	if err != nil {
		s.release(nil)
		return Started{}, err
	}
	run := *l.run
	next, err := e.applyHeld(ctx, s, t)
	if err != nil {
		s.release(err)
		return Started{}, err
	}
	s.launch(next, l)
	return Started{Run: run, Head: next, After: head.LastEvent}, nil
}

// patch shows a superstep the answers that are about to be stored.
func (p *progress) patch(answered []checkpoint.Interrupt) {
	for _, a := range answered {
		for i := range p.interrupts[a.Task] {
			if p.interrupts[a.Task][i].ID == a.ID {
				p.interrupts[a.Task][i] = a
			}
		}
	}
}

// pickUp prepares to go on with a thread's run where it stopped, under a new
// lease. with may add to the change before the superstep is planned. A run
// that is over is followed by a new one of the same kind.
func (e *Engine) pickUp(ctx context.Context, s *session, t *tx, with func(l *loop) error) (*loop, error) {
	run, err := e.store.Run(ctx, t.Thread, t.Head.Run)
	if err != nil {
		return nil, storeError(err)
	}
	if run.State.Terminal() {
		run = successor(t, run)
	}
	g, err := e.graphOf(run.Graph, run.Version)
	if err != nil {
		return nil, err
	}
	state, err := e.load(ctx, &t.Head, g)
	if err != nil {
		return nil, err
	}
	l := s.root(&run, state)
	p, err := e.store.Pending(ctx, t.Thread, state.Checkpoint().ID)
	if err != nil {
		return nil, storeError(err)
	}
	l.pending, l.revisit = newProgress(p), true
	t.Head.Run, t.Head.State = run.ID, checkpoint.ThreadBusy
	s.told = run.State == checkpoint.RunRunning || run.State == checkpoint.RunCancelling
	if !s.told {
		run.State = checkpoint.RunRunning
		t.emit(checkpoint.Event{Kind: checkpoint.EventRunState, Run: run.ID, State: run.State})
		l.stop = state.NextStep() + 1 + l.limit()
	} else {
		l.stop = run.Stop
	}
	if run.FirstEvent == 0 {
		run.FirstEvent = t.Head.LastEvent
	}
	if with != nil {
		if err := with(l); err != nil {
			return nil, err
		}
	}
	t.Head.Answered, t.Head.Hold = 0, false // whoever comes later is told of by the count
	if err := prepare(t, l); err != nil {
		return nil, err
	}
	run.Stop, run.Updated = l.stop, t.now
	t.Runs = append(t.Runs, run)
	s.lease(t)
	return l, nil
}

// successor is the run that goes on after one that has failed.
func successor(t *tx, old checkpoint.Run) checkpoint.Run {
	request := old.Request
	request.Input, request.From, request.Update, request.Goto, request.Expected = "", "", "", nil, ""
	return checkpoint.Run{
		ID: newRunID(t, ""), Thread: t.Thread, Graph: old.Graph, Version: old.Version,
		State: checkpoint.RunQueued, Metadata: old.Metadata, Created: t.now, Updated: t.now,
		Order: t.Head.LastEvent + 1, Request: request, Base: t.Head.Checkpoint,
	}
}

// openInterrupts lists the questions of a thread that are open.
func (e *Engine) openInterrupts(ctx context.Context, thread string) ([]checkpoint.Interrupt, error) {
	open, err := e.store.Interrupts(ctx, checkpoint.InterruptQuery{
		Thread: thread, States: []checkpoint.InterruptState{checkpoint.InterruptOpen}, Limit: maxOpen,
	})
	return open, storeError(err)
}

func (e *Engine) openIDs(ctx context.Context, thread string) ([]string, error) {
	open, err := e.openInterrupts(ctx, thread)
	return idsOf(open), err
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
