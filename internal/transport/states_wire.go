package transport

import (
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
)

func snapshotOut(s runtime.Snapshot) *graphdv1.StateSnapshot {
	out := &graphdv1.StateSnapshot{
		Values: jsonOut(s.Values), Next: s.Next, Interrupts: interruptsOut(s.Interrupts),
		AppliedThrough: cursorOut(s.LogID, s.LastEvent),
	}
	for _, t := range s.Tasks {
		task := &graphdv1.SnapshotTask{
			TaskId: t.ID, Node: t.Node, Namespace: namespaceOut(t.Namespace),
			Failure: failureOut(t.Failure), Interrupts: interruptsOut(t.Interrupts), Result: jsonOut(t.Result),
		}
		if t.State != nil {
			task.State = snapshotOut(*t.State)
		}
		out.Tasks = append(out.Tasks, task)
	}
	if c := s.Checkpoint; c != nil {
		out.Checkpoint = checkpointOut(c.ID, c.Namespace)
		out.Parent = checkpointOut(c.Parent, c.Namespace)
		out.Step = int32(c.Step)
		out.Source = sourceOut(c.Source)
		out.CreateTime = timeOut(c.Time)
		out.Metadata = c.Metadata
		out.RunId, out.Graph, out.GraphVersion = c.Run, c.Graph, c.Version
	}
	return out
}

func updateStateIn(b *border, req *graphdv1.UpdateStateRequest) runtime.UpdateStateRequest {
	b.must("values", req.GetValues() != nil || writesNothing(req.GetAsNode()))
	id, namespace := checkpointIn(b, "at", req.GetAt())
	return runtime.UpdateStateRequest{
		Thread:     b.id("thread_id", req.GetThreadId()),
		Checkpoint: id,
		Namespace:  namespace,
		Values:     b.payload("values", req.GetValues()),
		AsNode:     b.name("as_node", req.GetAsNode()),
		Expected:   b.optionalID("expected_checkpoint_id", req.GetExpectedCheckpointId()),
		Supersede:  req.GetSupersedeInterrupts(),
		RequestID:  b.optionalID("request_id", req.GetRequestId()),
	}
}

// writesNothing reports whether an update as a node takes no values.
func writesNothing(as string) bool { return as == runtime.AsEnd || as == runtime.AsCopy }

func bulkUpdateStateIn(b *border, req *graphdv1.BulkUpdateStateRequest) runtime.BulkUpdateStateRequest {
	id, namespace := checkpointIn(b, "at", req.GetAt())
	out := runtime.BulkUpdateStateRequest{
		Thread:     b.id("thread_id", req.GetThreadId()),
		Checkpoint: id,
		Namespace:  namespace,
		Expected:   b.optionalID("expected_checkpoint_id", req.GetExpectedCheckpointId()),
		Supersede:  req.GetSupersedeInterrupts(),
		RequestID:  b.optionalID("request_id", req.GetRequestId()),
	}
	b.must("supersteps", len(req.GetSupersteps()) > 0)
	total := 0
	for i, superstep := range req.GetSupersteps() {
		at := indexed("supersteps", i)
		b.must(at+".updates", len(superstep.GetUpdates()) > 0)
		if total += len(superstep.GetUpdates()); total > maxNames {
			b.refuse(at, "is too much; at most %d updates are allowed in all", maxNames)
			return out
		}
		out.Supersteps = append(out.Supersteps, writesIn(b, at+".updates", superstep.GetUpdates()))
	}
	return out
}

func writesIn(b *border, field string, updates []*graphdv1.StateUpdate) []runtime.StateWrite {
	writes := make([]runtime.StateWrite, len(updates))
	for i, u := range updates {
		at := indexed(field, i)
		b.must(at+".values", u.GetValues() != nil || writesNothing(u.GetAsNode()))
		writes[i] = runtime.StateWrite{
			Values: b.payload(at+".values", u.GetValues()),
			AsNode: b.name(at+".as_node", u.GetAsNode()),
			Task:   b.name(at+".task_id", u.GetTaskId()),
			Goto:   sendsIn(b, at+".goto_targets", u.GetGotoTargets()),
		}
	}
	return writes
}
