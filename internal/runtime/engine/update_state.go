package engine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// UpdateState makes a new checkpoint as if a node had written the values: its
// edges fire, what was pending before is given up. Work that siblings have
// finished is kept. The errors are *Error: THREAD_NOT_FOUND, THREAD_BUSY,
// THREAD_INTERRUPTED, CHECKPOINT_NOT_FOUND, CHECKPOINT_CONFLICT,
// NODE_NOT_FOUND, AMBIGUOUS_NODE, INVALID_FIELD, REQUEST_ID_CONFLICT, and
// those of the store.
func (e *Engine) UpdateState(ctx context.Context, req runtime.UpdateStateRequest) (runtime.Snapshot, error) {
	return e.updateState(ctx, &stateUpdate{engine: e, req: runtime.BulkUpdateStateRequest{
		Thread: req.Thread, Checkpoint: req.Checkpoint, Namespace: req.Namespace,
		Supersteps: [][]runtime.StateWrite{{{Values: req.Values, AsNode: req.AsNode}}},
		Expected:   req.Expected, SupersedeInterrupts: req.SupersedeInterrupts,
		RequestID: req.RequestID, Digest: req.Digest, By: req.By, Memory: req.Memory,
	}})
}

// BulkUpdateState makes one checkpoint per superstep, all of them or none. The
// errors are those of UpdateState; their fields say which write they are about.
func (e *Engine) BulkUpdateState(ctx context.Context, req runtime.BulkUpdateStateRequest) (runtime.Snapshot, error) {
	return e.updateState(ctx, &stateUpdate{engine: e, req: req, isBulk: true})
}

func (e *Engine) updateState(ctx context.Context, u *stateUpdate) (runtime.Snapshot, error) {
	if err := u.checkWrites(); err != nil {
		return runtime.Snapshot{}, err
	}
	return commit.RetryOnConflict(ctx, e.committer, func(seen *checkpoint.Head) (runtime.Snapshot, error) { return e.tryUpdateState(ctx, *u, seen) })
}

func (e *Engine) tryUpdateState(ctx context.Context, u stateUpdate, seen *checkpoint.Head) (runtime.Snapshot, error) {
	req := &u.req
	head, err := e.reader.Thread(ctx, req.Thread)
	if err != nil {
		return runtime.Snapshot{}, err
	}
	*seen = head
	if req.RequestID != "" {
		old, err := e.reader.FindRequest(ctx, req.Thread, req.RequestID, req.Digest)
		if err != nil {
			return runtime.Snapshot{}, err
		}
		if old != nil {
			return e.State(ctx, runtime.StateRequest{Thread: req.Thread, Namespace: req.Namespace, Memory: req.Memory})
		}
	}
	if err := e.checkUpdatable(ctx, &head, req); err != nil {
		return runtime.Snapshot{}, err
	}
	memory := e.readBudget.NewReservation()
	defer memory.ReleaseAll()
	state, err := e.reader.LoadStateReserved(ctx, &memory, runtime.ReadWaitTimeout, &head, req.Namespace, req.Checkpoint)
	if err != nil {
		return runtime.Snapshot{}, err
	}
	if s := e.live.findSession(req.Thread); s != nil {
		return runtime.Snapshot{}, e.retryWhenSettled(ctx, req.Thread)
	}
	u.head, u.state, u.reservation = head, state, &memory
	if err := e.reader.RetryLargeRead(ctx, &memory, runtime.ReadWaitTimeout, func() error {
		_, err := e.committer.TryChange(ctx, head, func(t *commit.Tx) error { return u.putUpdate(ctx, t) })
		return err
	}); err != nil {
		return runtime.Snapshot{}, err
	}
	*seen = checkpoint.Head{} // it is made: never again
	u.state = nil
	memory.ReleaseAll()
	return e.snapshots.ReadState(ctx, runtime.StateRequest{Thread: req.Thread, Namespace: req.Namespace, Memory: req.Memory}, runtime.WaitForever)
}

// checkWrites refuses a list of writes that means nothing.
func (u *stateUpdate) checkWrites() error {
	if len(u.req.Supersteps) == 0 {
		return runtime.Errorf(runtime.ReasonInvalidField, "there is nothing to write").WithViolation("supersteps", "must have at least one superstep")
	}
	for i, writes := range u.req.Supersteps {
		if len(writes) == 0 {
			field := fmt.Sprintf("supersteps[%d].updates", i)
			return runtime.Errorf(runtime.ReasonInvalidField, "a superstep without updates").WithViolation(field, "must have at least one update")
		}
		for at, w := range writes {
			switch {
			case len(writes) == 1:
			case w.AsNode == "":
				return runtime.Errorf(runtime.ReasonInvalidField, "it must be clear which node each of several updates is of").
					WithViolation(u.fieldPath(i, at, "as_node"), "must be set when a superstep has several updates")
			case w.AsNode == runtime.AsInput, w.AsNode == runtime.AsCopy, w.AsNode == runtime.AsEnd:
				return runtime.Errorf(runtime.ReasonInvalidField, "an update as %s must be alone in its superstep", w.AsNode).
					WithViolation(u.fieldPath(i, at, "as_node"), "must be a node when a superstep has several updates")
			}
		}
	}
	return nil
}

