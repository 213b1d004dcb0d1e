package commit

import (
	"context"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// A call that goes on with a thread reads its head, its run, its interrupts, its
// checkpoint and the progress after it. Where the store can show all of that at
// once, the call reads one view of the thread, and what it then reads through that
// view is answered from it. Conflicts are found as ever: by the revision.

// ThreadView is a StoreClient that answers what it can from one snapshot of a
// thread, and asks the store for the rest.
type ThreadView struct {
	*StoreClient

	snapshot checkpoint.ThreadView
}

// ViewThread reads the head of a thread, and what belongs to it where that costs
// no more. The view is for what is read of the thread for the same decision; it is
// nil for a store that shows no more than the head.
func (l *StoreClient) ViewThread(ctx context.Context, thread, request string, head *checkpoint.Head) (*ThreadView, error) {
	viewer, ok := l.Store.(checkpoint.ThreadViewer)
	if !ok {
		found, err := l.Head(ctx, thread)
		if err == nil {
			*head = found
		}
		return nil, err
	}
	snapshot, err := callStore(ctx, l, func(ctx context.Context) (checkpoint.ThreadView, error) {
		return viewer.ViewThread(ctx, thread, request)
	})
	l.clock.observeTime(snapshot.Head.Now)
	if err != nil {
		return nil, err
	}
	*head = snapshot.Head
	return &ThreadView{StoreClient: l, snapshot: snapshot}, nil
}

// Checkpoint is answered from the snapshot, or else by the store.
func (v *ThreadView) Checkpoint(ctx context.Context, thread, namespace, id string) (*checkpoint.Checkpoint, error) {
	if cp := v.findCheckpoint(thread, namespace, id); cp != nil {
		return cp, nil
	}
	return v.StoreClient.Checkpoint(ctx, thread, namespace, id)
}

// ReadCheckpointWithin is answered from the snapshot, or else by the store.
func (v *ThreadView) ReadCheckpointWithin(ctx context.Context, thread, namespace, id string, most int) (*checkpoint.Checkpoint, error) {
	if cp := v.findCheckpoint(thread, namespace, id); cp != nil {
		return cp, nil
	}
	return v.StoreClient.ReadCheckpointWithin(ctx, thread, namespace, id, most)
}

// Pending is answered from the snapshot, or else by the store.
func (v *ThreadView) Pending(ctx context.Context, thread, id string) (checkpoint.Pending, error) {
	if thread != v.snapshot.Head.Thread || v.snapshot.Pending == nil || v.snapshot.Head.Checkpoint != id {
		return v.StoreClient.Pending(ctx, thread, id)
	}
	p := *v.snapshot.Pending
	p.Interrupts = slices.Clone(p.Interrupts) // the reader puts answers into it
	return p, nil
}

// Run is answered from the snapshot, or else by the store.
func (v *ThreadView) Run(ctx context.Context, thread, run string) (checkpoint.Run, error) {
	if r := v.snapshot.Run; r != nil && thread == v.snapshot.Head.Thread && r.ID == run {
		return *r, nil
	}
	return v.StoreClient.Run(ctx, thread, run)
}

// Interrupt is answered from the snapshot, or else by the store.
func (v *ThreadView) Interrupt(ctx context.Context, thread, id string) (checkpoint.Interrupt, error) {
	if thread != v.snapshot.Head.Thread || v.snapshot.Interrupts == nil {
		return v.StoreClient.Interrupt(ctx, thread, id)
	}
	for _, q := range *v.snapshot.Interrupts {
		if q.ID == id {
			return q, nil
		}
	}
	return checkpoint.Interrupt{}, checkpoint.ErrInterruptNotFound
}

// Interrupts is answered from the snapshot, or else by the store.
func (v *ThreadView) Interrupts(ctx context.Context, q checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	if found, known := v.selectInterrupts(&q); known {
		return found, nil
	}
	return v.StoreClient.Interrupts(ctx, q)
}

// Request is answered from the snapshot, or else by the store.
func (v *ThreadView) Request(ctx context.Context, thread, id string) (checkpoint.Request, error) {
	r, known := v.snapshot.Requests[id]
	switch {
	case !known || thread != v.snapshot.Head.Thread:
		return v.StoreClient.Request(ctx, thread, id)
	case r == nil:
		return checkpoint.Request{}, checkpoint.ErrRequestNotFound
	default:
		return *r, nil
	}
}

// findCheckpoint is the checkpoint of the snapshot, nil for another one.
func (v *ThreadView) findCheckpoint(thread, namespace, id string) *checkpoint.Checkpoint {
	cp := v.snapshot.Checkpoint
	if cp == nil || thread != v.snapshot.Head.Thread || namespace != "" || id == "" || cp.ID != id {
		return nil
	}
	return cp
}

// selectInterrupts selects interrupts of the snapshot by their state; known is false
// for a query that asks for more.
func (v *ThreadView) selectInterrupts(q *checkpoint.InterruptQuery) (found []checkpoint.Interrupt, known bool) {
	if q.Thread != v.snapshot.Head.Thread || v.snapshot.Interrupts == nil {
		return nil, false
	}
	if q.Graph != "" || q.Node != "" || q.Reason != "" || q.Assignee != "" || q.ByChange ||
		q.After != (checkpoint.InterruptPosition{}) {
		return nil, false
	}
	for _, in := range *v.snapshot.Interrupts {
		if (len(q.States) == 0 || slices.Contains(q.States, in.State)) && (q.Run == "" || in.Run == q.Run) {
			found = append(found, in)
		}
		if q.Limit > 0 && len(found) == q.Limit {
			break
		}
	}
	return found, true
}
