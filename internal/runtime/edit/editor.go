// Package edit changes the state of a thread as if a node of its graph had written: it
// puts checkpoints into the change, and closes interrupts that have become pointless.
package edit

import (
	"context"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/runtime/query"
	"github.com/graphd-dev/graphd/internal/runtime/snapshot"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// Options are the collaborators of an Editor.
type Options struct {
	Reader    *query.Reader
	Snapshots *snapshot.Reader
	Committer *commit.Committer
	// Budget is the memory that calls hold of large states.
	Budget *runtime.ReadBudget
	Env    *superstep.Env // parts of the server that edits use, as loops do
	// NewThread makes a thread that is edited and not driven.
	NewThread func(thread string) *superstep.Thread
	// ChangeFree makes one attempt at a change that was decided on a given head, of a thread
	// without a live run; ErrConflict says that it must be decided anew.
	ChangeFree func(ctx context.Context, head checkpoint.Head, b commit.Build) (checkpoint.Head, error)
}

// Editor edits states. It keeps nothing between two calls.
type Editor struct {
	reader     *query.Reader
	snapshots  *snapshot.Reader
	committer  *commit.Committer
	budget     *runtime.ReadBudget
	env        *superstep.Env
	newThread  func(thread string) *superstep.Thread
	changeFree func(ctx context.Context, head checkpoint.Head, b commit.Build) (checkpoint.Head, error)
}

// New makes an editor.
func New(o Options) *Editor {
	return &Editor{
		reader: o.Reader, snapshots: o.Snapshots, committer: o.Committer, budget: o.Budget, env: o.Env, newThread: o.NewThread, changeFree: o.ChangeFree,
	}
}

// UpdateState makes a new checkpoint as if a node had written the values: its edges
// fire, and earlier pending tasks are dropped. The results of finished siblings are
// kept. The errors are *Error: THREAD_NOT_FOUND, THREAD_BUSY, THREAD_INTERRUPTED,
// CHECKPOINT_NOT_FOUND, CHECKPOINT_CONFLICT, NODE_NOT_FOUND, AMBIGUOUS_NODE,
// INVALID_FIELD, REQUEST_ID_CONFLICT, and those of the store.
func (e *Editor) UpdateState(ctx context.Context, req runtime.UpdateStateRequest) (runtime.Snapshot, error) {
	return e.applyUpdate(ctx, &stateUpdate{editor: e, req: runtime.BulkUpdateStateRequest{
		Thread: req.Thread, Checkpoint: req.Checkpoint, Namespace: req.Namespace,
		Supersteps: [][]runtime.StateWrite{{{Values: req.Values, AsNode: req.AsNode}}},
		Expected:   req.Expected, SupersedeInterrupts: req.SupersedeInterrupts,
		RequestID: req.RequestID, Digest: req.Digest, By: req.By, Memory: req.Memory,
	}})
}

// BulkUpdateState makes one checkpoint per superstep, all of them or none. The errors
// are those of UpdateState; their fields name the write.
func (e *Editor) BulkUpdateState(ctx context.Context, req runtime.BulkUpdateStateRequest) (runtime.Snapshot, error) {
	return e.applyUpdate(ctx, &stateUpdate{editor: e, req: req, isBulk: true})
}

func (e *Editor) applyUpdate(ctx context.Context, u *stateUpdate) (runtime.Snapshot, error) {
	if err := u.checkWrites(); err != nil {
		return runtime.Snapshot{}, err
	}
	return commit.RetryOnConflict(ctx, e.committer, func(seen *checkpoint.Head) (runtime.Snapshot, error) { return e.tryUpdate(ctx, *u, seen) })
}

func (e *Editor) tryUpdate(ctx context.Context, u stateUpdate, seen *checkpoint.Head) (runtime.Snapshot, error) {
	req := &u.req
	head, err := e.reader.Thread(ctx, req.Thread)
	if err != nil {
		return runtime.Snapshot{}, err
	}
	*seen = head
	newest := runtime.StateRequest{Thread: req.Thread, Namespace: req.Namespace, Memory: req.Memory}
	if req.RequestID != "" {
		old, err := e.reader.FindRequest(ctx, req.Thread, req.RequestID, req.Digest)
		if err != nil {
			return runtime.Snapshot{}, err
		}
		if old != nil {
			return e.snapshots.ReadState(ctx, newest, runtime.ReadWaitTimeout)
		}
	}
	if err := u.checkUpdatable(ctx, &head); err != nil {
		return runtime.Snapshot{}, err
	}
	if err := e.commitUpdate(ctx, &u, head); err != nil {
		return runtime.Snapshot{}, err
	}
	*seen = checkpoint.Head{} // it is made: never again
	return e.snapshots.ReadState(ctx, newest, runtime.WaitForever)
}

// commitUpdate makes one attempt at an update that was decided on a given head. It holds
// memory for the state meanwhile, and no state while it waits for memory.
func (e *Editor) commitUpdate(ctx context.Context, u *stateUpdate, head checkpoint.Head) error {
	memory := e.budget.NewReservation()
	defer memory.ReleaseAll()
	u.head, u.reservation = head, &memory
	defer func() { u.reservation = nil }()
	return e.reader.RetryLargeRead(ctx, &memory, runtime.ReadWaitTimeout, func() error {
		state, err := e.reader.LoadStateAt(ctx, &memory, &head, u.req.Namespace, u.req.Checkpoint)
		if err != nil {
			return err
		}
		u.state = state
		defer func() { u.state = nil }() // it is not held while memory is waited for, or the answer is read
		_, err = e.changeFree(ctx, head, func(t *commit.Tx) error { return u.putUpdate(ctx, t) })
		return err
	})
}

// newEdit begins an edit of a state.
func (e *Editor) newEdit(thread string, run *checkpoint.Run, state *pregel.State, isRoot bool) *superstep.Edit {
	return superstep.NewEdit(e.env, e.newThread(thread), run, state, isRoot)
}
