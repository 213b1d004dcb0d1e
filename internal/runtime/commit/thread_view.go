package commit

import (
	"context"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// A call that goes on with a thread reads its head, its run, its interrupts, its
// checkpoint and the progress after it. Where the store can show all of that at
// once, the call reads one view of the thread, and what it reads under the context
// of that view is answered from it. Conflicts are found as ever: by the revision.

// threadView is the view of a thread that a context carries.
type threadView struct {
	checkpoint.ThreadView

	thread string
}

type viewKey struct{}

// viewFromContext returns the view of a thread in a context, nil = none.
func viewFromContext(ctx context.Context, thread string) *threadView {
	if l, ok := ctx.Value(viewKey{}).(*threadView); ok && l.thread == thread {
		return l
	}
	return nil
}

// ViewThread reads the head of a thread, and what belongs to it where that costs
// no more. The context is for what is read of the thread for the same decision.
func (l *StoreClient) ViewThread(ctx context.Context, thread, request string, head *checkpoint.Head) (context.Context, error) {
	viewer, ok := l.Store.(checkpoint.ThreadViewer)
	if !ok {
		found, err := l.Head(ctx, thread)
		if err == nil {
			*head = found
		}
		return ctx, err
	}
	v, err := callStore(ctx, l, func(ctx context.Context) (checkpoint.ThreadView, error) {
		return viewer.ViewThread(ctx, thread, request)
	})
	l.clock.observeTime(v.Head.Now)
	if err != nil {
		return ctx, err
	}
	*head = v.Head
	return context.WithValue(ctx, viewKey{}, &threadView{v, thread}), nil
}

// findRun is the run that was looked at, nil for another one.
func (l *threadView) findRun(id string) *checkpoint.Run {
	if l == nil || l.Run == nil || l.Run.ID != id {
		return nil
	}
	return l.Run
}

// findCheckpoint is the checkpoint that was looked at, nil for another one.
func (l *threadView) findCheckpoint(namespace, id string) *checkpoint.Checkpoint {
	if l == nil || l.Checkpoint == nil || namespace != "" || id == "" || l.Checkpoint.ID != id {
		return nil
	}
	return l.Checkpoint
}

// findProgress is the progress after a checkpoint, nil for another one.
func (l *threadView) findProgress(id string) *checkpoint.Pending {
	if l == nil || l.Pending == nil || l.Head.Checkpoint != id {
		return nil
	}
	p := *l.Pending
	p.Interrupts = slices.Clone(p.Interrupts) // the reader puts answers into it
	return &p
}

// findInterrupt finds one interrupt; known says that the view has all of them.
func (l *threadView) findInterrupt(id string) (q checkpoint.Interrupt, known bool, err error) {
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

// selectInterrupts selects interrupts by their state; known is false for a query that
// asks for more.
func (l *threadView) selectInterrupts(q *checkpoint.InterruptQuery) (found []checkpoint.Interrupt, known bool) {
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

// findRequest finds a remembered request; known says that it was looked for.
func (l *threadView) findRequest(id string) (r *checkpoint.Request, known bool) {
	if l == nil {
		return nil, false
	}
	r, known = l.Requests[id]
	return r, known
}
