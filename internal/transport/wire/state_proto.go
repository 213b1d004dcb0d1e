package wire

import (
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// SnapshotToProto converts a state.
func SnapshotToProto(s runtime.Snapshot) *graphdv1.StateSnapshot {
	out := &graphdv1.StateSnapshot{
		Values: JSONToProto(s.Values), Next: s.Next, Interrupts: InterruptsToProto(s.Interrupts),
		AppliedThrough: CursorToProto(s.LogID, s.LastEvent),
	}
	for _, t := range s.Tasks {
		task := &graphdv1.SnapshotTask{
			TaskId: t.ID, Node: t.Node, Namespace: namespaceToProto(t.Namespace),
			Failure: failureToProto(t.Failure), Interrupts: InterruptsToProto(t.Interrupts), Result: JSONToProto(t.Result),
			HandledTaskId: t.HandledTask,
		}
		if t.IsSent {
			task.SendIndex = new(int32(t.SendIndex))
		}
		if t.State != nil {
			task.State = SnapshotToProto(*t.State)
		}
		out.Tasks = append(out.Tasks, task)
	}
	if c := s.Checkpoint; c != nil {
		out.Checkpoint = CheckpointRefToProto(c.ID, c.Namespace)
		out.Parent = CheckpointRefToProto(c.Parent, c.Namespace)
		out.Step = int32(c.Step)
		out.Source = sourceToProto(c.Source)
		out.CreateTime = TimeToProto(c.Time)
		out.Metadata = c.Metadata
		out.RunId, out.Graph, out.GraphVersion = c.Run, tenant.ClientName(c.Graph), c.Version
	}
	return out
}

// UpdateStateFromProto converts a change of a state.
func UpdateStateFromProto(v *Validator, req *graphdv1.UpdateStateRequest) runtime.UpdateStateRequest {
	v.RequireSet("values", req.GetValues() != nil || takesNoValues(req.GetAsNode()))
	id, namespace := CheckpointRefFromProto(v, "at", req.GetAt())
	return runtime.UpdateStateRequest{
		Thread:              v.CheckThread("thread_id", req.GetThreadId()),
		Checkpoint:          id,
		Namespace:           namespace,
		Values:              v.ConvertPayload("values", req.GetValues()),
		AsNode:              v.CheckName("as_node", req.GetAsNode()),
		Expected:            v.CheckOptionalID("expected_checkpoint_id", req.GetExpectedCheckpointId()),
		SupersedeInterrupts: req.GetSupersedeInterrupts(),
		RequestID:           v.CheckOptionalID("request_id", req.GetRequestId()),
	}
}

// takesNoValues reports whether an update as a node takes no values.
func takesNoValues(as string) bool { return as == runtime.AsEnd || as == runtime.AsCopy }

// BulkUpdateStateFromProto converts changes of a state, superstep by superstep.
func BulkUpdateStateFromProto(v *Validator, req *graphdv1.BulkUpdateStateRequest) runtime.BulkUpdateStateRequest {
	id, namespace := CheckpointRefFromProto(v, "at", req.GetAt())
	out := runtime.BulkUpdateStateRequest{
		Thread:              v.CheckThread("thread_id", req.GetThreadId()),
		Checkpoint:          id,
		Namespace:           namespace,
		Expected:            v.CheckOptionalID("expected_checkpoint_id", req.GetExpectedCheckpointId()),
		SupersedeInterrupts: req.GetSupersedeInterrupts(),
		RequestID:           v.CheckOptionalID("request_id", req.GetRequestId()),
	}
	v.RequireSet("supersteps", len(req.GetSupersteps()) > 0)
	total := 0
	for i, superstep := range req.GetSupersteps() {
		at := elementPath("supersteps", i)
		v.RequireSet(at+".updates", len(superstep.GetUpdates()) > 0)
		if total += len(superstep.GetUpdates()); total > maxListEntries {
			v.AddViolation(at, "is too much; at most %d updates are allowed in all", maxListEntries)
			return out
		}
		out.Supersteps = append(out.Supersteps, stateWritesFromProto(v, at+".updates", superstep.GetUpdates()))
	}
	return out
}

func stateWritesFromProto(v *Validator, field string, updates []*graphdv1.StateUpdate) []runtime.StateWrite {
	writes := make([]runtime.StateWrite, len(updates))
	for i, u := range updates {
		at := elementPath(field, i)
		v.RequireSet(at+".values", u.GetValues() != nil || takesNoValues(u.GetAsNode()))
		writes[i] = runtime.StateWrite{
			Values: v.ConvertPayload(at+".values", u.GetValues()),
			AsNode: v.CheckName(at+".as_node", u.GetAsNode()),
			Task:   v.CheckName(at+".task_id", u.GetTaskId()),
			Goto:   sendsFromProto(v, at+".goto_targets", u.GetGotoTargets()),
		}
	}
	return writes
}
