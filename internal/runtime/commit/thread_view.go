package commit

import (
	"context"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// A call that continues a thread reads its head, its run, its interrupts, its
// checkpoint and the progress after it. Where the store can return all of that at
// once, the call reads one view of the thread, and its further reads are answered
// from the view. The revision still shows conflicts.

// ThreadView is a StoreClient that answers reads from one snapshot of a thread
// where it can, and else from the store.
type ThreadView struct {
	*StoreClient

	snapshot *checkpoint.ThreadView
}

// ViewThread reads the head of a thread, and the records that belong to it if that costs
// no more. The view serves the reads for one decision. It is nil for a store that
// returns no more than the head. Errors: those of callStore.
func (s *StoreClient) ViewThread(ctx context.Context, thread, request string, head *checkpoint.Head) (*ThreadView, error) {
	viewer, ok := s.Store.(checkpoint.ThreadViewer)
	if !ok {
		return nil, s.readHead(ctx, thread, head)
	}
	snapshot, err := callStore(ctx, s, "ThreadView", func(ctx context.Context) (*checkpoint.ThreadView, error) {
		return viewer.ViewThread(ctx, thread, request)
	})
	if err != nil {
		return nil, err
	}
	s.clock.observeTime(snapshot.Head.Now)
	*head = snapshot.Head
	return s.WithSnapshot(snapshot), nil
}

// WithSnapshot returns the view of a snapshot that was made before. The caller must not take it for
// what the store has now.
func (s *StoreClient) WithSnapshot(snapshot *checkpoint.ThreadView) *ThreadView {
	return &ThreadView{StoreClient: s, snapshot: snapshot}
}

// readHead reads the head of a thread. Errors: those of callStore.
func (s *StoreClient) readHead(ctx context.Context, thread string, head *checkpoint.Head) error {
	found, err := s.Head(ctx, thread)
	if err == nil {
		*head = found
	}
	return err
}

// Checkpoint returns the checkpoint of the snapshot, or else that of the store, with its
// errors.
func (v *ThreadView) Checkpoint(ctx context.Context, thread, namespace, id string) (*checkpoint.Checkpoint, error) {
	if cp := v.findCheckpoint(thread, namespace, id); cp != nil {
		return cp, nil
	}
	return v.StoreClient.Checkpoint(ctx, thread, namespace, id)
}

// ReadCheckpointWithin returns the checkpoint of the snapshot, or else that of the
// store, with its errors.
func (v *ThreadView) ReadCheckpointWithin(ctx context.Context, thread, namespace, id string, most int) (*checkpoint.Checkpoint, error) {
	if cp := v.findCheckpoint(thread, namespace, id); cp != nil {
		return cp, nil
	}
	return v.StoreClient.ReadCheckpointWithin(ctx, thread, namespace, id, most)
}

// Pending returns the progress of the snapshot, or else that of the store, with its
// errors.
func (v *ThreadView) Pending(ctx context.Context, thread, id string) (checkpoint.Pending, error) {
	if !v.hasPending(thread, id) {
		return v.StoreClient.Pending(ctx, thread, id)
	}
	p := *v.snapshot.Pending
	p.Interrupts = slices.Clone(p.Interrupts) // the reader puts answers into it
	return p, nil
}

// ReadPendingWithin returns the progress of the snapshot, or else that of the store.
// Errors: those of StoreClient.ReadPendingWithin.
func (v *ThreadView) ReadPendingWithin(ctx context.Context, thread, id string, most int) (checkpoint.Pending, error) {
	if !v.hasPending(thread, id) {
		return v.StoreClient.ReadPendingWithin(ctx, thread, id, most)
	}
	p, err := v.Pending(ctx, thread, id)
	return checkPendingSize(p, err, most)
}

// hasPending reports whether the snapshot has the progress after a checkpoint.
func (v *ThreadView) hasPending(thread, id string) bool {
	return thread == v.snapshot.Head.Thread && v.snapshot.Pending != nil && v.snapshot.Head.Checkpoint == id
}

// Run returns the run of the snapshot, or else that of the store, with its errors.
func (v *ThreadView) Run(ctx context.Context, thread, run string) (checkpoint.Run, error) {
	if r := v.snapshot.Run; r != nil && thread == v.snapshot.Head.Thread && r.ID == run {
		return *r, nil
	}
	return v.StoreClient.Run(ctx, thread, run)
}

// Interrupt returns the interrupt of the snapshot, or else that of the store, with its
// errors. The error is checkpoint.ErrInterruptNotFound when the snapshot does not have
// it.
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

// Interrupts returns the interrupts of the snapshot, or else those of the store, with
// its errors.
func (v *ThreadView) Interrupts(ctx context.Context, q checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	if found, known := v.selectInterrupts(&q); known {
		return found, nil
	}
	return v.StoreClient.Interrupts(ctx, q)
}

// Request returns the request of the snapshot, or else that of the store, with its
// errors. The error is checkpoint.ErrRequestNotFound when the snapshot knows of none.
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

// findCheckpoint returns the checkpoint of the snapshot if it is the wanted checkpoint,
// else nil.
func (v *ThreadView) findCheckpoint(thread, namespace, id string) *checkpoint.Checkpoint {
	cp := v.snapshot.Checkpoint
	if cp == nil || thread != v.snapshot.Head.Thread || namespace != "" || id == "" || cp.ID != id {
		return nil
	}
	return cp
}

// selectInterrupts selects interrupts of the snapshot by their state. known is false
// for a query with other conditions.
func (v *ThreadView) selectInterrupts(q *checkpoint.InterruptQuery) (found []checkpoint.Interrupt, known bool) {
	if q.Thread != v.snapshot.Head.Thread || v.snapshot.Interrupts == nil {
		return nil, false
	}
	if q.Tenant != "" || q.Node != "" || q.Reason != "" || q.ByChange || q.ByDue ||
		len(q.Tags) > 0 || len(q.AnyTag) > 0 ||
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
