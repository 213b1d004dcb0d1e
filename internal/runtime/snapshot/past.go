package snapshot

import (
	"context"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// pastSnapshot is the snapshot of an older state with what calls have updated on it.
// What its tasks did later is told by the event log, as far as it reaches. It
// lists every interrupt that was asked, also those that have been answered.
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
			t.Result = s.RestrictInput(s.StartInput())
		} else {
			done.fillTask(v.State(), &t)
		}
		t.Interrupts = v.InterruptsOf(next.ID)
		if n, ok := s.Graph().Node(next.Node); ok && n.Kind == graph.KindGraph && !superstep.IsPersistent(n) {
			if t.Interrupts, err = b.interruptsBelow(ctx, superstep.TaskNamespace(s.Namespace(), n, next.ID)); err != nil {
				return snap, err
			}
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