// fieldPath is where in the request a write, or a part of it, stands.
func (u *stateUpdate) fieldPath(step, at int, part string) string {
	if !u.isBulk {
		return part
	}
	return fmt.Sprintf("supersteps[%d].updates[%d].%s", step, at, part)
}

// checkUpdatable refuses an update that would lose something.
func (e *Engine) checkUpdatable(ctx context.Context, head *checkpoint.Head, req *runtime.BulkUpdateStateRequest) error {
	if head.Graph == "" {
		return runtime.Errorf(runtime.ReasonInvalidField, "thread %q has no graph yet; create it with one, or run it first", head.Thread).
			WithViolation("thread_id", "must name a thread that has a graph")
	}
	if err := runtime.CheckExpected(head, req.Expected); err != nil {
		return err
	}
	if head.State == checkpoint.ThreadBusy {
		return runtime.Errorf(runtime.ReasonThreadBusy, "run %q of the thread is active", head.Run).With("activeRunId", head.Run)
	}
	if head.Open == 0 || req.SupersedeInterrupts {
		return nil
	}
	open, err := e.reader.ListOpenInterrupts(ctx, head.Thread)
	if err != nil {
		return err
	}
	dropped := slices.DeleteFunc(open, func(q checkpoint.Interrupt) bool {
		return q.Reason == checkpoint.ReasonBreakpoint || !isWithinNamespace(q.Namespace, req.Namespace)
	})
	if len(dropped) == 0 {
		return nil
	}
	what := "open questions; answer them"
	if len(dropped) == 1 {
		what = "open question; answer it"
	}
	return runtime.Errorf(runtime.ReasonThreadInterrupted, "an update would drop %d %s first, or set supersede_interrupts", len(dropped), what).
		WithIDs("openInterruptIds", interruptIDs(dropped)).With("count", strconv.Itoa(len(dropped)))
}

// isWithinNamespace reports whether a namespace is another one or lies below it; outer
// may leave the task ids out.
func isWithinNamespace(ns, outer string) bool {
	if !strings.Contains(outer, ":") {
		ns = pregel.NodePath(ns)
	}
	return outer == "" || ns == outer || strings.HasPrefix(ns, outer+"|")
}

// stateUpdate is one update of a state.
type stateUpdate struct {
	engine *Engine
	req    runtime.BulkUpdateStateRequest
	isBulk bool // the request has lists of writes, and errors name their place
	head   checkpoint.Head
	state  *pregel.State
	edit   *superstep.Edit
	// reservation is for what is read; it has memory when that is large.
	reservation *runtime.ReadReservation
}

func (u *stateUpdate) putUpdate(ctx context.Context, t *commit.Tx) error {
	state := u.state
	run := &checkpoint.Run{ID: u.head.Run, Graph: state.Graph().Name, Metadata: state.Checkpoint().Metadata}
	u.edit = superstep.NewEdit(u.engine.loopEnv, u.engine.newDetachedThread(t.Thread), run, state, u.req.Namespace == "")
	for i, writes := range u.req.Supersteps {
		step := &stateStep{update: u, number: i, writes: writes, state: state}
		next, err := step.applyStep(ctx, t)
		if err != nil {
			return err
		}
		u.edit.SetState(next)
		state = next
	}
	t.RecordRequest(u.req.RequestID, u.req.Digest, t.Head.Run)
	return u.settleThread(ctx, t)
}

// settleThread settles the thread: interrupts that the update made pointless are
// closed, and a failed thread is well again.
func (u *stateUpdate) settleThread(ctx context.Context, t *commit.Tx) error {
	if u.req.Namespace != "" {
		return u.engine.supersedeBelow(ctx, t, u.state.Namespace())
	}
	if t.Head.State == checkpoint.ThreadIdle {
		return nil
	}
	if t.Head.State == checkpoint.ThreadInterrupted {
		if !u.req.SupersedeInterrupts {
			return nil // a breakpoint: Resume goes on from the new checkpoint
		}
		if err := superstep.SupersedeInterrupts(ctx, u.engine.reader, t); err != nil {
			return fmt.Errorf("close the questions: %w", err)
		}
	}
	t.Head.State = checkpoint.ThreadIdle
	return nil
}

// supersedeBelow closes the interrupts of a subgraph that has moved on without
// answers.
func (e *Engine) supersedeBelow(ctx context.Context, t *commit.Tx, ns string) error {
	if t.Head.Open == 0 {
		return nil
	}
	open, err := e.reader.ListOpenInterrupts(ctx, t.Thread)
	if err != nil {
		return err
	}
	closed := slices.DeleteFunc(open, func(q checkpoint.Interrupt) bool {
		return q.Reason == checkpoint.ReasonBreakpoint || !isWithinNamespace(q.Namespace, ns)
	})
	for i := range closed {
		closed[i].State, closed[i].Updated = checkpoint.InterruptSuperseded, t.Now
	}
	if len(closed) == 0 {
		return nil
	}
	t.Interrupts = append(t.Interrupts, closed...)
	t.Head.Open -= len(closed)
	t.EmitEvent(checkpoint.Event{Kind: checkpoint.EventResolved, Interrupts: closed})
	return nil
}
