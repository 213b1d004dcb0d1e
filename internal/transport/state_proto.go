package transport

import (
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
)

func snapshotToProto(s runtime.Snapshot) *graphdv1.StateSnapshot {
	out := &graphdv1.StateSnapshot{
		Values: jsonToProto(s.Values), Next: s.Next, Interrupts: interruptsToProto(s.Interrupts),
		AppliedThrough: cursorToProto(s.LogID, s.LastEvent),
	}
	for _, t := range s.Tasks {
		task := &graphdv1.SnapshotTask{
			TaskId: t.ID, Node: t.Node, Namespace: namespaceToProto(t.Namespace),
			Failure: failureToProto(t.Failure), Interrupts: interruptsToProto(t.Interrupts), Result: jsonToProto(t.Result),
		}
		if t.State != nil {
			task.State = snapshotToProto(*t.State)
		}
		out.Tasks = append(out.Tasks, task)
	}
	if c := s.Checkpoint; c != nil {
		out.Checkpoint = checkpointRefToProto(c.ID, c.Namespace)
		out.Parent = checkpointRefToProto(c.Parent, c.Namespace)
		out.Step = int32(c.Step)
		out.Source = sourceToProto(c.Source)
		out.CreateTime = timeToProto(c.Time)
		out.Metadata = c.Metadata
		out.RunId, out.Graph, out.GraphVersion = c.Run, c.Graph, c.Version
	}
	return out
}

func updateStateFromProto(b *validator, req *graphdv1.UpdateStateRequest) runtime.UpdateStateRequest {
	b.requireSet("values", req.GetValues() != nil || takesNoValues(req.GetAsNode()))
	id, namespace := checkpointRefFromProto(b, "at", req.GetAt())
	return runtime.UpdateStateRequest{
		Thread:              b.checkID("thread_id", req.GetThreadId()),
		Checkpoint:          id,
		Namespace:           namespace,
		Values:              b.convertPayload("values", req.GetValues()),
		AsNode:              b.checkName("as_node", req.GetAsNode()),
		Expected:            b.checkOptionalID("expected_checkpoint_id", req.GetExpectedCheckpointId()),
		SupersedeInterrupts: req.GetSupersedeInterrupts(),
		RequestID:           b.checkOptionalID("request_id", req.GetRequestId()),
	}
}

// takesNoValues reports whether an update as a node takes no values.
func takesNoValues(as string) bool { return as == runtime.AsEnd || as == runtime.AsCopy }

func bulkUpdateStateFromProto(b *validator, req *graphdv1.BulkUpdateStateRequest) runtime.BulkUpdateStateRequest {
	id, namespace := checkpointRefFromProto(b, "at", req.GetAt())
	out := runtime.BulkUpdateStateRequest{
		Thread:              b.checkID("thread_id", req.GetThreadId()),
		Checkpoint:          id,
		Namespace:           namespace,
		Expected:            b.checkOptionalID("expected_checkpoint_id", req.GetExpectedCheckpointId()),
		SupersedeInterrupts: req.GetSupersedeInterrupts(),
		RequestID:           b.checkOptionalID("request_id", req.GetRequestId()),
	}
	b.requireSet("supersteps", len(req.GetSupersteps()) > 0)
	total := 0
	for i, superstep := range req.GetSupersteps() {
		at := elementPath("supersteps", i)
		b.requireSet(at+".updates", len(superstep.GetUpdates()) > 0)
		if total += len(superstep.GetUpdates()); total > maxListEntries {
			b.addViolation(at, "is too much; at most %d updates are allowed in all", maxListEntries)
			return out
		}
		out.Supersteps = append(out.Supersteps, stateWritesFromProto(b, at+".updates", superstep.GetUpdates()))
	}
	return out
}

func stateWritesFromProto(b *validator, field string, updates []*graphdv1.StateUpdate) []runtime.StateWrite {
	writes := make([]runtime.StateWrite, len(updates))
	for i, u := range updates {
		at := elementPath(field, i)
		b.requireSet(at+".values", u.GetValues() != nil || takesNoValues(u.GetAsNode()))
		writes[i] = runtime.StateWrite{
			Values: b.convertPayload(at+".values", u.GetValues()),
			AsNode: b.checkName(at+".as_node", u.GetAsNode()),
			Task:   b.checkName(at+".task_id", u.GetTaskId()),
			Goto:   sendsFromProto(b, at+".goto_targets", u.GetGotoTargets()),
		}
	}
	return writes
}
