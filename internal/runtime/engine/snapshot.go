package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// State reads a state. The newest one includes what the tasks of its superstep
// have finished so far; an older one is as it was. The errors are *Error:
// THREAD_NOT_FOUND, CHECKPOINT_NOT_FOUND, GRAPH_NOT_FOUND, INVALID_FIELD, and
// those of the store.
func (e *Engine) State(ctx context.Context, req runtime.StateRequest) (runtime.Snapshot, error) {
	return e.stateWithTimeout(ctx, req, runtime.ReadWaitTimeout)
}

// stateWithTimeout is State for a caller with a time limit for the wait for memory.
func (e *Engine) stateWithTimeout(ctx context.Context, req runtime.StateRequest, timeout time.Duration) (runtime.Snapshot, error) {
	return commit.RetryOnConflict(ctx, e.committer, func(seen *checkpoint.Head) (runtime.Snapshot, error) { return e.tryState(ctx, req, timeout, seen) })
}

func (e *Engine) tryState(
	ctx context.Context, req runtime.StateRequest, timeout time.Duration, seen *checkpoint.Head,
) (snap runtime.Snapshot, err error) {
	memory := e.reader.CallReservation(req.Memory, req.MaxBytes)
	err = e.reader.RetryLargeRead(ctx, memory, timeout, func() error {
		snap, err = e.readState(ctx, req, memory, seen)
		return err
	})
	return snap, err
}

func (e *Engine) readState(ctx context.Context, req runtime.StateRequest, memory *runtime.ReadReservation, seen *checkpoint.Head) (runtime.Snapshot, error) {
	head, err := e.reader.Thread(ctx, req.Thread)
	if err != nil {
		return runtime.Snapshot{}, err
	}
	*seen = head
	if head.Graph == "" {
		return runtime.Snapshot{Values: "{}", Checkpoint: &checkpoint.Checkpoint{}, LogID: head.LogID}, nil
	}
	r := &snapshotReader{engine: e, ctx: ctx, head: &head, withSubgraphs: req.WithSubgraphs, maxBytes: req.MaxBytes, reservation: memory}
	snap, err := r.readSnapshot(req.Namespace, req.Checkpoint)
	if errors.Is(err, errTooManyResults) {
		return snap, tooLargeError(snap.Checkpoint, r.maxBytes)
	}
	if err != nil {
		return snap, err
	}
	if len(req.Keys) > 0 {
		snap.Values, err = selectKeys(snap.Values, req.Keys)
	}
	snap.LastEvent, snap.LogID = head.LastEvent, head.LogID
	return snap, err
}

func selectKeys(values payload.JSON, keys []string) (payload.JSON, error) {
	fields, err := payload.Fields(values)
	if err != nil {
		return values, runtime.Errorf(runtime.ReasonInvalidField, "the state is one value and has no keys").WithViolation("keys", "must be empty for this graph")
	}
	fields = slices.DeleteFunc(fields, func(f payload.Field) bool { return !slices.Contains(keys, f.Key) })
	return payload.Object(fields), nil
}

// ValuesAt returns the values at a checkpoint.
func (e *Engine) ValuesAt(ctx context.Context, memory *runtime.CallMemory, thread, namespace, id string) (payload.JSON, error) {
	head, err := e.reader.Thread(ctx, thread)
	if err != nil {
		return "", err
	}
	var own runtime.ReadReservation
	defer own.ReleaseAll()
	s, err := e.reader.LoadStateReserved(ctx, e.reader.AnswerReservation(memory, &own, 0), runtime.WaitForever, &head, namespace, id)
	if err != nil {
		return "", err
	}
	return s.Values(), nil
}

