package snapshot

import (
	"context"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// pastSnapshot returns the snapshot of an older state with the updates of later calls. done
// has the results of its tasks from the event log, as far as the log reaches. The snapshot
// lists all interrupts of the tasks, also those that have an answer.
func (b *builder) pastSnapshot(ctx context.Context, s *pregel.State, done taskResults, values bool) (runtime.Snapshot, error) {
	cp := s.Checkpoint()
	snap := runtime.Snapshot{Checkpoint: cp}
	p, err := b.readProgress(ctx, s)
	if err != nil {
		return snap, err
	}
	v := superstep.NewPastPreview(s, p)
	due := v.ListDueTasks(cp.Next)
	if values {
		snap.Values = v.State().Values()
	}
	sent := v.State().SendIndexes()
	for _, next := range due {
		t := runtime.SnapshotTask{ID: next.ID, Node: next.Node}
		t.SendIndex, t.IsSent = sent[next.ID]
		if next.Node == graph.Start && cp.ID != b.head.Checkpoint { // its result is not shown
			t.Result = s.RestrictInput(s.DurableInput(s.StartInput()))
		} else {
			done.fillTask(&t)
		}
		t.Interrupts = v.InterruptsOf(next.ID)
		if n, ok := s.Graph().Node(next.Node); ok {
			below, err := b.interruptsOfGraphs(ctx, s, n, next.ID)
			if err != nil {
				return snap, err
			}
			t.Interrupts = append(t.Interrupts, below...)
		}
		if err := b.addBytes(taskBytes(&t)); err != nil {
			return snap, err
		}
		snap.Interrupts = append(snap.Interrupts, t.Interrupts...)
		snap.Next = append(snap.Next, next.Node)
		snap.Tasks = append(snap.Tasks, t)
	}
	return snap, nil
}

// interruptsOfGraphs lists the interrupts of the graphs that a task ran: its subgraph, or
// graphs that its code called.
func (b *builder) interruptsOfGraphs(ctx context.Context, s *pregel.State, n *graph.Node, task string) ([]checkpoint.Interrupt, error) {
	switch {
	case n.Kind == graph.KindGraph && superstep.IsPersistent(n):
		space := pregel.JoinNamespace(pregel.NodePath(s.Namespace()), n.Name)
		return b.persistentInterrupts(ctx, space, s.Namespace(), s.Checkpoint().ID)
	case n.Kind == graph.KindGraph, n.Kind == graph.KindRemote, n.Kind == graph.KindFunction:
		return b.interruptsBelow(ctx, superstep.TaskNamespace(s.Namespace(), n, task))
	default:
		return nil, nil
	}
}
