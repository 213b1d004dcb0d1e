package snapshot

import (
	"context"

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
	for _, next := range due {
		t := runtime.SnapshotTask{ID: next.ID, Node: next.Node}
		if next.Node == graph.Start && cp.ID != b.head.Checkpoint { // its result is not shown
			t.Result = s.RestrictInput(s.DurableInput(s.StartInput()))
		} else {
			done.fillTask(v.State(), &t)
		}
		t.Interrupts = v.InterruptsOf(next.ID)
		if n, ok := s.Graph().Node(next.Node); ok && runsGraphs(n) {
			below, err := b.interruptsBelow(ctx, superstep.TaskNamespace(s.Namespace(), n, next.ID))
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

// runsGraphs reports whether a node may run graphs in a namespace of its task: a subgraph,
// or graphs that its code calls.
func runsGraphs(n *graph.Node) bool {
	switch n.Kind {
	case graph.KindGraph:
		return !superstep.IsPersistent(n)
	case graph.KindRemote, graph.KindFunction:
		return true
	default:
		return false
	}
}