// InputAt returns what a node sees of the state at a checkpoint. The errors are
// *Error: CHECKPOINT_NOT_FOUND, GRAPH_NOT_FOUND, and those of the store; a node
// that the graph no longer has sees nothing.
func (e *Engine) InputAt(ctx context.Context, memory *runtime.CallMemory, thread, namespace, id, node string) (payload.JSON, error) {
	head, err := e.reader.Thread(ctx, thread)
	if err != nil {
		return "", err
	}
	var own runtime.ReadReservation
	defer own.ReleaseAll()
	s, err := e.reader.LoadStateReserved(ctx, e.reader.AnswerReservation(memory, &own, 0), runtime.WaitForever, &head, namespace, id)
	if err != nil {
		return "", err
	}
	n, ok := s.Graph().Node(node)
	if !ok {
		return "", nil
	}
	return s.NodeView(n).Object(), nil
}

// snapshotReader puts snapshots of one thread together.
type snapshotReader struct {
	engine        *Engine
	ctx           context.Context //nolint:containedctx // lives as long as one call
	head          *checkpoint.Head
	reservation   *runtime.ReadReservation // for what is read; nil = its size does not matter
	withSubgraphs bool
	maxBytes      int // bytes that what is shown beside the values may hold, 0 = any number
	heldBytes     int // of these
	subgraphInterrupts
}

// addBytes counts what is shown. The error is errTooManyResults when it is too much
// for one answer.
func (r *snapshotReader) addBytes(bytes int) error {
	if r.heldBytes += bytes; r.maxBytes > 0 && r.heldBytes > r.maxBytes {
		return errTooManyResults
	}
	return nil
}

// taskBytes is about how many bytes a task adds to an answer.
func taskBytes(t *runtime.SnapshotTask) int {
	n := len(t.Result) + len(t.Namespace)
	if t.Failure != nil {
		n += len(t.Failure.Message) + len(t.Failure.Stack)
	}
	for i := range t.Interrupts {
		n += t.Interrupts[i].Size()
	}
	if t.State != nil {
		n += len(t.State.Values)
	}
	return n
}

func (r *snapshotReader) readSnapshot(namespace, id string) (runtime.Snapshot, error) {
	s, err := r.engine.reader.LoadStateAt(r.ctx, r.reservation, r.head, namespace, id)
	if err != nil {
		return runtime.Snapshot{}, err
	}
	if id == "" {
		return r.newestSnapshot(s)
	}
	one := []*checkpoint.Checkpoint{s.Checkpoint()}
	results, err := r.findResults(one)
	if err != nil {
		return runtime.Snapshot{Checkpoint: one[0]}, err
	}
	r.setShown(one, nil)
	return r.pastSnapshot(s, results, true)
}

// newestSnapshot is the snapshot of the newest state, with the progress of the
// superstep under way.
func (r *snapshotReader) newestSnapshot(s *pregel.State) (runtime.Snapshot, error) {
	p, err := r.readProgress(s)
	if err != nil {
		return runtime.Snapshot{}, err
	}
	v := superstep.NewPreview(s, p)
	snap := runtime.Snapshot{Checkpoint: s.Checkpoint(), Values: v.PartialValues()}
	for _, t := range v.ListTasksWithHandlers() {
		one, open, err := r.describeTask(v, t)
		if err == nil {
			err = r.addBytes(taskBytes(&one))
		}
		if err != nil {
			return snap, err
		}
		snap.Tasks = append(snap.Tasks, one)
		snap.Interrupts = append(snap.Interrupts, open...)
		if one.Result == "" && !v.HasHandler(t) {
			snap.Next = append(snap.Next, t.Node.Name)
		}
	}
	for _, q := range p.Interrupts {
		if q.Reason == checkpoint.ReasonBreakpoint && q.State == checkpoint.InterruptOpen {
			snap.Interrupts = append(snap.Interrupts, q)
		}
	}
	return snap, nil
}

func (r *snapshotReader) readProgress(s *pregel.State) (checkpoint.Pending, error) {
	if s.Checkpoint().ID == "" {
		return checkpoint.Pending{}, nil
	}
	return r.engine.reader.ReadPending(r.ctx, r.reservation, r.head.Thread, s.Checkpoint().ID)
}

