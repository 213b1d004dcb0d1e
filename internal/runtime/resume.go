package runtime

import (
	"context"
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
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
	glance, head, err := e.glance(ctx, r.req.Thread, r.req.RequestID)
	if err != nil {
		return Started{}, threadError(r.req.Thread, err)
	}
	*seen = head
	if head.State != checkpoint.ThreadBusy { // what is read then belongs to this head
		ctx = glance
	}
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

// goOn stores the answers and drives the thread from here, in one change.
func (r *resumption) goOn(ctx context.Context, head checkpoint.Head, b *batch) (Started, error) {
	e := r.engine
	var run checkpoint.Run
	next, err := e.take(ctx, head, loadPatience, func(s *session, t *tx) (*loop, string, error) {
		l, err := e.pickUp(ctx, s, t, func(l *loop) error { return r.answers(ctx, t, l, b) })
		if err != nil {
			return nil, "", err
		}
		l.rush(ctx, t)
		to, err := e.settleOn(s, t, l)
		if run = *l.run; err == nil {
			r.req.Watch.tell(head.Thread, head.LastEvent)
		}
		return l, to, err
	})
	switch {
	case errors.Is(err, errNoRoom):
		b.lacks = err
		return r.deliver(ctx, head, b)
	case errors.Is(err, errDraining):
		return r.deliver(ctx, head, b)
	case errors.Is(err, errHeld):
		return Started{}, e.settling(ctx, head.Thread)
	case err != nil:
		return Started{}, err
	}
	return Started{Run: run, Head: next, After: head.LastEvent}, nil
}

// answers puts what the request brings into the change that goes on with the
// thread.
func (r *resumption) answers(ctx context.Context, t *tx, l *loop, b *batch) error {
	b.store(t)
	l.pending.patch(b.answered)
	t.remember(r.req.RequestID, r.req.Digest, l.run.ID)
	if err := r.settings(ctx, l); err != nil {
		return err
	}
	return command(t, l, r.req.Update, r.req.Goto)
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
	state, err := e.load(ctx, &s.load, &t.Head, g)
	if err != nil {
		return nil, err
	}
	l := s.root(&run, state)
	p, err := e.pendingWithin(ctx, &s.load, t.Thread, state.Checkpoint().ID)
	if err != nil {
		return nil, err
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
