package snapshot

import (
	"context"
	"errors"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

func (b *builder) readSnapshot(ctx context.Context, namespace, id string) (runtime.Snapshot, error) {
	s, err := b.reader.LoadStateAt(ctx, b.reservation, b.head, namespace, id)
	if err != nil {
		return runtime.Snapshot{}, err
	}
	if id == "" {
		return b.newestSnapshot(ctx, s)
	}
	one := []*checkpoint.Checkpoint{s.Checkpoint()}
	results, err := b.findResults(ctx, one)
	if err != nil {
		return runtime.Snapshot{Checkpoint: one[0]}, err
	}
	b.setShown(one)
	return b.pastSnapshot(ctx, s, results, true)
}

// newestSnapshot returns the snapshot of the newest state, with the progress of the
// superstep under way.
func (b *builder) newestSnapshot(ctx context.Context, s *pregel.State) (runtime.Snapshot, error) {
	p, err := b.readProgress(ctx, s)
	if err != nil {
		return runtime.Snapshot{}, err
	}
	v := superstep.NewPreview(s, p)
	snap := runtime.Snapshot{Checkpoint: s.Checkpoint()}
	if b.onlyOutput {
		snap.Values = v.PartialOutput()
		return snap, nil
	}
	snap.Values = v.PartialValues()
	for _, t := range v.ListTasksWithHandlers() {
		one, open, err := b.describeTask(ctx, v, t)
		if err == nil {
			err = b.addBytes(taskBytes(&one))
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

func (b *builder) readProgress(ctx context.Context, s *pregel.State) (checkpoint.Pending, error) {
	if s.Checkpoint().ID == "" {
		return checkpoint.Pending{}, nil
	}
	return b.reader.ReadPending(ctx, b.reservation, b.head.Thread, s.Checkpoint().ID)
}

// describeTask describes a task of the superstep under way, and the interrupts that
// are open below it.
func (b *builder) describeTask(ctx context.Context, v *superstep.Preview, t *pregel.Task) (runtime.SnapshotTask, []checkpoint.Interrupt, error) {
	out := runtime.SnapshotTask{ID: t.ID, Node: t.Node.Name, HandledTask: t.HandledTaskID}
	if out.IsSent = t.IsPush && t.HandledTaskID == ""; out.IsSent {
		out.SendIndex = t.Index
	}
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
	if t.Node.Kind != graph.KindGraph {
		below, err := b.readForeignInterrupts(ctx, record, open) // in graphs that the node has called
		if err == nil && b.withSubgraphs && record.State == checkpoint.TaskWaiting {
			err = b.readCalledState(ctx, v, t, &out)
		}
		out.Interrupts = append(out.Interrupts, below...)
		return out, append(open, below...), err
	}
	open, err := b.describeSubgraph(ctx, v, t, &out)
	return out, open, err
}

// describeSubgraph describes a task that runs a graph, and the interrupts that are open in it.
func (b *builder) describeSubgraph(ctx context.Context, v *superstep.Preview, t *pregel.Task, out *runtime.SnapshotTask) ([]checkpoint.Interrupt, error) {
	out.Namespace = superstep.ChildNamespace(v.State(), t)
	record, known := v.FindRecord(t.ID)
	if !known && !b.withSubgraphs {
		return nil, nil
	}
	held := b.heldBytes
	child, err := b.readTaskSnapshot(ctx, out.Namespace)
	if !b.withSubgraphs { // of the state only the interrupts are shown
		b.heldBytes = held
	}
	if err != nil {
		var missing *runtime.Error
		if errors.As(err, &missing) && missing.Reason == runtime.ReasonCheckpointNotFound {
			out.Interrupts, err = b.readOpenInterrupts(ctx, record.Waiting)
			return out.Interrupts, err
		}
		return nil, err
	}
	if b.withSubgraphs {
		out.State = &child
	}
	out.Interrupts = child.Interrupts
	return child.Interrupts, nil
}

// readTaskSnapshot reads the newest state in the namespace of a task, or in one of the
// others. The state of another task of the same node does not count.
func (b *builder) readTaskSnapshot(ctx context.Context, space string, others ...string) (runtime.Snapshot, error) {
	child, err := b.readSnapshot(ctx, space, "")
	if err == nil && child.Checkpoint.Namespace != space && !slices.Contains(others, child.Checkpoint.Namespace) {
		return runtime.Snapshot{}, runtime.Errorf(runtime.ReasonCheckpointNotFound, "the task has no state yet")
	}
	return child, err
}

// readCalledState reads the state of a graph that a waiting node has called; there is
// none if the graph keeps none, or if the node waits for itself.
func (b *builder) readCalledState(ctx context.Context, v *superstep.Preview, t *pregel.Task, out *runtime.SnapshotTask) error {
	space := superstep.TaskNamespace(v.State().Namespace(), t.Node, t.ID)
	persistent := pregel.JoinNamespace(pregel.NodePath(v.State().Namespace()), t.Node.Name)
	child, err := b.readTaskSnapshot(ctx, space, persistent)
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
func (b *builder) readForeignInterrupts(ctx context.Context, record checkpoint.Task, own []checkpoint.Interrupt) ([]checkpoint.Interrupt, error) {
	if record.State != checkpoint.TaskWaiting {
		return nil, nil
	}
	return b.readOpenInterrupts(ctx, slices.DeleteFunc(slices.Clone(record.Waiting), func(id string) bool {
		return slices.ContainsFunc(own, func(q checkpoint.Interrupt) bool { return q.ID == id })
	}))
}

// readOpenInterrupts reads those of some interrupts that wait for an answer: a subgraph that
// keeps no checkpoints has no state of its own to find them in.
func (b *builder) readOpenInterrupts(ctx context.Context, ids []string) ([]checkpoint.Interrupt, error) {
	var out []checkpoint.Interrupt
	for _, id := range ids {
		q, err := b.reader.StoredInterrupt(ctx, b.head.Thread, id)
		if err != nil {
			return nil, runtime.TranslateStoreError(err)
		}
		if q.State == checkpoint.InterruptOpen {
			out = append(out, q)
		}
	}
	return out, nil
}
