package runtime

import (
	"context"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// A call that goes on with a thread reads its head, its run, its questions, its
// checkpoint and the progress after it. Where the store can show all of that at
// once, the call takes one look, and what it reads under the context of that
// look is answered from it. Conflicts are found as ever: by the revision.

// look is a glance at a thread.
type look struct {
	checkpoint.Glance

	thread string
}

type lookKey struct{}

// lookOf is the glance at a thread that a context carries, nil = none.
func lookOf(ctx context.Context, thread string) *look {
	if l, ok := ctx.Value(lookKey{}).(*look); ok && l.thread == thread {
		return l
	}
	return nil
}

// glance reads the head of a thread, and what belongs to it where that costs
// no more. The context is for what is read of the thread for the same decision.
func (e *Engine) glance(ctx context.Context, thread, request string) (context.Context, checkpoint.Head, error) {
	glancer, ok := e.line.Store.(checkpoint.Glancer)
	if !ok {
		head, err := e.store.Head(ctx, thread)
		return ctx, head, err
	}
	g, err := bounded(ctx, e.line, func(ctx context.Context) (checkpoint.Glance, error) {
		return glancer.Glance(ctx, thread, request)
	})
	e.line.clock.observe(g.Head.Now)
	if err != nil {
		return ctx, g.Head, err
	}
	return context.WithValue(ctx, lookKey{}, &look{g, thread}), g.Head, nil
}

// run is the run that was looked at, nil for another one.
func (l *look) run(id string) *checkpoint.Run {
	if l == nil || l.Run == nil || l.Run.ID != id {
		return nil
	}
	return l.Run
}

// at is the checkpoint that was looked at, nil for another one.
func (l *look) at(namespace, id string) *checkpoint.Checkpoint {
	if l == nil || l.Checkpoint == nil || namespace != "" || id == "" || l.Checkpoint.ID != id {
		return nil
	}
	return l.Checkpoint
}

// after is the progress after a checkpoint, nil for another one.
func (l *look) after(id string) *checkpoint.Pending {
	if l == nil || l.Pending == nil || l.Head.Checkpoint != id {
		return nil
	}
	p := *l.Pending
	p.Interrupts = slices.Clone(p.Interrupts) // the reader puts answers into it
	return &p
}

// question finds one question; known says that all were looked at.
func (l *look) question(id string) (q checkpoint.Interrupt, known bool, err error) {
	if l == nil || l.Interrupts == nil {
		return q, false, nil
	}
	for _, q := range *l.Interrupts {
		if q.ID == id {
			return q, true, nil
		}
	}
	return q, true, checkpoint.ErrInterruptNotFound
}

// questions selects questions by their state; known is false for a query that
// asks for more.
func (l *look) questions(q *checkpoint.InterruptQuery) (found []checkpoint.Interrupt, known bool) {
	if l == nil || l.Interrupts == nil {
		return nil, false
	}
	if q.Graph != "" || q.Node != "" || q.Reason != "" || q.Assignee != "" || q.ByChange ||
		q.After != (checkpoint.InterruptPosition{}) {
		return nil, false
	}
	for _, in := range *l.Interrupts {
		if (len(q.States) == 0 || slices.Contains(q.States, in.State)) && (q.Run == "" || in.Run == q.Run) {
			found = append(found, in)
		}
		if q.Limit > 0 && len(found) == q.Limit {
			break
		}
	}
	return found, true
}

// request finds a remembered request; known says that it was looked for.
func (l *look) request(id string) (r *checkpoint.Request, known bool) {
	if l == nil {
		return nil, false
	}
	r, known = l.Requests[id]
	return r, known
}