// describeTask describes one task of the superstep under way, and the interrupts that
// are open below it.
func (r *snapshotReader) describeTask(v *superstep.Preview, t *pregel.Task) (runtime.SnapshotTask, []checkpoint.Interrupt, error) {
	out := runtime.SnapshotTask{ID: t.ID, Node: t.Node.Name}
	record, known := v.FindRecord(t.ID)
	if known {
		out.Failure = record.Failure
		if record.State == checkpoint.TaskDone {
			out.Result = v.State().UpdateOf(record.Writes)
		}
	}
	var open []checkpoint.Interrupt
	for _, q := range v.InterruptsOf(t.ID) {
		if q.State == checkpoint.InterruptOpen {
			open = append(open, q)
		}
	}
	out.Interrupts = open
	if record.State == checkpoint.TaskDone { // what it asked, as in an older state
		out.Interrupts = v.InterruptsOf(t.ID)
	}
	if t.Node.Kind != graph.KindGraph {
		below, err := r.readForeignInterrupts(record, open) // in graphs that the node has called
		if err == nil && r.withSubgraphs && record.State == checkpoint.TaskWaiting {
			err = r.readCalledState(v, t, &out)
		}
		out.Interrupts = append(out.Interrupts, below...)
		return out, append(open, below...), err
	}
	out.Namespace = superstep.ChildNamespace(v.State(), t)
	if !known && !r.withSubgraphs {
		return out, nil, nil
	}
	held := r.heldBytes
	child, err := r.readSnapshot(out.Namespace, "")
	if !r.withSubgraphs { // of the state only the interrupts are shown
		r.heldBytes = held
	}
	if err != nil {
		var missing *runtime.Error
		if errors.As(err, &missing) && missing.Reason == runtime.ReasonCheckpointNotFound {
			out.Interrupts, err = r.readOpenInterrupts(record.Waiting)
			return out, out.Interrupts, err
		}
		return out, nil, err
	}
	if r.withSubgraphs {
		out.State = &child
	}
	if record.State == checkpoint.TaskDone && !superstep.IsPersistent(t.Node) {
		if r.shownIn != v {
			r.setShown([]*checkpoint.Checkpoint{{Namespace: v.State().Namespace(), Next: pregel.NextTasks(v.Tasks())}}, v)
		}
		out.Interrupts, err = r.interruptsBelow(out.Namespace)
		return out, nil, err
	}
	out.Interrupts = child.Interrupts
	return out, child.Interrupts, nil
}

// readCalledState reads the state of a graph that a waiting node has called; there is
// none if the graph keeps none, or if the node waits for itself.
func (r *snapshotReader) readCalledState(v *superstep.Preview, t *pregel.Task, out *runtime.SnapshotTask) error {
	space := superstep.TaskNamespace(v.State().Namespace(), t.Node, t.ID)
	child, err := r.readSnapshot(space, "")
	if missing, ok := errors.AsType[*runtime.Error](err); ok && missing.Reason == runtime.ReasonCheckpointNotFound {
		return nil
	}
	if err == nil {
		out.Namespace, out.State = space, &child
	}
	return err
}

// readForeignInterrupts reads the open interrupts of other tasks that a task waits
// for.
func (r *snapshotReader) readForeignInterrupts(record checkpoint.Task, own []checkpoint.Interrupt) ([]checkpoint.Interrupt, error) {
	if record.State != checkpoint.TaskWaiting {
		return nil, nil
	}
	return r.readOpenInterrupts(slices.DeleteFunc(slices.Clone(record.Waiting), func(id string) bool {
		return slices.ContainsFunc(own, func(q checkpoint.Interrupt) bool { return q.ID == id })
	}))
}

// readOpenInterrupts reads those of some interrupts that wait for an answer: a subgraph that
// keeps no checkpoints has no state of its own to find them in.
func (r *snapshotReader) readOpenInterrupts(ids []string) ([]checkpoint.Interrupt, error) {
	var out []checkpoint.Interrupt
	for _, id := range ids {
		q, err := r.engine.store.Interrupt(r.ctx, r.head.Thread, id)
		if err != nil {
			return nil, runtime.TranslateStoreError(err)
		}
		if q.State == checkpoint.InterruptOpen {
			out = append(out, q)
		}
	}
	return out, nil
}
